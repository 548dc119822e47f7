"""The tables and the picture of docs/verdicts.md from the counts of a simulation."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, TypeAlias

from milfast.report import records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

Counts: TypeAlias = dict[str, int]
CellCounts: TypeAlias = dict[str, Any]


def tables(cells: Sequence[CellCounts]) -> dict[str, str]:
    """All tables.

    Parameters
    ----------
    cells : sequence of dict
        Each with its "part", "given" and "counts".

    Returns
    -------
    dict of str to str
        Markdown by the name of the part.
    """
    makers: dict[str, Callable[[Sequence[CellCounts]], str]] = {
        "chance": _chance,
        "strata": _strata,
        "memoriser": _memoriser,
        "power": _power,
        "sequential": _sequential,
        "tables": _tables,
        "laws": _laws,
        "outliers": _outliers,
        "ties": _ties,
        "few-bags": _few_bags,
    }
    return {name: make([cell for cell in cells if cell["part"] == name]) for name, make in makers.items()}


def fill(page: str, cells: Sequence[CellCounts]) -> str:
    """A page with its tables renewed: each stands between ``<!-- simulated: NAME -->`` and ``<!-- end -->``.

    Parameters
    ----------
    page : str
    cells : sequence of dict

    Returns
    -------
    str

    Raises
    ------
    ValueError
        When the page has no place for a table.
    """
    page = records.fill(page, "simulated", tables(cells))
    error = f"standard error at most {100 * largest_error([c for c in cells if c['part'] == 'power']):.1f}"
    return re.sub(r"standard error at most [\d.]*\d", error, page)


def percent(k: int, n: int) -> str:
    """A share of studies in per cent with its standard error; where it is 0, the bound that it is below with 95 %.

    Parameters
    ----------
    k, n : int

    Returns
    -------
    str

    Examples
    --------
    >>> from milfast.checks.simulation.report import percent
    >>> percent(50, 2_000), percent(0, 2_000), percent(2_000, 2_000)
    ('2.50 ± 0.35', '0 (< 0.15)', '100 (> 99.85)')
    """
    if k in (0, n):
        bound = 100 * (1 - 0.05 ** (1 / n))
        return f"0 (< {bound:.2g})" if k == 0 else f"100 (> {100 - bound:.4g})"
    p = k / n
    return f"{100 * p:.2f} ± {100 * math.sqrt(p * (1 - p) / n):.2f}"


def _share(cell: CellCounts, runs: int, *names: str) -> str:
    counts: Counts = cell["counts"]
    return percent(sum(counts[f"{runs} {name}"] for name in names), counts[f"{runs} studies"])


def _markdown(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(heads), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _spread(cell: CellCounts) -> str:
    return f"{cell['given']['scorer'].get('spread', 0.0):g}"


def _bags(cell: CellCounts) -> str:
    return f"{cell['given']['n_test']:,}"


def _runs(numbers: Iterable[int]) -> list[str]:
    return [f"{n} run{'s' if n > 1 else ''}" for n in numbers]


def _chance(cells: Sequence[CellCounts]) -> str:
    rows = (
        [
            _bags(cell),
            _spread(cell),
            str(runs),
            f"{cell['counts'][f'{runs} studies']:,}",
            _share(cell, runs, "pass"),
            _share(cell, runs, "fail"),
            percent(cell["counts"]["1 contrary"], cell["counts"]["1 studies"]) if runs == 1 else "",
            _share(cell, runs, "paper fail"),
        ]
        for cell in cells
        for runs in cell["given"]["runs"]
    )
    heads = (
        "bags",
        "SD of fits",
        "runs",
        "studies",
        "pass",
        "fail",
        "wrong about this fit",
        "fail by the paper's rule",
    )
    return _markdown(heads, rows)


def _strata(cells: Sequence[CellCounts]) -> str:
    rows = (
        [
            " and ".join(f"{auc:g}" for auc in cell["given"]["scorer"]["strata"]),
            _bags(cell),
            _spread(cell),
            str(runs),
            f"{cell['counts'][f'{runs} studies']:,}",
            _share(cell, runs, "pass"),
            _share(cell, runs, "fail"),
            _share(cell, runs, "paper fail"),
        ]
        for cell in cells
        for runs in cell["given"]["runs"]
    )
    heads = ("AUC by sort", "bags", "SD of fits", "runs", "studies", "pass", "fail", "fail by the paper's rule")
    return _markdown(heads, rows)


def _memoriser(cells: Sequence[CellCounts]) -> str:
    rows = (
        [
            _bags(cell),
            _spread(cell),
            str(runs),
            f"{cell['counts'][f'{runs} studies']:,}",
            _share(cell, runs, "pass", "fail", "inconclusive"),
            _share(cell, runs, "pass", "fail"),
            _share(cell, runs, "paper fail"),
        ]
        for cell in cells
        for runs in cell["given"]["runs"]
    )
    heads = ("bags", "SD of fits", "runs", "studies", "called learned", "pass or fail", "fail by the paper's rule")
    return _markdown(heads, rows)


def power(cell: CellCounts, runs: int) -> float:
    """Share of studies that get the verdict they should get.

    Parameters
    ----------
    cell : dict
        Of the part "power".
    runs : int

    Returns
    -------
    float
    """
    right = "pass" if cell["given"]["scorer"]["shifted"] > 0.5 else "fail"
    counts: Counts = cell["counts"]
    return counts[f"{runs} {right}"] / counts[f"{runs} studies"]


def _power_rows(cells: Sequence[CellCounts]) -> dict[tuple[float, float, int], list[CellCounts]]:
    rows: dict[tuple[float, float, int], list[CellCounts]] = {}
    for cell in cells:
        scorer = cell["given"]["scorer"]
        for runs in cell["given"]["runs"]:
            rows.setdefault((scorer["spread"], scorer["shifted"], runs), []).append(cell)
    return dict(sorted(rows.items()))


def _power(cells: Sequence[CellCounts]) -> str:
    sizes = sorted({cell["given"]["n_test"] for cell in cells})
    rows = (
        [f"{spread:g}", f"{auc:g}", str(runs), *(f"{100 * power(cell, runs):.0f}" for cell in row)]
        for (spread, auc, runs), row in _power_rows(cells).items()
    )
    return _markdown(("SD of fits", "AUC", "runs", *(f"{n:,} bags" for n in sizes)), rows)


def largest_error(cells: Sequence[CellCounts]) -> float:
    """Largest standard error of the powers.

    Parameters
    ----------
    cells : sequence of dict
        Of the part "power".

    Returns
    -------
    float
    """
    return max(
        math.sqrt((p := power(cell, runs)) * (1 - p) / cell["counts"][f"{runs} studies"])
        for cell in cells
        for runs in cell["given"]["runs"]
    )


def _sequential(cells: Sequence[CellCounts]) -> str:
    def row(cell: CellCounts) -> list[str]:
        counts, given = cell["counts"], cell["given"]
        n = counts["studies"]
        return [
            f"{given['scorer'].get('shifted', 0.5):g}",
            _bags(cell),
            _spread(cell),
            "shared" if given["shared"] else "not shared",
            f"{n:,}",
            *(percent(counts.get(verdict, 0), n) for verdict in ("pass", "fail", "inconclusive")),
            f"{counts['runs'] / n:.1f}",
        ]

    heads = ("AUC", "bags", "SD of fits", "error", "studies", "pass", "fail", "inconclusive", "mean runs")
    return _markdown(heads, map(row, cells))


def _tables(cells: Sequence[CellCounts]) -> str:
    def row(cell: CellCounts) -> list[str]:
        counts, given = cell["counts"], cell["given"]
        n = counts["tables"]
        return [
            str(given["runs"]),
            _bags(cell),
            _spread(cell),
            f"{n:,}",
            f"{counts['wrong'] / n:.2f}",
            percent(counts["any"], n),
            percent(counts["any holm"], n),
        ]

    heads = ("runs", "bags", "SD of fits", "tables", "wrong verdicts a table", "tables with any", "any after Holm")
    return _markdown(heads, map(row, cells))


def _laws(cells: Sequence[CellCounts]) -> str:
    def broken(cell: CellCounts) -> str:
        shares = cell["given"]["shares"]
        if len(shares) > 1:
            chance, (share, _) = shares[-1]
            return f"{100 * share:g} % in {100 * chance:g} % of the fits, else 0"
        first, second = shares[0][1]
        return (
            f"{100 * first:g} %"
            if first == second
            else f"{100 * first:g} % of one sort, {100 * second:g} % of the other"
        )

    rows = (
        [
            broken(cell),
            str(runs),
            f"{cell['counts'][f'{runs} studies']:,}",
            *(_share(cell, runs, verdict) for verdict in ("pass", "inconclusive", "fail")),
        ]
        for cell in cells
        for runs in cell["given"]["runs"]
    )
    return _markdown(("bags that break the law", "runs", "studies", "pass", "inconclusive", "fail"), rows)


def _by_runs(first: str, name: Callable[[CellCounts], str], cells: Sequence[CellCounts]) -> str:
    """Pass and fail side by side, a column for each number of runs."""
    runs = cells[0]["given"]["runs"] if cells else []
    heads = (first, "bags", *(f"{n}, {verdict}" for n in _runs(runs) for verdict in ("pass", "fail")))
    rows = (
        [name(cell), _bags(cell), *(_share(cell, n, verdict) for n in runs for verdict in ("pass", "fail"))]
        for cell in cells
    )
    return _markdown(heads, rows)


def _outliers(cells: Sequence[CellCounts]) -> str:
    def name(cell: CellCounts) -> str:
        scorer = cell["given"]["scorer"]
        share, gap = scorer["outliers"], scorer["gap"]
        return f"{0.5 + share * gap:g}, but {0.5 - (1 - share) * gap:g} in {100 * share:g} % of the fits"

    return _by_runs("AUC", name, cells)


def _ties(cells: Sequence[CellCounts]) -> str:
    return _by_runs("bags that score 1", lambda cell: f"{100 * cell['given']['scorer']['flagged']:g} %", cells)


def _few_bags(cells: Sequence[CellCounts]) -> str:
    return _by_runs("scores", lambda _: "all different", cells)


def draw_power(cells: Sequence[CellCounts], path: Path) -> None:
    """Draw the power against the number of bags.

    Parameters
    ----------
    cells : sequence of dict
    path : path
        Its ending says the format.

    Raises
    ------
    ImportError
        When matplotlib is missing.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("--plot needs matplotlib: pip install matplotlib") from None
    shown = {(0.006, 0.45): "-", (0.006, 0.48): "--", (0.03, 0.45): ":"}
    colours = {1: "#888888", 5: "#1f77b4", 10: "#d62728"}
    # a fixed salt and no date: the same figures give the same file
    with mpl.rc_context({"svg.hashsalt": "milfast", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(6.4, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for (spread, auc, runs), row in _power_rows([c for c in cells if c["part"] == "power"]).items():
            if (style := shown.get((spread, auc))) is not None:
                bags = [cell["given"]["n_test"] for cell in row]
                label = f"AUC {auc:g}, SD of fits {spread:g}, {_runs([runs])[0]}"
                powers = [100 * power(cell, runs) for cell in row]
                axes.plot(bags, powers, style, color=colours[runs], marker=".", label=label)
        axes.set(xscale="log", xlabel="shifted bags", ylabel="called fail (%)", ylim=(-3, 103))
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
