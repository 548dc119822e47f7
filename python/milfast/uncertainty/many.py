"""Several models on several data sets: Friedman's test, what follows it, and the critical difference."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.uncertainty.comparison import Comparison, adjust, read_names, read_numbers
from milfast.uncertainty.intervals import Interval, _choose, _require_level, _z
from milfast.uncertainty.search import crossing
from milfast.uncertainty.signed_rank import wilcoxon
from milfast.uncertainty.tails import log_two_sided_normal, log_upper_chi2, log_upper_f

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray


def friedman(
    values: Mapping[str, ArrayLike] | ArrayLike,
    *,
    higher_is_better: bool = True,
    method: str = "chi2",
    posthoc: str = "nemenyi",
    control: str | None = None,
    level: float = 0.95,
    names: Sequence[str] | None = None,
) -> Comparison:
    """Compare several models on the same data sets by their ranks (Friedman 1937, J. Am. Stat. Assoc. 32).

    On each of N data sets the k models are ranked, the best first, ties sharing their mean rank. When all are alike the
    mean ranks differ by chance only (Demsar 2006, J. Mach. Learn. Res. 7).

    Parameters
    ----------
    values : mapping of str to array_like, data frame, or array_like, shape (k, N)
        A figure of each model, a row, on each data set. The keys of a mapping, or columns of a data frame, are the
        names. Data sets, not folds of one: they have to be independent.
    higher_is_better : bool
        False for errors and losses.
    method : {"chi2", "f"}
        ``"chi2"``: Friedman's statistic, corrected for ties, with k - 1 degrees of freedom. ``"f"``: the less cautious
        (N - 1) chi2 / (N (k - 1) - chi2) with (k - 1, (k - 1) (N - 1)) (Iman and Davenport 1980, Commun. Stat. A9).
    posthoc : {"nemenyi", "holm", "wilcoxon"}
        How pairs are compared:

        - ``"nemenyi"``: mean ranks further apart than the critical difference q sqrt(k (k + 1) / (6 N)), where
          q sqrt(2) is the quantile of the range of k normals (Nemenyi 1963).
        - ``"holm"``: z tests of mean ranks with Holm's correction, sharper, above all against a `control`.
        - ``"wilcoxon"``: Wilcoxon's signed-rank test of each pair with Holm's correction. It does not depend on the
          other models, as mean ranks do (Benavoli, Corani and Mangili 2016, J. Mach. Learn. Res. 17).
    control : str, optional
        Compare all others with this model only. Not with ``"nemenyi"``.
    level : float
        Nominal coverage of the intervals of the pairs, and one minus the error rate of the groups.
    names : sequence of str, optional
        The models, when `values` is an array; A, B, C, ... otherwise.

    Returns
    -------
    Comparison
        Its estimates are mean ranks, 1 being the best. `pairs` hold differences of mean ranks with the critical
        difference around them (unadjusted for ``"wilcoxon"``), and adjusted p-values. `details` has
        ``"critical_difference"`` for ``"nemenyi"``, and without a control ``"groups"``: runs of models, best first, of
        which no two differ significantly, as a critical-difference diagram shows them.

    Raises
    ------
    ValueError
        When `values` has fewer than two models or data sets or is not finite, or an option is out of range.
    TypeError
        When `values` cannot be read, or `names` are given beside a mapping.

    Examples
    --------
    >>> from milfast.uncertainty import friedman
    >>> accuracies = {
    ...     "large": [0.91, 0.84, 0.77, 0.95, 0.88, 0.70, 0.81, 0.93],
    ...     "small": [0.89, 0.83, 0.75, 0.94, 0.86, 0.71, 0.78, 0.91],
    ...     "tiny": [0.85, 0.80, 0.74, 0.90, 0.85, 0.66, 0.77, 0.88],
    ... }
    >>> result = friedman(accuracies)
    >>> result
    Comparison(large 1.125, small 1.875, tiny 3.000, p = 0.0008, method='Friedman', n=8 data sets)
    >>> round(result.details["critical_difference"], 3), result.details["groups"]
    (1.172, [['large', 'small'], ['small', 'tiny']])
    """
    _require_level(level)
    title = _choose(method, {"chi2": "Friedman", "f": "Iman-Davenport"})
    if posthoc not in ("nemenyi", "holm", "wilcoxon"):
        raise ValueError(f"posthoc must be one of nemenyi, holm, wilcoxon; got {posthoc!r}")
    table, read = _table(values, names)
    k, n = table.shape
    if control is not None:
        if control not in read:
            raise ValueError(f"control must be one of {', '.join(read)}; got {control!r}")
        if posthoc == "nemenyi":
            raise ValueError("posthoc='nemenyi' compares all pairs: use 'holm' or 'wilcoxon' with a control")
    doubled = _doubled_ranks(table if higher_is_better else -table)
    chi2, perfect = _chi2(doubled)
    notes: tuple[str, ...] = ()
    df: tuple[float, ...] = (float(k - 1),)
    statistic, log_p = chi2, log_upper_chi2(chi2, k - 1)
    if method == "f":
        df = (float(k - 1), float((k - 1) * (n - 1)))
        if perfect:
            # the F statistic is infinite; how likely it is that N rankings agree by chance can be said exactly
            statistic, log_p = math.nan, -(n - 1) * _log_orders(doubled[:, 0])
            notes = ("all data sets rank the models alike: the exact probability of that takes the place of F",)
        else:
            statistic = (n - 1) * chi2 / (n * (k - 1) - chi2)
            log_p = log_upper_f(statistic, *df)
    if not doubled.max(0).max() > doubled.min(0).min():
        notes = ("all models are tied on every data set: nothing tells them apart",)
    ranks = doubled.sum(1) / (2 * n)
    spread = math.sqrt(k * (k + 1) / (6 * n))
    details: dict[str, Any] = {}
    if posthoc == "nemenyi":
        details["critical_difference"] = range_quantile(1 - level, k) / math.sqrt(2) * spread
    chosen = [
        (i, j) if control != read[j] else (j, i)
        for i, j in combinations(range(k), 2)
        if control is None or control in (read[i], read[j])
    ]
    given = (_pair(table, ranks, i, j, spread, read, posthoc, details, level) for i, j in chosen)
    pairs = tuple(given) if posthoc == "nemenyi" else adjust(given)
    if control is None:
        details["groups"] = _groups(read, ranks, pairs, level)
    return Comparison(
        names=read,
        estimates=tuple(float(rank) for rank in ranks),
        difference=None,
        log_p=log_p,
        statistic=statistic,
        df=df,
        method=title,
        n=n,
        unit="data sets",
        measure="mean rank",
        notes=notes,
        details=details,
        pairs=pairs,
    )


def range_tail(q: float, k: int) -> float:
    """Log of the probability that the range of `k` standard normals is at least `q`.

    Parameters
    ----------
    q : float
    k : int
        At least 2.

    Returns
    -------
    float

    Examples
    --------
    >>> import math
    >>> from milfast.uncertainty.many import range_tail
    >>> round(math.exp(range_tail(3.314, 3)), 4)
    0.05
    """
    # Imported here because scipy takes longer to load than the rest of milfast.
    from scipy.special import log_ndtr

    if q <= 0:
        return 0.0
    # Over the largest z: its density times the chance that not all others are within q below it. The trapezoidal rule
    # is as good as exact for such an integrand.
    z, step = np.linspace(-10, q + 10, 500 + int(20 * q), retstep=True)
    below = log_ndtr(z)
    share = np.exp(np.minimum(log_ndtr(z - q) - below, -1e-300))
    with np.errstate(divide="ignore"):
        others = np.log(-np.expm1((k - 1) * np.log1p(-share)))
        # where the share is lost beside 1 the first term of its series is left
        others = np.where(share > 1e-16, others, math.log(k - 1) + log_ndtr(z - q) - below)
    logs = math.log(k) - z * z / 2 - math.log(2 * math.pi) / 2 + (k - 1) * below + others
    return min(0.0, float(np.logaddexp.reduce(logs)) + math.log(float(step)))


@cache
def range_quantile(tail: float, k: int) -> float:
    """What the range of `k` standard normals passes with probability `tail`.

    Parameters
    ----------
    tail : float
    k : int

    Returns
    -------
    float

    Examples
    --------
    >>> from milfast.uncertainty.many import range_quantile
    >>> round(range_quantile(0.05, 10), 3)
    4.474
    """
    return crossing(lambda q: range_tail(q, k) <= math.log(tail), 0.0, 2 * _z(1 - tail / k**2) + 1)


# -------------------------------------------------------------------- ranks


def _doubled_ranks(table: NDArray[np.float64]) -> NDArray[np.int64]:
    """Twice the rank of each model on each data set, 2 for the best, ties sharing: whole numbers."""
    better = (table[:, None, :] < table[None, :, :]).sum(1)
    tied = (table[:, None, :] == table[None, :, :]).sum(1)
    doubled: NDArray[np.int64] = 2 * better + tied + 1
    return doubled


def _chi2(doubled: NDArray[np.int64]) -> tuple[float, bool]:
    """Friedman's statistic corrected for ties, and whether it is as large as can be."""
    k, n = doubled.shape
    gaps = doubled.sum(1) - n * (k + 1)
    between, within = int(gaps @ gaps), int(((doubled - (k + 1)) ** 2).sum())
    if within == 0:
        return 0.0, False
    # k - 1 times the share of the variance that the models explain, times the data sets
    return (k - 1) * between / within, between == n * within


