"""AUCs of several models compared, on the same items or on different ones."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast._core import binary_labels, delong, placements
from milfast.uncertainty.comparison import Comparison, adjust, read_names
from milfast.uncertainty.intervals import Interval, _require_level, _short_class, _z
from milfast.uncertainty.margins import TOST_NOTE, read_margins, require_tost_level, tost_title
from milfast.uncertainty.resampling import cluster_codes
from milfast.uncertainty.tails import (
    log_two_sided_normal,
    log_two_sided_t,
    log_upper_chi2,
    log_upper_f,
    log_upper_normal,
    log_upper_t,
    t_quantile,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.bags import Bags

_EQUAL = "both AUCs are equal without any spread"
_CERTAIN = "an AUC of 0 or 1 has no DeLong variance: the test is surer than the data"


def compare_auc(
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    labels: ArrayLike,
    labels_b: ArrayLike | None = None,
    *,
    clusters: ArrayLike | Bags | None = None,
    level: float = 0.95,
    names: Sequence[str] | None = None,
    pos_label: Any = None,
) -> Comparison:
    """Compare the AUCs of two models (DeLong, DeLong and Clarke-Pearson 1988, Biometrics 44).

    z = (AUC_a - AUC_b) / se, where on the same items the standard error takes account of the correlation of the models:
    it comes from the differences of their placements, in O(n log n), and is exactly 0 when no item tells them apart.
    More than two models: `compare_aucs`.

    Parameters
    ----------
    scores_a, scores_b : array_like, shape (n,)
        Scores of each model; higher means more positive. Only their order counts.
    labels : array_like, shape (n,)
        {0, 1}, bool or {-1, 1}; anything else two-valued needs `pos_label`. Those of the items of `scores_a`, and of
        `scores_b` too unless `labels_b` is given.
    labels_b : array_like, optional
        Labels of `scores_b` when these are other, independent items: the comparison is unpaired then, the variances add
        up, and the lengths may differ. A model tried twice on the same items is paired; ignoring that loses power.
    clusters : array_like, shape (n,), or Bags, optional
        What each item belongs to, such as its patient, when items of one are alike; with `Bags` items are instances.
        The variance is that between clusters (Obuchowski 1997, Biometrics 53), and Student's law takes the place of the
        normal one, on one degree of freedom less than there are clusters with a positive, or with a negative, whichever
        are fewer. Not with `labels_b`.
    level : float
        Nominal coverage of the interval of the difference.
    names : sequence of str, optional
        The models; A and B otherwise.
    pos_label : scalar, optional
        The label of the positive class.

    Returns
    -------
    Comparison
        With no variance and no difference the p-value is 1. With no variance but a difference, or a class of fewer than
        two members, the test is undefined and everything but the AUCs is NaN.

    Raises
    ------
    ValueError
        When lengths differ, a score is NaN, labels are not two-valued, `clusters` do not fit, or `level` is not
        strictly between 0 and 1.
    TypeError
        When scores or labels cannot be read.

    Warns
    -----
    RuntimeWarning
        When the test is undefined, with the reason.

    Examples
    --------
    >>> from milfast.uncertainty import compare_auc
    >>> labels = [0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1]
    >>> ours = [0.6, 0.4, 1.1, 0.0, 0.5, 0.1, 0.6, -0.5, 1.4, 0.0, -0.3, 0.0]
    >>> theirs = [0.2, 0.2, 0.7, 1.0, 1.1, -1.8, -0.9, -0.4, 0.8, 0.2, 0.0, 2.0]
    >>> compare_auc(ours, theirs, labels, names=("ours", "theirs"))
    Comparison(ours - theirs: 0.30 [-0.23, 0.83], p = 0.26, method='DeLong', n=12)
    """
    _require_level(level)
    read = read_names(names, 2)
    if labels_b is not None:
        if clusters is not None:
            raise ValueError("clusters must not be given with labels_b: they belong to items that both models share")
        return _unpaired((scores_a, labels), (scores_b, labels_b), level, read, pos_label)
    models = [_Placed(scores_a, labels, pos_label, "scores_a"), _Placed(scores_b, labels, pos_label, "scores_b")]
    result = _pair(models[0], models[1], level, read, _Clusters.read(clusters, labels, pos_label))
    if math.isnan(result.log_p):
        warnings.warn(result.notes[0], RuntimeWarning, stacklevel=2)
    return result


def compare_aucs(
    scores: Mapping[str, ArrayLike] | ArrayLike,
    labels: ArrayLike,
    *,
    clusters: ArrayLike | Bags | None = None,
    level: float = 0.95,
    names: Sequence[str] | None = None,
    pos_label: Any = None,
) -> Comparison:
    """Compare the AUCs of several models on the same items by one test, and pair by pair.

    With L the contrasts of each model with the last and S DeLong's covariances of the AUCs A, (L A)' (L S L')^- (L A)
    is chi-squared (DeLong, DeLong and Clarke-Pearson 1988, Biometrics 44), with the rank of L S L' as degrees of
    freedom: models with the same ranking count once.

    Parameters
    ----------
    scores : mapping of str to array_like, data frame, or array_like, shape (k, n)
        Scores of each model; higher means more positive. The keys of a mapping, or columns of a data frame, are the
        names.
    labels : array_like, shape (n,)
        {0, 1}, bool or {-1, 1}; anything else two-valued needs `pos_label`.
    clusters : array_like, shape (n,), or Bags, optional
        As for `compare_auc`. With K such clusters and rank r, (K - r) / (r (K - 1)) times the statistic is an F
        statistic with (r, K - r) degrees of freedom.
    level : float
        Nominal coverage of the intervals of the pairs.
    names : sequence of str, optional
        The models, when `scores` is an array; A, B, C, ... otherwise.
    pos_label : scalar, optional
        The label of the positive class.

    Returns
    -------
    Comparison
        Its `pairs` are DeLong tests with Holm's correction for their number.

    Raises
    ------
    ValueError
        When there are fewer than two models, or as `compare_auc`.
    TypeError
        When scores or labels cannot be read, or `names` are given beside a mapping.

    Warns
    -----
    RuntimeWarning
        When the test is undefined, with the reason.

    Examples
    --------
    >>> from milfast.uncertainty import compare_aucs
    >>> labels = [0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1]
    >>> scores = {
    ...     "large": [0.6, 0.4, 1.1, 0.0, 0.5, 0.1, 0.6, -0.5, 1.4, 0.0, -0.3, 0.0],
    ...     "small": [0.2, 0.2, 0.7, 1.0, 1.1, -1.8, -0.9, -0.4, 0.8, 0.2, 0.0, 2.0],
    ...     "tiny": [-1.1, -0.4, 2.1, 0.6, 0.7, -0.4, -1.5, 0.2, 0.2, -1.2, -0.7, 0.0],
    ... }
    >>> compare_aucs(scores, labels)
    Comparison(large 0.786, small 0.486, tiny 0.543, p = 0.52, method='DeLong chi-squared', n=12)
    """
    _require_level(level)
    table: Any = scores
    rows: list[Any]
    if hasattr(table, "keys"):  # a dict, or a data frame with a column a model
        if names is not None:
            raise TypeError("names must not be given when scores is a mapping: its keys are the names")
        names = list(table.keys())
        rows = [table[name] for name in names]
        labelled = [f"scores[{name!r}]" for name in names]
    else:
        rows = list(table if isinstance(table, (list, tuple)) else np.asarray(table))
        labelled = [f"scores[{i}]" for i in range(len(rows))]
    if len(rows) < 2:
        raise ValueError(f"scores must hold two models or more; got {len(rows)}")
    read = read_names(names, len(rows))
    models = [_Placed(row, labels, pos_label, name) for row, name in zip(rows, labelled, strict=True)]
    clustered = _Clusters.read(clusters, labels, pos_label)
    statistic, rank, why = _chi2(models, clustered)
    df: tuple[float, ...] = (float(rank),) if rank else ()
    pairs = adjust(
        _pair(models[i], models[j], level, (read[i], read[j]), clustered) for i, j in combinations(range(len(rows)), 2)
    )
    if math.isnan(statistic):
        warnings.warn(why, RuntimeWarning, stacklevel=2)
        log_p = math.nan
    elif clustered is None:
        log_p = log_upper_chi2(statistic, rank) if rank else 0.0
    else:
        df = (float(rank), float(clustered.fewer - rank)) if rank else ()
        statistic *= (clustered.fewer - rank) / (rank * (clustered.fewer - 1)) if rank else 1
        log_p = log_upper_f(statistic, *df) if df else 0.0
    title = "DeLong chi-squared" if clustered is None else "DeLong F of clusters"
    notes = [why] if why else []
    if any(m.auc in (0.0, 1.0) for m in models):
        notes.append(_CERTAIN)
    return Comparison(
        names=read,
        estimates=tuple(m.auc for m in models),
        difference=pairs[0].difference if len(rows) == 2 else None,
        log_p=log_p,
        statistic=statistic,
        df=df,
        method=title if not math.isnan(statistic) else f"undefined ({why})",
        n=models[0].n_pos + models[0].n_neg,
        measure="AUC",
        notes=tuple(notes),
        details=_sizes(models[0].n_pos, models[0].n_neg, clustered),
        pairs=pairs if len(rows) > 2 else (),
    )


def equivalence_auc(
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    labels: ArrayLike,
    margin: float | tuple[float, float],
    *,
    clusters: ArrayLike | Bags | None = None,
    level: float = 0.95,
    names: Sequence[str] | None = None,
    pos_label: Any = None,
) -> Comparison:
    """Test whether two models have equal AUCs up to a margin, on the same items.

    Two one-sided tests (Schuirmann 1987, J. Pharmacokinet. Biopharm. 15) with DeLong's standard error. The p-value is
    the larger of the two, and small when the AUCs *are* equivalent. A large p-value of `compare_auc` never shows that.

    Parameters
    ----------
    scores_a, scores_b : array_like, shape (n,)
        As for `compare_auc`.
    labels : array_like, shape (n,)
        As for `compare_auc`.
    margin : float or (float, float)
        The largest difference that would not matter, chosen before looking; a pair is (lowest, highest). With one side
        infinite this is a test of non-inferiority: ``(-0.05, math.inf)`` asks whether the first is less than 0.05
        worse.
    clusters : array_like, shape (n,), or Bags, optional
        As for `compare_auc`.
    level : float
        One minus the error rate of the test. The interval of the difference has the level 2 `level` - 1, 90 % for
        0.95: it lies within the margins exactly when the p-value is below 1 - `level`.
    names : sequence of str, optional
        The models; A and B otherwise.
    pos_label : scalar, optional
        The label of the positive class.

    Returns
    -------
    Comparison
        Its statistic is the z (or t, with clusters) of the larger p-value. Models of which no item tells the AUCs apart
        have no standard error: the test is undefined, although they rank alike.

    Raises
    ------
    ValueError
        When a margin does not lie on its side of 0 or is beyond 1, both are infinite, `level` is not between 0.5 and
        1, or as `compare_auc`.
    TypeError
        When an argument cannot be read.

    Warns
    -----
    RuntimeWarning
        When the test is undefined, with the reason.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.uncertainty import equivalence_auc
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(400) % 2
    >>> signal = rng.normal(size=400) + 1.5 * labels
    >>> equivalence_auc(signal, signal + 0.2 * rng.normal(size=400), labels, 0.03)
    Comparison(A - B: 0.008 [0.001, 0.014], p = 9.1e-09, method='equivalence within -0.03 to 0.03', n=400)
    """
    require_tost_level(level)
    low, high = read_margins(margin)
    plain = compare_auc(
        scores_a, scores_b, labels, clusters=clusters, level=2 * level - 1, names=names, pos_label=pos_label
    )
    gap, se = plain.estimates[0] - plain.estimates[1], plain.details.get("se")
    notes = [TOST_NOTE, *plain.notes]
    if se is None:
        statistic = log_p = math.nan
        if not math.isnan(plain.log_p):
            warnings.warn(f"{plain.notes[0]}: the test of equivalence is undefined", RuntimeWarning, stacklevel=2)
    else:
        statistic = min(gap - low, high - gap) / se
        log_p = log_upper_t(statistic, plain.df[0]) if plain.df else log_upper_normal(statistic)
    return replace(
        plain,
        log_p=log_p,
        statistic=statistic,
        method=tost_title(low, high),
        notes=tuple(notes),
        details=plain.details | {"margin": [side if math.isfinite(side) else None for side in (low, high)]},
    )


class _Placed:
    """A model's placements as whole numbers: twice how many of the other class each item beats, half for a tie."""

    def __init__(self, scores: ArrayLike, labels: ArrayLike, pos_label: Any, name: str) -> None:
        positive = binary_labels(labels, pos_label=pos_label)
        self.n_pos = int(np.count_nonzero(positive))
        self.n_neg = len(positive) - self.n_pos
        try:
            of_pos, of_neg = placements(scores, labels, pos_label=pos_label)
        except (ValueError, TypeError) as error:
            # the kernel knows one array of scores only
            raise type(error)(str(error).replace("scores", name)) from None
        self.of_pos = _whole(of_pos, self.n_neg)
        self.of_neg = _whole(of_neg, self.n_pos)
        pairs = 2 * self.n_pos * self.n_neg
        self.auc = int(self.of_pos.sum()) / pairs if pairs else math.nan

    @property
    def short(self) -> str:
        """What is missing for a variance; empty when nothing is."""
        return _short_class(self.n_pos, self.n_neg) if min(self.n_pos, self.n_neg) < 2 else ""


def _whole(placed: NDArray[np.float64], n_other: int) -> NDArray[np.int64]:
    if n_other == 0:
        return np.zeros(len(placed), dtype=np.int64)
    return np.rint(placed * (2 * n_other)).astype(np.int64)


@dataclass(frozen=True)
class _Clusters:
    """Which cluster each positive and each negative belongs to."""

    n: int
    of_pos: NDArray[np.intp]
    of_neg: NDArray[np.intp]

    @classmethod
    def read(cls, clusters: Any, labels: Any, pos_label: Any) -> _Clusters | None:
        """The clusters that were given, if any."""
        if clusters is None:
            return None
        positive = binary_labels(labels, pos_label=pos_label)
        code = cluster_codes(clusters, len(positive))
        assert code is not None
        return cls(int(code.max()) + 1, code[positive], code[~positive])

    @property
    def holding(self) -> tuple[int, int]:
        """How many clusters hold a positive, and how many a negative."""
        return len(np.unique(self.of_pos)), len(np.unique(self.of_neg))

    @property
    def fewer(self) -> int:
        """The fewer of these: that many say how much the rarer class varies."""
        return min(self.holding)

    @property
    def short(self) -> str:
        """Which class lies within one cluster; empty when neither does."""
        for count, name in zip(self.holding, ("positives", "negatives"), strict=True):
            if count == 1:
                return f"all {name} in one cluster"
        return ""

    def sums(self, of_pos: NDArray[np.int64], of_neg: NDArray[np.int64]) -> tuple[NDArray[np.float64], ...]:
        """Sums over clusters of what each item adds to a difference, less its mean, for each class.

        In whole numbers up to the last division, so that sums that cancel are exactly 0.
        """
        found = []
        for values, code in ((of_pos, self.of_pos), (of_neg, self.of_neg)):
            sums = np.zeros(self.n, dtype=np.int64)
            np.add.at(sums, code, values)
            sizes = np.bincount(code, minlength=self.n)
            found.append((len(values) * sums - int(values.sum()) * sizes) / len(values))
        return tuple(found)

    def covariance(self, contrasts: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> NDArray[np.float64]:
        """Obuchowski's covariances of differences of AUCs, of which each item's part is a whole number.

        The parts are in units of 1 / (2 n_neg) for positives and 1 / (2 n_pos) for negatives.
        """
        m, n = len(self.of_pos), len(self.of_neg)
        sums = [self.sums(*contrast) for contrast in contrasts]
        # both in units of 1 / (2 m n)
        pos, neg = (np.array([s[side] for s in sums]) for side in (0, 1))
        with_pos, with_neg = self.holding
        cross = pos @ neg.T
        total = (
            pos @ pos.T * with_pos / (with_pos - 1)
            + neg @ neg.T * with_neg / (with_neg - 1)
            + (cross + cross.T) * self.n / (self.n - 1)
        )
        covariance: NDArray[np.float64] = total / (2 * m * n) ** 2
        return covariance


def _sizes(n_pos: int, n_neg: int, clusters: _Clusters | None) -> dict[str, Any]:
    found: dict[str, Any] = {"n_pos": n_pos, "n_neg": n_neg}
    return found if clusters is None else found | {"n_clusters": clusters.n}


def _contrast(a: _Placed, b: _Placed) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Differences of the placements of two models, less their first one.

    The placements are whole numbers, so that a constant difference gives exact zeros: its variance must not be what
    rounding left.
    """
    of_pos, of_neg = a.of_pos - b.of_pos, a.of_neg - b.of_neg
    return (of_pos - of_pos[0]) / (2 * a.n_neg), (of_neg - of_neg[0]) / (2 * a.n_pos)


def _gap(a: _Placed, b: _Placed) -> float:
    """Difference of two AUCs: exactly 0 when they win equally often."""
    return int((a.of_pos - b.of_pos).sum()) / (2 * a.n_pos * a.n_neg)


def _pair(a: _Placed, b: _Placed, level: float, names: tuple[str, ...], clusters: _Clusters | None) -> Comparison:
    short = a.short or (clusters.short if clusters else "")
    if short:
        gap, variance, why = a.auc - b.auc, math.nan, f"labels hold {short}: the spread of the AUCs is undefined"
    elif clusters is not None:
        covariance = clusters.covariance([(a.of_pos - b.of_pos, a.of_neg - b.of_neg)])
        # the cross term may take more than there is
        gap, variance, why = _gap(a, b), max(0.0, float(covariance[0, 0])), ""
    else:
        of_pos, of_neg = _contrast(a, b)
        gap, variance, why = _gap(a, b), float(of_pos.var(ddof=1) / a.n_pos + of_neg.var(ddof=1) / a.n_neg), ""
    return _tested((a.auc, b.auc), gap, variance, level, names, (a.n_pos, a.n_neg), why, clusters, paired=True)


def _unpaired(
    first: tuple[Any, Any], second: tuple[Any, Any], level: float, names: tuple[str, ...], pos_label: Any
) -> Comparison:
    found = []
    for (scores, labels), side in zip((first, second), ("a", "b"), strict=True):
        try:
            found.append(delong(scores, labels, pos_label=pos_label))
        except (ValueError, TypeError) as error:
            at = "labels" if side == "a" else "labels_b"
            raise type(error)(str(error).replace("labels", at).replace("scores", f"scores_{side}")) from None
    (auc_a, var_a, *size_a), (auc_b, var_b, *size_b) = found
    short = [
        f"{name} {_short_class(*size)}"
        for name, size in (("labels hold", size_a), ("labels_b hold", size_b))
        if min(size) < 2
    ]
    why = f"{' and '.join(short)}: the spread of the AUCs is undefined" if short else ""
    size = (size_a[0] + size_b[0], size_a[1] + size_b[1])
    result = _tested((auc_a, auc_b), auc_a - auc_b, var_a + var_b, level, names, size, why, None, paired=False)
    if math.isnan(result.log_p):
        warnings.warn(result.notes[0], RuntimeWarning, stacklevel=3)
    return result


def _tested(
    aucs: tuple[float, float],
    gap: float,
    variance: float,
    level: float,
    names: tuple[str, ...],
    size: tuple[int, int],
    why: str,
    clusters: _Clusters | None,
    *,
    paired: bool,
) -> Comparison:
    kind = "DeLong" if paired else "unpaired DeLong"
    df: tuple[float, ...] = ()
    if clusters is not None:
        kind, df = "DeLong of clusters", (float(clusters.fewer - 1),)
    notes: list[str] = []
    low = high = z = math.nan
    if why:
        log_p, method = math.nan, "undefined"
    elif variance > 0:
        z = gap / math.sqrt(variance)
        half = (t_quantile(df[0], level) if df else _z(level)) * math.sqrt(variance)
        low, high = max(-1.0, gap - half), min(1.0, gap + half)
        log_p, method = log_two_sided_t(z, df[0]) if df else log_two_sided_normal(z), kind
    elif gap == 0:
        low = high = 0.0
        log_p, method = 0.0, f"{kind} (variance 0)"
        notes.append(_EQUAL)
    else:
        why = f"the AUCs differ ({aucs[0]:.6g} and {aucs[1]:.6g}) but no item shows any spread: the test is undefined"
        log_p, method = math.nan, "undefined"
    if why:
        notes.append(why)
    elif any(auc in (0.0, 1.0) for auc in aucs):
        notes.append(_CERTAIN)
    if clusters is not None and clusters.fewer < 20:
        notes.append(f"{clusters.fewer} clusters with a class are few: test and interval trust their variance")
    n_pos, n_neg = size
    n_clusters = None if clusters is None else clusters.n
    return Comparison(
        names=names,
        estimates=aucs,
        difference=Interval(
            gap, low, high, float(level), method, n_pos + n_neg, n_pos=n_pos, n_neg=n_neg, n_clusters=n_clusters
        ),
        log_p=log_p,
        statistic=z,
        df=df,
        method=method,
        n=n_pos + n_neg,
        measure="AUC",
        paired=paired,
        notes=tuple(notes),
        details=_sizes(n_pos, n_neg, clusters) | ({"se": math.sqrt(variance)} if variance > 0 else {}),
    )


def _chi2(models: list[_Placed], clusters: _Clusters | None) -> tuple[float, int, str]:
    """The statistic, its degrees of freedom, and why it is undefined or what it left out."""
    last = models[-1]
    if short := last.short or (clusters.short if clusters else ""):
        return math.nan, 0, f"labels hold {short}: the spread of the AUCs is undefined"
    if clusters is not None and clusters.fewer < len(models):
        return math.nan, 0, f"{clusters.fewer} clusters with a class are too few to compare {len(models)} models"
    if clusters is None:
        contrasts = [_contrast(m, last) for m in models[:-1]]
        of_pos, of_neg = (np.array([c[side] for c in contrasts]) for side in (0, 1))
        covariance = np.atleast_2d(np.cov(of_pos) / last.n_pos + np.cov(of_neg) / last.n_neg)
    else:
        covariance = clusters.covariance([(m.of_pos - last.of_pos, m.of_neg - last.of_neg) for m in models[:-1]])
    gaps = np.array([_gap(m, last) for m in models[:-1]])
    spread = np.sqrt(np.maximum(np.diag(covariance), 0))
    if np.any((spread == 0) & (gaps != 0)):
        return math.nan, 0, "AUCs differ but no item shows any spread: the test is undefined"
    moves = spread > 0
    if not moves.any():
        return 0.0, 0, "all AUCs are equal without any spread"
    # as correlations, so that what counts as zero does not depend on the scale of any contrast
    values, vectors = np.linalg.eigh(covariance[np.ix_(moves, moves)] / np.outer(spread[moves], spread[moves]))
    scaled = vectors.T @ (gaps[moves] / spread[moves])
    kept = values > 1e-9 * values[-1]
    if np.any(np.abs(scaled[~kept]) > 1e-6):
        return math.nan, 0, "a combination of AUCs differs but no item shows any spread of it: the test is undefined"
    rank = int(kept.sum())
    same = "" if rank == len(gaps) else f"{len(gaps) - rank} of {len(models)} models say nothing that others do not"
    return float(np.sum(scaled[kept] ** 2 / values[kept])), rank, same
