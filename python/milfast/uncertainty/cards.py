"""Reporting cards: all that a reader needs to judge the figures of a comparison, in four forms."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from milfast.report.table import LATEX, row_of_tex
from milfast.uncertainty.comparison import show_p

if TYPE_CHECKING:
    from collections.abc import Sequence

    from milfast.uncertainty.intervals import Interval
    from milfast.uncertainty.models import ComparedModels
    from milfast.uncertainty.variance import VarianceComponents

FORMATS = ("text", "markdown", "latex", "json")


def card(result: ComparedModels, form: str) -> str:
    """The card of a comparison.

    Parameters
    ----------
    result : ComparedModels
    form : {"text", "markdown", "latex", "json"}

    Returns
    -------
    str

    Raises
    ------
    ValueError
        When the form is unknown.

    Examples
    --------
    >>> import milfast as mf
    >>> right = [1] * 40 + [0] * 40
    >>> ours, theirs = [0] * 3 + right[3:], [1 - label for label in right[:12]] + right[12:]
    >>> print(mf.compare({"ours": ours, "theirs": theirs}, right).card())
    ours                  0.96 [0.90, 0.99] (wilson)
    theirs                0.85 [0.76, 0.91] (wilson)
    ours - theirs         0.11 [0.06, 0.20] (score); p = 0.0020 (mid-p McNemar)
    metric                accuracy
    intervals             95 %
    items                 80
    classes               2
    folds                 none
    seeds                 1
    paired                yes, all models on the same items
    runs without a value  0 of 1
    software              milfast 0.1.0
    warning               only 9 of 80 items tell ours and theirs apart: the test rests on those
    warning               the intervals of ours and theirs overlap, and yet their paired difference excludes 0: overlap is no test
    warning               one training run a model: the tests are about these trained models, not about the way they were trained
    """  # noqa: E501
    if form not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {form!r}")
    if form == "json":
        return json.dumps(as_plain(result), indent=2, allow_nan=False)
    return _FORMS[form](result)


def as_plain(result: ComparedModels) -> dict[str, Any]:
    """The fields of the card with all their digits.

    Parameters
    ----------
    result : ComparedModels

    Returns
    -------
    dict
    """
    rows = result.table()
    comparisons = []
    for i, pair in enumerate(result.pairs):
        entry = {
            "models": list(pair.names),
            "test": pair.method,
            "p_value": rows[len(result.names) + i]["p_value"],
            "log_p": rows[len(result.names) + i]["log_p"],
            "p_adjusted": rows[len(result.names) + i]["p_adjusted"],
            "effect": None if pair.difference is None else pair.difference.to_dict(),
            "notes": list(pair.notes),
            "further_tests": [other.to_dict() for other in result.others[i]],
        }
        if result.improvements:
            entry["p_first_better"] = result.improvements[i].to_dict()
        if result.equivalences:
            entry["equivalence"] = result.equivalences[i].to_dict()
        comparisons.append(entry)
    return {
        "metric": result.measure,
        "models": [
            {
                "name": name,
                "point": row["estimate"],
                "low": row["low"],
                "high": row["high"],
                "level": row["level"],
                "method": row["method"],
            }
            for name, row in zip(result.names, rows, strict=False)
        ],
        "comparisons": comparisons,
        "all_models": None if result.joint is None else result.joint.to_dict(),
        "variances": {name: variance.to_dict() for name, variance in zip(result.names, result.variances, strict=False)},
        **result.design,
        "warnings": [{"code": doubt.code, "text": doubt.text} for doubt in result.warnings],
    }


def shown_interval(interval: Interval | None) -> str:
    """An estimate with its bounds, no digit more than their distance supports.

    Parameters
    ----------
    interval : Interval or None

    Returns
    -------
    str

    Examples
    --------
    >>> from milfast.uncertainty import proportion_interval
    >>> from milfast.uncertainty.cards import shown_interval
    >>> shown_interval(proportion_interval(605, 670))
    '0.903 [0.878, 0.923]'
    """
    if interval is None:
        return ""
    estimate, low, high = interval._rounded()
    if math.isnan(interval.estimate):
        return "undefined"
    return f"{estimate} [undefined]" if math.isnan(interval.half_width) else f"{estimate} [{low}, {high}]"


def shown_rows(result: ComparedModels) -> tuple[list[str], list[list[str]]]:
    """Titles and cells of the table for people.

    Parameters
    ----------
    result : ComparedModels

    Returns
    -------
    tuple of list of str, and list of list of str
    """
    several, k = len(result.pairs) > 1, len(result.names)
    rows = [
        [name, shown_interval(i), i.method, "", "", ""] for name, i in zip(result.names, result.estimates, strict=True)
    ]
    for i, pair in enumerate(result.pairs):
        adjusted = "" if pair.log_p_adjusted is None else show_p(pair.log_p_adjusted)
        better = ""
        if result.improvements:
            found = result.improvements[i]
            better = f"{found.names[0]}: {shown_interval(found.probability)}"
        rows.append(
            [" - ".join(pair.names), shown_interval(pair.difference), pair.method, show_p(pair.log_p), adjusted, better]
        )
        if result.equivalences:
            test = result.equivalences[i]
            adjusted = "" if test.log_p_adjusted is None else show_p(test.log_p_adjusted)
            rows.append(["", shown_interval(test.difference), test.method, show_p(test.log_p), adjusted, ""])
    if result.joint is not None:
        rows.append([f"all {k}", "", result.joint.method, show_p(result.joint.log_p), "", ""])
    titles = ["model", result.measure, "method", "p", "p, Holm", "P(better)"]
    kept = [i for i in range(len(titles)) if i < 4 or any(row[i] for row in rows)]
    if not several:
        kept = [i for i in kept if i != 4]
    return [titles[i] for i in kept], [
        [row[i].removeprefix("p = ").removeprefix("p ") if i in (3, 4) else row[i] for i in kept] for row in rows
    ]


def shares(variance: VarianceComponents) -> str:
    """Shares of the variance in words.

    Parameters
    ----------
    variance : VarianceComponents

    Returns
    -------
    str
    """
    parts = []
    for name, share, log_p in zip(
        ("seeds", "folds", "rest"), variance.shares, (variance.log_p_seed, variance.log_p_fold, None), strict=True
    ):
        said = "undefined" if math.isnan(share) else f"{100 * share:.0f} %"
        parts.append(f"{name} {said}" + ("" if log_p is None else f" ({show_p(log_p)})"))
    return (
        f"{', '.join(parts)}; standard error of the mean {variance.se:.2g} "
        f"(standard deviation over the root of the runs: {variance.naive_se:.2g})"
    )


def facts(result: ComparedModels) -> list[tuple[str, str]]:
    """What the design was, line by line.

    Parameters
    ----------
    result : ComparedModels

    Returns
    -------
    list of (str, str)
    """
    d = result.design
    found = [("metric", result.measure + (", mean over folds" if d["n_folds"] and d["kind"] == "scores" else ""))]
    found.append(("intervals", f"{100 * d['level']:.6g} %"))
    items = f"{d['n_items']}" + (f" in {d['n_clusters']} clusters" if d["n_clusters"] is not None else "")
    if d["n_pos"] is not None:
        found.append(("items", f"{items}: {d['n_pos']} positive, {d['n_neg']} negative"))
    else:
        found += [("items", items), ("classes", str(d["n_classes"]))]
    found.append(("folds", "none" if d["n_folds"] is None else str(d["n_folds"])))
    found.append(("seeds", str(d["n_seeds"])))
    if d["shared_folds"] is not None:
        found.append(("shared folds", "yes, all seeds on the same" if d["shared_folds"] else "no, splits of their own"))
    found.append(("paired", "yes, all models on the same items"))
    if d["correction"] is not None:
        found.append(("correction", f"{d['correction']}, {len(result.pairs)} pairs"))
    if d["margin"] is not None:
        low, high = d["margin"]
        if low is None or high is None:  # one side is open
            found.append(("margin", f"{low if high is None else high:g}"))
        else:
            found.append(("margin of equivalence", f"{low:g} to {high:g}"))
    found.append(("runs without a value", f"{d['n_undefined_runs']} of {d['n_runs']}"))
    if d["n_boot"] is not None:
        found.append(
            (
                "bootstrap",
                f"{d['n_boot']} resamples, {d['n_undefined_resamples']} undefined, seed {d['bootstrap_seed']}",
            )
        )
    for name, variance in zip(result.names, result.variances, strict=False):
        found.append((f"variance of {name}", shares(variance)))
    if d["selected_on_test"]:
        found.append(("selection", "on the tested items"))
    found.append(("software", f"milfast {d['milfast']}"))
    return found


def _findings(result: ComparedModels) -> list[tuple[str, str]]:
    """What was found, line by line."""
    found = [
        (name, f"{shown_interval(interval)} ({interval.method})")
        for name, interval in zip(result.names, result.estimates, strict=True)
    ]
    if result.joint is not None:
        found.append((f"all {len(result.names)}", f"{show_p(result.joint.log_p)} ({result.joint.method})"))
    for i, pair in enumerate(result.pairs):
        assert pair.difference is not None
        adjusted = "" if pair.log_p_adjusted is None else f", Holm {show_p(pair.log_p_adjusted)}"
        how = f" ({pair.difference.method})" if pair.difference.method != pair.method else ""
        found.append(
            (
                " - ".join(pair.names),
                f"{shown_interval(pair.difference)}{how}; {show_p(pair.log_p)}{adjusted} ({pair.method})",
            )
        )
        if result.improvements:
            better = result.improvements[i]
            found.append(("", f"P({better.names[0]} better) {shown_interval(better.probability)}, {better.decision}"))
        found += [
            ("", f"{shown_interval(other.difference)}; {show_p(other.log_p)} ({other.method})")
            for other in result.others[i]
        ]
        if result.equivalences:
            test = result.equivalences[i]
            found.append(("", f"{show_p(test.log_p)} ({test.method})"))
    return found


def _sections(result: ComparedModels) -> list[list[tuple[str, str]]]:
    said = [("warning", doubt.text) for doubt in result.warnings]
    return [section for section in (_findings(result), facts(result), said) if section]


def _text(result: ComparedModels) -> str:
    lines = [line for section in _sections(result) for line in section]
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:{width}}  {value}" for name, value in lines)


def _markdown(result: ComparedModels) -> str:
    def table(rows: Sequence[tuple[str, str]]) -> str:
        lines = ["| | |", "|---|---|"]
        return "\n".join([*lines, *(f"| {_escaped(name)} | {_escaped(value)} |" for name, value in rows)])

    found, facts_, *said = _sections(result)
    blocks = [table(found), table(facts_)]
    if said:
        blocks.append("\n".join(f"- **warning:** {_escaped(text)}" for _, text in said[0]))
    return "\n\n".join(blocks)


def _escaped(text: str) -> str:
    # a line ends a row; an underscore within a word is one
    text = re.sub(r"([\\*`|]|(?<!\w)_|_(?!\w))", r"\\\1", " ".join(text.split()))
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _latex(result: ComparedModels) -> str:
    def line(name: str, value: str) -> str:
        return row_of_tex((tex(name), tex(value)))

    lines = [r"\begin{tabular}{lp{0.7\linewidth}}", r"\toprule"]
    for i, section in enumerate(_sections(result)):
        lines += [r"\midrule"] * (i > 0) + [line(name, value) for name, value in section]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def tex(text: str) -> str:
    r"""Text as LaTeX has to read it.

    Parameters
    ----------
    text : str

    Returns
    -------
    str

    Examples
    --------
    >>> from milfast.uncertainty.cards import tex
    >>> print(tex("a_b - c: p < 1e-300, 95 %"))
    a\_b $-$ c: p $<$ 1e$-$300, 95 \%
    """
    found = "".join(LATEX.get(character, character) for character in " ".join(text.split()))
    # a minus in front of a figure, and between two names; a hyphen stays one
    return re.sub(r"(?<=[\s\[(e])-(?=\d)|(?<=\s)-(?=\s)|^-(?=\d)", "$-$", found)


_FORMS = {"text": _text, "markdown": _markdown, "latex": _latex}