def _log_orders(column: NDArray[np.int64]) -> float:
    """Log of the number of orders that ranks with these ties could have had."""
    _, sizes = np.unique(column, return_counts=True)
    return math.lgamma(len(column) + 1) - sum(math.lgamma(size + 1) for size in sizes.tolist())


# -------------------------------------------------------------------- pairs and groups


def _pair(
    table: NDArray[np.float64],
    ranks: NDArray[np.float64],
    i: int,
    j: int,
    spread: float,
    names: tuple[str, ...],
    posthoc: str,
    details: dict[str, Any],
    level: float,
) -> Comparison:
    n, gap = table.shape[1], float(ranks[i] - ranks[j])
    z = gap / spread
    log_p = log_two_sided_normal(z)
    half = details.get("critical_difference", _z(level) * spread)
    result = Comparison(
        names=(names[i], names[j]),
        estimates=(float(ranks[i]), float(ranks[j])),
        difference=Interval(gap, gap - half, gap + half, float(level), posthoc, n, unit="data sets"),
        log_p=log_p,
        statistic=z,
        df=(),
        method="mean ranks",
        n=n,
        unit="data sets",
        measure="mean rank",
    )
    if posthoc == "nemenyi":
        return replace(
            result, method="Nemenyi", log_p_adjusted=range_tail(abs(z) * math.sqrt(2), len(names)) if gap else 0.0
        )
    if posthoc == "wilcoxon":
        statistic, log_p = wilcoxon(table[i] - table[j])
        return replace(result, method="Wilcoxon signed-rank", statistic=statistic, log_p=log_p)
    return result


