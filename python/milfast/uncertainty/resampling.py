"""Bootstrap intervals of any metric: what is drawn, draws without a value, and three kinds of bounds."""

from __future__ import annotations

import math
import operator
import warnings
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.seeding import root_seed, seed_value
from milfast.uncertainty.intervals import Interval, _choose, _range, _require_level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.bags import Bags
    from milfast.seeding import RandomState

METHODS = ("bca", "percentile", "basic")

#: Jackknife values that BCa takes at most; more units than that are left out in as many groups.
MOST_LEFT_OUT = 2000
#: Numbers of one array that a vectorised metric gets at once.
AT_ONCE = 1 << 18
#: Resamples that one stream of random numbers is drawn for. Part of what a seed stands for.
OF_ONE_STREAM = 32
#: Resamples outside each bound below which the bound is a matter of luck.
LEAST_OUTSIDE = 5


def bootstrap_interval(
    metric: Callable[..., Any],
    *arrays: ArrayLike,
    level: float = 0.95,
    method: str = "bca",
    n_boot: int = 2000,
    paired: bool = True,
    stratify: ArrayLike | None = None,
    clusters: ArrayLike | Bags | None = None,
    vectorized: bool = False,
    bounds: tuple[float, float] | None = None,
    random_state: RandomState = 0,
    n_jobs: int = 1,
    callback: Callable[[int, int], object] | None = None,
) -> Interval:
    """Bootstrap interval of any metric.

    Parameters
    ----------
    metric : callable
        ``metric(*arrays)`` is one number. A difference of two models is a metric of three arrays: both are then scored
        on the same resample.
    *arrays : array_like, shape (n, ...)
        What the metric takes. The first axis is that of the items.
    level : float
        Nominal coverage.
    method : {"bca", "percentile", "basic"}
        With the quantiles of the replicates (linear interpolation between order statistics):

        - ``"bca"``: the percentiles are moved by the bias z0 of the replicates, ties counting half, and by the
          acceleration a, from the metric without each unit in turn (Efron 1987, J. Am. Stat. Assoc. 82). Above
          2,000 units as many groups of units are left out instead.
        - ``"percentile"``: the quantiles at (1 - level) / 2 and (1 + level) / 2.
        - ``"basic"``: the percentiles mirrored at the estimate, 2 estimate - quantile (Davison and Hinkley 1997,
          Bootstrap Methods and their Application, section 5.2). It may leave the range of the metric: see `bounds`.
    n_boot : int
        Resamples. A longer run starts with those of a shorter one.
    paired : bool
        True: all arrays belong to the same items and are resampled together. False: they are independent samples, each
        of its own length.
    stratify : array_like, shape (n,), optional
        A class for each item, of which each resample keeps the size. Use it where the sizes were chosen by the design
        of the study, or where a metric is undefined without a class.
    clusters : array_like, shape (n,), or Bags, optional
        What each item belongs to, such as its patient, when items of one are alike. Whole clusters are drawn. With
        `Bags` items are instances and clusters their bags. With `stratify` too, all items of a cluster must be of one
        class.
    vectorized : bool
        True: the metric gets each array with another axis in front, that of the resamples, and returns a number for
        each of them, shape (resamples,). Clusters must then be of one size.
    bounds : (float, float), optional
        Range of the metric, such as (0, 1): the interval is cut to it.
    random_state : int, Generator, SeedSequence or None
        Replicates depend on it and on their number, not on `n_jobs`.
    n_jobs : int
        Processes; -1 for one per processor. Pays when the metric takes more than a millisecond.
    callback : callable, optional
        Called as ``callback(done, total)`` while the metric is computed, on resamples and for the jackknife.

    Returns
    -------
    Interval
        With `n_boot`, `n_undefined`, `seed`, and `n_clusters` where there are clusters. Its `method` names what was
        done: bca falls back on the percentiles where bias or acceleration are undefined.

    Raises
    ------
    ValueError
        When arrays differ in length or are empty, `stratify` or `clusters` do not fit, the metric is not finite on the
        whole sample, no resample has a value, or an option is out of range.
    TypeError
        When the metric returns no number, or an argument has the wrong type.

    Warns
    -----
    RuntimeWarning
        When resamples had no value: the metric returned NaN or an infinity, or raised ValueError or ArithmeticError, as
        many do when a class is missing. They are counted and left out, never taken for a number. Also when all
        replicates are the same, and when fewer than 5 resamples are expected outside each bound.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.uncertainty import bootstrap_interval
    >>> waits = [3.1, 0.4, 7.9, 2.2, 1.8, 12.4, 0.9, 4.4, 2.7, 6.1, 0.2, 3.3]
    >>> bootstrap_interval(np.median, waits)
    Interval(2.9 [1.4, 5.2], level=0.95, method='bca', n=12, n_boot=2000)

    Two models on the same items, 12 of which belong to each of 20 patients:

    >>> rng = np.random.default_rng(0)
    >>> truth, patient = rng.integers(0, 2, 240), np.arange(240) // 12
    >>> a, b = (np.where(rng.random(240) < right, truth, 1 - truth) for right in (0.9, 0.8))
    >>> def gain(a, b, truth):
    ...     return np.mean(a == truth) - np.mean(b == truth)
    >>> bootstrap_interval(gain, a, b, truth, clusters=patient).summary()
    '0.07, 95 % interval 0.01 to 0.14 (bca, 2000 resamples, 240 items in 20 clusters)'
    """
    _require_level(level)
    _choose(method, dict.fromkeys(METHODS))
    draws = require_draws(n_boot, level)
    limits = _range(bounds)
    if not callable(metric):
        raise TypeError(f"metric must be callable; got {type(metric).__name__}")
    data = [_array(array, f"arrays[{i}]") for i, array in enumerate(arrays)]
    if not data:
        raise ValueError("arrays is empty: give the metric at least one array after it")
    samples = _samples(data, paired, stratify, clusters)
    task = _Task(metric, data, samples, vectorized, seed_value(root := root_seed(random_state), 0))
    if vectorized and not all(sample.even for sample in samples):
        raise ValueError("clusters differ in size, so resamples do too and cannot be stacked: use vectorized=False")
    estimate = task.estimate()
    left_out = [(s, stop - start) for s, sample in enumerate(samples) for start, stop in sample.strata]
    jobs = [_Job("drawn", 0, start, stop) for start, stop in _steps(draws)]
    if method == "bca":
        counts = [min(units, MOST_LEFT_OUT) for _, units in left_out]
        jobs += [_Job("left", t, *step) for t, count in enumerate(counts) if count > 1 for step in _steps(count)]
    replicates = np.full(draws, math.nan)
    jackknives = [np.full(min(units, MOST_LEFT_OUT) if units > 1 else 0, math.nan) for _, units in left_out]
    total = sum(job.stop - job.start for job in jobs)
    done, trouble = 0, ""
    for job, values, error in _run(task, jobs, n_jobs):
        (replicates if job.kind == "drawn" else jackknives[job.stratum])[job.start : job.stop] = values
        trouble = trouble or (error if job.kind == "drawn" else "")
        done += job.stop - job.start
        if callback is not None:
            callback(done, total)
    n_clusters = samples[0].n_units if clusters is not None else None
    return interval_of_replicates(
        estimate,
        replicates,
        n=sum(sample.n_items for sample in samples),
        level=level,
        method=method,
        accelerated=lambda: acceleration(*((values, None) for values in jackknives if len(values))),
        bounds=limits,
        seed=root,
        n_clusters=n_clusters,
        trouble=trouble,
        stacklevel=3,
    )


