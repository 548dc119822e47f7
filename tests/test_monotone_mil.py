"""MonotoneMIL: its laws for any weights, counts, witnesses, rules, restarts."""

from __future__ import annotations

import math
import pickle
import re
from itertools import pairwise, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import milfast as mf
from milfast.bags import Bags

torch = pytest.importorskip("torch")

from milfast.models.deep.monotone_mil import (  # noqa: E402
    ABSENT,
    MonotoneMIL,
    MonotoneNetwork,
    segment_largest,
)
from milfast.models.deep.monotone_rule import ConceptScores, Rule, absorbed, find_rule  # noqa: E402
from milfast.training import loop  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

# The first call of a torch operation takes far longer than the next.
no_deadline = settings(deadline=None)

bag_sizes = st.lists(st.integers(1, 6), min_size=1, max_size=10)
entries = st.floats(-50, 50, width=32, allow_subnormal=False)
rows_3d = arrays(np.float32, st.tuples(st.integers(1, 8), st.just(3)), elements=entries)
one_row = arrays(np.float32, (1, 3), elements=entries)
counts = st.integers(1, 3)
seeds = st.integers(0, 10_000)
each_count = pytest.mark.parametrize("max_count", [1, 2])


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def random_network(seed: int, max_count: int = 1, scale: float = 1.0) -> MonotoneNetwork:
    """Any weights, not those that training starts from; in double precision, so that rounding is small."""
    with loop.seeded(seed):
        network = MonotoneNetwork(3, 8, n_concepts=4, n_units=5, max_count=max_count)
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.normal_(std=scale)
    return network.double().eval()


def cuts_of(sizes: list[int]) -> torch.Tensor:
    return torch.tensor(np.concatenate(([0], np.cumsum(sizes))))


def score(network: MonotoneNetwork, *bags: np.ndarray) -> np.ndarray:
    cuts = cuts_of([len(bag) for bag in bags])
    return loop.scores(network, torch.tensor(np.concatenate(bags)).double(), cuts).numpy()


def rounding(scores: np.ndarray) -> float:
    return 1e-10 * max(1.0, float(np.abs(scores).max()))


def small(**changes: Any) -> MonotoneMIL:
    return MonotoneMIL(**({"hidden": 16, "n_concepts": 4, "n_units": 3, "epochs": 2, "random_state": 0} | changes))


@pytest.fixture(scope="module")
def bags() -> Bags:
    return mf.sample_bags("threshold-poison", 300, recipe="strict", random_state=0)


# ---------------------------------------------------------------- laws, for any weights


@no_deadline
@given(rows_3d, one_row, counts, seeds, st.sampled_from([0.3, 1.0, 5.0]))
def test_the_logit_never_falls_when_an_instance_is_added(
    bag: np.ndarray, more: np.ndarray, max_count: int, seed: int, scale: float
) -> None:
    scores = score(random_network(seed, max_count, scale), bag, np.concatenate((bag, more)))
    assert np.isfinite(scores).all()
    assert scores[1] >= scores[0] - rounding(scores)


@no_deadline
@given(rows_3d, one_row, counts, seeds)
def test_what_is_pooled_never_falls_exactly(bag: np.ndarray, more: np.ndarray, max_count: int, seed: int) -> None:
    with torch.no_grad():
        logits = random_network(seed, max_count).concept_logits(torch.tensor(np.concatenate((bag, more))).double())
    before, _ = segment_largest(logits[:-1], cuts_of([len(bag)]), max_count)
    after, _ = segment_largest(logits, cuts_of([len(bag) + 1]), max_count)
    assert (after >= before).all()


