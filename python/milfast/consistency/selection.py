"""Which model should be deployed? Accuracy and error consistency together, and whether the data can tell."""

from __future__ import annotations

import html
import math
import operator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from milfast._core import sample_counts
from milfast.consistency.agreement import summary
from milfast.consistency.repeats import missing
from milfast.seeding import root_seed, seed_sequence
from milfast.uncertainty import Interval
from milfast.uncertainty.comparison import holm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.consistency.cross_validation import CrossValidated
    from milfast.seeding import RandomState

    Numbers: TypeAlias = NDArray[np.float64]
    Of: TypeAlias = Literal["macro", "micro"]
    Verdict: TypeAlias = Literal["choose", "equal", "trade-off", "cannot tell", "none"]

__all__ = ["ModelComparison", "ModelScore", "ModelSelection", "select_model"]

ACCURACY, CONSISTENCY = 0, 1
NAMES = ("accuracy", "error consistency")


@dataclass(frozen=True)
class ModelScore:
    """One model of a selection.

    Attributes
    ----------
    name : str
    accuracy : Interval
        Mean over runs, with its bootstrap interval over samples.
    consistency : Interval
        Average error consistency (AEC), likewise.
    on_front : bool
        Whether no other model has both at least as high, and one higher.
    front_frequency : float
        Share of the resamples in which that is so.
    """

    name: str
    accuracy: Interval
    consistency: Interval
    on_front: bool
    front_frequency: float

    def to_dict(self) -> dict[str, Any]:
        """One flat row of plain values.

        Returns
        -------
        dict
        """
        row: dict[str, Any] = {"name": self.name}
        for name in ("accuracy", "consistency"):
            values = getattr(self, name).to_dict()
            row |= {name: values["estimate"], f"{name}_low": values["low"], f"{name}_high": values["high"]}
        return row | {"on_front": self.on_front, "front_frequency": self.front_frequency}


@dataclass(frozen=True)
class ModelComparison:
    """Two models of a selection: what the first has more than the second, on the same resamples.

    Attributes
    ----------
    first, second : str
    accuracy, consistency : Interval
        Differences, each with its own interval: those are not widened for the number of comparisons.
    accuracy_p, consistency_p : float
        p-values after Holm's correction for all differences of the selection.
    accuracy_says, consistency_says : {"first", "second", "same", "cannot tell"}
        "same" where the interval lies within the margin; else which is higher, by the corrected p-value.
    """

    first: str
    second: str
    accuracy: Interval
    consistency: Interval
    accuracy_p: float
    consistency_p: float
    accuracy_says: str
    consistency_says: str

    def to_dict(self) -> dict[str, Any]:
        """One flat row of plain values.

        Returns
        -------
        dict
        """
        row: dict[str, Any] = {"first": self.first, "second": self.second}
        for name in ("accuracy", "consistency"):
            values = getattr(self, name).to_dict()
            row |= {name: values["estimate"], f"{name}_low": values["low"], f"{name}_high": values["high"]}
            row |= {f"{name}_p": getattr(self, f"{name}_p"), f"{name}_says": getattr(self, f"{name}_says")}
        return row


