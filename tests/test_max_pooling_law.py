"""A max-pooled score cannot fall for the poison: its AUC on the shifted bags is at least one half, whatever it scores.

In these spellings a positive shifted bag holds all that a negative one does, in the same numbers, and more. So the
largest score of its instances is stochastically at least as large, whatever the score of an instance is, and the AUC of
the distribution at least 0.5. A published test AUC of 0.000 for such a model cannot be.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import milfast as mf

if TYPE_CHECKING:
    from milfast import Bags

#: Positive bags, and as many negative ones.
N = 10_000
#: How often a test may fail by chance, for each scorer that is tried.
ERROR = 1e-9
#: The AUC is an average over pairs of values in [0, 1]. By Hoeffding's decomposition it is an average of averages of N
#: independent ones, so it lies further below its expectation than this with a probability of at most `ERROR`
#: (W. Hoeffding 1963, section 5a: exp(-2 N t^2)).
SAMPLING_ERROR = math.sqrt(math.log(1 / ERROR) / (2 * N))

CELLS = [("threshold-poison", "paper"), ("threshold-poison", "notebook"), ("presence", "paper")]
ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh, "sin": np.sin, "sign": np.sign, "none": lambda x: x}

scorers = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32),
        "widths": st.lists(st.integers(1, 12), max_size=2),
        "scale": st.sampled_from([0.05, 0.3, 1.0, 5.0]),
        "activation": st.sampled_from(sorted(ACTIVATIONS)),
    }
)


@cache
def shifted_bags(check: str, spelling: str, seed: int) -> Bags:
    return mf.sample_bags(check, 2 * N, recipe=spelling, training=False, random_state=seed)


def instance_scores(bags: Bags, scorer: dict[str, Any]) -> np.ndarray:
    """Scores of a network with random weights."""
    generator = np.random.default_rng(scorer["seed"])
    values = bags.instances.astype(np.float64)
    for width in scorer["widths"]:
        weights = generator.normal(scale=scorer["scale"], size=(values.shape[1], width))
        values = ACTIVATIONS[scorer["activation"]](values @ weights + generator.normal(size=width))
    return values @ generator.normal(size=values.shape[1])


def largest(bags: Bags, scores: np.ndarray) -> np.ndarray:
    return np.maximum.reduceat(scores, bags.offsets[:-1])


@pytest.mark.parametrize(("check", "spelling"), CELLS)
@given(scorer=scorers, seed=st.integers(0, 3))
def test_no_max_pooled_scorer_ranks_shifted_bags_upside_down(
    check: str, spelling: str, scorer: dict[str, Any], seed: int
) -> None:
    bags = shifted_bags(check, spelling, seed)
    assert mf.auc(largest(bags, instance_scores(bags, scorer)), bags.labels) >= 0.5 - SAMPLING_ERROR


@pytest.mark.parametrize(("check", "spelling"), CELLS)
def test_a_scorer_of_background_alone_attains_the_bound(check: str, spelling: str) -> None:
    # background is the same in both classes, so that the law is no weaker than it could be
    bags = shifted_bags(check, spelling, 0)
    assert bags.kinds is not None
    generator = np.random.default_rng(0)
    background = np.where(bags.kinds == 0, generator.normal(size=bags.n_instances), -10.0)
    assert abs(mf.auc(largest(bags, background), bags.labels) - 0.5) < SAMPLING_ERROR


@pytest.mark.parametrize(("check", "spelling"), CELLS)
@pytest.mark.parametrize("pooled", ["mean", "smallest"])
def test_other_poolings_break_the_law(check: str, spelling: str, pooled: str) -> None:
    bags = shifted_bags(check, spelling, 0)
    scores = bags.instances.mean(axis=1).astype(np.float64)
    if pooled == "mean":
        values = np.add.reduceat(scores, bags.offsets[:-1]) / bags.sizes
    else:
        values = np.minimum.reduceat(scores, bags.offsets[:-1])
    assert mf.auc(values, bags.labels) < 0.5 - SAMPLING_ERROR


def test_the_law_needs_bags_of_which_one_class_holds_all_that_the_other_does() -> None:
    # in the spelling strict, negative bags hold a little more background than positive ones
    n = 100_000
    bags = mf.sample_bags("threshold-poison", 2 * n, recipe="strict", training=False, n_features=1, random_state=0)
    assert bags.kinds is not None
    generator = np.random.default_rng(0)
    background = np.where(bags.kinds == 0, generator.normal(size=bags.n_instances), -10.0)
    assert mf.auc(largest(bags, background), bags.labels) < 0.5 - SAMPLING_ERROR * math.sqrt(N / n)
