"""Intervals for a mean of AUCs whose test sets share bags, or that share a test set."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from milfast import _core
from milfast.uncertainty import Interval, interval_of_auc, mean_interval, proportion_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Placed:
    """Bags of one test set and where one model, or several on average, placed them.

    Attributes
    ----------
    bags : ndarray of int64, shape (n,)
        Numbers of the bags in the data set.
    positive : ndarray of bool, shape (n,)
    placements : ndarray of float64, shape (n,)
        For a positive bag the share of the negatives below it, ties counting half; for a negative one the share of the
        positives above it. Averages of several models may stand here: their mean is the mean of the AUCs.
    """

    bags: NDArray[np.int64]
    positive: NDArray[np.bool_]
    placements: NDArray[np.float64]

    @property
    def auc(self) -> float:
        """Mean of the positives' placements."""
        return float(np.mean(self.placements[self.positive]))


def placements(scores: NDArray[np.floating], positive: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Placement of each bag among those of the other class.

    Parameters
    ----------
    scores : ndarray, shape (n,)
    positive : ndarray of bool, shape (n,)

    Returns
    -------
    ndarray of float64, shape (n,)

    Raises
    ------
    ValueError
        When a score is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.protocol.intervals import placements
    >>> placements(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))
    array([1. , 0.5, 0.5, 1. ])
    """
    of_pos, of_neg = _core.placements(scores, positive)
    found = np.empty(len(positive))
    found[positive], found[~positive] = of_pos, of_neg
    return found


def variance_over_bags(tests: Sequence[Placed]) -> float:
    """Variance of the mean AUC of several test sets when the bags are drawn anew and the models stay.

    DeLong's variance of one test set, S+ / n+ + S- / n-, with S the variance of the placements of a class. Over several
    sets S is pooled, as a set may hold two or three bags of a class, and a bag that is in two sets counts in both: the
    products of what it shows in each are added. They are not allowed to make the sum smaller.

    Parameters
    ----------
    tests : sequence of Placed

    Returns
    -------
    float
        NaN when no set has two bags of a class.

    Examples
    --------
    With one test set it is DeLong's:

    >>> import numpy as np
    >>> from milfast import _core
    >>> from milfast.protocol.intervals import Placed, placements, variance_over_bags
    >>> scores, positive = np.array([0.1, 0.4, 0.35, 0.8, 0.3]), np.array([0, 0, 1, 1, 0]) == 1
    >>> test = Placed(np.arange(5), positive, placements(scores, positive))
    >>> round(variance_over_bags([test]), 12) == round(_core.delong(scores, positive)[1], 12)
    True
    """
    total = 0.0
    for kind in (True, False):
        deviations, sizes, members = [], [], []
        for test in tests:
            mine = test.positive == kind
            of_class = test.placements[mine]
            deviations.append(of_class - of_class.mean())
            sizes.append(len(of_class))
            members.append(test.bags[mine])
        freedom = sum(sizes) - len(tests)
        if freedom == 0:
            return math.nan
        correction = sum(sizes) / freedom
        squares = sum(float(np.sum(d**2)) for d in deviations)
        own = sum(squares / freedom / size for size in sizes)
        shared = 0.0
        for a in range(len(tests)):
            for b in range(a):
                _, in_a, in_b = np.intersect1d(members[a], members[b], return_indices=True)
                products = float(np.sum(deviations[a][in_a] * deviations[b][in_b]))
                shared += 2 * correction * products / (sizes[a] * sizes[b])
        total += own + max(shared, 0.0)
    return total / len(tests) ** 2


def auc_over_bags(tests: Sequence[Placed], *, level: float) -> Interval:
    """Interval for the mean AUC of fixed models over other bags of the same kind.

    Parameters
    ----------
    tests : sequence of Placed
    level : float

    Returns
    -------
    Interval
        By the logit of `milfast.uncertainty.interval_of_auc`, with `variance_over_bags`; `n_pos` and `n_neg` count
        different bags.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.protocol.intervals import Placed, auc_over_bags, placements
    >>> positive = np.arange(20) % 2 == 1
    >>> scores = positive + np.random.default_rng(0).normal(size=20)
    >>> auc_over_bags([Placed(np.arange(20), positive, placements(scores, positive))], level=0.95)
    Interval(0.88 [0.62, 0.97], level=0.95, method='logit over bags', n_pos=10, n_neg=10)
    """
    n_pos, n_neg = (
        len(np.unique(np.concatenate([test.bags[test.positive == kind] for test in tests]))) for kind in (True, False)
    )
    mean = math.fsum(test.auc for test in tests) / len(tests)
    variance = variance_over_bags(tests)
    if math.isnan(variance):
        return Interval(
            mean, math.nan, math.nan, level, "undefined (one bag of a class)", n_pos + n_neg, n_pos=n_pos, n_neg=n_neg
        )
    # rounding may leave a mean of ones a hair below one
    mean = float(round(mean)) if min(mean, 1 - mean) < 1e-12 else mean
    found = interval_of_auc(mean, variance, n_pos, n_neg, level=level)
    return replace(found, method=f"{found.method} over bags")


def over_seeds(tests: Sequence[Placed], *, level: float) -> Interval:
    """Interval for the mean AUC when each seed has one test set that all of its folds share.

    The folds of a seed are no independent trials: what counts are the means of the seeds. Student's t with one degree
    of freedom less than there are seeds, and a standard deviation of at least what test sets of this size have, as
    three means may agree by chance. Where each test set has one bag of a class, which shows no spread, that is the
    largest that an AUC of this size can have: the root of AUC (1 - AUC) / n, with n the bags of the smaller class.

    Parameters
    ----------
    tests : sequence of Placed
        One a seed, with placements that are averages over its folds.
    level : float

    Returns
    -------
    Interval
        When all means are 0 or all are 1, the Wilson bound for the bags of the class with fewer. With one seed that of
        `auc_over_bags`.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.protocol.intervals import Placed, over_seeds, placements
    >>> rng = np.random.default_rng(0)
    >>> tests = []
    >>> for seed in range(3):
    ...     bags = rng.permutation(60)[:20]
    ...     scores = bags % 2 + rng.normal(size=20)
    ...     tests.append(Placed(bags, bags % 2 == 1, placements(scores, bags % 2 == 1)))
    >>> over_seeds(tests, level=0.95)
    Interval(0.80 [0.42, 1.00], level=0.95, method='t over seeds', n=3 runs)
    """
    if len(tests) == 1:
        return auc_over_bags(tests, level=level)
    means = np.clip([test.auc for test in tests], 0.0, 1.0)
    one = [variance_over_bags([test]) for test in tests]
    known = [variance for variance in one if not math.isnan(variance)]
    if known:
        least = math.sqrt(math.fsum(known) / len(known))
    else:
        sizes = [min(int(test.positive.sum()), int((~test.positive).sum())) for test in tests]
        mean = float(np.mean(means))
        least = math.sqrt(mean * (1 - mean) * float(np.mean([1 / size for size in sizes])))
    found = mean_interval(means, level=level, bounds=(0.0, 1.0), least_deviation=least)
    if found.low == found.high and found.estimate in (0.0, 1.0):
        smaller = min(
            len(np.unique(np.concatenate([test.bags[test.positive == kind] for test in tests])))
            for kind in (True, False)
        )
        bound = proportion_interval(round(found.estimate) * smaller, smaller, level=level)
        return replace(found, low=bound.low, high=bound.high, method="wilson bound")
    return replace(found, method="t over seeds")
