"""Pictures of intervals, differences, ranks and runs: what they show is what was found."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

import milfast as mf
from milfast.report import sota_figures
from milfast.uncertainty import friedman, proportion_interval, variance

pytest.importorskip("matplotlib")
plots: Any = pytest.importorskip("milfast.report.uncertainty_plots")


def bars(axes: Any) -> list[tuple[list[float], list[float]]]:
    """Ends of the lines that are no marks."""
    return [
        (np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist())
        for line in axes.lines
        if line.get_marker() in ("None", None, "") and len(line.get_xdata()) == 2
    ]


def marks(axes: Any) -> list[tuple[float, float]]:
    return [
        (float(x), float(y))
        for line in axes.lines
        if line.get_marker() not in ("None", None, "")
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def compared(n_models: int) -> Any:
    rng = np.random.default_rng(0)
    labels = np.arange(100) % 2
    return mf.compare({"abcdefgh"[m]: labels * (2 - m / 3) + rng.normal(size=100) for m in range(n_models)}, labels)


@pytest.mark.parametrize("n_models", [1, 2, 4])
def test_a_comparison_shows_every_figure_and_every_difference(n_models: int) -> None:
    result = compared(n_models)
    picture = plots.comparison_picture(result)
    figures, *differences = picture.axes
    assert [label.get_text() for label in figures.get_yticklabels()] == list(result.names)
    assert marks(figures) == [(interval.estimate, row) for row, interval in enumerate(result.estimates)]
    assert bars(figures) == [([i.low, i.high], [row, row]) for row, i in enumerate(result.estimates)]
    assert len(differences) == (n_models > 1)
    if differences:
        [axes] = differences
        gaps = [pair.difference for pair in result.pairs]
        assert [label.get_text() for label in axes.get_yticklabels()] == [" - ".join(p.names) for p in result.pairs]
        assert bars(axes)[: len(gaps)] == [([gap.low, gap.high], [row, row]) for row, gap in enumerate(gaps)]
        assert bars(axes)[-1][0] == [0, 0]
    picture.canvas.draw()


def test_undefined_bounds_leave_the_bar_out() -> None:
    labels = [0, 0, 0, 1]
    result = mf.compare({"a": [1, 2, 3, 2.5], "b": [2, 1, 3, 4]}, labels)
    assert math.isnan(result.estimates[0].low)
    figures, differences = plots.comparison_picture(result).axes
    assert len(marks(figures)) == 2
    assert bars(differences) == [([0, 0], [0, 1])]


def test_intervals_stand_in_their_order() -> None:
    found = {"first": proportion_interval(3, 10), "second $x$": proportion_interval(9, 10, level=0.9)}
    [axes] = plots.interval_picture(found, measure="accuracy").axes
    assert [label.get_text() for label in axes.get_yticklabels()] == list(found)
    assert axes.get_ylim() == (1.5, -0.5)
    assert axes.get_xlabel() == "accuracy, 90 and 95 % interval"
    with pytest.raises(ValueError, match="intervals is empty"):
        plots.interval_picture({})


def test_ranks_and_groups_are_those_of_friedman() -> None:
    rng = np.random.default_rng(2)
    result = friedman({name: rng.normal(size=12) + 0.7 * m for m, name in enumerate("abcdef")})
    [axes] = plots.rank_picture(result).axes
    texts = [text.get_text() for text in axes.texts]
    for name, rank in zip(result.names, result.estimates, strict=True):
        assert f"{name}  {rank:.2f}" in texts
    assert sorted(x for x, _ in marks(axes)) == sorted(result.estimates)
    thick = [line.get_xdata() for line in axes.lines if line.get_linewidth() > 3]
    groups = [group for group in result.details["groups"] if len(group) > 1]
    assert groups
    ranks = dict(zip(result.names, result.estimates, strict=True))
    for (left, right), group in zip(thick, groups, strict=True):
        inside = {name for name, rank in ranks.items() if left <= rank <= right}
        assert inside == set(group)
    critical = result.details["critical_difference"]
    assert ([1.0, 1.0 + critical], [-0.75, -0.75]) in bars(axes)
    without = plots.rank_picture(friedman({name: rng.normal(size=12) for name in "abc"}, posthoc="holm")).axes[0]
    assert not any("critical" in text.get_text() for text in without.texts)
    with pytest.raises(ValueError, match="groups"):
        plots.rank_picture(compared(2).pairs[0])


def test_runs_are_counted_and_stand_over_normal_quantiles() -> None:
    rng = np.random.default_rng(3)
    runs = {"a": rng.normal(0.9, 0.01, (6, 20)), "b": rng.normal(0.8, 0.02, 20)}
    picture = plots.runs_picture(runs, measure="accuracy")
    for row, (name, values) in enumerate(runs.items()):
        histogram, quantiles = picture.axes[2 * row : 2 * row + 2]
        assert histogram.get_title(loc="left") == f"{name}: {values.size} runs"
        assert sum(patch.get_height() for patch in histogram.patches) == values.size
        assert len(histogram.patches) == (25 if values.size > 60 else 15)
        expected = list(
            zip(variance.normal_quantiles(values.size).tolist(), np.sort(values.ravel()).tolist(), strict=True)
        )
        assert marks(quantiles) == expected
        [(x, y)] = bars(quantiles)
        slope = (y[1] - y[0]) / (x[1] - x[0])
        assert slope == pytest.approx(values.std(ddof=1))
        assert y[0] - slope * x[0] == pytest.approx(values.mean())
    for wrong, message in (
        ({}, "values is empty"),
        ({"a": [1, 2]}, "three finite"),
        ({"a": [1, 2, math.nan]}, "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            plots.runs_picture(wrong)


@pytest.mark.parametrize("number", sota_figures.FIGURES)
def test_the_figures_of_the_paper_are_drawn_from_the_record(number: int) -> None:
    found = json.loads((ROOT / "docs" / "results" / "sota-uncertainties.json").read_text())
    picture = sota_figures.FIGURES[number](found)
    picture.canvas.draw()
    if number in (1, 5):
        shown = {round(value, 9) for axes in picture.axes for point in marks(axes) for value in point}
        assert {round(row["seed_42"]["mean"], 9) for row in found["figure_5"].values()} <= shown
    if number == 2:
        left, right = picture.axes
        assert [y for _, y in marks(left)] == [point["accuracy"] for point in found["figure_2"]]
        assert [point["low_2"] for point in found["figure_2"]] == [y[0] for _, y in bars(right)[::2]]
    if number == 3:
        counts = [sum(patch.get_height() for patch in axes.patches) for axes in picture.axes]
        assert counts == [20, 120] * 3
    if number == 4:
        assert [len(marks(axes)) for axes in picture.axes] == [20, 120] * 3


@pytest.mark.parametrize("number", [2, 5])
def test_figures_of_the_page_are_up_to_date(number: int) -> None:
    import matplotlib

    kept = (ROOT / "docs" / "pictures" / f"sota-figure-{number}.svg").read_text(encoding="utf-8")
    if f"Matplotlib v{matplotlib.__version__}," not in kept:
        pytest.skip("drawn with another version of matplotlib")
    found = json.loads((ROOT / "docs" / "results" / "sota-uncertainties.json").read_text())
    assert sota_figures.svg(found, number) == kept, "run python -m milfast.uncertainty.sota and copy the figure"


def test_comparing_needs_no_matplotlib() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import milfast as mf\n"
        "result = mf.compare({'a': [1, 0, 1], 'b': [1, 1, 1]}, [1, 0, 0])\n"
        "from milfast.report.uncertainty_plots import comparison_picture\n"
        "try:\n    comparison_picture(result)\nexcept ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'milfast[report]'" in done.stdout
