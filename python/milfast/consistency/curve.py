"""How accuracy and error consistency change with the number of samples: the down-sampling study of the paper."""

from __future__ import annotations

import html
import math
import operator
import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from milfast._core import intersections
from milfast.consistency.rolling import RollingCorrelation, rolling
from milfast.consistency.smoothing import lowess
from milfast.seeding import root_seed, seed_sequence, seed_value
from milfast.workers import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.consistency.repeats import Plan
    from milfast.seeding import RandomState

    Numbers: TypeAlias = NDArray[np.float64]
    Counts: TypeAlias = NDArray[np.int64]
    Subset: TypeAlias = Literal["shared", "each-run"]
    Of: TypeAlias = Literal["means", "pairs"]

__all__ = ["ConsistencyCurve", "SmoothCurve", "consistency_curve"]

SUBSETS = ("shared", "each-run")
#: Branches of the tree of seeds: where the proportions come from, the subsets, the runs.
PROPORTIONS, SUBSET, RUNS = 0, 1, 2
#: Windows of the paper's supplement.
WINDOWS = {"means": (10, 25, 50), "pairs": (500, 1000, 2000)}


@dataclass(frozen=True, eq=False)
class SmoothCurve:
    """LOWESS lines through a curve.

    Attributes
    ----------
    proportion : ndarray of float64, shape (n_subsets,)
        Ascending.
    accuracy, consistency : ndarray of float64, shape (n_subsets,)
        NaN where the subset has no error consistency.
    """

    proportion: Numbers
    accuracy: Numbers
    consistency: Numbers

    def to_dict(self) -> dict[str, list[float | None]]:
        """Every attribute as a list, ready for JSON.

        Returns
        -------
        dict
            An undefined number is None here, because JSON has no NaN.
        """
        return {
            name: [None if math.isnan(value) else value for value in values.tolist()]
            for name, values in vars(self).items()
        }