@no_deadline
@given(st.lists(st.tuples(st.floats(-60, 30), st.floats(0, 20)), min_size=1, max_size=6), st.data())
def test_combining_rises_in_each_of_the_largest_logits(steps: list[tuple[float, float]], data: st.DataObject) -> None:
    n, seed = len(steps), data.draw(seeds)
    with loop.seeded(seed):
        network = MonotoneNetwork(1, 2, n_concepts=n, n_units=3, max_count=1).double()
        with torch.no_grad():
            network.weight.normal_(std=3.0)
            network.bias.normal_(std=3.0)
    low = torch.tensor([[[value] for value, _ in steps]], dtype=torch.float64)
    high = low + torch.tensor([[[rise] for _, rise in steps]], dtype=torch.float64)
    with torch.no_grad():
        scores = torch.cat((network.combine(low), network.combine(high))).numpy()
    assert scores[1] >= scores[0] - rounding(scores)


@no_deadline
@given(rows_3d, counts, seeds, st.randoms(use_true_random=False))
def test_the_order_of_instances_changes_nothing(bag: np.ndarray, max_count: int, seed: int, random: Any) -> None:
    order = list(range(len(bag)))
    random.shuffle(order)
    scores = score(random_network(seed, max_count), bag, bag[order])
    assert scores[1] == pytest.approx(scores[0], abs=rounding(scores))


@no_deadline
@given(rows_3d, seeds, st.data())
def test_copies_change_nothing_where_presence_is_asked_for(bag: np.ndarray, seed: int, data: st.DataObject) -> None:
    copied = data.draw(st.lists(st.integers(0, len(bag) - 1), min_size=1, max_size=30))
    scores = score(random_network(seed), bag, np.concatenate((bag, bag[copied])))
    assert scores[1] == pytest.approx(scores[0], abs=rounding(scores))


@no_deadline
@given(rows_3d, st.integers(2, 3), seeds)
def test_copies_beyond_the_largest_count_change_nothing(bag: np.ndarray, max_count: int, seed: int) -> None:
    scores = score(random_network(seed, max_count), *(np.tile(bag, (n, 1)) for n in (1, max_count, max_count + 3)))
    assert scores[1] >= scores[0] - rounding(scores)
    assert scores[2] == pytest.approx(scores[1], abs=rounding(scores))


def test_the_laws_do_not_hold_because_nothing_matters() -> None:
    with loop.seeded(0):
        network = random_network(3, max_count=2)
        first, second = (np.asarray(torch.randn(1, 3)) for _ in range(2))
    one, both, twice = score(network, first, np.concatenate((first, second)), np.concatenate((first, first)))
    assert both > one + 1e-3
    assert twice > one + 1e-3


@no_deadline
@given(bag_sizes, counts, seeds)
def test_a_bag_scores_alone_as_among_others(sizes: list[int], max_count: int, seed: int) -> None:
    network = random_network(seed, max_count)
    with loop.seeded(seed):
        instances = np.asarray(torch.randn(sum(sizes), 3))
    parts = [instances[a:b] for a, b in pairwise(cuts_of(sizes).tolist())]
    together = score(network, *parts)
    alone = np.concatenate([score(network, part) for part in parts])
    np.testing.assert_allclose(together, alone, rtol=1e-10, atol=1e-10)


# ---------------------------------------------------------------- largest values


