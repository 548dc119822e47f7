"""Figures of error consistency: they show the figures of the results, touch nothing global, and those of docs/ are up
to date."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import draw_consistency_studies
import numpy as np
import pytest
from conftest import ROOT
from error_results import certain, result, runs

from milfast.consistency import ConsistencyCurve, agreement_matrix, majority_vote, select_model, studies
from milfast.report import consistency_plots

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("matplotlib")

RECORD = ROOT / "docs" / "results" / "consistency-studies.json"
PICTURES = (
    "consistency-curve",
    "consistency-rolling",
    "consistency-heat-map",
    "consistency-errors",
    "consistency-selection",
    "consistency-votes",
)


def curve(n: int = 30, n_runs: int = 4) -> ConsistencyCurve:
    rng = np.random.default_rng(0)
    n_pairs = n_runs * (n_runs - 1) // 2
    return ConsistencyCurve(
        model="$^$",
        proportions=np.linspace(0.5, 0.9, n),
        n_samples=np.linspace(100, 180, n).astype(np.int64),
        errors=rng.integers(20, 30, (n, n_runs)),
        intersections=rng.integers(10, 15, (n, n_pairs)),
        unions=rng.integers(20, 25, (n, n_pairs)),
        constant=np.zeros(n, dtype=bool),
        n_total=200,
        folds=5,
        runs=n_runs,
        subset="shared",
        stratify=True,
        seed=0,
        seconds=1.0,
    )


def svg(figure: Any) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg")
    return text.getvalue()


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


# ---------------------------------------------------------------- what they show


def test_a_curve_has_both_quantities_with_their_lines() -> None:
    made = curve()
    figure = consistency_plots.curve_plot(made)
    left, right = figure.axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("mean accuracy, %", "average error consistency, %")
    assert left.get_xlabel() == "subset, % of 200 samples"
    assert left.get_title(loc="left") == "$^$: 30 subsets, 4 runs of 5 folds on each"
    smooth = made.lowess()
    for axes, points, line in ((left, made.accuracy, smooth.accuracy), (right, made.consistency, smooth.consistency)):
        drawn, fitted = axes.lines
        np.testing.assert_allclose(drawn.get_data(), [100 * made.proportions, 100 * points])
        np.testing.assert_allclose(fitted.get_ydata(), 100 * line)
    assert legend(left) == ["mean accuracy", "average error consistency"]
    assert left.lines[0].get_marker() != right.lines[0].get_marker()
    assert "$^$" in svg(figure)


def test_a_heat_map_has_all_pairs_with_similar_runs_together() -> None:
    a, b = runs(1, base=certain(400, 40)), runs(2, base=certain(400, 40, first=200))
    mixed = np.empty((40, 400), dtype=bool)
    mixed[::2], mixed[1::2] = a, b
    made = result(mixed)
    figure = consistency_plots.heat_map(made)
    axes, bar = figure.axes
    shown = axes.images[0].get_array()
    assert shown.shape == (40, 40)
    half = shown[:20, :20].compressed(), shown[:20, 20:].compressed()
    assert half[0].min() > half[1].max()
    assert shown.mask.diagonal().all()
    assert shown.mask.sum() == 40
    mean = agreement_matrix(made.errors, "jaccard", n_samples=400)[np.triu_indices(40, 1)].mean()
    assert shown.mean() == pytest.approx(100 * mean)
    assert axes.get_title(loc="left") == f"model, 40 runs, mean {100 * mean:.1f} %"
    assert bar.get_ylabel() == "error consistency, %"


def test_of_many_runs_some_are_shown() -> None:
    figure = consistency_plots.heat_map(result(runs(1, m=400)), most=60)
    assert figure.axes[0].images[0].get_array().shape == (60, 60)
    assert ", 60 of 400 runs" in figure.axes[0].get_title(loc="left")


def test_a_heat_map_of_runs_without_errors() -> None:
    figure = consistency_plots.heat_map(result(np.zeros((3, 10), dtype=bool)))
    assert figure.axes[0].get_title(loc="left").endswith("mean undefined")
    svg(figure)


@pytest.mark.parametrize(("m", "n"), [(2, 30), (20, 400), (21, 300), (100, 500), (1, 10)])
def test_a_histogram_has_every_sample_once(m: int, n: int) -> None:
    errors = runs(1, m=m, n=n)
    figure = consistency_plots.error_histogram(result(errors))
    [axes] = figure.axes
    counts = errors.sum(axis=0)
    never, always = int((counts == 0).sum()), int((counts == m).sum())
    assert sum(bar.get_height() for bar in axes.patches) == n
    assert [bar.get_height() for bar in axes.patches[:2]] == [never, always]
    assert legend(axes) == [f"in none: {never}", f"in some: {n - never - always}", f"in all, unpredictable: {always}"]
    for bar in axes.patches[2:]:  # in places that rise with the counts they hold
        assert 0 <= bar.get_x() + bar.get_width() / 2 <= 100


def test_bars_hold_the_samples_of_their_range() -> None:
    m = 41
    counts = np.arange(m + 1)
    errors = np.arange(m)[:, np.newaxis] < counts[np.newaxis]
    [axes] = consistency_plots.error_histogram(result(errors)).axes
    assert [bar.get_height() for bar in axes.patches[2:]] == [2] * 20


def test_windows_have_their_bands() -> None:
    found = curve().rolling_correlation((10, 20), n_boot=40, random_state=0)
    figure = consistency_plots.rolling_plot(found, smooth=False)
    assert [axes.get_title() for axes in figure.axes[:2]] == ["window of 10 means", "window of 20 means"]
    for row, name in enumerate(("accuracy", "consistency")):
        for column, rolling in enumerate(found):
            axes = figure.axes[2 * row + column]
            zero, line = axes.lines
            assert set(zero.get_ydata()) == {0}
            np.testing.assert_allclose(line.get_data(), [100 * rolling.proportion, getattr(rolling, name).mean])
            low, high = axes.get_ylim()
            assert low == -high
            assert high > np.abs(getattr(rolling, name).high).max()
    assert figure.get_suptitle() == "bootstrap mean and 95 % band of 40 resamples a window"
    smooth = consistency_plots.rolling_plot(found)
    np.testing.assert_allclose(smooth.axes[0].lines[1].get_ydata(), found[0].lowess().accuracy.mean)
    assert smooth.get_suptitle().endswith(", smoothed")


def selection(**more: Any) -> Any:
    models = {
        "accurate": result(runs(1, base=np.full(400, 0.1))),
        "consistent": result(runs(2, base=certain(400, 100))),
        "worse": result(runs(3, base=np.full(400, 0.45))),
    }
    return select_model(models | more, n_boot=300, random_state=0)


def test_a_selection_has_models_intervals_and_the_front() -> None:
    constant = result(np.repeat(runs(3)[:1], 20, axis=0), predicted=(400, 0))
    made = selection(constant=constant)
    figure = consistency_plots.selection_plot(made)
    [axes] = figure.axes
    assert axes.get_title(loc="left") == "verdict: trade-off"
    assert legend(axes) == [
        "Pareto front",
        "accurate, on the front in 100 %",
        "consistent, on the front in 100 %",
        "worse, on the front in 0 %",
        "constant: left out",
    ]
    for score, bars in zip(made.scores, axes.containers, strict=True):
        across, up = bars.lines[2]
        [[x_low, y], [x_high, _]] = across.get_segments()[0]
        [[x, y_low], [_, y_high]] = up.get_segments()[0]
        assert (x, y) == pytest.approx((100 * score.accuracy.estimate, 100 * score.consistency.estimate))
        assert (x_low, x_high) == pytest.approx((100 * score.accuracy.low, 100 * score.accuracy.high))
        assert (y_low, y_high) == pytest.approx((100 * score.consistency.low, 100 * score.consistency.high))
    hollow = [bars.lines[0].get_markerfacecolor() == "white" for bars in axes.containers]
    assert hollow == [not score.on_front for score in made.scores]


def test_votes_are_drawn_from_the_least_consistent_on() -> None:
    votes = {
        "steady": majority_vote(result(runs(1, base=certain(400, 60)))),
        "shaky": majority_vote(result(runs(2, base=np.full(400, 0.3)))),
    }
    figure = consistency_plots.vote_plot(votes)
    [axes] = figure.axes
    assert [label.split(":")[0] for label in legend(axes)] == ["shaky", "steady"]
    _, *lines = axes.lines
    for line, vote in zip(lines, (votes["shaky"], votes["steady"]), strict=True):
        np.testing.assert_allclose(line.get_data(), [vote.voters, [100 * gain.estimate for gain in vote.gain]])
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()][-1] == "20"
    alone = consistency_plots.vote_plot(votes["shaky"])
    assert legend(alone.axes[0]) == [f"model: AEC {100 * votes['shaky'].consistency:.1f} %"]


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="correlations is empty"):
        consistency_plots.rolling_plot([])
    with pytest.raises(ValueError, match="votes is empty"):
        consistency_plots.vote_plot({})
    with pytest.raises(ValueError, match="result has one run"):
        consistency_plots.heat_map(result([[1, 0]]))
    with pytest.raises(ValueError, match="most must be at least 2; got 1"):
        consistency_plots.heat_map(result(np.eye(4)), most=1)
    constant = result(np.repeat(runs(3)[:1], 20, axis=0), predicted=(400, 0))
    with pytest.raises(ValueError, match="selection has no model to draw"):
        consistency_plots.selection_plot(select_model({"constant": constant}, n_boot=100, random_state=0))


# ---------------------------------------------------------------- matplotlib


def test_without_matplotlib_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = curve(), result(runs(1)), selection(), majority_vote(result(runs(1)))
    windows = made[0].rolling_correlation(10, n_boot=5, random_state=0)
    for module in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as Python marks a module that cannot be imported
    for draw in (
        lambda: consistency_plots.curve_plot(made[0]),
        lambda: consistency_plots.heat_map(made[1]),
        lambda: consistency_plots.error_histogram(made[1]),
        lambda: consistency_plots.rolling_plot(windows),
        lambda: consistency_plots.selection_plot(made[2]),
        lambda: consistency_plots.vote_plot(made[3]),
    ):
        with pytest.raises(ImportError, match=r"matplotlib, which is not installed: pip install 'milfast\[report\]'"):
            draw()


def test_nothing_global_is_touched() -> None:
    code = (
        "import sys\n"
        "import numpy as np\n"
        "from milfast.report import consistency_plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import matplotlib\n"
        "before = matplotlib.rcParams.copy()\n"
        "from types import SimpleNamespace\n"
        "errors = np.packbits(np.eye(6, dtype=bool), axis=1)\n"
        "result = SimpleNamespace(model='model', errors=errors, n_samples=6)\n"
        "consistency_plots.heat_map(result)\n"
        "consistency_plots.error_histogram(result)\n"
        "assert all(dict.__getitem__(matplotlib.rcParams, k) == v for k, v in dict.items(before))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- the record and the pictures of the page


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def without_images(text: str) -> str:
    """A PNG inside an SVG file depends on the library that packed it."""
    return re.sub(r"data:image/png;base64,[^\"]*", "", text)


@pytest.mark.parametrize("name", PICTURES)
def test_the_picture_in_the_docs_is_up_to_date(name: str) -> None:
    path = ROOT / "docs" / "pictures" / f"{name}.svg"
    kept = path.read_text(encoding="utf-8")
    assert len(kept) < 150_000
    version = re.search(r"Matplotlib v([^,]+),", kept)
    assert version is not None
    installed = pytest.importorskip("matplotlib").__version__
    if version[1] != installed:
        pytest.skip(f"{path.name} was drawn with matplotlib {version[1]}, and {installed} is installed")
    drawn = draw_consistency_studies.svgs(RECORD)[name]
    command = "python docs/tools/draw_consistency_studies.py docs/results/consistency-studies.json docs/pictures"
    assert without_images(drawn) == without_images(kept), f"run {command}"


def test_the_command_writes_a_file_for_each_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "folder"
    assert draw_consistency_studies.main([str(RECORD), str(folder)]) == 0
    assert sorted(path.stem for path in folder.iterdir()) == sorted(PICTURES)
    assert capsys.readouterr().out.splitlines() == [str(folder / f"{name}.svg") for name in PICTURES]


def test_the_tables_of_the_page_are_those_of_the_record(record: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "consistency-studies.md").read_text(encoding="utf-8")
    for line in studies.tables(record).splitlines():
        if line.startswith("|") and "---" not in line:
            # the table of curves has one more column on the page: what the authors found
            assert line.removesuffix(" |") in page, line
    assert record["repeats"] == 100
    assert {name: len(ConsistencyCurve.from_dict(c).proportions) for name, c in record["curves"].items()} == {
        "lr": 200,
        "sgd": 200,
    }


def test_a_study_is_recorded_and_read_again(
    mil_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "MODELS", ("lr", "svm"))
    monkeypatch.setattr(studies, "DATA", ("parkinsons",))
    path = tmp_path / "record.json"
    assert studies.main(["--json", str(path), "--repeats", "3", "--subsets", "2"]) == 0
    first = capsys.readouterr().out
    assert first.startswith("| curve | points |")
    assert studies.main(["--json", str(path)]) == 0
    assert capsys.readouterr().out == first
    found = json.loads(path.read_text(encoding="utf-8"))
    again = studies.from_dict(found["results"]["lr"])
    assert studies.as_dict(again) == found["results"]["lr"]
    assert again.error_sets().shape == (3, 195)