@dataclass(frozen=True, repr=False, eq=False)
class ConsistencyCurve:
    """Accuracy and error consistency of repeated cross-validation on subsets of a data set.

    What was counted is kept, so every figure is exact. Subsets are in the order of their proportions; pairs of runs in
    that of ``scipy.spatial.distance.squareform``: (0, 1), (0, 2), ..., (1, 2), ...

    Attributes
    ----------
    model : str
        What was trained.
    proportions : ndarray of float64, shape (n_subsets,)
        Share of all samples that each subset was asked to have.
    n_samples : ndarray of int64, shape (n_subsets,)
        Samples it has; with ``subset="each-run"`` and groups runs have different numbers, and this is their mean,
        rounded.
    errors : ndarray of int64, shape (n_subsets, runs)
        Errors of each run.
    intersections, unions : ndarray of int64, shape (n_subsets, runs * (runs - 1) / 2)
        Samples on which both runs of a pair err, and on which one does or both.
    constant : ndarray of bool, shape (n_subsets,)
        Whether the model said the same of every sample in all runs, so that its error consistency means nothing.
    n_total : int
        Samples of the whole data set.
    folds, runs : int
        Of the cross-validation on each subset.
    subset : {"shared", "each-run"}
        Whether the runs of a proportion share one subset.
    stratify : bool
    seed : int
        `random_state` with which the curve comes out again.
    seconds : float
        Time of the whole call.
    run_samples : ndarray of int64, shape (n_subsets, runs)
        Samples that each run has; `n_samples` where it is not given.
    """

    model: str
    proportions: Numbers
    n_samples: Counts
    errors: Counts
    intersections: Counts
    unions: Counts
    constant: NDArray[np.bool_]
    n_total: int
    folds: int
    runs: int
    subset: str
    stratify: bool
    seed: int
    seconds: float
    run_samples: Counts = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))

    def __post_init__(self) -> None:
        if not self.run_samples.size:
            object.__setattr__(self, "run_samples", np.repeat(self.n_samples[:, np.newaxis], self.runs, axis=1))

    @property
    def accuracies(self) -> Numbers:
        """Accuracy of each run, shape (n_subsets, runs)."""
        found: Numbers = 1 - self.errors / self.run_samples
        return found

    @property
    def accuracy(self) -> Numbers:
        """Mean accuracy over the runs of each subset, shape (n_subsets,)."""
        alike = (self.run_samples == self.n_samples[:, np.newaxis]).all(axis=1)
        exact = 1 - self.errors.sum(axis=1) / (self.n_samples * self.runs)  # rounded once
        found: Numbers = np.where(alike, exact, self.accuracies.mean(axis=1))
        return found

    @property
    def pair_accuracies(self) -> Numbers:
        """Mean accuracy of both runs of each pair, shape (n_subsets, n_pairs)."""
        first, second = np.triu_indices(self.runs, 1)
        n, m = self.run_samples[:, first], self.run_samples[:, second]
        found: Numbers = 1 - (self.errors[:, first] * m + self.errors[:, second] * n) / (2 * n * m)
        return found

    @property
    def pair_consistencies(self) -> Numbers:
        """Error consistency of each pair, shape (n_subsets, n_pairs); NaN where neither run errs."""
        out = np.full(self.unions.shape, np.nan)
        np.divide(self.intersections, self.unions, out=out, where=self.unions > 0)
        return out

    @property
    def consistency(self) -> Numbers:
        """Average error consistency (AEC) of each subset, shape (n_subsets,); NaN where no pair has one."""
        pairs = self.pair_consistencies
        defined = np.isfinite(pairs)
        n = defined.sum(axis=1)
        out = np.full(len(pairs), np.nan)
        np.divide(np.where(defined, pairs, 0).sum(axis=1), n, out=out, where=n > 0)
        return out

    def table(self) -> Any:
        """One row a subset.

        Returns
        -------
        pandas.DataFrame or dict of ndarray
            A data frame where pandas is installed. Columns: ``proportion``, ``n_samples``, ``accuracy`` and
            ``accuracy_sd`` (over runs), ``consistency`` and ``consistency_sd`` (over pairs), ``n_undefined`` (pairs
            without an error consistency) and ``constant``.
        """
        pairs = self.pair_consistencies
        return _frame(
            {
                "proportion": self.proportions,
                "n_samples": self.n_samples,
                "accuracy": self.accuracy,
                "accuracy_sd": _deviations(self.accuracies),
                "consistency": self.consistency,
                "consistency_sd": _deviations(pairs),
                "n_undefined": np.isnan(pairs).sum(axis=1),
                "constant": self.constant,
            }
        )

    def pairs(self) -> Any:
        """One row a pair of runs.

        Returns
        -------
        pandas.DataFrame or dict of ndarray
            A data frame where pandas is installed. Columns: ``proportion``, ``n_samples``, ``first`` and ``second``
            (the runs), ``accuracy`` (mean of both) and ``consistency``.
        """
        first, second = np.triu_indices(self.runs, 1)
        n = len(self.proportions)
        return _frame(
            {
                "proportion": np.repeat(self.proportions, len(first)),
                "n_samples": np.repeat(self.n_samples, len(first)),
                "first": np.tile(first, n),
                "second": np.tile(second, n),
                "accuracy": self.pair_accuracies.ravel(),
                "consistency": self.pair_consistencies.ravel(),
            }
        )

    def correlations(self) -> dict[str, dict[str, float]]:
        """Pearson correlations over the whole curve.

        Returns
        -------
        dict
            For ``"means"`` (one point a subset) and ``"pairs"`` those of ``"accuracy, consistency"``,
            ``"proportion, accuracy"`` and ``"proportion, consistency"``; NaN where one does not vary.
        """
        found = {}
        for of in ("means", "pairs"):
            proportion, accuracy, consistency = self._points(of)
            found[of] = {
                "accuracy, consistency": _pearson(accuracy, consistency),
                "proportion, accuracy": _pearson(proportion, accuracy),
                "proportion, consistency": _pearson(proportion, consistency),
            }
        return found

    def lowess(self, *, frac: float = 2 / 3, it: int = 3) -> SmoothCurve:
        """Smooth lines through accuracy and error consistency, as in the paper's figures.

        Parameters
        ----------
        frac, it : float, int
            As in `milfast.consistency.lowess`; these are the paper's.

        Returns
        -------
        SmoothCurve

        Raises
        ------
        ValueError
            When an option is out of range.
        """
        consistency = self.consistency
        known = np.isfinite(consistency)
        smooth = np.full(len(consistency), np.nan)
        if known.any():
            smooth[known] = lowess(self.proportions[known], consistency[known], frac=frac, it=it)
        return SmoothCurve(self.proportions, lowess(self.proportions, self.accuracy, frac=frac, it=it), smooth)

    def rolling_correlation(
        self,
        windows: int | Sequence[int] | None = None,
        *,
        of: Of = "means",
        n_boot: int = 500,
        step: int = 1,
        level: float = 0.95,
        random_state: RandomState = None,
        callback: Callable[[int, int], object] | None = None,
    ) -> list[RollingCorrelation]:
        """Correlation of the proportion with accuracy and with error consistency, in windows along the curve.

        The paper's figures S1 to S8: points are sorted by proportion, and in each window of neighbours Pearson's r is
        taken of bootstrap resamples of the window.

        Parameters
        ----------
        windows : int or sequence of int, optional
            Points in a window; by default the paper's, 10, 25 and 50 means or 500, 1000 and 2000 pairs.
        of : {"means", "pairs"}
            Points are the subsets, or all pairs of runs.
        n_boot : int
            Resamples of each window.
        step : int
            Points from window to window.
        level : float
            Share of the resamples between the lower and the upper percentile.
        random_state : int, Generator, SeedSequence or None
            Seeds the resamples, each width of window by itself.
        callback : callable, optional
            Called as ``callback(done, total)`` with windows.

        Returns
        -------
        list of RollingCorrelation
            One for each width of window.

        Raises
        ------
        ValueError
            When an option is out of range or a window is wider than there are points.

        Notes
        -----
        The windows of one width share their resamples, place by place (see `milfast.consistency.rolling`). So within
        each window they are plain bootstrap resamples, and the bands are smoother along the curve than independent
        resamples would make them.
        """
        if of not in WINDOWS:
            raise ValueError(f"of must be one of means, pairs; got {of!r}")
        n_boot, step = _count(n_boot, "n_boot", 1), _count(step, "step", 1)
        if not 0 < level < 1:
            raise ValueError(f"level must lie strictly between 0 and 1; got {level}")
        points = self._points(of)
        given = WINDOWS[of] if windows is None else (windows,) if np.ndim(windows) == 0 else tuple(windows)  # type: ignore[arg-type]
        widths = [_count(width, "windows", 3) for width in given]
        for width in widths:
            if width > len(points[0]):
                raise ValueError(f"windows must not exceed the number of {of}, {len(points[0])}; got {width}")
        seed = root_seed(random_state)
        totals = [len(points[0]) - width + 1 for width in widths]
        return [
            rolling(
                *points,
                of=of,
                window=width,
                n_boot=n_boot,
                step=step,
                level=float(level),
                generator=np.random.Generator(np.random.PCG64(seed_sequence(seed, width))),
                progress=None
                if callback is None
                else partial(_forward, callback=callback, before=sum(totals[:i]), total=sum(totals)),
            )
            for i, width in enumerate(widths)
        ]

    def _points(self, of: str) -> tuple[Numbers, Numbers, Numbers]:
        """Proportion, accuracy and error consistency of the points that have all three, sorted by proportion."""
        if of == "means":
            found = self.proportions, self.accuracy, self.consistency
        else:
            n_pairs = self.unions.shape[1]
            found = (
                np.repeat(self.proportions, n_pairs),
                self.pair_accuracies.ravel(),
                self.pair_consistencies.ravel(),
            )
        known = np.isfinite(found[2])
        return found[0][known], found[1][known], found[2][known]

    def __repr__(self) -> str:
        return (
            f"ConsistencyCurve({self.model}, {len(self.proportions)} subsets of {self.n_samples.min()} to "
            f"{self.n_samples.max()} samples, {self.runs} runs of {self.folds} folds, accuracy "
            f"{_range(self.accuracy)}, AEC {_range(self.consistency)})"
        )

    def _repr_html_(self) -> str:
        return f"<span>{html.escape(self.summary())}</span>"

    def summary(self) -> str:
        """A few sentences for people.

        Returns
        -------
        str
        """
        means = self.correlations()["means"]
        said = (
            f"{self.model} on {len(self.proportions)} subsets of {self.n_samples.min()} to {self.n_samples.max()} of "
            f"{self.n_total} samples, {self.runs} runs of {self.folds} folds each. Accuracy {_range(self.accuracy)}, "
            f"AEC {_range(self.consistency)}. Correlation with the number of samples: accuracy "
            f"{means['proportion, accuracy']:.2f}, AEC {means['proportion, consistency']:.2f}."
        )
        if self.constant.any():
            said += (
                f" On {int(self.constant.sum())} subsets the model said the same of every sample: their AEC of 1 means "
                "nothing."
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        """Every attribute as plain values, ready for JSON.

        Returns
        -------
        dict
        """
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> ConsistencyCurve:
        """The curve that `to_dict` described.

        Parameters
        ----------
        values : dict

        Returns
        -------
        ConsistencyCurve
        """
        arrays = {
            name: np.array(values[name], dtype=dtype)
            for name, dtype in (("proportions", np.float64), ("constant", np.bool_))
        }
        n = len(arrays["proportions"])
        several = ("errors", "intersections", "unions") + ("run_samples",) * ("run_samples" in values)
        for name in ("n_samples", *several):
            counts = np.array(values[name], dtype=np.int64)
            arrays[name] = counts if name == "n_samples" else counts.reshape(n, -1)
        return cls(**(values | arrays))


def consistency_curve(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    cv: int = 5,
    proportions: int | ArrayLike = 200,
    low: float = 0.5,
    high: float = 0.9,
    runs: int = 10,
    subset: Subset = "shared",
    stratify: bool = True,
    groups: ArrayLike | None = None,
    n_jobs: int = 1,
    random_state: RandomState = None,
    callback: Callable[[int, int, str], object] | None = None,
) -> ConsistencyCurve:
    """Accuracy and error consistency against the number of samples: cross-validation on subsets of many sizes.

    For each proportion a random subset is drawn, and K-fold cross-validation is run on it several times.

    Parameters
    ----------
    estimator : estimator
        A scikit-learn classifier or pipeline; it is cloned.
    X : array_like, data frame or sparse matrix, shape (n_samples, n_features)
    y : array_like, shape (n_samples,)
        Classes: numbers or strings.
    cv : int
        Folds.
    proportions : int or array_like of float
        How many subsets, or the share of all samples that each should have, above 0 and at most 1. A number gives the
        first points of a scrambled Halton sequence on [`low`, `high`]: more subsets keep those of fewer.
    low, high : float
        Least and greatest proportion.
    runs : int
        Runs of cross-validation on a subset, at least 2.
    subset : {"shared", "each-run"}
        ``"shared"``: the runs of a proportion share its subset, as in the code of the paper. ``"each-run"``: each run
        draws its own, as a draft of its methods says; two runs are then compared on the samples that both have.
    stratify : bool
        Whether subsets and folds have the classes in the proportions of the whole.
    groups : array_like, shape (n_samples,), optional
        Samples that belong together, such as the recordings of one person: they are drawn together, in random order
        until the subset is nearest to its size, and never lie on both sides of a fold.
    n_jobs : int
        Processes; -1 for one per processor. The result does not depend on it.
    random_state : int, Generator, SeedSequence or None
        Seeds proportions, subsets, folds and the estimator.
    callback : callable, optional
        Called as ``callback(done, total, what)`` after each subset.

    Returns
    -------
    ConsistencyCurve

    Raises
    ------
    ValueError
        When an option is out of range or a subset would have too few samples for the folds; as
        `cross_validate_consistency`.
    TypeError
        As `cross_validate_consistency`.

    Warns
    -----
    UserWarning
        When the model says the same of every sample of a subset. Whatever else the model warns of is told once.

    References
    ----------
    .. [1] Levman, Ewenson, Apaloo, Berger & Tyrrell (2023), Error consistency for machine learning evaluation and
       validation with application to biomedical diagnostics, Diagnostics 13 (7).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from milfast.consistency import consistency_curve
    >>> X, y = make_classification(200, flip_y=0.2, random_state=0)
    >>> curve = consistency_curve(LogisticRegression(), X, y, proportions=5, runs=4, random_state=0)
    >>> curve.n_samples
    array([116, 136, 146, 156, 176])
    >>> curve.pair_consistencies.shape
    (5, 6)
    """
    from milfast.consistency.cross_validation import prepared

    start = time.perf_counter()
    n_runs = _count(runs, "runs", 2)
    if subset not in SUBSETS:
        raise ValueError(f"subset must be one of {', '.join(SUBSETS)}; got {subset!r}")
    plan = prepared(estimator, X, y, cv=cv, stratify=stratify, groups=groups, random_state=random_state)
    n = len(plan.y.codes)
    shares = _proportions(proportions, low, high, plan.seed)
    sizes = np.floor(shares * n + 1e-9).astype(np.int64)  # 0.58 * 50 is 28.999...
    _require_enough(plan, int(sizes.min()))
    work = partial(_repetition, plan=plan, runs=n_runs, shared=subset == "shared")
    found: dict[int, _Outcome] = {}
    for index, outcome in stream(work, enumerate(sizes.tolist()), n_jobs=n_jobs):
        found[index] = outcome
        if callback is not None:
            callback(len(found), len(sizes), f"{round(float(np.mean(outcome.n_samples)))} of {n} samples")
    for category, text in dict.fromkeys(told for index in sorted(found) for told in found[index].warnings):
        warnings.warn(text, category, stacklevel=2)
    outcomes = [found[i] for i in np.argsort(shares, kind="stable").tolist()]
    return ConsistencyCurve(
        model=_name(estimator),
        proportions=np.sort(shares, kind="stable"),
        n_samples=np.rint([np.mean(outcome.n_samples) for outcome in outcomes]).astype(np.int64),
        errors=np.stack([outcome.errors for outcome in outcomes]),
        intersections=np.stack([outcome.intersections for outcome in outcomes]),
        unions=np.stack([outcome.unions for outcome in outcomes]),
        constant=np.array([outcome.constant for outcome in outcomes], dtype=np.bool_),
        n_total=n,
        folds=plan.folds,
        runs=n_runs,
        subset=subset,
        stratify=bool(stratify),
        seed=plan.seed,
        seconds=time.perf_counter() - start,
        run_samples=np.stack([outcome.n_samples for outcome in outcomes]),
    )


# -------------------------------------------------------------------- one proportion


@dataclass(frozen=True)
class _Outcome:
    """What the runs of one proportion gave; see `ConsistencyCurve`."""

    n_samples: Counts
    errors: Counts
    intersections: Counts
    unions: Counts
    constant: bool
    warnings: tuple[tuple[type[Warning], str], ...]


def _repetition(item: tuple[int, int], *, plan: Plan, runs: int, shared: bool) -> tuple[int, _Outcome]:
    """All runs of one proportion, with its number; only that, its size and the seed decide about the outcome."""
    from milfast.consistency.cross_validation import cross_validate_consistency

    index, size = item
    y, groups = plan.y.values, plan.groups
    n_samples = np.zeros(runs, dtype=np.int64)
    known = np.zeros((runs, len(y)), dtype=bool)
    wrong = np.zeros((runs, len(y)), dtype=bool)
    constants = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for run in range(1 if shared else runs):
            rows = _draw(size, plan.y.codes, groups, plan.stratify, seed_sequence(plan.seed, SUBSET, index, run))
            result = cross_validate_consistency(
                plan.estimator,
                _take(plan.X, rows),
                y[rows],
                cv=plan.folds,
                repeats=runs if shared else 1,
                groups=None if groups is None else groups[rows],
                stratify=plan.stratify,
                n_jobs=1,
                random_state=seed_value(plan.seed, RUNS, index, run),
            )
            constants.append(result.constant)
            mine = slice(None) if shared else slice(run, run + 1)
            known[mine, rows] = True
            wrong[mine, rows] = result.error_sets()
            n_samples[mine] = len(rows)
    counts = wrong.sum(axis=1)
    both = intersections(wrong, condensed=True).astype(np.int64)
    first, second = np.triu_indices(runs, 1)
    if shared:
        either = counts[first] + counts[second] - both
    else:
        either = ((wrong[first] | wrong[second]) & known[first] & known[second]).sum(axis=1)
    told = dict.fromkeys((each.category, str(each.message)) for each in caught)
    return index, _Outcome(n_samples, counts, both, either, all(constants), tuple(told))


def _draw(
    size: int, y: NDArray[Any], groups: NDArray[Any] | None, stratify: bool, seed: np.random.SeedSequence
) -> Counts:
    """Rows of a random subset, ascending."""
    generator = np.random.Generator(np.random.PCG64(seed))
    n = len(y)
    if groups is not None:
        _, member, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        order = generator.permutation(len(sizes))
        taken = int(np.argmin(np.abs(np.cumsum(sizes[order]) - size))) + 1
        return np.flatnonzero(np.isin(member, order[:taken]))
    if not stratify:
        return np.sort(generator.permutation(n)[:size])
    _, member, sizes = np.unique(y, return_inverse=True, return_counts=True)
    share = sizes * size  # in units of 1 / n, so that nothing is rounded
    quota = share // n
    # the largest remainders get one more; of equal ones the smaller class, then the first
    order = np.lexsort((np.arange(len(sizes)), sizes, -(share % n)))
    quota[order[: size - int(quota.sum())]] += 1
    chosen = [generator.permutation(np.flatnonzero(member == i))[:q] for i, q in enumerate(quota.tolist())]
    return np.sort(np.concatenate(chosen))


def _take(X: Any, rows: Counts) -> Any:
    if isinstance(X, np.ndarray):
        return X[rows]
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, rows)