@no_deadline
@given(bag_sizes, counts, seeds, st.booleans())
def test_segment_largest_is_a_sort_of_each_bag_with_its_gradient(
    sizes: list[int], count: int, seed: int, ties: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(sum(sizes), 2, generator=generator, dtype=torch.float64)
    values = (values.round() if ties else values).requires_grad_()
    largest, rows = segment_largest(values, cuts_of(sizes), count)
    for bag, (a, b) in enumerate(pairwise(cuts_of(sizes).tolist())):
        for column in range(2):
            inside = values[a:b, column].tolist()
            order = sorted(range(b - a), key=lambda i, inside=inside: (-inside[i], i))[:count]
            missing = count - len(order)
            assert rows[bag, column].tolist() == [a + i for i in order] + [-1] * missing
            assert largest[bag, column].tolist() == [inside[i] for i in order] + [-torch.inf] * missing
    largest[rows >= 0].sum().backward()
    expected = np.zeros(values.shape)
    for column in range(2):
        np.add.at(expected[:, column], rows[:, column][rows[:, column] >= 0].numpy(), 1.0)
    np.testing.assert_array_equal(values.grad, expected)


@each_count
def test_a_nan_does_not_stay_hidden(max_count: int) -> None:
    network = random_network(0, max_count)
    assert np.isnan(score(network, np.array([[0.0, np.nan, 1.0], [1.0, 2.0, 3.0]]))[0])


# ---------------------------------------------------------------- a rule that is known


def known(max_count: int = 1) -> MonotoneMIL:
    """Fitted to nothing: feature k above 1 is concept k, positive when (0 and 1) or 2, twice if it counts."""
    n = 3
    model = MonotoneMIL(hidden=n, n_concepts=n, n_units=2, max_count=max_count, epochs=1, standardize=False)
    model.fit(Bags(np.eye(n), np.arange(n + 1), [0, 1, 1]))
    network = model.module_
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        network.embed[0].weight[:, :n] = torch.eye(n)
        network.embed[3].weight.copy_(torch.eye(n))
        network.head.weight.copy_(40 * torch.eye(n))
        network.head.bias.fill_(-40.0)
        network.weight[0, :2, -1] = 1.0
        network.weight[1, 2, -1] = -1.0  # the sign of a weight means nothing
        network.weight[:, :, 0] += 0.001  # of no consequence
        network.bias.fill_(3.0)
    return model


def with_concepts(held: list[list[int]]) -> Bags:
    """Bags with an instance for each concept named, among others that show none."""
    parts = [np.concatenate((np.zeros((2, 3)), 2 * np.eye(3)[concepts])) for concepts in held]
    return Bags.from_list(parts, labels=np.arange(len(held)) % 2)


def test_a_known_rule_is_found_and_said() -> None:
    held = [[], [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2], [0, 0], [1, 1, 1]]
    model = known()
    assert model.predict(with_concepts(held)).tolist() == [0, 0, 0, 1, 1, 1, 1, 1, 0, 0]
    rule = model.rule(with_concepts(held), agreement=1.0)
    assert set(rule.terms) == {((0, 1), (1, 1)), ((2, 1),)}
    assert str(rule) == (
        "positive when concept 2 or (concept 0 and concept 1); agrees with the model on 100.0 % of 10 bags"
    )


def test_a_known_rule_that_counts_is_found_and_said() -> None:
    held = [[], [0, 0], [1, 1], [0, 0, 1], [0, 0, 1, 1], [2], [2, 2], [0, 1, 1], [2, 2, 2], [0, 0, 0, 1, 1, 1]]
    model = known(max_count=2)
    assert model.predict(with_concepts(held)).tolist() == [0, 0, 0, 0, 1, 0, 1, 0, 1, 1]
    rule = model.rule(with_concepts(held), agreement=1.0)
    assert set(rule.terms) == {((0, 2), (1, 2)), ((2, 2),)}
    assert "concept 2 at least 2 times or (concept 0 at least 2 times and concept 1 at least 2 times)" in str(rule)


def test_a_number_of_instances_implies_the_smaller_ones() -> None:
    model = known(max_count=2)
    with torch.no_grad():
        model.module_.weight[1, 2] = 1.0  # concept 2 once, and twice
        model.module_.bias[1] = 20.0
    held = [[], [2], [2, 2], [0], [1]]
    assert model.predict(with_concepts(held)).tolist() == [0, 0, 1, 0, 0]
    assert model.rule(with_concepts(held), agreement=1.0).terms == (((2, 2),),)


def test_a_rule_says_what_pruning_costs() -> None:
    held = [[], [0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2], [0, 0], [1, 1, 1]]
    rule = known().rule(with_concepts(held), agreement=0.9)
    # without (0 and 1) a single bag of ten is lost
    assert (rule.terms, rule.agreement, rule.n_bags) == ((((2, 1),),), 0.9, 10)
    assert str(rule) == "positive when concept 2; agrees with the model on 90.0 % of 10 bags"


def test_rules_that_always_and_that_never_say_yes() -> None:
    model = known()
    assert str(model.rule(with_concepts([[], [0]]))) == "positive never; agrees with the model on 100.0 % of 2 bags"
    rule = model.rule(with_concepts([[2], [0, 1, 2]]))
    assert rule == Rule(((),), {}, 1.0, 0.99, 2)
    assert str(rule).startswith("positive always;")


def test_rule_names_wrong_arguments(bags: Bags) -> None:
    model = small().fit(bags)
    with pytest.raises(ValueError, match=r"agreement must be above 0 and at most 1; got 1\.5"):
        model.rule(bags, agreement=1.5)
    with pytest.raises(TypeError, match="agreement must be a number; got '1'"):
        model.rule(bags, agreement="1")
    with pytest.raises(ValueError, match="max_terms must be at least 1; got 0"):
        model.rule(bags, max_terms=0)
    with pytest.raises(TypeError, match=r"max_length must be an integer; got 1\.5"):
        model.rule(bags, max_length=1.5)
    rule = Rule((((5, 1),),), {(5, 1): 0.5}, 1.0, 0.99, 2)
    with pytest.raises(ValueError, match="found has 4 concepts, counted up to 1, but the rule asks for concept 5"):
        rule.holds(model.concept_scores(bags))
    with pytest.raises(TypeError, match=r"found must be what model\.concept_scores\(bags\) returns; got Bags"):
        rule.holds(bags)


# ---------------------------------------------------------------- rules of trained models


def evaluated(text: str, scores: np.ndarray) -> np.ndarray:
    """What the printed words say about each bag: they are read anew, so that it is the words that are tested."""
    words = re.fullmatch(r"positive (always|never|when\s.*?);\s*agrees with .*", text, flags=re.DOTALL)[1]
    if words in ("always", "never"):
        return np.full(len(scores), words == "always")
    said = []
    for bag in scores:
        terms = re.split(r"\bor\b", words.removeprefix("when"))
        conditions = [re.findall(r"concept (\d+)(?: at least (\d+) times)?(?: \(above ([^\s)]+)\))?", t) for t in terms]
        assert all(conditions)
        said.append(any(all(bag[int(k), int(r or 1) - 1] > float(cut or 0.5) for k, r, cut in c) for c in conditions))
    return np.array(said)


@pytest.fixture(scope="module")
def trained() -> dict[str, tuple[MonotoneMIL, Bags, Rule]]:
    """A model of each task, and its rule."""
    made = {}
    for check, spelling in (("threshold-poison", "paper"), ("threshold-poison", "strict"), ("presence", "strict")):
        bags = mf.sample_bags(check, 600, recipe=spelling, random_state=0)
        model = MonotoneMIL(hidden=32, epochs=10, random_state=0).fit(bags)
        made[f"{check}/{spelling}"] = model, bags, model.rule(bags)
    return made


@pytest.mark.parametrize("task", ["threshold-poison/paper", "threshold-poison/strict", "presence/strict"])
def test_the_printed_words_say_what_a_trained_model_predicts(task: str, trained: dict[str, Any]) -> None:
    model, bags, rule = trained[task]
    found, predicted = model.concept_scores(bags), model.predict(bags)
    assert 0.3 < predicted.mean() < 0.8
    said = evaluated(str(rule), found.scores)
    np.testing.assert_array_equal(said, rule.holds(found))
    assert (said == predicted).mean() == rule.agreement >= 0.95
    assert all(rule.terms)
    assert str(rule).endswith(f"agrees with the model on {math.floor(1000 * rule.agreement) / 10:.1f} % of 600 bags")


def test_a_rule_for_two_concepts_is_an_and_of_both(trained: dict[str, Any]) -> None:
    model, bags, rule = trained["threshold-poison/strict"]
    [term] = rule.terms
    found = model.concept_scores(bags)
    holds = rule.holds(found)
    recipe = mf.checks.get("threshold-poison").recipe("strict")
    concept_of = np.array([recipe.concepts.index(c.concept) if c.concept else -1 for c in recipe.components])
    shown = [concept_of[bags.kinds[found.witness[holds, concept]]] for concept, _ in term]
    most = [int(np.bincount(column + 1).argmax()) - 1 for column in shown]
    assert sorted(most) == [0, 1]
    for column, concept in zip(shown, most, strict=True):
        assert (column == concept).mean() > 0.95


def test_a_rule_for_one_concept_asks_for_one(trained: dict[str, Any]) -> None:
    assert [len(term) for term in trained["presence/strict"][2].terms] == [1]


def test_a_rule_that_falls_short_says_so(trained: dict[str, Any]) -> None:
    model, bags, _ = trained["threshold-poison/strict"]
    rule = model.rule(bags, max_terms=1, max_length=1)
    assert 0.5 < rule.agreement < 0.99
    assert (rule.holds(model.concept_scores(bags)) == model.predict(bags)).mean() == rule.agreement
    assert str(rule).endswith("of 600 bags, fewer than the 99 % asked for")


# ---------------------------------------------------------------- the search for rules

known_rules = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.integers(1, 2)), min_size=1, max_size=3, unique_by=lambda c: c[0]),
    min_size=1,
    max_size=3,
)