# -------------------------------------------------------------------- from replicates to bounds


def interval_of_replicates(
    estimate: float,
    replicates: NDArray[np.float64],
    *,
    n: int,
    level: float,
    method: str,
    accelerated: Callable[[], float],
    bounds: tuple[float, float] = (-math.inf, math.inf),
    seed: int | None = None,
    n_pos: int | None = None,
    n_neg: int | None = None,
    n_clusters: int | None = None,
    trouble: str = "",
    stacklevel: int = 2,
) -> Interval:
    """Interval from replicates that were made, with the warnings that belong to them.

    Parameters
    ----------
    estimate : float
    replicates : ndarray, shape (n_boot,)
        Those that are not finite are counted and left out.
    n : int
        Items.
    level : float
    method : {"bca", "percentile", "basic"}
    accelerated : callable
        Gives the acceleration, when it is needed.
    bounds : (float, float)
        The interval is cut to them.
    seed, n_pos, n_neg, n_clusters : int, optional
        As in `Interval`.
    trouble : str
        What the metric said when it had no value.
    stacklevel : int
        Of warnings.

    Returns
    -------
    Interval

    Raises
    ------
    ValueError
        When no replicate is finite.
    """
    defined = replicates[np.isfinite(replicates)]
    n_undefined = len(replicates) - len(defined)
    said = f" ({trouble})" if trouble else ""
    if len(defined) == 0:
        raise ValueError(f"none of {len(replicates)} resamples has a value{said}: keep the classes with stratify")
    if n_undefined:
        warnings.warn(
            f"{n_undefined} of {len(replicates)} resamples had no value{said} and were left out: the bounds are those "
            "of the rest; where a class was missing, stratified resamples keep it",
            RuntimeWarning,
            stacklevel=stacklevel,
        )
    if len(defined) > 1 and np.all(defined == defined[0]):
        warnings.warn(
            f"all resamples gave {defined[0]:g}: the bootstrap shows no spread, which does not mean that there is none",
            RuntimeWarning,
            stacklevel=stacklevel,
        )
    low, high, used = bounds_of_replicates(
        estimate, defined, level=level, method=method, acceleration=accelerated() if method == "bca" else 0.0
    )
    low, high = (min(max(value, bounds[0]), bounds[1]) for value in (low, high))
    return Interval(
        estimate,
        low,
        high,
        float(level),
        used,
        n,
        n_pos=n_pos,
        n_neg=n_neg,
        n_clusters=n_clusters,
        n_boot=len(replicates),
        n_undefined=n_undefined,
        seed=seed,
    )


