"""Models whose outcome under a check is known beforehand, for several files of tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator

if TYPE_CHECKING:
    from milfast import Bags
    from milfast.checks import BagRecipe, CheckResult


def facts(results: list[CheckResult]) -> list[dict[str, Any]]:
    """Rows without the time, which alone may differ between equal calls."""
    return [{key: value for key, value in result.to_dict().items() if key != "seconds"} for result in results]


class Scorer:
    """Learns nothing; scores by one line. What all models of this file share."""

    def fit(self, bags: Bags) -> Scorer:
        return self


class Oracle(Scorer):
    """The true rule."""

    def __init__(self, recipe: BagRecipe) -> None:
        self.recipe = recipe

    def decision_function(self, bags: Bags) -> Any:
        return self.recipe.oracle(bags)


class NoPoison(Scorer):
    """A bag is positive when nothing in it lies far down, where the poison is."""

    def decision_function(self, bags: Bags) -> Any:
        return [bag.mean(axis=1).min() for bag in bags]


class Count(Scorer):
    """Counts what is no background."""

    def decision_function(self, bags: Bags) -> Any:
        return [(np.abs(bag.mean(axis=1)) > 1).sum() for bag in bags]


class Size(Scorer):
    def decision_function(self, bags: Bags) -> Any:
        return bags.sizes


class Constant(Scorer):
    def decision_function(self, bags: Bags) -> Any:
        return np.zeros(len(bags))


class Chance(Scorer):
    """Scores at random, from `random_state`."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, bags: Bags) -> Chance:
        self.generator = np.random.default_rng(self.random_state)
        return self

    def decision_function(self, bags: Bags) -> Any:
        return self.generator.normal(size=len(bags))


class Memoriser(Chance):
    """Knows every training bag by heart and guesses elsewhere."""

    def fit(self, bags: Bags) -> Memoriser:
        self.known = {bag.tobytes(): 9 if label else -9 for bag, label in zip(bags, bags.labels, strict=True)}
        super().fit(bags)
        return self

    def decision_function(self, bags: Bags) -> Any:
        guesses = super().decision_function(bags)
        return [self.known.get(bag.tobytes(), guess) for bag, guess in zip(bags, guesses, strict=True)]


class Estimator(BaseEstimator):
    """A model by scikit-learn's rules."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, bags: Bags, y: Any = None) -> Estimator:
        self.fitted_ = True
        return self

    def transform(self, bags: Bags) -> Bags:
        return bags

    def decision_function(self, bags: Bags) -> Any:
        return bags.sizes