def plainly(terms: Any, cuts: dict[tuple[int, int], float], scores: np.ndarray) -> np.ndarray:
    return np.array([any(all(bag[k, r - 1] > cuts[k, r] for k, r in term) for term in terms) for bag in scores])


def random_scores(seed: int, n_bags: int, *, digits: int = 9) -> np.ndarray:
    drawn = np.random.default_rng(seed).random((n_bags, 5, 2)).round(digits)
    return np.sort(drawn, axis=2)[:, :, ::-1]


@no_deadline
@given(known_rules, seeds, st.sampled_from([1, 2, 9]), st.integers(1, 60))
def test_holds_is_a_plain_evaluation(terms: Any, seed: int, digits: int, n_bags: int) -> None:
    scores = random_scores(seed, n_bags, digits=digits)
    cuts = {c: float(np.random.default_rng(c).random().__round__(1)) for term in terms for c in term}
    rule = Rule(tuple(map(tuple, terms)), cuts, 1.0, 0.99, n_bags)
    expected = plainly(terms, cuts, scores)
    np.testing.assert_array_equal(rule.holds(ConceptScores(scores, np.zeros(scores.shape, dtype=int))), expected)
    np.testing.assert_array_equal(evaluated(str(rule), scores), expected)


@settings(deadline=None, max_examples=40)
@given(known_rules, seeds, st.sampled_from([1, 2, 9]), st.sampled_from([0.0, 0.1, 0.5]), st.integers(2, 80))
def test_the_stated_agreement_is_that_of_the_words(
    terms: Any, seed: int, digits: int, noise: float, n_bags: int
) -> None:
    scores = random_scores(seed, n_bags, digits=digits)
    wanted = plainly(terms, {c: 0.5 for term in terms for c in term}, scores)
    wanted ^= np.random.default_rng(seed).random(n_bags) < noise
    rule = find_rule(scores, wanted, 0.99)
    said = evaluated(str(rule), scores)
    assert (said == wanted).mean() == rule.agreement
    assert ("fewer than the 99 % asked for" in str(rule)) == (rule.agreement < 0.99)
    assert (() in rule.terms) == wanted.all()
    # no worse than the better of never and always, but for the one term that there must be
    assert rule.agreement >= max(wanted.mean(), 1 - wanted.mean()) - 1 / n_bags or not wanted.any()
    assert all(len({k for k, _ in term}) == len(term) <= 4 for term in rule.terms)
    for one, other in permutations(rule.terms, 2):
        assert not set(one) <= set(other)


