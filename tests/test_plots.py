"""Pictures of bags: what they show, that they agree with the check, and that those in docs/ are up to date."""

from __future__ import annotations

import dataclasses
import io
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from conftest import ROOT

from milfast.checks import BagRecipe, Component, Draw, catalogue
from milfast.checks.correlated import AdjacentBags
from milfast.report import pictures, plots
from milfast.report.plots import bag_picture

if TYPE_CHECKING:
    from pathlib import Path

SHIFTS = ["training, negative", "training, positive", "shifted, negative", "shifted, positive"]
BEFORE_AFTER = ["negative bags, before", "negative bags, after", "positive bags, before", "positive bags, after"]
PANELS = {
    "presence": SHIFTS,
    "threshold-poison": SHIFTS,
    "false-frequency": SHIFTS,
    "permutation": BEFORE_AFTER,
    "null-copies": BEFORE_AFTER,
    "monotonicity": [
        "positive bags, before",
        *(f"after: one more {kind}" for kind in ("background", "poison", "wide", "shifted")),
    ],
    "bag-size": SHIFTS,
    "label-swap": [f"{model} model, {label}" for model in ("first", "second") for label in ("negative", "positive")],
    "correlated": SHIFTS,
    "threshold-count": SHIFTS,
}
PRESENCE_LEGEND = [
    "background: no concept",
    "poison: no concept",
    "wide: concept 'indicator'",
    "shifted: concept 'indicator'",
]
LEGENDS = {
    "presence": PRESENCE_LEGEND,
    "threshold-poison": [
        "background: no concept",
        "poison: no concept",
        "first: concept 'first'",
        "second: concept 'second'",
    ],
    "false-frequency": ["background: no concept", "low: concept 'low'", "high: concept 'high'"],
    "permutation": [*PRESENCE_LEGEND, "numbers: place of the instance before"],
    "null-copies": [*PRESENCE_LEGEND, "hollow: a copy"],
    "monotonicity": [*PRESENCE_LEGEND, "in a ring: added"],
    "bag-size": ["background: no concept", "signal: concept 'signal'"],
    "label-swap": ["background: no concept", "signal: concept 'signal'"],
    "correlated": ["noise", "raised", "height: value along the raised direction"],
    "threshold-count": [
        "background: no concept",
        "low: concept 'low'",
        "high: concept 'high'",
        "blank: no concept",
    ],
}


@pytest.fixture
def matplotlib() -> Any:
    return pytest.importorskip("matplotlib")


def legend(figure: Any) -> list[str]:
    [found] = figure.legends
    return [text.get_text() for text in found.get_texts()]


def dots(axes: Any, marker: str) -> list[tuple[float, float]]:
    """Places of the marks of one shape, with the number of their bag as second coordinate."""
    return [
        (x, int(y)) for line in axes.lines if line.get_marker() == marker for x, y in zip(*line.get_data(), strict=True)
    ]


def counts(axes: Any, marker: str, n_bags: int) -> list[int]:
    return np.bincount([bag for _, bag in dots(axes, marker)], minlength=n_bags).tolist()


# ---------------------------------------------------------------- what is shown


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize("check", catalogue.names())
def test_every_check_has_its_panels_and_a_legend(check: str) -> None:
    figure = bag_picture(check)
    assert [axes.get_title(loc="left") for axes in figure.axes] == PANELS[check]
    assert legend(figure) == LEGENDS[check]
    assert figure.texts[0].get_text().startswith(f"{catalogue.get(check).code} {check}")
    assert figure.get_facecolor() == (1, 1, 1, 1)


@pytest.mark.usefixtures("matplotlib")
@pytest.mark.parametrize("spelling", ["paper", "notebook", "strict"])
@pytest.mark.parametrize("check", catalogue.names("paper"))
def test_dots_are_what_the_sampler_gives(check: str, spelling: str) -> None:
    n_bags = 4
    figure = bag_picture(check, spelling=spelling, n_bags=n_bags, random_state=5)
    recipe = catalogue.get(check).recipe(spelling)
    assert f"spelled {spelling}" in figure.texts[0].get_text()
    marks = plots._marks(recipe)
    assert len({(mark.colour, mark.shape) for mark in marks}) == len(recipe.kinds)
    for axes in figure.axes:
        split, label = axes.get_title(loc="left").split(", ")
        bags = plots._sample(recipe, n_bags, 5, training=split == "training")
        chosen = np.flatnonzero(bags.labels == (label == "positive"))
        for code, mark in enumerate(marks):
            assert counts(axes, mark.shape, n_bags) == [
                int((bags.kinds[bags.offsets[i] : bags.offsets[i + 1]] == code).sum()) for i in chosen
            ]