@dataclass(frozen=True, repr=False)
class ModelSelection:
    """Models compared on accuracy and error consistency together.

    Attributes
    ----------
    verdict : {"choose", "equal", "trade-off", "cannot tell", "none"}
        ``"choose"``: one model is at least as good as each other one in both, and better in one. ``"equal"``: several
        are, and among them there is no difference above the margin. ``"trade-off"``: of two on the front, one is more
        accurate and the other more consistent, so what matters more has to be said. ``"cannot tell"``: the samples do
        not decide. ``"none"``: there is no model left to compare.
    choice : str or None
        The model of ``"choose"``.
    reason : str
        Why, in a sentence or two.
    scores : tuple of ModelScore
        Models that were compared, in the order in which they were given.
    comparisons : tuple of ModelComparison
        All pairs of them.
    front : tuple of str
        Pareto set: models that no other one is at least as good as in both and better than in one.
    excluded : dict of str to str
        Models that were not compared, with the reason.
    of : {"macro", "micro"}
        Which average the error consistency is.
    margin : tuple of float
        Differences in accuracy and in error consistency that do not matter.
    level : float
    n_boot : int
        Resamples.
    n_samples : int
    seed : int
        `random_state` with which the selection comes out again.
    """

    verdict: Verdict
    choice: str | None
    reason: str
    scores: tuple[ModelScore, ...]
    comparisons: tuple[ModelComparison, ...]
    front: tuple[str, ...]
    excluded: dict[str, str]
    of: str
    margin: tuple[float, float]
    level: float
    n_boot: int
    n_samples: int
    seed: int

    def __repr__(self) -> str:
        return f"ModelSelection({self.reason})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"

    def summary(self) -> str:
        """What was found, in some lines.

        Returns
        -------
        str
        """
        width = max((len(score.name) for score in self.scores), default=0)
        lines = [self.reason]
        for score in self.scores:
            accuracy, consistency = score.accuracy, score.consistency
            lines.append(
                f"{score.name:{width}}  accuracy {_shown(accuracy)}, AEC {_shown(consistency)}, on the front in "
                f"{100 * score.front_frequency:.0f} % of the resamples"
            )
        lines += [f"left out: {name}, {why}" for name, why in self.excluded.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Every attribute as plain values, ready for JSON.

        Returns
        -------
        dict
            An undefined number is None here, because JSON has no NaN.
        """
        return {
            "verdict": self.verdict,
            "choice": self.choice,
            "reason": self.reason,
            "scores": [score.to_dict() for score in self.scores],
            "comparisons": [comparison.to_dict() for comparison in self.comparisons],
            "front": list(self.front),
            "excluded": dict(self.excluded),
            "of": self.of,
            "margin": list(self.margin),
            "level": self.level,
            "n_boot": self.n_boot,
            "n_samples": self.n_samples,
            "seed": self.seed,
        }


def select_model(
    results: Mapping[str, CrossValidated],
    *,
    margin: float | tuple[float, float] = 0.01,
    of: Of = "macro",
    level: float = 0.95,
    n_boot: int = 2000,
    groups: ArrayLike | None = None,
    random_state: RandomState = None,
    callback: Callable[[int, int], object] | None = None,
) -> ModelSelection:
    """Compare models on accuracy and error consistency together, and say whether the data can tell which to deploy.

    Samples are resampled with replacement, the same ones for all models, so what makes a sample hard for all of them
    cancels in the differences.

    Parameters
    ----------
    results : dict of str to CrossValidated
        By name of the model; all of the same samples in the same order, as of `cross_validate_consistency` on the same
        `X` and `y`.
    margin : float or (float, float)
        Differences in accuracy and error consistency, one for both or each its own, that do not matter: models are
        "same" when the interval of the difference lies within. 0 for none.
    of : {"macro", "micro"}
        Error consistency as the mean over pairs, as in the paper; or as a ratio of sums over samples, which is nearly
        the same and faster for many runs.
    level : float
        Level of the intervals, and one minus the error rate of all decisions together.
    n_boot : int
        Resamples.
    groups : array_like, shape (n_samples,), optional
        Samples that belong together, such as the recordings of one person: whole groups are resampled. Without it the
        intervals of such data are too narrow.
    random_state : int, Generator, SeedSequence or None
        Seeds the resamples.
    callback : callable, optional
        Called as ``callback(done, total)`` with resamples.

    Returns
    -------
    ModelSelection

    Raises
    ------
    ValueError
        When there is no result, results are not of the same samples, an option is out of range, or there are too few
        resamples for so many comparisons.

    Notes
    -----
    The p-value of a difference is twice the smaller share of the resamples on either side of 0, one added to both
    counts, and all are corrected together by Holm's method. Constant classifiers are left out: their error consistency
    of 1 means nothing. So are models without any, because fewer than two runs err.

    The fitted models are held fixed, as in all intervals over samples: how much training samples matter is not in them.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from milfast.consistency import cross_validate_consistency, select_model
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = {"LR": make_pipeline(StandardScaler(), LogisticRegression()), "tree": DecisionTreeClassifier()}
    >>> results = {
    ...     name: cross_validate_consistency(model, X, y, repeats=10, random_state=0) for name, model in models.items()
    ... }
    >>> select_model(results, random_state=0).choice
    'LR'
    """
    if not results:
        raise ValueError("results is empty: at least one is needed")
    if of not in ("macro", "micro"):
        raise ValueError(f"of must be one of macro, micro; got {of!r}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1; got {level}")
    margins = _margins(margin)
    n_draws = _resamples(n_boot)
    n = _require_same_samples(results)
    excluded = {name: why for name, result in results.items() if (why := _why_excluded(result))}
    names = [name for name in results if name not in excluded]
    n_tests = len(names) * (len(names) - 1)
    if n_tests * 2 / (n_draws + 1) > 1 - level:
        least = math.ceil(n_tests * 2 / (1 - level))
        raise ValueError(
            f"n_boot={n_draws} resamples cannot decide {n_tests} differences at level {level:g}: {least} are needed"
        )
    seed = root_seed(random_state)
    models = [_Model(results[name], of) for name in names]
    estimates = np.array([model.of(None) for model in models]).reshape(-1, 2)
    draws = np.empty((n_draws, len(models), 2))
    cluster = _clusters(groups, n)
    generator = np.random.Generator(np.random.PCG64(seed_sequence(seed)))
    for i in range(n_draws):
        weights = _weights(generator, n, cluster)
        for j, model in enumerate(models):
            draws[i, j] = model.of(weights)
        if callback is not None:
            callback(i + 1, n_draws)
    unit = "samples" if cluster is None else "groups"
    method = f"bootstrap over {unit}"
    comparisons = _compare(names, estimates, draws, margins, level, method, n)
    on_front = _front(estimates)
    frequency = np.mean([_front(draw) for draw in draws], axis=0) if names else []
    scores = tuple(
        ModelScore(
            name,
            _interval(estimates[j, ACCURACY], draws[:, j, ACCURACY], level, method, n),
            _interval(estimates[j, CONSISTENCY], draws[:, j, CONSISTENCY], level, method, n),
            bool(on_front[j]),
            float(frequency[j]),
        )
        for j, name in enumerate(names)
    )
    verdict, choice, reason = _decide(names, comparisons, scores, excluded)
    return ModelSelection(
        verdict=verdict,
        choice=choice,
        reason=reason,
        scores=scores,
        comparisons=comparisons,
        front=tuple(score.name for score in scores if score.on_front),
        excluded=excluded,
        of=of,
        margin=margins,
        level=float(level),
        n_boot=n_draws,
        n_samples=n,
        seed=seed,
    )


# -------------------------------------------------------------------- one model


class _Model:
    """Accuracy and error consistency of one model under weights of the samples."""

    def __init__(self, result: CrossValidated, of: str) -> None:
        self.errors, self.n_samples, self.macro = result.errors, int(result.n_samples), of == "macro"
        self.n_sets = m = len(result.errors)
        self.wrong = sample_counts(self.errors, n_samples=self.n_samples).astype(np.int64)
        right = m - self.wrong
        #: pairs of runs in which both err on a sample, and in which one does or both
        self.both = self.wrong * (self.wrong - 1) // 2
        self.either = m * (m - 1) // 2 - right * (right - 1) // 2

    def of(self, weights: NDArray[np.int64] | None) -> tuple[float, float]:
        """Accuracy and error consistency."""
        w = np.ones(self.n_samples, dtype=np.int64) if weights is None else weights
        accuracy = 1 - int(w @ self.wrong) / (self.n_sets * int(w.sum()))
        if self.macro:
            return accuracy, summary(self.errors, sample_weight=weights, n_samples=self.n_samples).mean
        either = int(w @ self.either)
        return accuracy, int(w @ self.both) / either if either else math.nan


def _why_excluded(result: CrossValidated) -> str:
    """Why a model cannot be compared; nothing where it can."""
    if result.constant:
        return (
            f"it says the same of every sample: an error consistency of 1 means nothing, and its accuracy is the share "
            f"of a class ({result.accuracy:.4f})"
        )
    if math.isnan(summary(result.errors, n_samples=result.n_samples).mean):
        return f"it has no error consistency, because fewer than two runs err (accuracy {result.accuracy:.4f})"
    return ""


def _weights(
    generator: np.random.Generator, n: int, cluster: tuple[NDArray[np.int64], int] | None
) -> NDArray[np.int64]:
    """How often a resample draws each sample."""
    if cluster is None:
        return np.bincount(generator.integers(n, size=n), minlength=n)
    member, n_groups = cluster
    return np.bincount(generator.integers(n_groups, size=n_groups), minlength=n_groups)[member]


# -------------------------------------------------------------------- all models


def _compare(
    names: Sequence[str],
    estimates: Numbers,
    draws: Numbers,
    margins: tuple[float, float],
    level: float,
    method: str,
    n: int,
) -> tuple[ModelComparison, ...]:
    pairs = list(combinations(range(len(names)), 2))
    intervals = [
        [
            _interval(estimates[a, k] - estimates[b, k], draws[:, a, k] - draws[:, b, k], level, method, n)
            for k in (0, 1)
        ]
        for a, b in pairs
    ]
    raw = [_p_value(draws[:, a, k] - draws[:, b, k]) for a, b in pairs for k in (0, 1)]
    adjusted = np.exp(holm([math.log(p) for p in raw])).reshape(-1, 2)
    found = []
    for (a, b), both, p in zip(pairs, intervals, adjusted.tolist(), strict=True):
        says = []
        for k in (ACCURACY, CONSISTENCY):
            if -margins[k] <= both[k].low and both[k].high <= margins[k]:
                says.append("same")  # however sure it is which one is higher
            elif p[k] <= 1 - level:
                says.append("first" if both[k].estimate > 0 else "second")
            else:
                says.append("cannot tell")
        found.append(ModelComparison(names[a], names[b], both[0], both[1], p[0], p[1], says[0], says[1]))
    return tuple(found)


def _interval(estimate: float, draws: Numbers, level: float, method: str, n: int) -> Interval:
    known = draws[np.isfinite(draws)]
    if not len(known):
        return Interval(float(estimate), math.nan, math.nan, float(level), method, n)
    low, high = np.quantile(known, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(estimate), float(low), float(high), float(level), method, n)


def _p_value(differences: Numbers) -> float:
    known = differences[np.isfinite(differences)]
    fewer = min(int((known <= 0).sum()), int((known >= 0).sum()))
    return min(1.0, 2 * (1 + fewer) / (1 + len(known)))


def _front(values: Numbers) -> NDArray[np.bool_]:
    """Which rows no other one is at least as good as in both columns, and better than in one."""
    at_least = (values[:, np.newaxis] >= values[np.newaxis]).all(axis=2)
    better = (values[:, np.newaxis] > values[np.newaxis]).any(axis=2)
    return np.asarray(~(at_least & better).any(axis=0))


def _decide(
    names: Sequence[str],
    comparisons: Sequence[ModelComparison],
    scores: Sequence[ModelScore],
    excluded: Mapping[str, str],
) -> tuple[Verdict, str | None, str]:
    if not names:
        return (
            "none",
            None,
            "none: every model was left out: " + "; ".join(f"{n}, {why}" for n, why in excluded.items()),
        )
    if len(names) == 1:
        return "none", None, f"none: {names[0]} has no other model to be compared with"
    from_first = {"first": "better", "second": "worse"}
    from_second = {"first": "worse", "second": "better"}
    says: dict[str, dict[str, list[str]]] = {name: {} for name in names}
    for c in comparisons:
        both = (c.accuracy_says, c.consistency_says)
        says[c.first][c.second] = [from_first.get(s, s) for s in both]
        says[c.second][c.first] = [from_second.get(s, s) for s in both]
    good = [a for a in names if all(set(s) <= {"better", "same"} for s in says[a].values())]
    if len(good) == 1:
        [best] = good
        told = "; ".join(
            f"{other}: {', '.join(f'{s} in {name}' for s, name in zip(both, NAMES, strict=True))}"
            for other, both in says[best].items()
        )
        return "choose", best, f"choose {best}: it is at least as good in both, and better in one ({told})"
    if good:
        rest = "" if len(good) == len(names) else ", and at least as good as the others"
        return "equal", None, f"equal: no difference above the margin between {_listed(good)}{rest}"
    beaten = {b for a in names for b, s in says[a].items() if set(s) <= {"better", "same"} and "better" in s}
    ruled_out = f" Ruled out: {_listed([name for name in names if name in beaten])}." if beaten else ""
    front = {score.name for score in scores if score.on_front} - beaten
    for c in comparisons:
        if {c.first, c.second} <= front and {c.accuracy_says, c.consistency_says} == {"first", "second"}:
            accurate, consistent = (c.first, c.second) if c.accuracy_says == "first" else (c.second, c.first)
            reason = (
                f"trade-off: {accurate} is more accurate (by {_size(c.accuracy)}) and {consistent} more consistent (by "
                f"{_size(c.consistency)}): say which matters more.{ruled_out}"
            )
            return "trade-off", None, reason
    # of what is open, a reader wants to know about the models that are most often on the front
    frequency = {score.name: score.front_frequency for score in scores}
    undecided = [c for c in comparisons if "cannot tell" in (c.accuracy_says, c.consistency_says)] or list(comparisons)
    shown = max(undecided, key=lambda c: frequency[c.first] + frequency[c.second])
    reason = (
        f"cannot tell: the accuracy of {shown.first} less that of {shown.second} is "
        f"{_shown(shown.accuracy, sign=True)}, the error consistency {_shown(shown.consistency, sign=True)}.{ruled_out}"
    )
    return "cannot tell", None, reason


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _size(interval: Interval) -> str:
    return f"{abs(interval.estimate):.3f}"


def _shown(interval: Interval, *, sign: bool = False) -> str:
    form = "+.3f" if sign else ".3f"
    return f"{interval.estimate:{form}} [{interval.low:{form}}, {interval.high:{form}}]"


# -------------------------------------------------------------------- reading arguments


def _margins(margin: Any) -> tuple[float, float]:
    pair = (margin, margin) if np.ndim(margin) == 0 else tuple(margin)
    if len(pair) != 2:
        raise ValueError(f"margin must be a number or one for accuracy and one for error consistency; got {margin!r}")
    for value in pair:
        if isinstance(value, (bool, np.bool_, str)) or not 0 <= value < 1:
            raise ValueError(f"margin must lie between 0 and 1, as 0.01 for a point; got {value!r}")
    return float(pair[0]), float(pair[1])


def _resamples(n_boot: Any) -> int:
    try:
        if isinstance(n_boot, (bool, np.bool_)):
            raise TypeError
        number = operator.index(n_boot)
    except TypeError:
        raise ValueError(f"n_boot must be an integer of at least 1; got {n_boot!r}") from None
    if number < 1:
        raise ValueError(f"n_boot must be an integer of at least 1; got {number}")
    return number


def _clusters(groups: ArrayLike | None, n: int) -> tuple[NDArray[np.int64], int] | None:
    if groups is None:
        return None
    values = np.asarray(groups)
    if values.shape != (n,):
        raise ValueError(f"groups must have one entry a sample, {n}; got shape {values.shape}")
    for place in np.flatnonzero(missing(values)):
        raise ValueError(f"groups[{place}] is {values[place]}: give a sample without one a group of its own")
    found, member = np.unique(values, return_inverse=True)
    if len(found) < 2:
        raise ValueError("groups holds one group: at least two are needed to resample them")
    return member.astype(np.int64), len(found)


def _require_same_samples(results: Mapping[str, CrossValidated]) -> int:
    """Number of samples, after a look at all that tells one set of samples from another."""
    (name, first), *others = results.items()
    for other, result in others:
        for what, mine, theirs in (
            ("samples", first.n_samples, result.n_samples),
            ("classes", list(first.classes), list(result.classes)),
            ("share of the most frequent class", first.majority, result.majority),
        ):
            if mine != theirs:
                raise ValueError(
                    f"results must be of the same samples: {name!r} and {other!r} differ in {what}, {mine} and {theirs}"
                )
    known = [(key, labels) for key, result in results.items() if (labels := _labels(result)) is not None]
    for key, labels in known[1:]:
        other, seen = known[0]
        odd = np.flatnonzero((labels >= 0) & (seen >= 0) & (labels != seen))
        if len(odd):
            raise ValueError(
                f"results must be of the same samples in the same order: the label of sample {odd[0]} differs between "
                f"{other!r} and {key!r}"
            )
    return int(first.n_samples)


def _labels(result: CrossValidated) -> NDArray[np.int64] | None:
    """True class of each sample that a run has right, else -1; nothing where predictions were not kept."""
    if result.predictions is None:
        return None
    wrong = np.unpackbits(result.errors, axis=1, count=int(result.n_samples)).astype(bool)
    run = np.argmin(wrong, axis=0)
    labels = np.asarray(result.predictions)[run, np.arange(wrong.shape[1])].astype(np.int64)
    return np.where(wrong.all(axis=0), -1, labels)