@pytest.mark.parametrize("n_bags", [500, 5000])
def test_a_rule_that_is_there_is_found(n_bags: int) -> None:
    scores = random_scores(0, n_bags)
    terms = (((0, 1), (1, 2)), ((2, 1), (3, 1), (4, 2)))
    cuts = {(0, 1): 0.6, (1, 2): 0.3, (2, 1): 0.5, (3, 1): 0.5, (4, 2): 0.2}
    rule = find_rule(scores, plainly(terms, cuts, scores), 0.98)
    assert set(rule.terms) == set(terms)
    assert all(abs(rule.cuts[c] - cut) < 0.05 for c, cut in cuts.items())
    assert rule.agreement >= 0.98


def test_a_rule_of_many_ands_has_a_line_for_each() -> None:
    rule = Rule((((0, 1), (1, 2)), ((2, 1),), ((3, 1),)), {(0, 1): 0.5, (1, 2): 0.9, (2, 1): 0.5, (3, 1): 0.5}, 1, 1, 9)
    assert str(rule) == (
        "positive when\n  concept 0 and concept 1 at least 2 times (above 0.9) or\n  concept 2 or\n  concept 3;\n"
        "agrees with the model on 100.0 % of 9 bags"
    )


@given(st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=6), st.sets(st.integers(0, 4)))
def test_absorption_changes_nothing_but_the_length(terms: list[set[int]], there: set[int]) -> None:
    kept = absorbed([tuple(term) for term in terms])
    assert any(set(term) <= there for term in kept) == any(term <= there for term in terms)
    assert not any(set(one) <= set(other) for one, other in permutations(kept, 2))