def _groups(
    names: tuple[str, ...], ranks: NDArray[np.float64], pairs: Iterable[Comparison], level: float
) -> list[list[str]]:
    """Longest runs, in the order of ranks, of models of which no two differ."""
    differ = {frozenset(pair.names) for pair in pairs if (pair.log_p_adjusted or 0.0) < math.log(1 - level)}
    order = [names[i] for i in np.argsort(ranks, kind="stable")]
    found: list[list[str]] = []
    reached = 0
    for start in range(len(order)):
        stop = start + 1
        while stop < len(order) and all(frozenset((name, order[stop])) not in differ for name in order[start:stop]):
            stop += 1
        if stop > reached:
            found.append(order[start:stop])
            reached = stop
    return found


def _table(values: Any, names: Any) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    if hasattr(values, "keys"):  # a dict, or a data frame with a column a model
        if names is not None:
            raise TypeError("names must not be given when values is a mapping: its keys are the names")
        names = list(values.keys())
        values = [values[name] for name in names]
        for name, row in zip(names, values, strict=True):
            if len(row) != len(values[0]):
                raise ValueError(
                    f"values must hold every model on every data set; got {len(values[0])} for {names[0]!r} and "
                    f"{len(row)} for {name!r}"
                )
    table = read_numbers(values, "values", (2,))
    if min(table.shape) < 2:
        raise ValueError(
            f"values must have a row a model and a column a data set, two of each or more; got {table.shape}"
        )
    return table, read_names(names, len(table))