def bounds_of_replicates(
    estimate: float, replicates: NDArray[np.float64], *, level: float, method: str, acceleration: float = 0.0
) -> tuple[float, float, str]:
    """Bounds from finite replicates, and the name of the rule that gave them.

    Parameters
    ----------
    estimate : float
    replicates : ndarray, shape (n_boot,)
    level : float
    method : {"bca", "percentile", "basic"}
    acceleration : float
        For ``"bca"``; NaN when it is undefined.

    Returns
    -------
    tuple of float, float and str

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.uncertainty.resampling import bounds_of_replicates
    >>> bounds_of_replicates(5.0, np.arange(11.0), level=0.5, method="percentile")
    (2.5, 7.5, 'percentile')
    """
    tail = (1 - level) / 2
    if method == "bca":
        normal = NormalDist()
        below = (np.count_nonzero(replicates < estimate) + np.count_nonzero(replicates <= estimate)) / 2
        share = below / len(replicates)
        tails = None
        if 0 < share < 1 and not math.isnan(acceleration):
            bias, z = normal.inv_cdf(share), normal.inv_cdf(tail)
            steps = [1 - acceleration * (bias + side) for side in (z, -z)]
            if min(steps) > 0:  # beyond that the correction turns round
                tails = [normal.cdf(bias + (bias + side) / s) for side, s in zip((z, -z), steps, strict=True)]
        if tails is not None:
            low, high = np.quantile(replicates, tails)
            return float(low), float(high), method
        method = "percentile (bca undefined)"
    low, high = np.quantile(replicates, [tail, 1 - tail])
    if method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    return float(low), float(high), method


def acceleration(*samples: tuple[NDArray[np.float64], NDArray[Any] | None]) -> float:
    """Acceleration of BCa from the values without each unit, of one sample or of several that are drawn apart.

    Parameters
    ----------
    *samples : tuple of ndarray, and ndarray or None
        The values, and how often each occurs; None for once.

    Returns
    -------
    float
        NaN when a value is; 0 when all are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.uncertainty.resampling import acceleration
    >>> x = np.array([1.0, 2.0, 6.0])
    >>> round(acceleration(((x.sum() - x) / 2, None)), 4)  # skewness over 6 sqrt(n)
    0.0573
    """
    second = third = 0.0
    for values, counts in samples:
        times = np.ones(len(values)) if counts is None else counts
        n = times.sum()
        u = (n - 1) * (times @ values / n - values)
        second += times @ u**2 / n**2
        third += times @ u**3 / n**3
    if math.isnan(second):
        return math.nan
    return float(third / (6 * second**1.5)) if second > 0 else 0.0


# -------------------------------------------------------------------- what is drawn


