"""Figures of batteries: they show the figures of the cells, and touch nothing global."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from milfast.invariance import Battery
from milfast.invariance.battery import combine
from milfast.report import invariance_plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

pytest.importorskip("matplotlib")

#: What stands in for a learner, and the mean of its errors.
RISKS = {"ERM": 3.0, "$a_1^": 1.02, "far": 99.0, "Oracle": 1.0}


def battery(**settings: Any) -> Battery:
    """Two problems, ten replicates; ERM's gap is 2."""
    rng = np.random.default_rng(0)
    pairs = []
    for problem in ("Example1", "Example3"):
        for n_env in settings.get("n_env", [3]):
            for learner, risk in RISKS.items():
                for r in range(10):
                    value = risk + (rng.uniform(-0.1, 0.1) if learner == "ERM" else 0.0)
                    exact = [[value] * n_env]
                    given = {"model": learner, "name": learner, "source": None, "data": problem, "d_inv": 5, "d_spu": 5}
                    given |= {"n_env": n_env, "mode": settings.get("mode", "strict"), "engine": "population", "n": None}
                    given |= {"n_trials": 1, "n_steps": 10, "rng": "native", "test_shuffle": "invariant", "seed": 0}
                    gave = {"trials": [{}], "validation": exact, "exact": exact, "test": exact, "share": [[0.5]]}
                    gave |= {"diverged": [False], "steps": [10], "optimum": [1.0] * n_env, "seconds": 0.0}
                    pairs.append((given | {"replicate": r}, gave))
    return combine(pairs)


def svg(figure: Any) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg")
    return text.getvalue()


def lines(axes: Axes) -> dict[str, list[tuple[float, float]]]:
    return {line.get_label(): list(zip(*line.get_data(), strict=True)) for line in axes.get_lines()}


def test_a_sweep_shows_means_over_the_ratio_and_bands_of_one_sd() -> None:
    found = battery(n_env=[2, 3, 10], mode="paper")
    figure = invariance_plots.sweep_plot(found, "n_env")
    first, second = figure.axes
    assert [axes.get_title(loc="left") for axes in (first, second)] == ["Example1", "Example3"]
    shown = lines(first)
    for learner in RISKS:
        points = [(n / 5, found.cell(learner, "Example1", n_env=n).mean) for n in (2, 3, 10)]
        assert np.allclose(shown[learner], points, rtol=1e-12)
    [erm, *_] = first.collections
    cell = found.cell("ERM", "Example1", n_env=2)
    heights = erm.get_paths()[0].vertices
    assert heights[np.isclose(heights[:, 0], 0.4), 1].min() == pytest.approx(cell.mean - cell.sd / 2)
    assert heights[np.isclose(heights[:, 0], 0.4), 1].max() == pytest.approx(cell.mean + cell.sd / 2)
    assert first.get_ylabel() == "mean squared error"
    assert second.get_ylabel() == "share of errors"
    svg(figure)  # a dollar sign in a name is one


def test_published_means_are_hollow() -> None:
    found = battery(n_env=[2, 3], mode="paper")
    axes = invariance_plots.sweep_plot(found, "n_env", published=True).axes[0]
    hollow = [line for line in axes.get_lines() if line.get_markerfacecolor() == "none"]
    assert len(hollow) == 2  # of ERM and the Oracle something was published
    assert hollow[0].get_ydata().tolist() == [6.63, 13.3629]


def test_a_sweep_needs_one_of_all_else() -> None:
    with pytest.raises(ValueError, match="several values of n_env, and one line can only show those of d_spu"):
        invariance_plots.sweep_plot(battery(n_env=[2, 3]), "d_spu")
    with pytest.raises(ValueError, match="over must be n_env or d_spu; got 'n'"):
        invariance_plots.sweep_plot(battery(), "n")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no cell to draw"):
        invariance_plots.sweep_plot(Battery(()), "n_env")


def test_verdicts_stand_between_the_oracle_and_erm() -> None:
    found = battery()
    figure = invariance_plots.verdict_plot(found)
    axes = figure.axes[0]
    marks = {line.get_ydata()[0]: line for line in axes.get_lines() if line.get_marker() not in ("None", "")}
    places = {learner: marks[i].get_xdata()[0] for i, learner in enumerate(RISKS)}
    assert places["ERM"] == 1
    assert places["$a_1^"] == pytest.approx(0.01, rel=0.05)
    assert places["far"] == invariance_plots.LARGEST  # at the edge, with its figure
    assert places["Oracle"] == 0
    texts = [text.get_text() for text in axes.texts]
    assert texts.count("10/10") == 2
    assert texts.count("0/10") == 2
    assert any(re.fullmatch(r"4\d\.\d", text) for text in texts)
    assert [text.get_text() for text in axes.get_yticklabels()] == list(RISKS)
    svg(figure)


def test_what_has_no_verdict_has_no_place() -> None:
    with pytest.raises(ValueError, match="no verdict to draw"):
        invariance_plots.verdict_plot(battery(mode="paper"))
    with pytest.raises(ValueError, match="several verdicts of one learner on one problem"):
        invariance_plots.verdict_plot(battery(n_env=[2, 3]))


def test_nothing_global_is_touched() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    svg(invariance_plots.verdict_plot(battery()))
    assert dict(matplotlib.rcParams) == before
    import sys

    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