# -------------------------------------------------------------------- reading arguments


def _count(value: Any, name: str, least: int) -> int:
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {number}")
    return number


def _proportions(given: int | ArrayLike, low: float, high: float, seed: int) -> Numbers:
    if isinstance(given, (bool, np.bool_)) or np.ndim(given) == 0:
        n = _count(given, "proportions", 1)
        if not 0 < low < high <= 1:
            raise ValueError(f"low and high must be in ascending order, above 0 and at most 1; got {low} and {high}")
        return low + (high - low) * _halton(n, seed)
    try:
        shares = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"proportions cannot be read as numbers: {error}") from None
    if shares.ndim != 1 or len(shares) == 0:
        raise ValueError(f"proportions must be a number, or have shape (n_subsets,); got shape {shares.shape}")
    odd = np.flatnonzero(~((shares > 0) & (shares <= 1)))
    if len(odd):
        raise ValueError(f"proportions[{odd[0]}] is {shares[odd[0]]}: shares lie above 0 and are at most 1")
    return shares


def _halton(n: int, seed: int) -> Numbers:
    """First points of a scrambled Halton sequence of one dimension."""
    # Imported here because scipy takes longer to load than the rest of milfast.
    from scipy.stats import qmc

    generator = np.random.Generator(np.random.PCG64(seed_sequence(seed, PROPORTIONS)))
    return np.asarray(qmc.Halton(1, scramble=True, seed=generator).random(n), dtype=np.float64)[:, 0]