@pytest.mark.usefixtures("matplotlib")
def test_the_poison_moves_and_stands_in_front() -> None:
    panels = bag_picture("presence", n_bags=5).axes
    assert [counts(axes, "X", 5) for axes in panels] == [[1] * 5, [0] * 5, [0] * 5, [1] * 5]
    assert {x for x, _ in dots(panels[0], "X")} == {0.5}
    behind = [x for axes in panels for x, _ in dots(axes, "o")]
    assert min(behind) >= 0.5
    for axes in panels:  # background instances are the last of their bag
        for bag in range(5):
            others = [x for shape in "XsD" for x, b in dots(axes, shape) if b == bag]
            assert max(others, default=0) < min(x for x, b in dots(axes, "o") if b == bag)


@pytest.mark.usefixtures("matplotlib")
def test_a_permutation_keeps_the_instances_and_changes_their_order() -> None:
    panels = bag_picture("permutation", n_bags=5, random_state=1).axes
    for before, after in zip(panels[::2], panels[1::2], strict=True):
        for shape in "oXsD":
            assert counts(before, shape, 5) == counts(after, shape, 5)
        numbers = [[int(text.get_text()) for text in axes.texts] for axes in (before, after)]
        assert sorted(numbers[0]) == sorted(numbers[1])
        assert numbers[0] != numbers[1]
        assert all(a == b + 1 or a == 1 for a, b in zip(numbers[0][1:], numbers[0], strict=False))


@pytest.mark.usefixtures("matplotlib")
def test_null_copies_are_hollow_and_four_of_each() -> None:
    panels = bag_picture("null-copies", n_bags=3).axes
    for before, after in zip(panels[::2], panels[1::2], strict=True):
        for shape in "oX":
            assert counts(after, shape, 3) == [5 * n for n in counts(before, shape, 3)]
        for shape in "sD":
            assert counts(after, shape, 3) == counts(before, shape, 3)
        hollow = [line for line in after.lines if line.get_markerfacecolor() == "white"]
        assert sum(len(line.get_xdata()) for line in hollow) == sum(4 * sum(counts(before, shape, 3)) for shape in "oX")


@pytest.mark.usefixtures("matplotlib")
def test_monotonicity_adds_one_instance_of_the_kind_it_names() -> None:
    before, *after = bag_picture("monotonicity", n_bags=4).axes
    for added, axes in zip("oXsD", after, strict=True):
        rings = [line for line in axes.lines if line.get_markerfacecolor() == "none"]
        ringed = {place for ring in rings for place in zip(*ring.get_data(), strict=True)}
        assert sorted(int(y) for _, y in ringed) == [0, 1, 2, 3]
        for shape in "oXsD":
            solid = [
                place
                for line in axes.lines
                if line.get_marker() == shape and line.get_markerfacecolor() != "none"
                for place in zip(*line.get_data(), strict=True)
            ]
            per_bag = np.bincount([int(y) for _, y in solid], minlength=4).tolist()
            assert per_bag == [n + (shape == added) for n in counts(before, shape, 4)]
            assert (shape == added) == bool(ringed & set(solid))


@pytest.mark.usefixtures("matplotlib")
def test_swapped_labels_swap_the_bags() -> None:
    first_negative, first_positive, second_negative, second_positive = bag_picture("label-swap").axes
    for shape in "os":
        assert dots(first_negative, shape) == dots(second_positive, shape)
        assert dots(first_positive, shape) == dots(second_negative, shape)
    assert dots(first_positive, "s")
    assert not dots(first_negative, "s")


@pytest.mark.usefixtures("matplotlib")
def test_raised_instances_are_neighbours_or_apart() -> None:
    panels = bag_picture("correlated", n_bags=4).axes
    gaps = []
    for axes in panels:
        places = [sorted(x for x, bag in dots(axes, "s") if bag == b) for b in range(4)]
        gaps.append([np.diff(p).tolist() for p in places])
    assert gaps[0] == [[]] * 4
    assert gaps[1] == gaps[3] == [[1, 1]] * 4
    assert all(min(gap) > 1 for gap in gaps[2])


@pytest.mark.usefixtures("matplotlib")
def test_the_same_seed_gives_the_same_picture() -> None:
    def places(random_state: Any) -> list[Any]:
        return [dots(axes, shape) for axes in bag_picture("bag-size", random_state=random_state).axes for shape in "os"]

    assert places(3) == places(3) == places(np.int64(3))
    assert places(3) != places(4)
    assert places(np.random.default_rng(1)) == places(np.random.default_rng(1))


# ---------------------------------------------------------------- recipes of one's own


def own(n_background: int = 3, n_tags: int = 1) -> BagRecipe:
    tags = tuple(f"tag {i}" for i in range(n_tags))
    return BagRecipe(
        name="tagged",
        components=(
            Component("background"),
            Component("signal", 3.0, concept="thing"),
            *(Component(t, -9.0) for t in tags),
        ),
        negative=(*(Draw(t, split="train") for t in tags), Draw("background", n_background)),
        positive=(*(Draw(t, split="test") for t in tags), Draw("signal"), Draw("background", n_background)),
    )


