"""Two models compared by any metric: the difference from paired resamples, the p-value from exchanged predictions."""

from __future__ import annotations

import math
import operator
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.seeding import root_seed, seed_value
from milfast.uncertainty.comparison import Comparison, read_names
from milfast.uncertainty.intervals import _require_level
from milfast.uncertainty.resampling import _number, bootstrap_interval, cluster_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.bags import Bags
    from milfast.seeding import RandomState

#: Exchanges that are drawn, or gone through, at once. Results depend on it: each lot has a stream of its own.
_LOT = 50


def compare_metric(
    metric: Callable[[Any, Any], Any],
    predictions_a: ArrayLike,
    predictions_b: ArrayLike,
    labels: ArrayLike,
    *,
    test: str = "exchange",
    n_exchanges: int = 2000,
    method: str = "bca",
    n_boot: int = 2000,
    stratify: ArrayLike | None = None,
    clusters: ArrayLike | Bags | None = None,
    bounds: tuple[float, float] | None = (-1.0, 1.0),
    level: float = 0.95,
    measure: str | None = None,
    names: Sequence[str] | None = None,
    random_state: RandomState = 0,
    n_jobs: int = 1,
    callback: Callable[[int, int], object] | None = None,
) -> Comparison:
    """Compare two models on the same items by any metric.

    For accuracies `mcnemar`, and for AUCs `compare_auc`, say the same from formulas.

    Parameters
    ----------
    metric : callable
        ``metric(predictions, labels)`` is one number. With metrics of scikit-learn, which take the labels first:
        ``lambda predictions, labels: f1_score(labels, predictions)``.
    predictions_a, predictions_b : array_like, shape (n, ...)
        What each model says about each item.
    labels : array_like, shape (n, ...)
    test : {"exchange", "none"}
        ``"exchange"``: how often the difference is as large when each item's two predictions are exchanged by a fair
        coin (Noreen 1989, Computer-Intensive Methods for Testing Hypotheses): (1 + as large) / (1 + exchanges), or the
        share of all exchanges where these are no more than `n_exchanges`. It presumes that the predictions could be
        exchanged: classes or probabilities can, scores on scales of their own must be made alike first, by ranks say.
        ``"none"``: the interval alone; the p-value is NaN.
    n_exchanges : int
        Exchanges that are drawn. No p-value is below 1 / (1 + n_exchanges).
    method : {"bca", "percentile", "basic"}
        Of the interval of the difference, from resampled items, both models on the same ones; see
        `bootstrap_interval`, of which `n_boot`, `stratify` and `bounds` are options too.
    n_boot : int
        Resamples.
    stratify : array_like, shape (n,), optional
        A class for each item, of which each resample keeps the size.
    clusters : array_like, shape (n,), or Bags, optional
        What each item belongs to, such as its patient, when items of one are alike: whole clusters are drawn, and
        exchanged.
    bounds : (float, float) or None
        Range of the difference: (-1, 1) fits metrics between 0 and 1.
    level : float
        Nominal coverage.
    measure : str, optional
        What the metric is; the name of the function otherwise, if it has one.
    names : sequence of str, optional
        The models; A and B otherwise.
    random_state : int, Generator, SeedSequence or None
        Results do not depend on `n_jobs`.
    n_jobs : int
        Processes; -1 for one per processor.
    callback : callable, optional
        Called as ``callback(done, total)`` while the metric is computed.

    Returns
    -------
    Comparison
        When no prediction differs the p-value is 1.

    Raises
    ------
    ValueError
        When lengths differ, the metric is not finite on the whole sample, or an option is out of range.
    TypeError
        When `metric` returns no number, or an argument has the wrong type.

    Warns
    -----
    RuntimeWarning
        When the metric has no value on some exchanges: they are taken for as large as the difference, so that the
        p-value errs on the safe side. And as `bootstrap_interval`.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.uncertainty import compare_metric
    >>> def kappa(predictions, labels):
    ...     seen, by_chance = np.mean(predictions == labels), np.mean(predictions) * np.mean(labels)
    ...     by_chance += (1 - np.mean(predictions)) * (1 - np.mean(labels))
    ...     return (seen - by_chance) / (1 - by_chance)
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 300)
    >>> ours, theirs = (np.where(rng.random(300) < right, labels, 1 - labels) for right in (0.9, 0.8))
    >>> compare_metric(kappa, ours, theirs, labels, names=("ours", "theirs")).summary()
    'kappa: ours 0.77, theirs 0.64; difference 0.13, 95 % interval 0.02 to 0.24 (bca); p = 0.028 (exchanged predictions,
    300 paired items)'
    """
    _require_level(level)
    titles = {"exchange": "exchanged predictions", "none": "no test"}
    if test not in titles:
        raise ValueError(f"test must be one of {', '.join(titles)}; got {test!r}")
    title = titles[test]
    if not callable(metric):
        raise TypeError(f"metric must be callable; got {type(metric).__name__}")
    draws = _exchanges(n_exchanges)
    a, b, y = np.asarray(predictions_a), np.asarray(predictions_b), np.asarray(labels)
    for array, name in ((a, "predictions_a"), (b, "predictions_b"), (y, "labels")):
        if array.ndim == 0 or len(array) == 0:
            raise ValueError(f"{name} must hold an entry an item, shape (n, ...) with n >= 1; got shape {array.shape}")
        if len(array) != len(y):
            raise ValueError(f"{name} has {len(array)} entries and labels has {len(y)}: they must be of the same items")
    if a.shape != b.shape:
        raise ValueError(f"predictions_a and predictions_b must be alike to be compared; got {a.shape} and {b.shape}")
    seed = root_seed(random_state)
    code = cluster_codes(clusters, len(y))
    estimates = _number(metric(a, y)), _number(metric(b, y))
    for value, name in zip(estimates, ("predictions_a", "predictions_b"), strict=True):
        if not math.isfinite(value):
            raise ValueError(f"metric gives {value} for {name}: is there a NaN among them, or a class missing?")
    read = read_names(names, 2)
    swaps = draws if test == "exchange" else 0

    def resampled(done: int, of: int) -> None:
        if callback is not None:
            callback(n_boot * done // of, n_boot + swaps)

    def swapped(done: int) -> None:
        if callback is not None:
            callback(n_boot + done, n_boot + swaps)

    # first, for it looks at its options before it begins
    difference = bootstrap_interval(
        _Gain(metric),
        a,
        b,
        y,
        level=level,
        method=method,
        n_boot=n_boot,
        stratify=stratify,
        clusters=clusters,
        bounds=bounds,
        random_state=seed,
        n_jobs=n_jobs,
        callback=resampled,
    )
    details = {"seed": seed}
    log_p, notes = math.nan, []
    if test == "exchange":
        log_p, said = _exchanged(_Exchange(metric, a, b, y, code, seed_value(seed, 1)), draws, n_jobs, swapped)
        notes += said
        details["n_exchanges"] = draws
    if code is not None:
        details["n_clusters"] = int(code.max()) + 1
    return Comparison(
        names=read,
        estimates=estimates,
        difference=difference,
        log_p=log_p,
        statistic=difference.estimate,
        df=(),
        method=title if code is None else f"{title} of clusters",
        n=len(y),
        measure=measure or getattr(metric, "__name__", "metric").replace("<lambda>", "metric"),
        notes=tuple(notes),
        details=details,
    )


@dataclass(frozen=True)
class _Gain:
    """How much better the first model is."""

    metric: Callable[[Any, Any], Any]

    def __call__(self, a: Any, b: Any, y: Any) -> Any:
        return _number(self.metric(a, y)) - _number(self.metric(b, y))


@dataclass(frozen=True)
class _Exchange:
    """Differences after exchanges of the predictions of some units, an item or a cluster each."""

    metric: Callable[[Any, Any], Any]
    a: NDArray[Any]
    b: NDArray[Any]
    y: NDArray[Any]
    code: NDArray[np.intp] | None
    seed: int

    @property
    def n_units(self) -> int:
        return len(self.y) if self.code is None else int(self.code.max()) + 1

    def moving(self) -> NDArray[np.intp]:
        """Units about which the models do not say the same."""
        # != is true for NaN, which a model may say about an item
        differ = (self.a != self.b).reshape(len(self.y), -1).any(axis=1)
        return np.flatnonzero(differ) if self.code is None else np.unique(self.code[differ])

    def gain(self, swapped: NDArray[np.bool_]) -> float:
        """The difference when these units are exchanged; NaN when the metric has no value."""
        items = swapped if self.code is None else swapped[self.code]
        chosen = items.reshape(-1, *(1,) * (self.a.ndim - 1))
        try:
            first = _number(self.metric(np.where(chosen, self.b, self.a), self.y))
            return first - _number(self.metric(np.where(chosen, self.a, self.b), self.y))
        except (ValueError, ArithmeticError):
            return math.nan

    def __call__(self, lot: tuple[int, int, bool]) -> NDArray[np.float64]:
        number, size, every = lot
        units = self.moving()
        rng = np.random.Generator(np.random.Philox(key=self.seed, counter=[0, 0, 0, number]))
        found = np.empty(size)
        with warnings.catch_warnings():
            # what the metric has to say about a class that is missing is said once, in the end
            warnings.simplefilter("ignore")
            for i in range(size):
                swapped = np.zeros(self.n_units, dtype=bool)
                if every:
                    place = number * _LOT + i
                    swapped[units] = [place >> bit & 1 for bit in range(len(units))]
                else:
                    swapped[units] = rng.integers(0, 2, len(units), dtype=np.int8) == 1
                found[i] = self.gain(swapped)
        return found


def _exchanged(
    exchange: _Exchange, draws: int, n_jobs: int, callback: Callable[[int], None]
) -> tuple[float, list[str]]:
    """Log p and notes."""
    units = len(exchange.moving())
    if units == 0:
        return 0.0, ["the two say the same about every item: nothing tells them apart"]
    # half of all exchanges mirror the other half, and one of them leaves everything as it is
    every = 2**units <= draws
    total = 2**units if every else draws
    lots = [(i, min(_LOT, total - start), every) for i, start in enumerate(range(0, total, _LOT))]
    own = abs(exchange.gain(np.zeros(exchange.n_units, dtype=bool)))
    done = as_large = undefined = 0
    for found in _run(exchange, lots, n_jobs):
        # a difference that is the same up to rounding is as large
        as_large += int(np.count_nonzero(~(np.abs(found) < own * (1 - 1e-9))))
        undefined += int(np.count_nonzero(np.isnan(found)))
        done += len(found)
        callback(draws * done // total)
    notes = []
    if undefined:
        text = (
            f"the metric has no value on {undefined} of {total} exchanges: they count as large, to be on the safe side"
        )
        warnings.warn(text, RuntimeWarning, stacklevel=3)
        notes.append(text)
    if every:
        return math.log(as_large / total), notes
    return math.log((1 + as_large) / (1 + total)), notes


def _run(exchange: _Exchange, lots: list[tuple[int, int, bool]], n_jobs: int) -> Iterator[NDArray[np.float64]]:
    if n_jobs == 1:
        return map(exchange, lots)
    from milfast.workers import stream

    return stream(exchange, lots, n_jobs=n_jobs)


def _exchanges(n_exchanges: Any) -> int:
    try:
        if isinstance(n_exchanges, (bool, np.bool_)):
            raise TypeError
        draws = operator.index(n_exchanges)
    except TypeError:
        raise TypeError(f"n_exchanges must be an integer; got {n_exchanges!r}") from None
    if draws < 1:
        raise ValueError(f"n_exchanges must be at least 1; got {draws}")
    return draws