def test_witnesses_are_the_instances_that_show_a_concept() -> None:
    found = known(max_count=2).concept_scores(with_concepts([[0, 1], [2, 2]]))
    assert found.scores.shape == found.witnesses.shape == (2, 3, 2)
    np.testing.assert_array_equal(found.presence > 0.5, [[True, True, False], [False, False, True]])
    np.testing.assert_array_equal(found.scores[:, :, 1] > 0.5, [[False] * 3, [False, False, True]])
    assert (found.witness[0, 0], found.witness[0, 1]) == (2, 3)
    assert found.witnesses[1, 2].tolist() == [6, 7]


@each_count
def test_concept_scores_are_largest_scores_of_instances(max_count: int, bags: Bags) -> None:
    model = small(max_count=max_count).fit(bags)
    found = model.concept_scores(bags)
    alone = model.concept_scores(Bags(bags.instances, np.arange(bags.n_instances + 1))).presence
    for bag, (a, b) in enumerate(pairwise(bags.offsets.tolist())):
        np.testing.assert_allclose(found.presence[bag], alone[a:b].max(axis=0), rtol=1e-5, atol=1e-7)
        chosen = alone[found.witness[bag], np.arange(4)]
        np.testing.assert_allclose(chosen, found.presence[bag], rtol=1e-5, atol=1e-7)
        assert ((found.witnesses[bag] >= a) & (found.witnesses[bag] < b)).all()
    tiny = model.concept_scores(Bags(bags.instances[:1], [0, 1]))
    assert (tiny.scores[:, :, 1:] == 0).all()
    assert (tiny.witnesses[:, :, 1:] == -1).all()


def test_scores_come_out_of_concept_scores_again(bags: Bags) -> None:
    model = small().fit(bags)
    largest, _ = model._largest(bags)
    with torch.no_grad():
        logits = model.module_.combine(torch.tensor(largest).float()).numpy()
    np.testing.assert_allclose(logits, model.decision_function(bags), rtol=1e-4, atol=1e-4)
    assert largest.min() > -np.inf
    assert ABSENT < 0


# ---------------------------------------------------------------- fitting


def test_restarts_go_on_from_the_lowest_loss(bags: Bags) -> None:
    model = small(n_restarts=4, epochs=5).fit(bags)
    assert model.restart_losses_.shape == (4,)
    assert len(set(model.restart_losses_)) == 4
    # the fit that is kept passed through the loss that it was chosen for
    assert model.loss_curve_[1] == model.restart_losses_.min()
    assert len(model.loss_curve_) == 5