@dataclass(frozen=True)
class _Sample:
    """Items of one sample, ordered by stratum and unit. A unit is an item or a cluster; a stratum is a run of units."""

    order: NDArray[np.intp]
    first: NDArray[np.intp]  # place of the first item of each unit, and the end
    strata: list[tuple[int, int]]  # units

    @property
    def n_items(self) -> int:
        return len(self.order)

    @property
    def n_units(self) -> int:
        return len(self.first) - 1

    @property
    def even(self) -> bool:
        """Whether all resamples are of one size."""
        return self.n_units == self.n_items or len(set(np.diff(self.first).tolist())) == 1

    def items(self, units: NDArray[np.intp]) -> NDArray[np.intp]:
        """Items of units, one unit after the other."""
        if self.n_units == self.n_items:
            return self.order[units]
        start = self.first[units]
        sizes = self.first[units + 1] - start
        ends = np.cumsum(sizes)
        places = np.repeat(start - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)
        return np.asarray(self.order[places])

    def drawn(self, streams: list[np.random.Generator]) -> NDArray[np.intp]:
        """Items of a resample; each stratum has its stream."""
        units = [
            rng.integers(start, stop, stop - start) for rng, (start, stop) in zip(streams, self.strata, strict=True)
        ]
        return self.items(units[0] if len(units) == 1 else np.concatenate(units))

    def drawn_together(self, streams: list[np.random.Generator], rows: int) -> NDArray[np.intp]:
        """Items of as many resamples of one size; the same that `drawn` would give one after the other."""
        units = np.concatenate(
            [
                rng.integers(start, stop, (rows, stop - start))
                for rng, (start, stop) in zip(streams, self.strata, strict=True)
            ],
            axis=1,
        )
        return np.asarray(self.order.reshape(self.n_units, -1)[units].reshape(rows, -1))

    def without(self, stratum: int, part: int) -> NDArray[np.intp]:
        """Items without those of a part of a stratum."""
        start, stop = self.strata[stratum]
        keep = np.ones(self.n_units, dtype=bool)
        keep[start + part : stop : min(stop - start, MOST_LEFT_OUT)] = False
        return self.items(np.flatnonzero(keep))


@dataclass(frozen=True)
class _Job:
    """Replicates, or values of the jackknife, of which each depends on its number alone."""

    kind: str
    stratum: int
    start: int
    stop: int


