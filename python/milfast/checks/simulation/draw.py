"""Runs of a model of which only the AUCs are made up: its scores are drawn, and measured as those of any model."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.checks.estimate import Estimate
from milfast.checks.runner import LAW_BAGS, by_sort
from milfast.checks.verdict import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: Training bags.
TRAIN_BAGS = 200
#: A distance between the classes from which on their scores do not overlap in any sample.
APART = 40.0


@dataclass(frozen=True)
class Scorer:
    """A model whose scores are normal with variance 1 in each class, at the distance that an AUC asks for.

    Attributes
    ----------
    train, fresh, shifted : float
        Mean AUC of its fits.
    strata : tuple of float
        AUC against each sort of negative shifted bags, which are equally many; they take the place of `shifted`.
    spread : float
        Standard deviation of the AUC between fits, on fresh and, independently, on shifted bags.
    outliers : float
        Share of fits that come out worse on the shifted bags.
    gap : float
        By how much. The others come out better by so much that the mean AUC stays.
    flagged : float or None
        Share of bags that score 1, the others scoring 0, for a model that gives hard answers and has an AUC of 0.5.
    n_fresh : int or None
        Number of fresh bags; as many as shifted ones by default.
    """

    train: float = 0.9
    fresh: float = 0.9
    shifted: float = 0.5
    strata: tuple[float, ...] = ()
    spread: float = 0.0
    outliers: float = 0.0
    gap: float = 0.0
    flagged: float | None = None
    n_fresh: int | None = None

    def run(self, n_test: int, number: int, generator: np.random.Generator) -> tuple[Run, float]:
        """One fit, scored.

        Parameters
        ----------
        n_test : int
            Number of shifted bags.
        number : int
            Number of the run.
        generator : numpy.random.Generator

        Returns
        -------
        run : Run
        own : float
            The true AUC of this very fit on the shifted bags; the lowest one, where there are sorts of them.
        """
        deviation = self.spread * float(generator.standard_normal())
        if self.outliers:
            deviation += self.gap * (self.outliers - (generator.random() < self.outliers))
        own = [_within(auc + deviation) for auc in self.strata or (self.shifted,)]
        scores, labels, sorts = _scores(own, n_test, generator)
        if self.flagged is not None:
            scores = (scores > NormalDist().inv_cdf(1 - self.flagged)).astype(np.float64)
        strata, worst, worst_auc = by_sort(scores, labels, sorts if self.strata else {})
        fresh = _within(self.fresh + self.spread * float(generator.standard_normal()))
        run = _run(
            train=_measured(self.train, TRAIN_BAGS, generator),
            fresh=_measured(fresh, n_test if self.n_fresh is None else self.n_fresh, generator),
            test=Estimate.of_scores(scores, labels),
            strata=strata,
            worst=worst,
            worst_auc=worst_auc,
            n_test=n_test,
            number=number,
        )
        return run, min(own)


def law_run(shares: Sequence[float], number: int, generator: np.random.Generator) -> Run:
    """One fit on which a law is tried.

    Parameters
    ----------
    shares : sequence of float
        True share of the bags that break it, for each sort of bags; the sorts are equally large.
    number : int
        Number of the run.
    generator : numpy.random.Generator

    Returns
    -------
    Run
    """
    size = LAW_BAGS // len(shares)
    return _run(
        train=_measured(0.9, TRAIN_BAGS, generator),
        fresh=_measured(0.9, LAW_BAGS, generator),
        test=None,
        strata={f"sort {i}": Estimate.of_flags(generator.random(size) < share) for i, share in enumerate(shares, 1)},
        worst=None,
        worst_auc=None,
        n_test=LAW_BAGS,
        number=number,
    )


def _run(*, number: int, **measured: Any) -> Run:
    return Run(
        model="drawn",
        check="presence" if measured["test"] is not None else "permutation",
        recipe="paper",
        claims=None,
        oracle_auc=None,
        size_auc=None,
        size_correlation=0.0,
        ceilings={},
        n_train=TRAIN_BAGS,
        seed=0,
        run=number,
        seconds=0.0,
        **measured,
    )


def _measured(auc: float, n_bags: int, generator: np.random.Generator) -> Estimate:
    scores, labels, _ = _scores([auc], n_bags, generator)
    return Estimate.of_scores(scores, labels)


def _scores(
    aucs: Sequence[float], n_bags: int, generator: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64], dict[str, NDArray[np.bool_]]]:
    """Scores of as many negative as positive bags, with labels and the sorts of the negative ones, one for each AUC."""
    from scipy.special import ndtri

    n_negative = n_bags // 2
    labels = np.repeat(np.array([0, 1]), [n_negative, n_bags - n_negative])
    # sorts take turns, so that their numbers differ by one bag at most
    sort = np.where(labels == 0, np.arange(n_bags) % len(aucs), -1)
    distances = np.clip(np.sqrt(2) * ndtri(np.asarray(aucs)), -APART, APART)
    scores = generator.standard_normal(n_bags)
    scores[:n_negative] -= distances[sort[:n_negative]]
    return scores, labels, {f"sort {i + 1}": sort == i for i in range(len(aucs))}


def _within(auc: float) -> float:
    return min(max(auc, 0.0), 1.0)