@pytest.mark.usefixtures("matplotlib")
def test_a_recipe_of_ones_own() -> None:
    figure = bag_picture(own(), n_bags=1)
    assert [axes.get_title(loc="left") for axes in figure.axes] == SHIFTS
    assert legend(figure) == ["background: no concept", "signal: concept 'thing'", "tag 0: no concept"]
    assert figure.texts[0].get_text() == "MIL099 tagged"
    adjacent = bag_picture(AdjacentBags(window=2), n_bags=2)
    assert [len(dots(axes, "s")) for axes in adjacent.axes] == [0, 4, 4, 4]


@pytest.mark.usefixtures("matplotlib")
def test_of_large_bags_and_of_many_kinds_some_is_shown() -> None:
    figure = bag_picture(own(n_background=1000), n_bags=2)
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == [
        *["+ 941"] * 4,
        *["+ 940"] * 2,
        *["+ 942"] * 2,
    ]
    many = bag_picture(own(n_tags=9), n_bags=1)
    assert len(legend(many)) == 11
    assert len({(m.colour, m.shape) for m in plots._marks(own(n_tags=9))}) == 11


@pytest.mark.usefixtures("matplotlib")
def test_dollars_in_names_are_dollars() -> None:
    recipe = dataclasses.replace(
        own(),
        name="$^$",
        components=(Component("background"), Component("signal", 3.0, concept="$^$"), Component("tag 0", -9.0)),
    )
    text = io.StringIO()
    bag_picture(recipe, n_bags=1).savefig(text, format="svg")
    assert legend(bag_picture(recipe, n_bags=1))[1] == "signal: concept '$^$'"


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (["presense"], {}, ValueError, "did you mean presence"),
        (["presence"], {"spelling": "papers"}, ValueError, "recipe must be one of paper, notebook, strict"),
        (["bag-size"], {"spelling": "paper"}, ValueError, "recipe must be one of strict"),
        ([own()], {"spelling": "paper"}, ValueError, "a recipe has no spelling"),
        (["presence"], {"n_bags": 0}, ValueError, "n_bags must be an integer from 1 to 20; got 0"),
        (["presence"], {"n_bags": 21}, ValueError, "n_bags"),
        (["presence"], {"n_bags": 1.5}, ValueError, "n_bags"),
        (["presence"], {"n_bags": True}, ValueError, "n_bags"),
        (["presence"], {"random_state": -1}, ValueError, "random_state must not be negative"),
        ([3], {}, TypeError, "check_or_recipe must be a check, its name or a recipe; got int"),
    ],
)
def test_wrong_arguments_are_refused(
    arguments: list[Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        bag_picture(*arguments, **options)


# ---------------------------------------------------------------- matplotlib


def test_without_matplotlib_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [m for m in sys.modules if m.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as Python marks a module that cannot be imported
    for draw in (bag_picture, pictures.svg):
        with pytest.raises(ImportError, match=r"matplotlib, which is not installed: pip install 'milfast\[report\]'"):
            draw("presence")


@pytest.mark.usefixtures("matplotlib")
def test_nothing_global_is_touched() -> None:
    # settings are compared as those of a dict: looking up the backend would choose one, and import pyplot
    code = (
        "import sys\n"
        "from milfast.report import pictures, plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "import matplotlib\n"
        "matplotlib.rcParams['svg.hashsalt'] = 'mine'\n"
        "before = matplotlib.rcParams.copy()\n"
        "plots.bag_picture('presence')\n"
        "pictures.svg('presence')\n"
        "assert all(dict.__getitem__(matplotlib.rcParams, k) == v for k, v in dict.items(before))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ---------------------------------------------------------------- files


def test_a_picture_is_the_same_file_whatever_the_settings(matplotlib: Any) -> None:
    one = pictures.svg("false-frequency")
    with matplotlib.rc_context({"font.size": 20, "svg.fonttype": "path", "lines.linewidth": 9}):
        assert pictures.svg("false-frequency") == one
    assert "<dc:date>" not in one
    assert ">shifted, negative</text>" in one  # text is text


@pytest.mark.usefixtures("matplotlib")
def test_the_command_writes_a_file_for_each_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "folder"
    assert pictures.main([str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{check}.svg" for check in catalogue.names())
    assert capsys.readouterr().out.splitlines() == [str(folder / f"{check}.svg") for check in catalogue.names()]


@pytest.mark.parametrize("check", catalogue.names())
def test_the_picture_in_the_docs_is_up_to_date(check: str) -> None:
    path = ROOT / "docs" / "pictures" / f"{check}.svg"
    kept = path.read_bytes()
    assert len(kept) < 60_000
    version = re.search(rb"Matplotlib v([^,]+),", kept)
    assert version is not None
    installed = pytest.importorskip("matplotlib").__version__
    if version[1].decode() != installed:
        pytest.skip(f"{path.name} was drawn with matplotlib {version[1].decode()}, and {installed} is installed")
    assert pictures.svg(check).encode() == kept, "run python -m milfast.report.pictures docs/pictures"
