"""Laws tried on fitted models: who keeps them, who breaks which, and the tools they are tried with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_models import Chance, Constant, Oracle, Scorer, Size

import milfast as mf
from milfast import Bags
from milfast.checks.fitted import CHANGE, Fitted, best_cut, comparable, insert
from milfast.checks.null_copies import COPIES

if TYPE_CHECKING:
    from collections.abc import Callable

LAWS = ("permutation", "null-copies", "monotonicity")
PRESENCE = mf.checks.get("presence").recipe("strict")
MORE: dict[str, Any] = {"checks": "laws", "recipe": "strict", "n_train": 20, "n_test": 1000, "random_state": 0}


def largest(bags: Bags, values: Any) -> Any:
    return np.maximum.reduceat(np.asarray(values, dtype=np.float64), bags.offsets[:-1])


def summed(bags: Bags, values: Any) -> Any:
    return np.add.reduceat(np.asarray(values, dtype=np.float64), bags.offsets[:-1])


def evidence(bags: Bags) -> Any:
    """How much an instance speaks for the concept: its size, apart from the poison."""
    x = bags.instances.astype(np.float64)
    return np.where(x.mean(axis=1) < -5, 0.0, np.sqrt((x**2).mean(axis=1)))


def shown(bags: Bags) -> Any:
    """Whether a bag shows the concept, as good as that can be told."""
    return PRESENCE.oracle(bags) > 0


def poisoned(bags: Bags) -> Any:
    return largest(bags, bags.instances.mean(axis=1) < -5) > 0


def fitted_to(score: Callable[[Bags], Any], recipe: Any = PRESENCE, n: int = 600, seed: int = 0) -> Fitted:
    bags = recipe.sample(n, random_state=seed)
    scores = np.asarray(score(bags))
    plain = lambda bags: np.asarray(score(bags))  # noqa: E731
    return Fitted(plain, bags, scores, recipe, best_cut(scores, bags.labels), np.random.default_rng(seed))


# ---------------------------------------------------------------- who keeps the laws


@given(seed=st.integers(0, 2**32), spelling=st.sampled_from(["paper", "notebook", "strict"]), width=st.integers(1, 20))
@settings(max_examples=25)
def test_the_largest_of_any_score_of_instances_keeps_every_law(seed: int, spelling: str, width: int) -> None:
    generator = np.random.default_rng(seed)
    recipe = mf.checks.get("presence").recipe(spelling, n_features=4)
    first, second = generator.normal(size=(4, width)), generator.normal(size=width)

    def score(bags: Bags) -> Any:
        # without matrix products, whose last bits depend on the rows beside
        hidden = np.tanh((bags.instances.astype(np.float64)[:, :, None] * first).sum(axis=1))
        return largest(bags, (hidden * second).sum(axis=1))

    fitted = fitted_to(score, recipe, seed=seed)
    for law in LAWS:
        flags = mf.checks.get(law).broken(fitted)
        assert not any(broken.any() for broken in flags.values()), law
        # something was tried, unless no positive bag is recognised: otherwise nothing could break
        recognised = (fitted.scores > fitted.cut) & (fitted.bags.labels == 1)
        assert sum(map(len, flags.values())) > 0 or (law == "monotonicity" and not recognised.any())


def test_the_true_rule_passes_every_law() -> None:
    for spelling in ("paper", "notebook", "strict"):
        model = Oracle(mf.checks.get("presence").recipe(spelling))
        results = mf.check_model(model, **(MORE | {"recipe": spelling}))
        assert [(r.check, r.verdict) for r in results] == [(law, "pass") for law in LAWS]
        assert all(r.broken is not None and r.broken.estimate == 0 for r in results)


# ---------------------------------------------------------------- who breaks which


class FirstInstanceCounts(Scorer):
    """The true rule, and a little of the first instance."""

    def decision_function(self, bags: Bags) -> Any:
        return 10.0 * shown(bags) + 0.5 * np.tanh(bags.instances[bags.offsets[:-1], 0])


class WeightedByPlace(Scorer):
    """A sum whose weights depend on the place of an instance."""

    def decision_function(self, bags: Bags) -> Any:
        place = np.arange(bags.n_instances) - bags.offsets[bags.bag_index]
        return summed(bags, np.maximum(evidence(bags) - 2, 0) / (1 + place))


class Sum(Scorer):
    """What every instance adds is positive: nothing counts against a bag, and everything for it."""

    def decision_function(self, bags: Bags) -> Any:
        return summed(bags, evidence(bags) ** 2)


class AgainstPoison(Scorer):
    """The concept speaks for a bag and poison against it, however often they occur and wherever they are."""

    def decision_function(self, bags: Bags) -> Any:
        return 1.0 * shown(bags) - 2.0 * poisoned(bags)


class Mean(Scorer):
    def decision_function(self, bags: Bags) -> Any:
        return summed(bags, np.minimum(evidence(bags), 3)) / bags.sizes


@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (FirstInstanceCounts, {"permutation"}),
        (Sum, {"null-copies"}),
        (AgainstPoison, {"monotonicity"}),
    ],
)
@pytest.mark.parametrize("n_runs", [1, 3])
def test_a_model_fails_the_laws_it_breaks_and_no_other(model: type, broken: set[str], n_runs: int) -> None:
    results = {r.check: r for r in mf.check_model(model, **MORE, n_runs=n_runs)}
    assert {law: r.verdict for law, r in results.items()} == {law: "fail" if law in broken else "pass" for law in LAWS}
    for law, result in results.items():
        assert result.broken is not None
        assert (result.broken.low > 0.01) == (law in broken)
        if law in broken:
            assert f"learned instead: {mf.checks.get(law).about.learned}" in result.reason


def test_a_mean_over_instances_fails_the_copies_and_does_not_pass_monotonicity() -> None:
    verdicts = {r.check: r.verdict for r in mf.check_model(Mean(), **MORE, n_runs=3)}
    assert (verdicts["permutation"], verdicts["null-copies"]) == ("pass", "fail")
    assert verdicts["monotonicity"] in ("fail", "inconclusive")  # one instance dilutes a bag, but not by much


def test_a_sum_weighted_by_the_place_fails_the_permutation() -> None:
    result = mf.check_model(WeightedByPlace(), **(MORE | {"checks": "permutation"}))[0]
    assert (result.verdict, result.code) == ("fail", "MIL004")


def test_the_worst_sort_says_what_breaks_a_law() -> None:
    results = {r.check: r for r in mf.check_model(AgainstPoison(), **MORE)}
    assert results["monotonicity"].worst_stratum == "one more poison"
    strata = results["monotonicity"].runs[0].strata
    assert {name: e.value for name, e in strata.items()} == {
        "one more background": 0.0,
        "one more poison": 1.0,
        "one more wide": 0.0,
        "one more shifted": 0.0,
    }
    # copies of weak instances lift a negative bag over the cut, where most of the positive ones are already
    null = {r.check: r for r in mf.check_model(Sum(), **MORE)}["null-copies"]
    assert null.worst_stratum == "negative bags"
    assert null.runs[0].strata["positive bags"].value < null.runs[0].strata["negative bags"].value / 4


def test_laws_are_tried_on_bags_of_both_classes_also_where_negative_ones_come_first() -> None:
    results = mf.check_model(AgainstPoison(), **(MORE | {"recipe": "notebook", "n_test": 6000, "checks": "all"}))
    tried = {r.check: r.runs[0].strata for r in results if r.broken is not None and r.recipe == "notebook"}
    assert set(tried) == set(LAWS)
    assert {name: e.n for name, e in tried["permutation"].items()} == {"negative bags": 1000, "positive bags": 1000}
    assert all(e.n > 900 for e in tried["monotonicity"].values())


@pytest.mark.parametrize("model", [Constant, Chance, Size])
def test_models_that_know_nothing_are_not_judged_by_laws(model: type) -> None:
    results = mf.check_model(model, **MORE)
    assert [(r.check, r.verdict) for r in results] == [(law, "not-learned") for law in LAWS]


def test_positive_bags_that_are_recognised_are_tried_and_no_others() -> None:
    fitted = fitted_to(lambda bags: bags.instances[bags.offsets[:-1], 0])
    recognised = fitted.scores > fitted.cut
    assert recognised[fitted.bags.labels == 0].any()
    tried = mf.checks.get("monotonicity").broken(fitted)
    assert {len(flags) for flags in tried.values()} == {int(recognised[fitted.bags.labels == 1].sum())}


def test_a_model_that_recognises_no_bag_is_no_model_that_breaks_the_law() -> None:
    fitted = fitted_to(lambda bags: np.zeros(len(bags)))
    assert mf.checks.get("monotonicity").broken(fitted) == {}
    for law in ("permutation", "null-copies"):
        assert not any(flags.any() for flags in mf.checks.get(law).broken(fitted).values())


def test_what_models_see_of_a_law_is_bags_without_labels() -> None:
    seen: list[Bags] = []

    class Spy(Size):
        def decision_function(self, bags: Bags) -> Any:
            assert bags.labels is None
            assert bags.kinds is None
            seen.append(bags)
            return super().decision_function(bags)

    mf.check_model(Spy(), **MORE)
    # training, fresh, fresh again by themselves, permuted, copied, and one more of each of four kinds
    assert len(seen) == 2 + 1 + 2 + len(PRESENCE.kinds)


def test_large_integers_are_told_apart() -> None:
    class OrderedIntegers(Size):
        def decision_function(self, bags: Bags) -> Any:
            first = bags.instances[bags.offsets[:-1]].mean(axis=1)
            return 2**60 + (10 * first).astype(np.int64)

    np.testing.assert_array_equal(comparable(np.array([2**60 + 1, 2**60 + 3]), np.array([2**60])), [1.0, 3.0])
    results = mf.check_model(OrderedIntegers(), checks="permutation", n_train=20, n_test=400, random_state=0)
    assert [r.broken is not None and r.broken.estimate > 0.1 for r in results] == [True]


@pytest.mark.parametrize(
    "score",
    [
        lambda bags: PRESENCE.oracle(bags).argsort().argsort() / len(bags),
        lambda bags: PRESENCE.oracle(bags) + len(bags),
        lambda bags: PRESENCE.oracle(bags) + np.random.default_rng(len(bags)).normal(size=len(bags)),
    ],
)
def test_scores_that_depend_on_other_bags_or_on_chance_are_not_blamed_on_a_law(score: Any) -> None:
    class Unstable(Size):
        def decision_function(self, bags: Bags) -> Any:
            return score(bags)

    for result in mf.check_model(
        Unstable(), checks="laws", recipe="strict", n_train=20, n_test=3000, n_runs=2, random_state=0
    ):
        assert (result.verdict, "unstable" in result.flags) == ("inconclusive", True)
        assert "the same bags got other scores" in result.reason


# ---------------------------------------------------------------- the tools


@st.composite
def bags_and_more(draw: st.DrawFn) -> tuple[Bags, np.ndarray, np.ndarray, int]:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=8))
    owners = draw(st.lists(st.integers(0, len(sizes) - 1), max_size=15))
    n = sum(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    bags = Bags(np.arange(n, dtype=np.float32)[:, None], offsets)
    return bags, -1.0 - np.arange(len(owners))[:, None], np.array(owners, dtype=np.int64), draw(st.integers(0, 2**32))


@given(bags_and_more())
def test_inserting_keeps_the_order_of_what_was_there_and_puts_the_rest_where_it_belongs(
    case: tuple[Bags, np.ndarray, np.ndarray, int],
) -> None:
    bags, new, owners, seed = case
    grown = insert(bags, new, owners, np.random.default_rng(seed))
    assert grown.instances.dtype == bags.instances.dtype
    assert (grown.labels, grown.kinds) == (None, None)
    assert len(grown) == len(bags)
    for i, (before, after) in enumerate(zip(bags, grown, strict=True)):
        values = after[:, 0]
        np.testing.assert_array_equal(values[values >= 0], before[:, 0])
        assert sorted(values[values < 0]) == sorted(new[owners == i, 0])


def test_inserted_instances_come_to_stand_anywhere() -> None:
    bags = Bags(np.tile([1.0, 2.0, 3.0], 4000)[:, None], np.arange(0, 12001, 3))
    grown = insert(bags, np.zeros((4000, 1)), np.arange(4000), np.random.default_rng(0))
    places = np.bincount([int(np.flatnonzero(bag[:, 0] == 0)[0]) for bag in grown], minlength=4)
    assert len(places) == 4
    assert places.min() > 500  # at an end half as often as between two
    assert abs(places[0] - places[3]) < 4 * np.sqrt(4000 / 3)


scores_of_bags = st.lists(st.one_of(st.floats(allow_nan=False), st.integers(-3, 3).map(float)), min_size=2, max_size=25)


@given(scores_of_bags, st.data())
def test_the_best_cut_is_the_best_of_all_between_two_scores(values: list[float], data: st.DataObject) -> None:
    labels = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(values), max_size=len(values))))
    labels[:2] = 0, 1
    scores = np.array(values)

    def gain(cut: float) -> float:
        above = scores > cut
        return float(np.mean(above[labels == 1]) - np.mean(above[labels == 0]))

    cut = best_cut(scores, labels)
    known = np.unique(scores)
    if len(known) == 1:
        assert cut == known[0]
    else:
        assert gain(cut) == pytest.approx(max(gain(value) for value in known[:-1]), abs=1e-12)
        assert known[0] <= cut < known[-1]


def test_the_cut_lies_half_way_so_that_rounding_moves_no_bag() -> None:
    scores = np.array([0.1, 0.2, 0.6, 0.7])
    assert best_cut(scores, np.array([0, 0, 1, 1])) == pytest.approx(0.4)
    assert best_cut(scores.astype(np.float32), np.array([0, 0, 1, 1])) == pytest.approx(0.4)
    one = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert best_cut(one, np.array([0, 1])) == 1.0  # no number lies between


def test_a_score_has_changed_when_it_moves_by_more_than_a_thousandth_of_the_spread() -> None:
    fitted = fitted_to(lambda bags: PRESENCE.oracle(bags))
    spread = float(np.diff(np.quantile(fitted.scores, (0.25, 0.75)))[0])
    for share, moved in ((0.0, False), (0.9 * CHANGE, False), (1.1 * CHANGE, True)):
        assert fitted.changed(fitted.scores + share * spread).all() == moved
        assert fitted.changed(fitted.scores - share * spread).any() == moved
    # scores that do not vary at all: any change is one
    flat = fitted_to(lambda bags: np.zeros(len(bags)))
    assert not flat.changed(flat.scores).any()
    assert flat.changed(flat.scores + 1e-9).all()
    # one wild score, or scores of any size, must not hide a change; nor must rounding of large scores look like one
    wild = fitted_to(lambda bags: np.append(PRESENCE.oracle(bags)[1:], 1e9))
    assert wild.changed(wild.scores + 0.01 * spread)[:-1].all()
    large = fitted_to(lambda bags: 1e200 * PRESENCE.oracle(bags))
    assert large.changed(large.scores + 0.01 * 1e200 * spread).all()
    steep = fitted_to(lambda bags: np.exp(PRESENCE.oracle(bags)))
    assert not steep.changed(steep.scores * (1 + 1e-7)).any()


def test_drawn_instances_have_the_law_of_their_kind() -> None:
    fitted = fitted_to(lambda bags: PRESENCE.oracle(bags))
    for code, component in enumerate(PRESENCE.components):
        drawn = fitted.draw(code, 2000)
        assert drawn.dtype == np.float32
        np.testing.assert_allclose(drawn.mean(), component.mean, atol=5 * np.sqrt(component.variance / drawn.size))
        np.testing.assert_allclose(drawn.var(), component.variance, rtol=5 * np.sqrt(2 / drawn.size))


def test_null_instances_are_there_five_times_and_others_once() -> None:
    seen: list[Bags] = []

    def score(bags: Bags) -> Any:
        seen.append(bags)
        return PRESENCE.oracle(bags)

    fitted = fitted_to(score)
    mf.checks.get("null-copies").broken(fitted)
    before, after = seen
    assert fitted.bags.kinds is not None
    null = np.array([c.concept is None for c in PRESENCE.components])[fitted.bags.kinds]
    for i in range(20):
        inside = slice(before.offsets[i], before.offsets[i + 1])
        rows, times = np.unique(after[i], axis=0, return_counts=True)
        expected = {row.tobytes(): 1 + COPIES * int(n) for row, n in zip(before.instances[inside], null[inside])}  # noqa: B905
        assert {row.tobytes(): int(n) for row, n in zip(rows, times, strict=True)} == expected
