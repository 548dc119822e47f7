"""Classifiers compared by what each gets right on the same items: McNemar, Cochran's Q, equivalence."""

from __future__ import annotations

import math
import operator
import warnings
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.uncertainty.comparison import Comparison, adjust, read_names
from milfast.uncertainty.intervals import Interval, _choose, _require_level, _wilson, _z
from milfast.uncertainty.margins import TOST_NOTE, read_margins, require_tost_level, tost_title
from milfast.uncertainty.resampling import cluster_codes
from milfast.uncertainty.search import crossing
from milfast.uncertainty.tails import (
    log_binomial_tail,
    log_sign_flips,
    log_upper_chi2,
    log_upper_normal,
    log_upper_t,
    t_quantile,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.bags import Bags

_MCNEMAR = {
    "mid-p": "mid-p McNemar",
    "exact": "exact McNemar",
    "chi2": "McNemar chi-squared",
    "chi2-corrected": "McNemar chi-squared, continuity corrected",
}


_SAME = "the two are right about the same items: nothing tells them apart"


def mcnemar(
    correct_a: ArrayLike,
    correct_b: ArrayLike,
    *,
    method: str = "mid-p",
    interval: str | None = None,
    clusters: ArrayLike | Bags | None = None,
    level: float = 0.95,
    names: Sequence[str] | None = None,
) -> Comparison:
    """Compare the accuracies of two classifiers on the same items (McNemar 1947, Psychometrika 12).

    Only items that one gets right and the other wrong speak: b for the first, c for the second. When the classifiers
    are equally accurate, b is the number of heads among b + c tosses of a fair coin. Sensitivities are compared by the
    positive items alone, and specificities by the negative ones.

    Parameters
    ----------
    correct_a, correct_b : array_like of bool or {0, 1}, shape (n,)
        Whether each classifier is right about each item: ``predictions == labels``.
    method : {"mid-p", "exact", "chi2", "chi2-corrected"}
        - ``"mid-p"``: the exact p-value less the probability of the counts themselves. Close to the nominal level where
          the exact test is far below it, and rarely and barely above (Fagerland, Lydersen and Laake 2013, BMC Med. Res.
          Methodol. 13).
        - ``"exact"``: twice the smaller binomial tail. Never rejects too often.
        - ``"chi2"``: (b - c)^2 / (b + c). Rejects a little too often when b + c is small.
        - ``"chi2-corrected"``: (abs(b - c) - 1)^2 / (b + c). As cautious as the exact test, but below
          1 where b = c, for the correction overshoots there.
    interval : {"score", "newcombe", "bonett-price", "wald"}
        How the difference of the accuracies is bounded; ``"score"`` unless there are clusters:

        - ``"score"``: all differences that the score test does not reject (Tango 1998, Stat. Med. 17). It holds 0
          exactly when the ``"chi2"`` p-value is above 1 - level.
        - ``"newcombe"``: Wilson intervals of both accuracies joined with their correlation (Newcombe 1998, Stat. Med.
          17, method 10).
        - ``"bonett-price"``: the Wald interval after adding one item to each of b and c (Bonett and Price 2012, J.
          Educ. Behav. Stat. 37).
        - ``"wald"``: difference +- z sqrt(b + c - (b - c)^2 / n) / n. Too narrow when b + c is small.
    clusters : array_like, shape (n,), or Bags, optional
        What each item belongs to, such as its patient, when items of one are alike; with `Bags` items are instances.
        With d_k = b_k - c_k in cluster k, ``"chi2"`` is (sum d_k)^2 / sum d_k^2 (Yang, Sun and Hardin 2010, Biom. J.
        52), and ``"mid-p"`` and ``"exact"`` give each d_k the sign of a fair coin instead of each item; with one item a
        cluster all three are McNemar's. The interval is Student's, from the variance between clusters, and `interval`
        must not be given. Not with ``"chi2-corrected"``.
    level : float
        Nominal coverage of the interval.
    names : sequence of str, optional
        The classifiers; A and B otherwise.

    Returns
    -------
    Comparison
        Its statistic is b for ``"mid-p"`` and ``"exact"``, and sum d_k with clusters. With b + c = 0 the p-value is 1.

    Raises
    ------
    ValueError
        When the arrays are empty, differ in length, or hold something else than 0 and 1, when `method` or `interval` is
        unknown or does not go with `clusters`, `clusters` do not fit, or `level` is not strictly between 0 and 1.
    TypeError
        When the arrays cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.uncertainty import mcnemar
    >>> labels = np.array([0, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1, 0])
    >>> ours = labels.copy()
    >>> theirs = np.where(np.arange(12) < 5, 1 - labels, labels)
    >>> result = mcnemar(ours == labels, theirs == labels, names=("ours", "theirs"))
    >>> result
    Comparison(ours - theirs: 0.42 [0.07, 0.68], p = 0.031, method='mid-p McNemar', n=12)
    >>> result.details
    {'both': 7, 'first_only': 5, 'second_only': 0, 'neither': 0}
    """
    first, second = _correct(correct_a, "correct_a"), _correct(correct_b, "correct_b")
    if len(first) != len(second):
        raise ValueError(
            f"correct_a and correct_b must tell about the same items; got {len(first)} and {len(second)} entries"
        )
    if clusters is not None:
        return _clustered(first, second, clusters, method, interval, level, names)
    both = int(np.count_nonzero(first & second))
    b, c = int(np.count_nonzero(first)) - both, int(np.count_nonzero(second)) - both
    return mcnemar_from_counts(
        both, b, c, len(first) - both - b - c, method=method, interval=interval or "score", level=level, names=names
    )


def mcnemar_from_counts(
    both: int,
    first_only: int,
    second_only: int,
    neither: int,
    *,
    method: str = "mid-p",
    interval: str = "score",
    level: float = 0.95,
    names: Sequence[str] | None = None,
) -> Comparison:
    """McNemar's test of a two by two table, such as a published one; see `mcnemar`.

    Parameters
    ----------
    both, first_only, second_only, neither : int
        How many items both classifiers get right, only the first, only the second, and none.
    method : {"mid-p", "exact", "chi2", "chi2-corrected"}
        See `mcnemar`.
    interval : {"score", "newcombe", "bonett-price", "wald"}
        See `mcnemar`.
    level : float
        Nominal coverage of the interval.
    names : sequence of str, optional
        The classifiers; A and B otherwise.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        When a count is negative or all are 0, `method` or `interval` is unknown, or `level` is not strictly between 0
        and 1.
    TypeError
        When a count is not an integer.

    Examples
    --------
    >>> from milfast.uncertainty import mcnemar_from_counts
    >>> mcnemar_from_counts(both=1, first_only=1, second_only=7, neither=12, interval="newcombe")
    Comparison(A - B: -0.29 [-0.51, -0.03], p = 0.039, method='mid-p McNemar', n=21)
    """
    counts = {
        name: _whole(value, name)
        for name, value in (
            ("both", both),
            ("first_only", first_only),
            ("second_only", second_only),
            ("neither", neither),
        )
    }
    _require_level(level)
    title = _choose(method, _MCNEMAR)
    n, b, c = sum(counts.values()), counts["first_only"], counts["second_only"]
    if n == 0:
        raise ValueError(
            "the table is empty: at least one of both, first_only, second_only and neither must be positive"
        )
    if interval not in PAIRED_RULES:
        raise ValueError(f"interval must be one of {', '.join(PAIRED_RULES)}; got {interval!r}")
    low, high = PAIRED_RULES[interval](counts["both"], b, c, counts["neither"], level)
    df: tuple[float, ...] = ()
    if method in ("mid-p", "exact"):
        statistic, log_p = float(b), log_binomial_p(b, c, mid=method == "mid-p")
    else:
        statistic, df = _chi2(b, c, corrected=method == "chi2-corrected"), (1.0,)
        log_p = log_upper_chi2(statistic, 1)
    notes = () if b + c else (_SAME,)
    return Comparison(
        names=read_names(names, 2),
        estimates=((counts["both"] + b) / n, (counts["both"] + c) / n),
        difference=Interval((b - c) / n, low, high, float(level), interval, n),
        log_p=log_p,
        statistic=statistic,
        df=df,
        method=title,
        n=n,
        notes=notes,
        details=counts,
    )


def cochran_q(correct: ArrayLike, *, level: float = 0.95, names: Sequence[str] | None = None) -> Comparison:
    """Compare the accuracies of several classifiers on the same items (Cochran 1950, Biometrika 37).

    With k classifiers, G_j items that classifier j gets right and L_i classifiers that are right about item i,
    Q = (k - 1) (k sum G_j^2 - (sum G_j)^2) / (k sum L_i - sum L_i^2), chi-squared with k - 1 degrees of freedom.

    Parameters
    ----------
    correct : array_like of bool or {0, 1}, shape (k, n)
        Whether each classifier, a row, is right about each item.
    level : float
        Nominal coverage of the intervals of the pairs.
    names : sequence of str, optional
        The classifiers; A, B, C, ... otherwise.

    Returns
    -------
    Comparison
        Its `pairs` are mid-p McNemar tests with Holm's correction for their number. For two classifiers Q is McNemar's
        chi-squared. When no item tells the classifiers apart the p-value is 1.

    Raises
    ------
    ValueError
        When `correct` is not two-dimensional with two rows or more, is empty, or holds something else than 0 and 1.
    TypeError
        When `correct` cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.uncertainty import cochran_q
    >>> correct = np.ones((3, 20), dtype=bool)
    >>> correct[1, :3] = correct[2, 2:10] = False
    >>> result = cochran_q(correct)
    >>> result
    Comparison(A 1.000, B 0.850, C 0.600, p = 0.0074, method="Cochran's Q", n=20)
    >>> [(pair.names, round(pair.p_adjusted, 3)) for pair in result.pairs]
    [(('A', 'B'), 0.219), (('A', 'C'), 0.012), (('B', 'C'), 0.219)]
    """
    _require_level(level)
    right = _correct_table(correct)
    k, n = right.shape
    read = read_names(names, k)
    of_model, of_item = right.sum(1, dtype=np.int64).tolist(), right.sum(0, dtype=np.int64)
    total = sum(of_model)
    # in Python's integers: the squares may pass 2^63
    below = k * total - int(np.dot(of_item, of_item))
    above = (k - 1) * (k * sum(g * g for g in of_model) - total**2)
    statistic = above / below if below else 0.0
    pairs = adjust(
        mcnemar(right[i], right[j], level=level, names=(read[i], read[j])) for i, j in combinations(range(k), 2)
    )
    difference = pairs[0].difference if k == 2 else None
    return Comparison(
        names=read,
        estimates=tuple(g / n for g in of_model),
        difference=difference,
        log_p=log_upper_chi2(statistic, k - 1),
        statistic=statistic,
        df=(float(k - 1),),
        method="Cochran's Q",
        n=n,
        notes=() if below else ("all are right about the same items: nothing tells them apart",),
        pairs=pairs if k > 2 else (),
    )


def equivalence(
    correct_a: ArrayLike,
    correct_b: ArrayLike,
    margin: float | tuple[float, float],
    *,
    clusters: ArrayLike | Bags | None = None,
    level: float = 0.95,
    names: Sequence[str] | None = None,
) -> Comparison:
    """Test whether two classifiers are equally accurate up to a margin, on the same items.

    Two one-sided tests (Schuirmann 1987, J. Pharmacokinet. Biopharm. 15): that the difference of the accuracies, first
    minus second, is above the lower margin, and that it is below the upper one, each by Tango's score test for matched
    pairs (Tango 1998, Stat. Med. 17). The p-value is the larger of the two, and small when they *are* equivalent. A
    large p-value of `mcnemar` never shows that.

    Parameters
    ----------
    correct_a, correct_b : array_like of bool or {0, 1}, shape (n,)
        As for `mcnemar`.
    margin : float or (float, float)
        The largest difference that would not matter, chosen before looking; a pair is (lowest, highest). With one side
        infinite this is a test of non-inferiority: ``(-0.02, math.inf)`` asks whether the first is less than 0.02
        worse.
    clusters : array_like, shape (n,), or Bags, optional
        As for `mcnemar`; the tests are Student's then, from the variance between clusters.
    level : float
        One minus the error rate of the test. The interval of the difference has the level 2 `level` - 1, 90 % for
        0.95: it lies within the margins exactly when the p-value is below 1 - `level`.
    names : sequence of str, optional
        The classifiers; A and B otherwise.

    Returns
    -------
    Comparison
        Its statistic is the z of the larger p-value.

    Raises
    ------
    ValueError
        When a margin does not lie on its side of 0 or is beyond 1, both are infinite, `level` is not between 0.5 and
        1, or as `mcnemar`.
    TypeError
        When an argument cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.uncertainty import equivalence
    >>> ours, theirs = np.ones(500, dtype=bool), np.ones(500, dtype=bool)
    >>> ours[:40], theirs[5:43] = False, False
    >>> equivalence(ours, theirs, 0.02)
    Comparison(A - B: -0.004 [-0.015, 0.006], p = 0.015, method='equivalence within -0.02 to 0.02', n=500)
    """
    require_tost_level(level)
    low, high = read_margins(margin)
    plain = mcnemar(correct_a, correct_b, clusters=clusters, level=2 * level - 1, names=names)
    n, b, c = plain.n, plain.details["first_only"], plain.details["second_only"]
    if clusters is None:
        df: tuple[float, ...] = ()
        above = math.inf if math.isinf(low) else score_statistic(b, c, n, low)
        below = math.inf if math.isinf(high) else -score_statistic(b, c, n, high)
        statistic = min(above, below)
        log_p = log_upper_normal(statistic)
    else:
        d, sizes = _by_cluster(_correct(correct_a, "correct_a"), _correct(correct_b, "correct_b"), clusters)
        df, error = (float(len(d) - 1),), _cluster_error(d, sizes)
        # without a difference in any cluster nothing says how sure that is
        statistic = min((b - c) / n - low, high - (b - c) / n) / error if error else math.nan
        log_p = log_upper_t(statistic, df[0])
        if not error:
            warnings.warn(
                "the difference shows no spread between clusters: the test is undefined", RuntimeWarning, stacklevel=2
            )
    return Comparison(
        names=plain.names,
        estimates=plain.estimates,
        difference=plain.difference,
        log_p=log_p,
        statistic=statistic,
        df=df,
        method=tost_title(low, high),
        n=n,
        notes=(TOST_NOTE, *plain.notes),
        details=plain.details | {"margin": [side if math.isfinite(side) else None for side in (low, high)]},
    )


# -------------------------------------------------------------------- clusters

#: So many clusters that differ, and so large a sum, have the exact law of their signs.
_MOST_FLIPS, _MOST_SUMS = 1000, 200_000


def _clustered(
    first: NDArray[np.bool_],
    second: NDArray[np.bool_],
    clusters: Any,
    method: str,
    interval: str | None,
    level: float,
    names: Sequence[str] | None,
) -> Comparison:
    _require_level(level)
    title = _choose(method, _MCNEMAR)
    if method == "chi2-corrected":
        raise ValueError("method='chi2-corrected' knows no clusters: use mid-p, exact or chi2")
    if interval is not None:
        raise ValueError(
            "interval must not be given with clusters: theirs is Student's, from the variance between them"
        )
    n = len(first)
    d, sizes = _by_cluster(first, second, clusters)
    k, gap, square = len(d), int(d.sum()), int(d @ d)
    notes: list[str] = []
    df: tuple[float, ...] = ()
    moved, total = int(np.count_nonzero(d)), int(np.abs(d).sum())
    if method != "chi2" and (moved > _MOST_FLIPS or total > _MOST_SUMS):
        notes.append(f"the law of the signs of {moved} clusters is taken as normal")
        method, title = "chi2", _MCNEMAR["chi2"]
    if method == "chi2":
        statistic, df = (gap * gap / square if square else 0.0), (1.0,)
        log_p = log_upper_chi2(statistic, 1)
    else:
        statistic, log_p = float(gap), 0.0
        if gap:
            tail, point = log_sign_flips(d)
            log_p = math.log(2) + tail
            if method == "mid-p":
                log_p += math.log1p(-math.exp(point - log_p))
            log_p = min(0.0, log_p)
    if k < 20:
        notes.append(f"{k} clusters are few: the interval trusts their variance")
    both = int(np.count_nonzero(first & second))
    b, c = int(np.count_nonzero(first)) - both, int(np.count_nonzero(second)) - both
    if not b + c:
        notes.append(_SAME)
    error, bounded = _cluster_error(d, sizes), "t of clusters"
    if error:
        half = t_quantile(k - 1, level) * error
        low, high = max(-1.0, gap / n - half), min(1.0, gap / n + half)
    elif gap:
        low, high, bounded = math.nan, math.nan, "undefined (no spread between clusters)"
    else:
        # nothing seen among k clusters is not nothing
        low, high = _tango(0, 0, 0, k, level)
        bounded = "score of clusters"
    return Comparison(
        names=read_names(names, 2),
        estimates=((both + b) / n, (both + c) / n),
        difference=Interval(gap / n, low, high, float(level), bounded, n, n_clusters=k),
        log_p=log_p,
        statistic=statistic,
        df=df,
        method=f"{title} of clusters",
        n=n,
        notes=tuple(notes),
        details={"both": both, "first_only": b, "second_only": c, "neither": n - both - b - c, "n_clusters": k},
    )


def _by_cluster(
    first: NDArray[np.bool_], second: NDArray[np.bool_], clusters: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each cluster by how many items more the first is right, and how many items there are."""
    code = cluster_codes(clusters, len(first))
    assert code is not None
    sizes = np.bincount(code)
    more = np.bincount(code[first], minlength=len(sizes)) - np.bincount(code[second], minlength=len(sizes))
    return more, sizes


def _cluster_error(d: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
    """Standard error of sum d / sum sizes, a ratio of two sums over clusters."""
    k, n, gap = len(d), int(sizes.sum()), int(d.sum())
    left = (n * d - gap * sizes) / n
    return math.sqrt(k / (k - 1) * float(left @ left)) / n


# -------------------------------------------------------------------- the tests


def log_binomial_p(b: int, c: int, *, mid: bool) -> float:
    """Log of the two-sided p-value of `b` heads and `c` tails."""
    if b == c:
        return 0.0
    tail, point = log_binomial_tail(min(b, c), b + c)
    log_p = math.log(2) + tail
    if mid:
        # a point is no more than its tail, which the logarithms of astronomical counts are too coarse to tell
        log_p += math.log1p(-math.exp(min(point - log_p, -math.log(2))))
    return min(0.0, log_p)


def _chi2(b: int, c: int, *, corrected: bool) -> float:
    if b + c == 0:
        return 0.0
    gap = abs(b - c) - 1 if corrected else b - c
    return gap**2 / (b + c)


def score_statistic(b: int, c: int, n: int, delta: float) -> float:
    """Tango's score statistic against a difference of `delta`; positive when the observed one is larger."""
    # the most likely chance of "second only" when the difference is delta: the root of a quadratic
    linear = -b - c + (2 * n - b + c) * delta
    constant = -c * delta * (1 - delta)
    root = math.sqrt(max(0.0, linear * linear - 8 * n * constant))
    # the form without cancellation
    q = (root - linear) / (4 * n) if linear <= 0 else -2 * constant / (root + linear)
    variance = n * (2 * max(q, 0.0) + delta * (1 - delta))
    gap = b - c - n * delta
    if variance <= 0:
        return 0.0 if abs(gap) < 1e-9 else math.copysign(math.inf, gap)
    return gap / math.sqrt(variance)


# -------------------------------------------------------------------- intervals for a paired difference


def _tango(both: int, b: int, c: int, neither: int, level: float) -> tuple[float, float]:
    n, z = both + b + c + neither, _z(level)
    estimate = (b - c) / n
    return crossing(lambda d: score_statistic(b, c, n, d) < z, -1.0, estimate), crossing(
        lambda d: score_statistic(b, c, n, d) < -z, estimate, 1.0
    )


def _newcombe(both: int, b: int, c: int, neither: int, level: float) -> tuple[float, float]:
    n = both + b + c + neither
    p_a, p_b = (both + b) / n, (both + c) / n
    low_a, high_a = _wilson(both + b, n, level)
    low_b, high_b = _wilson(both + c, n, level)
    margins = (both + b) * (c + neither) * (both + c) * (b + neither)
    # a positive correlation is corrected for continuity, as the method has it
    cross = both * neither - b * c
    phi = (max(0.0, cross - n / 2) if cross > 0 else cross) / math.sqrt(margins) if margins else 0.0
    down, up = p_a - low_a, high_a - p_a
    down_b, up_b = p_b - low_b, high_b - p_b
    estimate = (b - c) / n
    return (
        estimate - math.sqrt(max(0.0, down**2 - 2 * phi * down * up_b + up_b**2)),
        estimate + math.sqrt(max(0.0, up**2 - 2 * phi * up * down_b + down_b**2)),
    )


def _wald(both: int, b: int, c: int, neither: int, level: float) -> tuple[float, float]:
    n = both + b + c + neither
    half = _z(level) * math.sqrt(b + c - (b - c) ** 2 / n) / n
    return max(-1.0, (b - c) / n - half), min(1.0, (b - c) / n + half)


def _bonett_price(both: int, b: int, c: int, neither: int, level: float) -> tuple[float, float]:
    n = both + b + c + neither
    p_b, p_c = (b + 1) / (n + 2), (c + 1) / (n + 2)
    half = _z(level) * math.sqrt((p_b + p_c - (p_b - p_c) ** 2) / (n + 2))
    return max(-1.0, p_b - p_c - half), min(1.0, p_b - p_c + half)


PAIRED_RULES: dict[str, Callable[[int, int, int, int, float], tuple[float, float]]] = {
    "score": _tango,
    "newcombe": _newcombe,
    "bonett-price": _bonett_price,
    "wald": _wald,
}


# -------------------------------------------------------------------- reading arguments


def _correct(values: Any, name: str) -> NDArray[np.bool_]:
    right = _bools(values, name)
    if right.ndim != 1 or len(right) == 0:
        raise ValueError(f"{name} must hold one entry an item, shape (n,) with n >= 1; got shape {right.shape}")
    return right


def _correct_table(values: Any) -> NDArray[np.bool_]:
    right = _bools(values, "correct")
    if right.ndim != 2 or right.shape[0] < 2 or right.shape[1] == 0:
        raise ValueError(f"correct must have a row a model, shape (k, n) with k >= 2 and n >= 1; got {right.shape}")
    return right


def _bools(values: Any, name: str) -> NDArray[np.bool_]:
    try:
        x = np.asarray(values)
        if x.dtype == object:
            x = x.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} cannot be read: {error}") from None
    if x.dtype == np.bool_:
        return x
    if x.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be bool or 0 and 1 (predictions == labels); got dtype {x.dtype}")
    odd = np.argwhere((x != 0) & (x != 1))
    if len(odd):
        place = ", ".join(str(i) for i in odd[0])
        raise ValueError(f"{name}[{place}] is {x[tuple(odd[0])]}: pass whether each is right, predictions == labels")
    right: NDArray[np.bool_] = x == 1
    return right


def _whole(value: Any, name: str) -> int:
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer; got {value!r}") from None
    if count < 0:
        raise ValueError(f"{name} must not be negative; got {count}")
    return count