def test_one_start_is_the_fit_itself_and_its_callback_sees_it_alone(bags: Bags) -> None:
    calls: list[tuple[int, int, float]] = []
    for n_restarts in (1, 3):
        calls.clear()
        model = small(epochs=5, n_restarts=n_restarts, callback=lambda *call: calls.append(call)).fit(bags)
        assert calls == [(epoch, 5, loss) for epoch, loss in enumerate(model.loss_curve_, start=1)]
        again = small(epochs=5, n_restarts=n_restarts).fit(bags)
        np.testing.assert_array_equal(model.decision_function(bags), again.decision_function(bags))
    assert clone(model).get_params()["n_restarts"] == 3


def test_a_start_that_does_not_come_off_is_left_out(bags: Bags, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, tries = loop.fit, []

    def fit(*arguments: Any, **settings: Any) -> loop.History:
        tries.append(settings["epochs"])
        if len(tries) in failing:
            raise FloatingPointError("the training loss became nan")
        return usual(*arguments, **settings)

    monkeypatch.setattr(loop, "fit", fit)
    failing = {1, 3}
    model = small(n_restarts=3, epochs=4).fit(bags)
    assert tries == [1, 1, 1, 4]
    assert np.isfinite(model.restart_losses_).tolist() == [False, True, False]
    assert model.loss_curve_[0] == model.restart_losses_[1]
    tries.clear()
    failing = {1, 2, 3}
    with pytest.raises(FloatingPointError, match="the training loss of all 3 initialisations was not finite"):
        small(n_restarts=3, epochs=4).fit(bags)


def test_a_fitted_model_survives_pickling(bags: Bags) -> None:
    model = small(n_restarts=2).fit(bags)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(bags), model.decision_function(bags))
    assert again.rule(bags) == model.rule(bags)


@pytest.mark.parametrize("name", ["n_concepts", "n_units", "max_count", "n_restarts"])
def test_wrong_parameters_are_named_before_work_is_done(name: str, bags: Bags) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1; got 0"):
        small(**{name: 0}).fit(bags)
    for wrong in (1.5, True, "2"):
        with pytest.raises(TypeError, match=f"{name} must be an integer; got {wrong!r}"):
            small(**{name: wrong}).fit(bags)


def test_scores_need_a_fit_and_instances_have_none_of_their_own(bags: Bags) -> None:
    with pytest.raises(NotFittedError):
        small().concept_scores(bags)
    with pytest.raises(NotFittedError):
        small().rule(bags)
    with pytest.raises(TypeError, match="MonotoneMIL scores bags only"):
        small().fit(bags).instance_scores(bags)


# ---------------------------------------------------------------- the hard cases


def test_the_notebooks_poison_does_not_stop_it_at_a_single_concept() -> None:
    # 0.84 is what a single concept reaches
    [result] = mf.check_model(
        MonotoneMIL(hidden=32), checks="threshold-poison", recipe="notebook", n_train=1000, n_test=1000, random_state=0
    )
    assert result.test_auc.estimate > 0.99


def test_counts_are_learned_where_they_decide() -> None:
    train, fresh, shifted = (
        mf.sample_bags("threshold-count", 500, training=training, random_state=seed)
        for seed, training in ((1, True), (2, True), (3, False))
    )
    model = MonotoneMIL(hidden=32, max_count=2, epochs=15, lr=4e-3, random_state=0).fit(train)
    assert mf.auc(model.decision_function(fresh), fresh.labels) > 0.99
    assert mf.auc(model.decision_function(shifted), shifted.labels) > 0.99
    rule = model.rule(train)
    assert rule.agreement >= 0.99
    assert all(count == 2 for term in rule.terms for _, count in term)
    # the presence of no concept tells as much
    assert max(mf.auc(column, fresh.labels) for column in model.concept_scores(fresh).presence.T) < 0.8