def _require_enough(plan: Plan, size: int) -> None:
    """The smallest subset must have enough of everything for the folds."""
    n, cv = len(plan.y.codes), plan.folds
    if size < 2 * cv:
        raise ValueError(
            f"the smallest subset would have {size} of {n} samples, too few for cv={cv} folds: ask for greater "
            "proportions or fewer folds"
        )
    if plan.groups is not None:
        return  # which groups it has is drawn; its cross-validation says when they are too few
    sizes = np.bincount(plan.y.codes)
    least = int(np.argmin(sizes))
    if plan.stratify and int(sizes[least]) * size // n < cv:
        raise ValueError(
            f"class {plan.y.classes.tolist()[least]!r} has {sizes[least]} of {n} samples, which leaves fewer than "
            f"cv={cv} in a subset of {size}: ask for greater proportions or fewer folds, or pass stratify=False"
        )


def _name(estimator: Any) -> str:
    steps = getattr(estimator, "steps", None)
    return type(steps[-1][1]).__name__ if steps else type(estimator).__name__


# -------------------------------------------------------------------- small arithmetic


def _frame(columns: dict[str, NDArray[Any]]) -> Any:
    try:
        import pandas  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        return columns
    return pandas.DataFrame(columns)


def _deviations(values: Numbers) -> Numbers:
    """Standard deviation of each row over what is defined, with n - 1; NaN below two values."""
    defined = np.isfinite(values)
    n = defined.sum(axis=1)
    mean = np.where(defined, values, 0).sum(axis=1) / np.maximum(n, 1)
    squares = np.where(defined, (values - mean[:, np.newaxis]) ** 2, 0).sum(axis=1)
    return np.where(n > 1, np.sqrt(squares / np.maximum(n - 1, 1)), np.nan)


def _pearson(x: Numbers, y: Numbers) -> float:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def _range(values: Numbers) -> str:
    known = values[np.isfinite(values)]
    return f"{known.min():.3f} to {known.max():.3f}" if len(known) else "undefined"


def _forward(done: int, _: int, *, callback: Callable[[int, int], object], before: int, total: int) -> None:
    callback(before + done, total)