@dataclass(frozen=True)
class _Task:
    """All that a process needs to do jobs."""

    metric: Callable[..., Any]
    arrays: list[NDArray[Any]]
    samples: list[_Sample]
    vectorized: bool
    seed: int

    def estimate(self) -> float:
        if self.vectorized:
            value = float(_numbers(self.metric(*(array[None] for array in self.arrays)), 1)[0])
        else:
            value = _number(self.metric(*self.arrays))
        if not math.isfinite(value):
            raise ValueError(f"metric gives {value} on the whole sample: is there a NaN in arrays, or a class missing?")
        return value

    def _left(self, job: _Job) -> Iterator[list[NDArray[np.intp]]]:
        """For each number of a job the items of each sample, without a part of one."""
        places = [(s, t) for s, sample in enumerate(self.samples) for t in range(len(sample.strata))]
        of, stratum = places[job.stratum]
        for part in range(job.start, job.stop):
            yield [sample.without(stratum, part) if s == of else sample.order for s, sample in enumerate(self.samples)]

    def _streams(self, job: _Job) -> Iterator[tuple[int, list[list[np.random.Generator]]]]:
        """How many resamples come from which streams, for each stratum of each sample."""
        for start in range(job.start, job.stop, OF_ONE_STREAM):
            number = iter(range(sum(len(sample.strata) for sample in self.samples)))
            yield (
                min(OF_ONE_STREAM, job.stop - start),
                [
                    [
                        np.random.Generator(np.random.Philox(key=[self.seed, next(number)], counter=[0, 0, 0, start]))
                        for _ in sample.strata
                    ]
                    for sample in self.samples
                ],
            )

    def _drawn(self, job: _Job) -> Iterator[list[NDArray[np.intp]]]:
        """For each number of a job the items of each sample."""
        for rows, streams in self._streams(job):
            for _ in range(rows):
                yield [sample.drawn(its) for sample, its in zip(self.samples, streams, strict=True)]

    def _stacked(self, job: _Job) -> Iterator[list[NDArray[np.intp]]]:
        """The same, of several numbers at a time, one a row."""
        at_once = max(1, AT_ONCE // sum(sample.n_items for sample in self.samples))
        if job.kind == "left":
            chosen = self._left(job)
            while rows := list(islice(chosen, at_once)):
                # clusters are of one size, so what is left is too, but for parts that hold a unit more than others
                for _, same in groupby(rows, key=lambda row: [*map(len, row)]):
                    yield [np.stack(column) for column in zip(*same, strict=True)]
            return
        for count, streams in self._streams(job):
            for start in range(0, count, at_once):
                yield [
                    sample.drawn_together(its, min(at_once, count - start))
                    for sample, its in zip(self.samples, streams, strict=True)
                ]

    def __call__(self, job: _Job) -> tuple[_Job, NDArray[np.float64], str]:
        values, said = np.full(job.stop - job.start, math.nan), ""
        places = [0] * len(self.arrays) if len(self.samples) == 1 else range(len(self.arrays))
        with warnings.catch_warnings():
            # What the metric has to say about a class that is missing is said once, in the end.
            warnings.simplefilter("ignore")
            if self.vectorized:
                start = 0
                for chosen in self._stacked(job):
                    stacked = [array[chosen[p]] for array, p in zip(self.arrays, places, strict=True)]
                    rows = len(chosen[0])
                    values[start : start + rows] = _numbers(self.metric(*stacked), rows)
                    start += rows
                return job, values, said
            for i, items in enumerate(self._left(job) if job.kind == "left" else self._drawn(job)):
                try:
                    found = self.metric(*(array[items[p]] for array, p in zip(self.arrays, places, strict=True)))
                except (ValueError, ArithmeticError) as error:
                    said = said or f"{type(error).__name__}: {error}"
                    continue
                values[i] = _number(found)
        return job, values, said


def _run(task: _Task, jobs: Sequence[_Job], n_jobs: int) -> Iterator[tuple[_Job, NDArray[np.float64], str]]:
    if n_jobs == 1:
        return map(task, jobs)
    from milfast.workers import stream

    return stream(task, jobs, n_jobs=n_jobs)


def _steps(total: int) -> Iterator[tuple[int, int]]:
    """About a hundred jobs, so that progress can be seen; each with whole streams."""
    step = -(-total // (100 * OF_ONE_STREAM)) * OF_ONE_STREAM
    return ((start, min(start + step, total)) for start in range(0, total, step))


# -------------------------------------------------------------------- reading arguments


def require_draws(n_boot: Any, level: float, *, stacklevel: int = 3) -> int:
    """`n_boot` as an integer; warns when the bounds would be a matter of luck.

    Parameters
    ----------
    n_boot : int
    level : float
    stacklevel : int
        Of the warning.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        When it is not positive.
    TypeError
        When it is no integer.
    """
    try:
        if isinstance(n_boot, (bool, np.bool_)):
            raise TypeError
        draws = operator.index(n_boot)
    except TypeError:
        raise TypeError(f"n_boot must be an integer; got {n_boot!r}") from None
    if draws < 1:
        raise ValueError(f"n_boot must be at least 1; got {draws}")
    outside = draws * (1 - level) / 2
    # 200 resamples at 95 % are 5 up to rounding
    if outside < LEAST_OUTSIDE - 1e-9:
        warnings.warn(
            f"with n_boot={draws} about {outside:.2g} resamples lie outside each bound at level {level:g}: the bounds "
            f"are a matter of luck; use n_boot={math.ceil(2 * LEAST_OUTSIDE / (1 - level) - 1e-6)} or more",
            RuntimeWarning,
            stacklevel=stacklevel,
        )
    return draws


def _array(values: Any, name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim == 0:
        raise ValueError(f"{name} must have an axis of items, shape (n, ...); got one value: bind it in metric instead")
    if len(array) == 0:
        raise ValueError(f"{name} must not be empty")
    return array


def _samples(data: list[NDArray[Any]], paired: bool, stratify: Any, clusters: Any) -> list[_Sample]:
    if not paired:
        if stratify is not None or clusters is not None:
            raise ValueError("stratify and clusters need paired=True: they belong to items that all arrays share")
        return [_Sample(np.arange(len(x)), np.arange(len(x) + 1), [(0, len(x))]) for x in data]
    n = len(data[0])
    for i, array in enumerate(data):
        if len(array) != n:
            raise ValueError(
                f"arrays[{i}] has {len(array)} items and arrays[0] has {n}: independent samples need paired=False"
            )
    return [sample_of(n, None if stratify is None else codes(stratify, n, "stratify"), cluster_codes(clusters, n))]


def sample_of(n: int, stratum: NDArray[np.intp] | None, cluster: NDArray[np.intp] | None) -> _Sample:
    """What is drawn from `n` items with the codes of their strata and clusters.

    Parameters
    ----------
    n : int
    stratum, cluster : ndarray of int, shape (n,), optional
        As `codes` gives them.

    Returns
    -------
    _Sample

    Raises
    ------
    ValueError
        When a cluster has items of two strata.
    """
    if stratum is None:
        stratum = np.zeros(n, dtype=np.intp)
    if cluster is None:
        order = np.argsort(stratum, kind="stable")
        first = np.arange(n + 1)
        of_unit = stratum[order]
    else:
        order = np.argsort(cluster, kind="stable")
        first = np.append(np.flatnonzero(np.diff(cluster[order], prepend=-1)), n)
        of_unit = stratum[order][first[:-1]]
        mixed = np.flatnonzero(stratum[order] != np.repeat(of_unit, np.diff(first)))
        if len(mixed):
            i = int(order[mixed[0]])
            raise ValueError(f"item {i} and another of its cluster are of different strata: draw without strata")
        by_stratum = np.argsort(of_unit, kind="stable")
        sizes = np.diff(first)[by_stratum]
        order = _Sample(order, first, []).items(by_stratum)
        first, of_unit = np.concatenate([[0], np.cumsum(sizes)]), of_unit[by_stratum]
    cuts = [0, *(np.flatnonzero(np.diff(of_unit)) + 1).tolist(), len(of_unit)]
    return _Sample(order, first, list(pairwise(cuts)))


def cluster_codes(clusters: Any, n: int) -> NDArray[np.intp] | None:
    """Codes of clusters that were given as ids, as `Bags` or not at all.

    Parameters
    ----------
    clusters : array_like, Bags or None
    n : int
        Items there must be.

    Returns
    -------
    ndarray of int, shape (n,), or None

    Raises
    ------
    ValueError
        When they do not fit, or there is one cluster only.
    """
    if clusters is None:
        return None
    from milfast.bags import Bags

    if isinstance(clusters, Bags):
        ids: NDArray[np.intp] = np.repeat(np.arange(len(clusters)), clusters.sizes)
        if len(ids) != n:
            raise ValueError(f"clusters holds {len(ids)} instances in its bags; there are {n} items")
        found = ids
    else:
        found = codes(clusters, n, "clusters")
    if found.max() == 0:
        raise ValueError("clusters are all the same: one cluster shows no spread between clusters")
    return found


def codes(values: Any, n: int, name: str) -> NDArray[np.intp]:
    """Number the distinct values 0, 1, ... in ascending order.

    Parameters
    ----------
    values : array_like, shape (n,)
    n : int
        Values there must be.
    name : str
        Of the argument, for messages.

    Returns
    -------
    ndarray of int, shape (n,)

    Raises
    ------
    ValueError
        When there are more or fewer, or one is NaN.
    TypeError
        When they cannot be ordered.
    """
    array = np.asarray(values)
    if array.shape != (n,):
        raise ValueError(f"{name} must hold one value an item, shape ({n},); got shape {array.shape}")
    require_no_nan(array, name)
    try:
        return np.unique(array, return_inverse=True)[1]
    except TypeError as error:
        raise TypeError(f"{name} holds values that cannot be ordered: {error}") from None


def require_no_nan(array: NDArray[Any], name: str) -> None:
    """Refuse NaN, None and other values that are not equal to themselves.

    Parameters
    ----------
    array : ndarray, shape (n,)
    name : str
        Of the argument, for messages.

    Raises
    ------
    ValueError
        With the position.
    """
    if array.dtype.kind in "biuSU":
        return
    missing = (
        [v is None or not isinstance(v == v, (bool, np.bool_)) or v != v for v in array]
        if (array.dtype.kind == "O")
        else array != array
    )
    odd = np.flatnonzero(missing)
    if len(odd):
        i = int(odd[0])
        raise ValueError(f"{name}[{i}] is {array[i]}: drop the item or say what it is")


def _number(value: Any) -> float:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"metric must return one number; got {type(value).__name__}") from None
    if array.size != 1:
        raise TypeError(f"metric must return one number; got shape {array.shape}: call bootstrap_interval for each")
    return float(array.reshape(()))


def _numbers(values: Any, n: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n,):
        raise TypeError(
            f"metric must return a number for each of {n} resamples, shape ({n},), as vectorized=True says; "
            f"got shape {array.shape}: reduce over axis 1"
        )
    return array
