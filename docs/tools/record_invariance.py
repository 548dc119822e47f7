"""The record of batteries, and the tables of docs/ made of it: python docs/tools/record_invariance.py STUDY ..."""

from __future__ import annotations

import argparse
import json
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from milfast.invariance import jobs as battery_jobs
from milfast.invariance.battery import Battery, combine
from milfast.invariance.verdict import RatioInterval
from milfast.report import records
from milfast.study import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from milfast.study import Record

#: Kind of the places of tables in pages.
KIND = "invariance"
#: Files of the record, by mode.
FILES = {"paper": "invariance-paper.json", "strict": "invariance-strict.json"}
#: Setting of the default table.
DEFAULT = {"n_env": 3, "d_inv": 5, "d_spu": 5}
#: Settings that are swept over.
SWEPT: tuple[Literal["n_env", "d_spu"], ...] = ("n_env", "d_spu")

Row = dict[str, Any]


def collect(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """What studies hold, by mode.

    Parameters
    ----------
    paths : iterable of Path
        Files of `milfast invariance --out`.

    Returns
    -------
    dict of str to dict
        "paper" and "strict", where there are such: ``cells``, flat rows with risks by replicate, and their origin.

    Raises
    ------
    ValueError
        When a study has jobs that are not done: figures of a part are not those of the whole.
    """
    found = list({record.id: record for path in paths for record in _done(path)}.values())
    provenances = [record.provenance for record in found if record.provenance is not None]
    rows = combine((record.spec, record.result or {}) for record in found).to_dict()["cells"]
    taken: dict[str, dict[str, Any]] = {}
    for mode in FILES:
        cells = [{key: value for key, value in row.items() if value is not None} for row in rows if row["mode"] == mode]
        if cells:
            processors = sorted({str(given["processor"]) for given in provenances})
            versions = provenances[-1]["versions"] | {"python": provenances[-1]["python"]} if provenances else {}
            taken[mode] = {
                "mode": mode,
                "processor_seconds": round(sum(cell["seconds"] for cell in cells), 1),
                # a learner without a search has one trial
                "runs": sum(len((r.result or {})["trials"]) for r in found if r.spec["mode"] == mode),
                "processors": processors,
                "versions": versions,
                "cells": [_rounded(cell) for cell in cells],
            }
    return taken


def _done(path: Path) -> list[Record]:
    """Jobs of a study, all of which are done."""
    with Store(path, write=False) as store:
        found = [record for record in store.records() if record.spec["function"] == battery_jobs.FUNCTION]
    left = sum(record.result is None for record in found)
    if left:
        raise ValueError(f"{path}: {left} of {len(found)} jobs are not done: run the command of the study again")
    return found


def pictures(paths: Iterable[Path]) -> dict[str, str]:
    """Pictures of studies that are done.

    Parameters
    ----------
    paths : iterable of Path
        Files of `milfast invariance --out`.

    Returns
    -------
    dict of str to str
        SVG files by name: "invariance-verdicts" of strict mode, "invariance-n_env" and "invariance-d_spu" of sweeps.

    Raises
    ------
    ImportError
        When matplotlib is missing.
    ValueError
        As `collect`.
    """
    from milfast.report import invariance_plots
    from milfast.report.pictures import fixed_svg

    battery = combine((record.spec, record.result or {}) for path in paths for record in _done(path))
    made = {}
    rows = [(cell, cell.to_dict()) for cell in battery.cells]
    judged = Battery(tuple(cell for cell, row in rows if cell.verdict is not None and _is_default(row)))
    if judged.cells:
        made["invariance-verdicts"] = fixed_svg(lambda: invariance_plots.verdict_plot(judged))
    for over in SWEPT:
        swept = Battery(tuple(c for c, row in rows if c.mode == "paper" and _is_default(row, but=over)))
        if len({getattr(cell, over) for cell in swept.cells}) > 1:
            made[f"invariance-{over}"] = fixed_svg(partial(invariance_plots.sweep_plot, swept, over, published=True))
    return made


def _rounded(value: Any) -> Any:
    """Figures to nine digits: more are noise of the last bits, and files stay small."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value


def tables(record: dict[str, Any]) -> dict[str, str]:
    """The tables of a record, as Markdown.

    Parameters
    ----------
    record : dict
        Of one mode, as `collect` gives it.

    Returns
    -------
    dict of str to str
        By name: "default", "environments", "n_env", "d_spu" and "paper-total" of paper mode; "verdicts", "details" and
        "strict-total" of strict mode. Those without a row are left out.
    """
    cells = record["cells"]
    made: dict[str, str] = {}
    total = (
        f"{record['runs']:,} runs in {record['processor_seconds'] / 60:.1f} processor minutes "
        f"({', '.join(record['processors'])})."
    )
    if record["mode"] == "paper":
        default = [cell for cell in cells if _is_default(cell)]
        if default:
            made["default"] = _beside(default)
            made["environments"] = _environments(default)
        for key in SWEPT:
            swept = [cell for cell in cells if _is_default(cell, but=key)]
            if len({cell[key] for cell in swept}) > 1:
                made[key] = _swept(swept, key)
        made["paper-total"] = total
    else:
        default = [cell for cell in cells if _is_default(cell) and "verdict" in cell]
        if default:
            made["verdicts"] = _matrix(default)
            made["details"] = _details(default)
        made["strict-total"] = total
    return made


def _is_default(cell: Row, *, but: str = "") -> bool:
    return all(cell[name] == value for name, value in DEFAULT.items() if name != but)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(
        [
            "| " + " | ".join(heads) + " |",
            "|" + "---|" * len(heads),
            *("| " + " | ".join(row) + " |" for row in rows),
        ]
    )


def _beside(cells: Sequence[Row]) -> str:
    """The default table beside the published one."""
    rows = [
        (
            cell["problem"],
            cell["model"],
            _mean_sd(cell),
            _published(cell),
            f"{cell['difference']:+.1e}" if "difference" in cell else "-",
            _trials(cell),
        )
        for cell in cells
    ]
    heads = ("problem", "learner", "error ± SD", "published", "difference", "trial")
    known = [abs(cell["difference"]) for cell in cells if "difference" in cell]
    close = sum(round(cell["mean"], 4) == cell["published_mean"] for cell in cells if "difference" in cell)
    text = _table(heads, rows)
    if known:
        text += (
            f"\n\nOf {len(known)} cells {close} have the published mean to all four decimals, and "
            f"{sum(difference <= 1e-4 for difference in known)} are within 0.0001 of it; the largest difference is "
            f"{max(known):.1e}."
        )
    return text


def _mean_sd(cell: Row) -> str:
    """The error, which a learner that diverged in a replicate has none of."""
    return f"{cell['mean']:.4f} ± {cell['sd']:.4f}" if "mean" in cell else "-"


def _trials(cell: Row) -> str:
    """The trial that was chosen, and the published one with its error here where it is another."""
    text = str(cell.get("trial", "each its own"))
    if "mean_of_published_trial" not in cell:
        return text
    theirs = f"{cell['mean_of_published_trial']:.4f} ± {cell['sd_of_published_trial']:.4f}"
    by = cell.get("margin_of_published_trial")
    margin = "" if by is None else f", its validation error larger by a share of {by:.0e}" if by else ", a tie"
    return f"{text}; the published one, {cell['published_trial']}: {theirs}{margin}"


def _published(cell: Row) -> str:
    if "published_mean" not in cell:
        return "-"
    text = f"{cell['published_mean']:.4f} ± {cell['published_sd']:.4f}"
    return f"{text} (faulty test)" if cell.get("published_faulty") else text


def _environments(cells: Sequence[Row]) -> str:
    from milfast.invariance.published import published

    rows = []
    for cell in cells:
        known = published(cell["model"], cell["problem"])
        printed = "-" if known is None or known.environments is None else _joined(known.environments)
        rows.append((cell["problem"], cell["model"], " / ".join(cell["environments"].split()), printed))
    return _table(("problem", "learner", "error in E0 / E1 / E2", "published"), rows)


def _joined(values: Iterable[float]) -> str:
    return " / ".join(f"{value:.4f}" for value in values)


def _swept(cells: Sequence[Row], key: str) -> str:
    """Errors against one setting, published ones in brackets."""
    learners = list(dict.fromkeys(cell["model"] for cell in cells))
    rows = []
    for problem in dict.fromkeys(cell["problem"] for cell in cells):
        for value in sorted({cell[key] for cell in cells if cell["problem"] == problem}):
            found = {c["model"]: c for c in cells if c["problem"] == problem and c[key] == value}
            rows.append((problem, str(value), *(_error(found[name]) if name in found else "-" for name in learners)))
    return _table(("problem", key.replace("_", "\\_"), *learners), rows)


def _error(cell: Row) -> str:
    text = f"{cell['mean']:.4f}" if "mean" in cell else "-"
    return f"{text} ({cell['published_mean']:.4f})" if "published_mean" in cell else text


def _matrix(cells: Sequence[Row]) -> str:
    """Verdicts, a row for each learner and a column for each problem."""
    problems = list(dict.fromkeys(cell["problem"] for cell in cells))
    rows = []
    for learner in dict.fromkeys(cell["model"] for cell in cells):
        found = {cell["problem"]: cell for cell in cells if cell["model"] == learner}
        rows.append((learner, *(_verdict(found[p]) if p in found else "-" for p in problems)))
    return _table(("learner", *problems), rows)


def _verdict(cell: Row) -> str:
    told = f"**{cell['verdict']}**" if cell["verdict"] == "pass" else cell["verdict"]
    rho = f"{cell['rho']:.2f}" if "rho" in cell else "-"
    return f"{told} {cell['successes']}/{cell['replicates']}, {rho}"


def _uncorrected(cell: Row) -> str:
    """What is said where a verdict is certain by itself, and not among all; ERM and the Oracle claim nothing."""
    claims = cell["verdict"] in ("pass", "fail") and cell["model"] not in ("ERM", "Oracle")
    return " (not by Holm)" if claims and not cell["stands"] else ""


def _details(cells: Sequence[Row]) -> str:
    rows = []
    for cell in cells:
        ratio = RatioInterval(
            cell.get("rho", math.nan),
            cell.get("rho_low", -math.inf),
            cell.get("rho_high", math.inf),
            cell["rho_kind"],
            0.95,
            cell["replicates"],
        )
        share = f"{cell['spurious_share']:.3f}" if "spurious_share" in cell else "-"
        rows.append(
            (
                cell["problem"],
                cell["model"],
                cell["engine"],
                _mean_sd(cell),
                f"{cell['successes']}/{cell['replicates']}",
                f"{ratio.estimate:.3f} {ratio.bounds()}",
                f"{cell['p_better']:.1g}",
                share,
                cell["verdict"] + _uncorrected(cell),
            )
        )
    heads = (
        "problem",
        "learner",
        "trained on",
        "error ± SD",
        "solved",
        "rho",
        "p, better than ERM",
        "spurious",
        "verdict",
    )
    return _table(heads, rows)


def fill_pages(record: dict[str, Any], pages: Iterable[Path]) -> list[str]:
    """Put the tables of a record into the pages that have a place for them.

    Parameters
    ----------
    record : dict
    pages : iterable of Path

    Returns
    -------
    list of str
        Names of tables that no page has a place for.
    """
    made = tables(record)
    placed: set[str] = set()
    for path in pages:
        page = path.read_text(encoding="utf-8")
        here = {name: text for name, text in made.items() if f"<!-- {KIND}: {name} -->" in page}
        path.write_text(records.fill(page, KIND, here), encoding="utf-8")
        placed |= set(here)
    return [name for name in made if name not in placed]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        0.
    """
    parser = argparse.ArgumentParser(
        prog="python docs/tools/record_invariance.py",
        description="Write the record of finished batteries, and fill the tables of docs/ from it.",
    )
    parser.add_argument(
        "studies",
        nargs="*",
        type=Path,
        metavar="STUDY",
        help="files of milfast invariance --out; none: fill pages only",
    )
    parser.add_argument(
        "--results",
        type=Path,
        required=True,
        metavar="FOLDER",
        help=f"where the record is, {' and '.join(FILES.values())}",
    )
    parser.add_argument(
        "--pages", type=Path, nargs="*", default=[], metavar="FILE", help="pages with places for tables"
    )
    parser.add_argument(
        "--pictures", type=Path, metavar="FOLDER", help="draw the pictures of the studies into this folder"
    )
    options = parser.parse_args(arguments)
    if options.pictures is not None:
        for name, text in pictures(options.studies).items():
            (options.pictures / f"{name}.svg").write_text(text, encoding="utf-8", newline="\n")
    for mode, found in collect(options.studies).items():
        (options.results / FILES[mode]).write_text(records.to_json(found), encoding="utf-8")
    for name in FILES.values():
        path = options.results / name
        if path.exists():
            record = json.loads(path.read_text(encoding="utf-8"))
            left = fill_pages(record, options.pages)
            print(f"{path}: {len(record['cells'])} cells; tables without a place: {', '.join(left) or 'none'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
