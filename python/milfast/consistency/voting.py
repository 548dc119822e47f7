"""What a majority vote of retrained models gains: the less consistent their errors, the more."""

from __future__ import annotations

import html
import itertools
import math
import operator
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from milfast._core import sample_counts
from milfast.consistency.agreement import summary
from milfast.uncertainty import Interval

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from milfast.consistency.cross_validation import CrossValidated

    Ties: TypeAlias = Literal["coin", "wrong", "right"]

__all__ = ["MajorityVote", "majority_vote", "vote_gains"]

TIES = ("coin", "wrong", "right")
#: Numbers of voters that are looked at by default, as far as there are runs, and all runs.
VOTERS = (1, 3, 5, 7, 9, 15, 25, 51, 101, 251, 501)


@dataclass(frozen=True, repr=False)
class MajorityVote:
    """Accuracy of a vote of k runs, drawn without replacement from those at hand, for several k.

    Attributes
    ----------
    model : str
    voters : tuple of int
        The k, ascending.
    accuracy : tuple of Interval
        Expected accuracy of a vote of k runs; with all runs, that of the one vote there is.
    gain : tuple of Interval
        The same less the mean accuracy of the runs, with an interval of the difference.
    mean_accuracy : float
        Mean accuracy of the runs: that of one voter.
    consistency : float
        Average error consistency (AEC) of the runs; NaN where no pair has one.
    n_sets : int
        Runs there are.
    n_samples : int
    ties : {"coin", "wrong", "right"}
        How a tied vote counts.
    """

    model: str
    voters: tuple[int, ...]
    accuracy: tuple[Interval, ...]
    gain: tuple[Interval, ...]
    mean_accuracy: float
    consistency: float
    n_sets: int
    n_samples: int
    ties: str

    def __repr__(self) -> str:
        return (
            f"MajorityVote({self.model}: mean accuracy {self.mean_accuracy:.4f}, AEC {self.consistency:.4f}, vote of "
            f"{self.voters[-1]} {self.accuracy[-1].estimate:.4f}, gain {_signed(self.gain[-1])})"
        )

    def _repr_html_(self) -> str:
        return f"<span>{html.escape(self.summary())}</span>"

    def summary(self) -> str:
        """One sentence for people.

        Returns
        -------
        str
        """
        gain = self.gain[-1]
        said = "no gain that the samples could show" if gain.low <= 0 <= gain.high else "a gain"
        said = "a loss" if gain.high < 0 else said
        return (
            f"{self.model}: a vote of {self.voters[-1]} runs has accuracy {self.accuracy[-1].estimate:.4f} where one "
            f"run has {self.mean_accuracy:.4f} (AEC {self.consistency:.3f}), {said}: {_signed(gain)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Every attribute as plain values, ready for JSON.

        Returns
        -------
        dict
            An undefined number is None here, because JSON has no NaN.
        """
        return {
            "model": self.model,
            "voters": list(self.voters),
            "accuracy": [interval.to_dict() for interval in self.accuracy],
            "gain": [interval.to_dict() for interval in self.gain],
            "mean_accuracy": self.mean_accuracy,
            "consistency": None if math.isnan(self.consistency) else self.consistency,
            "n_sets": self.n_sets,
            "n_samples": self.n_samples,
            "ties": self.ties,
        }


def majority_vote(
    result: CrossValidated,
    *,
    voters: int | Sequence[int] | None = None,
    ties: Ties = "coin",
    level: float = 0.95,
) -> MajorityVote:
    """Expected accuracy of a majority vote of runs, against the mean accuracy of the runs.

    For k voters it is the mean over all ways to draw k of the runs without replacement, which is had exactly from how
    often each sample was predicted as what: nothing is simulated.

    Parameters
    ----------
    result : CrossValidated
        Of `cross_validate_consistency` or `consistency_of`. With two classes its error sets are enough; with more it
        must have been made with ``keep_predictions=True``, since errors need not agree on the wrong class.
    voters : int or sequence of int, optional
        Numbers of voters; by default some odd ones, and all runs.
    ties : {"coin", "wrong", "right"}
        A tie for the most votes is decided by a fair coin among the tied classes, counts as wrong, or as right where
        the true class is among them.
    level : float
        Level of the intervals.

    Returns
    -------
    MajorityVote

    Raises
    ------
    ValueError
        When there are more voters than runs, an option is out of range, or predictions are needed and absent.

    Notes
    -----
    Intervals are over samples: plus and minus the normal quantile times the standard error of the mean of what each
    sample contributes. They hold the runs fixed.

    Runs of internal cross-validation predict each sample by models that were trained without it, and so does their
    vote. A vote of models that are deployed has models of all samples, as for test samples of their own.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from milfast.consistency import cross_validate_consistency, majority_vote
    >>> X, y = make_classification(200, flip_y=0.2, random_state=0)
    >>> result = cross_validate_consistency(DecisionTreeClassifier(), X, y, repeats=15, random_state=0)
    >>> vote = majority_vote(result, voters=[1, 5, 15])
    >>> [interval.low > 0 for interval in vote.gain]
    [False, True, True]
    """
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}; got {ties!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1; got {level}")
    n_sets, n = len(result.errors), int(result.n_samples)
    numbers = _voters(voters, n_sets)
    wrong = sample_counts(result.errors, n_samples=n).astype(np.int64)
    of_two = len(result.classes) <= 2
    votes = np.stack([n_sets - wrong, wrong], axis=1) if of_two else _votes(result, n_sets - wrong)
    kinds, member = np.unique(votes, axis=0, return_inverse=True)
    member = member.reshape(-1)
    single = (n_sets - wrong) / n_sets
    accuracy, gain = [], []
    for k in numbers:
        if of_two:
            right = np.array(_right_of_two(n_sets, k, ties))[n_sets - wrong]
        else:
            right = np.array([_right(kind.tolist(), k, ties) for kind in kinds])[member]
        accuracy.append(_mean(right, level, (0.0, 1.0)))
        gain.append(_mean(right - single, level, (-1.0, 1.0)))
    return MajorityVote(
        model=str(result.model),
        voters=tuple(numbers),
        accuracy=tuple(accuracy),
        gain=tuple(gain),
        mean_accuracy=float(single.mean()),
        consistency=summary(result.errors, n_samples=n).mean,
        n_sets=n_sets,
        n_samples=n,
        ties=ties,
    )


def vote_gains(
    results: Mapping[str, CrossValidated],
    *,
    voters: int | None = None,
    ties: Ties = "coin",
    level: float = 0.95,
) -> list[dict[str, Any]]:
    """What a vote gains beside the error consistency, for several models or data sets.

    Parameters
    ----------
    results : dict of str to CrossValidated
        They need not have the same samples.
    voters : int, optional
        Number of voters; all runs by default.
    ties, level : str, float
        As in `majority_vote`.

    Returns
    -------
    list of dict
        A row each, sorted from the least consistent to the most: ``name``, ``consistency``, ``mean_accuracy``,
        ``voters``, ``vote_accuracy``, ``gain``, ``gain_low``, ``gain_high``, and ``healed``, the share of the mean
        error rate that the vote takes away.

    Raises
    ------
    ValueError
        As `majority_vote`; when there are no results.
    """
    if not results:
        raise ValueError("results is empty: at least one is needed")
    rows = []
    for name, result in results.items():
        vote = majority_vote(result, voters=len(result.errors) if voters is None else voters, ties=ties, level=level)
        gain = vote.gain[0]
        error = 1 - vote.mean_accuracy
        rows.append(
            {
                "name": name,
                "consistency": None if math.isnan(vote.consistency) else vote.consistency,
                "mean_accuracy": vote.mean_accuracy,
                "voters": vote.voters[0],
                "vote_accuracy": vote.accuracy[0].estimate,
                "gain": gain.estimate,
                "gain_low": gain.low,
                "gain_high": gain.high,
                "healed": gain.estimate / error if error > 0 else None,
            }
        )
    return sorted(rows, key=lambda row: math.inf if row["consistency"] is None else row["consistency"])


# -------------------------------------------------------------------- one sample


def _right(votes: Sequence[int], k: int, ties: str) -> float:
    """Probability that k of all runs, drawn without replacement, elect the first class.

    `votes` says how many runs are for each class. All draws are counted, in whole numbers: for each number of draws
    for the first class, the ways in which no other class is drawn more often.
    """
    true, *others = votes
    others = [count for count in others if count]
    if not others:
        return 1.0
    elected = 0
    share = math.lcm(*range(1, len(others) + 2))  # of a draw, so that a share of it is whole
    for most in range(max(1, -(-k // (len(others) + 1))), min(true, k) + 1):
        for tied, ways in enumerate(_ways(others, most, k - most)):
            part = share // (tied + 1) if ties == "coin" else share if not tied or ties == "right" else 0
            elected += part * ways * math.comb(true, most)
    return elected / (share * math.comb(true + sum(others), k))


def _right_of_two(n_sets: int, k: int, ties: str) -> list[float]:
    """The same for two classes, for 0, 1, ..., n_sets runs that are right.

    One more run that is right wins exactly the draws of it, of those that lack one vote.
    """
    most = k // 2 + 1
    elected, draws, found = 0, math.comb(n_sets, k), []
    for right in range(n_sets + 1):
        won = 2 * elected
        if k % 2 == 0 and ties != "wrong":
            tied = math.comb(right, k // 2) * math.comb(n_sets - right, k // 2)
            won += tied if ties == "coin" else 2 * tied
        found.append(won / (2 * draws))
        if right < n_sets:
            elected += math.comb(right, most - 1) * math.comb(n_sets - right - 1, k - most)
    return found


def _ways(counts: Sequence[int], most: int, draws: int) -> list[int]:
    """Ways to make so many draws from classes of so many runs, none of them more often than `most`.

    Item i is of those in which i classes are drawn exactly `most` times. Each class is a polynomial whose coefficients
    are the ways to draw it 0, 1, ... times, and all classes together are their product.
    """
    if draws > sum(min(count, most) for count in counts):
        return []
    if len(counts) == 1:
        return [0] * (draws == most) + [math.comb(counts[0], draws)]
    together = [np.ones(1, dtype=object)]
    *others, last = counts
    for count in others:
        below = _choices(count)[:most]
        following = [np.convolve(ways, below)[: draws + 1] for ways in together]
        if count >= most:
            exactly = math.comb(count, most)
            moved = [np.concatenate([np.zeros(most, dtype=object), ways * exactly])[: draws + 1] for ways in together]
            following = [_sum(*pair) for pair in itertools.zip_longest(following, [np.zeros(1, dtype=object), *moved])]
        together = following
    # of the product with the last one a single coefficient is asked for
    below = _choices(last)[:most]
    found = [_coefficient(ways, below, draws) for ways in together]
    if last >= most:
        exactly = math.comb(last, most)
        more = [int(ways[draws - most]) * exactly if 0 <= draws - most < len(ways) else 0 for ways in together]
        return [x + y for x, y in zip([*found, 0], [0, *more], strict=True)]
    return found


@lru_cache(maxsize=32)  # those of one sample
def _choices(count: int) -> NDArray[Any]:
    """Ways to draw 0, 1, ..., count of so many."""
    return np.array([math.comb(count, x) for x in range(count + 1)], dtype=object)


def _coefficient(a: NDArray[Any], b: NDArray[Any], power: int) -> int:
    """One coefficient of the product of two polynomials."""
    first, last = max(0, power - len(b) + 1), min(power, len(a) - 1)
    if first > last:
        return 0
    return int(a[first : last + 1] @ b[power - last : power - first + 1][::-1])


def _sum(a: NDArray[Any] | None, b: NDArray[Any]) -> NDArray[Any]:
    """Sum of two polynomials."""
    if a is None:
        return b
    out = np.zeros(max(len(a), len(b)), dtype=object)
    out[: len(a)] += a
    out[: len(b)] += b
    return out


def _votes(result: CrossValidated, right: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many runs are for the true class of each sample, and for each other one, most votes first."""
    if result.predictions is None:
        raise ValueError(
            f"{len(result.classes)} classes need the predictions, since errors need not agree: pass "
            "keep_predictions=True to cross_validate_consistency"
        )
    predictions = np.asarray(result.predictions)
    counts = np.stack([(predictions == code).sum(axis=0) for code in range(len(result.classes))], axis=1)
    wrong = np.unpackbits(result.errors, axis=1, count=int(result.n_samples)).astype(bool)
    # the class for which a run is right; where none is, the true class has no votes, and which one it is matters not
    first_right = np.argmin(wrong, axis=0)
    true = predictions[first_right, np.arange(predictions.shape[1])].astype(np.int64)
    others = counts.copy()
    some = np.flatnonzero(right > 0)
    others[some, true[some]] = 0
    others = -np.sort(-others, axis=1)
    return np.concatenate([right[:, np.newaxis], others], axis=1)


# -------------------------------------------------------------------- arguments and intervals


def _voters(given: int | Sequence[int] | None, n_sets: int) -> list[int]:
    if given is None:
        return sorted({k for k in VOTERS if k <= n_sets} | {n_sets})
    numbers: set[int] = set()
    values: list[Any] = [given] if np.ndim(given) == 0 else list(given)  # type: ignore[arg-type]
    for value in values:
        try:
            if isinstance(value, (bool, np.bool_)):
                raise TypeError
            k = operator.index(value)
        except TypeError:
            raise ValueError(f"voters must be integers of at least 1; got {value!r}") from None
        if not 1 <= k <= n_sets:
            raise ValueError(f"voters must lie between 1 and the number of runs, {n_sets}; got {k}")
        numbers.add(k)
    if not numbers:
        raise ValueError("voters is empty: at least one number is needed")
    return sorted(numbers)


def _mean(values: NDArray[np.float64], level: float, bounds: tuple[float, float]) -> Interval:
    """Mean over samples with its normal interval."""
    n = len(values)
    mean = float(values.mean())
    half = -NormalDist().inv_cdf((1 - level) / 2) * float(values.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    low, high = (max(mean - half, bounds[0]), min(mean + half, bounds[1])) if n > 1 else (math.nan, math.nan)
    return Interval(mean, low, high, float(level), "normal over samples", n)


def _signed(interval: Interval) -> str:
    return f"{interval.estimate:+.4f} [{interval.low:+.4f}, {interval.high:+.4f}]"
