"""Figures in a table that cannot be true together: what an accuracy leaves open for the AUC beside it.

A threshold with true positive rate t and false positive rate f is one point of the ROC curve. The pairs of a positive
above and a negative below it are ranked rightly, and those of a positive below and a negative above it wrongly; nothing
is known of the others. With u = t and v = 1 - f::

    u v  <=  AUC  <=  1 - (1 - u)(1 - v)

An accuracy fixes p u + (1 - p) v for a fraction p of positives, and a balanced accuracy (u + v) / 2. What is known of
(u, v) makes convex polygons in the unit square, where u v and (1 - u)(1 - v) are quasi-concave: they are smallest at
corners. The arithmetic is exact, in fractions: no tolerance decides about a verdict.
"""

from __future__ import annotations

import html
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Verdict: TypeAlias = Literal["possible", "impossible", "unchecked"]
Range: TypeAlias = tuple[Fraction, Fraction]
Point: TypeAlias = tuple[Fraction, Fraction]

#: What a column can hold, and how it may be called.
SPELLINGS = {
    "accuracy": ("accuracy", "acc"),
    "auc": ("auc", "auroc", "roc_auc"),
    "sensitivity": ("sensitivity", "recall", "tpr"),
    "specificity": ("specificity", "tnr"),
    "balanced_accuracy": ("balanced_accuracy", "balanced_acc"),
    "positive_fraction": ("positive_fraction", "prevalence"),
    "n_pos": ("n_pos",),
    "n_neg": ("n_neg",),
}

#: What bounds an AUC.
RATES = ("accuracy", "balanced_accuracy", "sensitivity", "specificity")

#: Words that make a column tell something else about a quantity than its value, as std_acc and rank_auc do.
NO_VALUES = frozenset(("std", "sd", "se", "ci", "rank"))

#: Cells that hold no figure.
MISSING = ("", "-", "–", "—", "na", "n/a", "nan", "none", "<na>")

#: More decimals than these come from floating-point arithmetic, and the last of them are noise.
MOST_DECIMALS = 12

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", re.ASCII | re.IGNORECASE)
_BY_LENGTH = sorted(
    ((spelling, what) for what, spellings in SPELLINGS.items() for spelling in spellings),
    key=lambda pair: -len(pair[0]),
)
_ANY: Range = (Fraction(0), Fraction(1))


@dataclass(frozen=True, repr=False)
class Audit:
    """Whether the figures of one row can be true together.

    Attributes
    ----------
    row : int
        Number of the row, counted from 1.
    name : str
        Its first cell that is neither a figure nor a number, such as the name of a model; else ``"row 3"``.
    prefix : str
        What the columns of these figures have in common, ``"train"`` for ``train_auc``; empty without one.
    auc : float or None
        The AUC as printed.
    low, high : float or None
        What the other figures of the row leave open for it; None when they contradict one another.
    verdict : {"possible", "impossible", "unchecked"}
        ``"impossible"`` when no unrounded values fit; ``"unchecked"`` when there is nothing to compare.
    reason : str
        The verdict in words.
    decimals : int
        How many the limits are shown with: one more than the AUC has, and three at least.

    Examples
    --------
    >>> from milfast.uncertainty import audit
    >>> [result] = audit([{"model": "MI-Net", "accuracy": "0.991", "auc": "0.807"}], positive_fraction=0.5)
    >>> result
    Audit(MI-Net: impossible; an AUC of 0.807 is below 0.9810, the least with accuracy 0.991, positive fraction 0.5)
    """

    row: int
    name: str
    prefix: str
    auc: float | None
    low: float | None
    high: float | None
    verdict: Verdict
    reason: str
    decimals: int = 3

    @property
    def at_least(self) -> str | None:
        """The lower limit as text, rounded down."""
        return None if self.low is None else _down(self.low, self.decimals)

    @property
    def at_most(self) -> str | None:
        """The upper limit as text, rounded up."""
        return None if self.high is None else _up(self.high, self.decimals)

    def __repr__(self) -> str:
        return f"Audit({self._title()}: {self.verdict}; {self.reason})"

    def _repr_html_(self) -> str:
        return f"{html.escape(self._title())}: <b>{self.verdict}</b> <small>{html.escape(self.reason)}</small>"

    def _title(self) -> str:
        return f"{self.name}, {self.prefix}" if self.prefix else self.name

    def to_dict(self) -> dict[str, Any]:
        """Every attribute as a flat row, ready for JSON; the limits are called auc_low and auc_high.

        Returns
        -------
        dict

        Examples
        --------
        >>> from milfast.uncertainty import audit
        >>> [result] = audit([{"accuracy": "1.000", "auc": "0.889"}], positive_fraction=0.5)
        >>> result.to_dict()["auc_low"], result.to_dict()["verdict"]
        (0.999, 'impossible')
        """
        return {
            "row": self.row,
            "name": self.name,
            "prefix": self.prefix,
            "auc": self.auc,
            "auc_low": self.low,
            "auc_high": self.high,
            "verdict": self.verdict,
            "reason": self.reason,
            "decimals": self.decimals,
        }


def auc_limits(
    *,
    accuracy: float | str | tuple[float, float] | None = None,
    sensitivity: float | str | tuple[float, float] | None = None,
    specificity: float | str | tuple[float, float] | None = None,
    balanced_accuracy: float | str | tuple[float, float] | None = None,
    positive_fraction: float | str | Fraction | tuple[float, float] | None = None,
    decimals: int | None = None,
    averaged: bool = False,
) -> tuple[float, float]:
    """The smallest and the largest AUC that go with other figures of the same scores.

    All figures must be of one threshold on the scores that the AUC is of. At a fraction p of positives an accuracy a
    allows no AUC below (a - m) / (1 - m), with m = max(p, 1 - p), and none above a / (1 - m).

    Parameters
    ----------
    accuracy, sensitivity, specificity, balanced_accuracy : float, str or pair, optional
        A number is exact, unless `decimals` is given; text such as ``"0.80"`` or ``"99.1%"`` is rounded to the decimals
        it shows; a pair (low, high) holds the value somewhere within.
    positive_fraction : float, str, Fraction or pair, optional
        Fraction of positives among the items, strictly between 0 and 1; a number or text is exact. When it is left out
        it may be anything, and only what holds for every fraction is claimed: then an accuracy below 1 and above 0
        bounds nothing by itself, because an answer of one class throughout reaches it at some fraction whatever the
        ranking. An exact accuracy of 1 still means an AUC of 1, and 0 means 0. Sensitivity with specificity and the
        balanced accuracy bound as tightly as ever; an accuracy must then lie between sensitivity and specificity.
    decimals : int, optional
        Decimals that numbers were rounded to, except `positive_fraction`.
    averaged : bool
        Whether figures are averages over folds or runs of the same fraction of positives. Only with sensitivity or
        specificity does it matter: the product of two averages bounds no average, and max(0, u + v - 1) takes the place
        of u v, min(1, u + v) that of 1 - (1 - u)(1 - v).

    Returns
    -------
    low, high : float
        (0.0, 1.0) where nothing is bounded.

    Raises
    ------
    ValueError
        When a figure does not lie between 0 and 1, or no threshold can have these figures together.
    TypeError
        When a figure cannot be read.

    Examples
    --------
    >>> from milfast.uncertainty import auc_limits
    >>> auc_limits(accuracy="0.991", positive_fraction=0.5)
    (0.981, 1.0)
    >>> auc_limits(sensitivity=0.75, specificity=0.5)
    (0.375, 0.875)
    >>> auc_limits(sensitivity=0.75, specificity=0.5, averaged=True)
    (0.25, 1.0)
    >>> auc_limits(accuracy=0.991)
    (0.0, 1.0)
    """
    given = {
        "accuracy": accuracy,
        "balanced_accuracy": balanced_accuracy,
        "sensitivity": sensitivity,
        "specificity": specificity,
    }
    places = _decimals(decimals)
    known = {what: _given(value, what, places) for what, value in given.items() if value is not None}
    fraction = None if positive_fraction is None else _fraction(positive_fraction)
    limits = _limits(known, fraction, averaged=averaged)
    if limits is None:
        raise ValueError(f"no threshold has this {_listed([what.replace('_', ' ') for what in known])} together")
    return float(limits[0]), float(limits[1])


def audit(
    rows: Iterable[Mapping[str, Any]],
    *,
    positive_fraction: float | str | Fraction | tuple[float, float] | None = None,
    decimals: int | None = None,
    averaged: bool = False,
) -> list[Audit]:
    """Look for figures in a table that cannot be true together.

    Each is taken for what it was before it was rounded: ``"0.80"`` is anything from 0.795 to 0.805. Figures are
    impossible when no such values fit. That presumes two classes, that the accuracy, sensitivity and specificity come
    from one threshold on the scores that the AUC is of, and that figures are rounded and not cut off.

    Parameters
    ----------
    rows : iterable of mapping
        From column names to figures. Names are ``accuracy`` or ``acc``; ``auc``, ``auroc`` or ``roc_auc``;
        ``sensitivity``, ``recall`` or ``tpr``; ``specificity`` or ``tnr``; ``balanced_accuracy`` or ``balanced_acc``;
        ``positive_fraction`` or ``prevalence``; ``n_pos`` and ``n_neg``. Capitals do not matter, nor what stands
        between words. Columns with a prefix belong together, as ``train_acc`` with ``train_auc``; a fraction or counts
        without a prefix go for all of a row. Text shows its decimals, also as ``"99.1%"``; a number has those that
        Python prints, so 0.80 has one, and 12 at most; a `fractions.Fraction` is exact. None, NaN and dashes are no
        figure, and columns such as ``std_acc``, ``ci_auc`` and ``rank_auc`` hold none.
    positive_fraction : float, str, Fraction or pair, optional
        The exact fraction of positives, or (low, high) when it is somewhere within, for rows that do not have their
        own. Without any, only what holds for every fraction is refused; see `auc_limits`.
    decimals : int, optional
        Decimals that every figure has at least, for tables that have lost their zeros.
    averaged : bool
        Whether figures are averages over folds or runs of the same fraction of positives.

    Returns
    -------
    list of Audit
        One for each prefix of each row, in order.

    Raises
    ------
    ValueError
        When a figure is not a number between 0 and 1, or no column has a known name.
    TypeError
        When a row is not a mapping, or a figure is neither number nor text.

    Examples
    --------
    >>> from milfast.uncertainty import audit
    >>> row = {"model": "MI-Net", "train_acc": "0.991", "train_auc": "0.807", "test_acc": "0.000", "test_auc": "0.827"}
    >>> for result in audit([row], positive_fraction=0.5):
    ...     print(result.prefix, result.auc, result.low, result.high, result.verdict)
    train 0.807 0.981 1.0 impossible
    test 0.827 0.0 0.001 impossible
    """
    whole = None
    if positive_fraction is not None:
        within = _fraction(positive_fraction)
        ends = positive_fraction if isinstance(positive_fraction, tuple) else (positive_fraction,)
        whole = _Figure(" to ".join(str(end).strip() for end in ends), within[0], MOST_DECIMALS, within)
    places = _decimals(decimals)
    results: list[Audit] = []
    seen: dict[str, None] = {}
    recognised = False
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, Mapping):
            raise TypeError(
                f"row {number} must map column names to figures; got {type(row).__name__}: "
                "a data frame gives such rows with frame.to_dict('records')"
            )
        seen.update(dict.fromkeys(map(str, row)))
        parts = _parts(row, number)
        for prefix, columns in parts.items():
            if any(what in columns for what in (*RATES, "auc")):
                recognised = True
                shared = parts.get("", {})
                figures = _Figures.read(row, columns, shared, number, places)
                results.append(figures.judge(number, _name(row, number), prefix, whole, averaged=averaged))
    if seen and not recognised:
        raise ValueError(
            f"no column holds a figure; there are {', '.join(seen)}: call them auc, accuracy, sensitivity, specificity "
            "or balanced_accuracy, with or without a prefix such as train_"
        )
    return results


# -------------------------------------------------------------------- arithmetic


def _limits(known: Mapping[str, Range], fraction: Range | None, *, averaged: bool) -> Range | None:
    """Smallest and largest AUC, or None when nothing has these rates."""
    corners = _corners(known, _ANY if fraction is None else fraction)
    if not corners:
        return None
    if averaged:
        sums = [u + v for u, v in corners]
        return max(Fraction(0), min(sums) - 1), min(Fraction(1), max(sums))
    return min(u * v for u, v in corners), max(u + v - u * v for u, v in corners)


def _corners(known: Mapping[str, Range], fraction: Range) -> list[Point]:
    """Corners of the convex polygons of all (u, v) that fit."""
    (u0, u1), (v0, v1) = known.get("sensitivity", _ANY), known.get("specificity", _ANY)
    polygon = [(u0, v0), (u1, v0), (u1, v1), (u0, v1)]
    if "balanced_accuracy" in known:
        low, high = known["balanced_accuracy"]
        polygon = _clip(_clip(polygon, 1, 1, -2 * low), -1, -1, 2 * high)
    if "accuracy" not in known:
        return polygon
    low, high = known["accuracy"]
    # p u + (1 - p) v is u on the diagonal; it grows with p where u > v and falls where u < v, which makes two pieces
    corners = _clip(_clip(_clip(_clip(polygon, 1, -1, 0), -1, 1, 0), 1, 0, -low), -1, 0, high)
    for sign, (first, last) in ((1, fraction), (-1, fraction[::-1])):
        least, greatest = (-first, first - 1, high), (last, 1 - last, -low)
        piece = _clip(_clip(_clip(polygon, sign, -sign, 0), *least), *greatest)
        # both classes are there, so fractions of 0 and 1 are left out: an edge that only they reach does not count
        edges = [line for p, line in ((first, least), (last, greatest)) if p in (0, 1)]
        if not any(all(_side(point, *line) == 0 for point in piece) for line in edges):
            corners += piece
    return corners


def _side(point: Point, a: Fraction | int, b: Fraction | int, c: Fraction | int) -> Fraction:
    return a * point[0] + b * point[1] + c


def _clip(polygon: list[Point], a: Fraction | int, b: Fraction | int, c: Fraction | int) -> list[Point]:
    """The part of a convex polygon with a u + b v + c >= 0 (Sutherland and Hodgman); it may be a segment or a point."""
    kept: list[Point] = []
    for start, end in zip(polygon, polygon[1:] + polygon[:1], strict=True):
        here, there = _side(start, a, b, c), _side(end, a, b, c)
        if here >= 0:
            kept.append(start)
        if here * there < 0:
            part = here / (here - there)
            kept.append((start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1])))
    return kept


# -------------------------------------------------------------------- one row


@dataclass(frozen=True)
class _Figure:
    """A figure as it is written, and what it may have been."""

    text: str
    number: Fraction
    decimals: int
    range: Range


@dataclass(frozen=True)
class _Figures:
    """The figures of one row that belong together."""

    auc: _Figure | None
    rates: dict[str, _Figure]
    fraction: _Figure | None
    counts: tuple[int, int] | None
    lone: str | None

    @classmethod
    def read(
        cls,
        row: Mapping[str, Any],
        columns: Mapping[str, str],
        shared: Mapping[str, str],
        number: int,
        decimals: int | None,
    ) -> _Figures:
        def figure(column: str) -> _Figure | None:
            return _figure(row[column], f"row {number}, column {column!r}", decimals)

        rates = {what: found for what in RATES if what in columns and (found := figure(columns[what])) is not None}
        auc = figure(columns["auc"]) if "auc" in columns else None
        fraction, counts, lone = None, None, None
        for home in (columns, shared):
            fraction = figure(home["positive_fraction"]) if "positive_fraction" in home else None
            sizes = [
                _size(row[home[c]], f"row {number}, column {home[c]!r}") if c in home else None
                for c in ("n_pos", "n_neg")
            ]
            if fraction is not None and fraction.range[0] == fraction.range[1] and fraction.number in (0, 1):
                place = f"row {number}, column {home['positive_fraction']!r}"
                raise ValueError(f"{place}: an AUC needs both classes; got a fraction of {fraction.text}")
            if sizes[0] is not None and sizes[1] is not None:
                counts = sizes[0], sizes[1]
            elif sizes[0] is not None or sizes[1] is not None:
                lone = "n_pos stands without n_neg" if sizes[1] is None else "n_neg stands without n_pos"
            if fraction is not None or counts is not None:
                break
        return cls(auc, rates, fraction, counts, lone)

    def judge(self, row: int, name: str, prefix: str, whole: _Figure | None, *, averaged: bool) -> Audit:
        """Compare the AUC with its limits."""
        fraction = whole if self.fraction is None and self.counts is None else self.fraction
        within = None if fraction is None else fraction.range
        contradiction = None
        if self.counts is not None:
            share = Fraction(self.counts[0], sum(self.counts))
            if self.fraction is not None and not _overlap((share, share), self.fraction.range):
                contradiction = f"{_sizes(self.counts)} do not make a fraction of {self.fraction.text}"
            within = share, share
        known = {what: figure.range for what, figure in self.rates.items()}
        limits = _limits(known, within, averaged=averaged)
        others = self._others(fraction)
        if limits is None and contradiction is None:
            contradiction = f"no threshold has {others} together"
        verdict: Verdict
        if limits is None or contradiction is not None:
            verdict, reason, limits = "impossible", contradiction or "", None
        else:
            verdict, reason = self._compare(known, within, limits, others)
        if self.lone is not None and within is None:
            reason += f"; {self.lone}, which tells no fraction"
        low, high = (None, None) if limits is None else (float(limits[0]), float(limits[1]))
        auc = None if self.auc is None else float(self.auc.number)
        return Audit(row, name, prefix, auc, low, high, verdict, reason, self._digits())

    def _digits(self) -> int:
        """Decimals of limits: enough to tell them from the AUC."""
        return 3 if self.auc is None else max(3, self.auc.decimals + 1)

    def _compare(
        self, known: Mapping[str, Range], fraction: Range | None, limits: Range, others: str
    ) -> tuple[Verdict, str]:
        if not known:
            return "unchecked", "no figures" if self.auc is None else "nothing stands beside the AUC"
        accuracies = known.keys() & {"accuracy", "balanced_accuracy"}
        if len(known) == 1 and not accuracies:
            return "unchecked", f"{others} alone leaves the AUC open"
        if len(known) == 1 and "accuracy" in known and fraction is None and limits == _ANY:
            return "unchecked", f"{others} alone leaves the AUC open: add the positive fraction"
        if self.auc is None:
            if accuracies and len(known) > 1:
                return "possible", f"there are thresholds with {others}"
            return "unchecked", f"no AUC stands beside {others}"
        least, most = _down(float(limits[0]), self._digits()), _up(float(limits[1]), self._digits())
        if _overlap(self.auc.range, limits):
            return "possible", f"{others}: the AUC may be {least} to {most}"
        if self.auc.range[1] < limits[0]:
            reason = f"an AUC of {self.auc.text} is below {least}, the least with {others}"
        else:
            reason = f"an AUC of {self.auc.text} is above {most}, the most with {others}"
        looser = _limits(known, fraction, averaged=True)
        if looser is not None and _overlap(self.auc.range, looser):
            reason += "; averages over folds or runs could be like this"
        return "impossible", reason

    def _others(self, fraction: _Figure | None) -> str:
        said = [f"{what.replace('_', ' ')} {figure.text}" for what, figure in self.rates.items()]
        if "accuracy" in self.rates:
            if self.counts is not None:
                said.append(_sizes(self.counts))
            elif fraction is not None:
                said.append(f"positive fraction {fraction.text}")
        return ", ".join(said)


def _parts(row: Mapping[str, Any], number: int) -> dict[str, dict[str, str]]:
    """For each prefix, the column of each quantity."""
    parts: dict[str, dict[str, str]] = {}
    for column in row:
        found = _meaning(column)
        if found is None:
            continue
        prefix, what = found
        columns = parts.setdefault(prefix, {})
        if what in columns:
            raise ValueError(f"row {number}: columns {columns[what]!r} and {column!r} both hold {what}: rename one")
        columns[what] = column
    return parts


def _words(column: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", str(column).lower()).strip("_")


def _meaning(column: str) -> tuple[str, str] | None:
    """Prefix and quantity of a column."""
    words = _words(column)
    if not NO_VALUES.isdisjoint(words.split("_")):
        return None
    for spelling, what in _BY_LENGTH:  # the longest first: train_balanced_accuracy is no accuracy of "train_balanced"
        if words == spelling or words.endswith(f"_{spelling}"):
            return words.removesuffix(spelling).rstrip("_"), what
    return None


def _name(row: Mapping[str, Any], number: int) -> str:
    for column, value in row.items():
        text = str(value).strip()
        named = _meaning(column) is None and NO_VALUES.isdisjoint(_words(column).split("_"))
        if named and text.lower() not in MISSING and not _NUMBER.fullmatch(text):
            return text
    return f"row {number}"


def _overlap(a: Range, b: Range) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def _sizes(counts: tuple[int, int]) -> str:
    return f"{counts[0]} positives and {counts[1]} negatives"


def _listed(names: Sequence[str]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1]) if len(names) > 1 else names)


def _down(value: float, digits: int) -> str:
    # repr has the shortest digits, those of 0.981 and not of the binary number next to it
    return str(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_FLOOR))


def _up(value: float, digits: int) -> str:
    return str(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING))


# -------------------------------------------------------------------- reading figures


def _missing(value: Any) -> bool:
    return value is None or str(value).strip().lower() in MISSING


def _read(value: Any, place: str) -> tuple[str, Fraction, int | None]:
    """Text, number and decimals of a figure; an exact fraction has no decimals."""
    if isinstance(value, bool) or not isinstance(value, (str, Real, Decimal)):
        raise TypeError(f"{place} must be a number or text; got {type(value).__name__}")
    text = str(value).strip()
    if isinstance(value, Fraction):
        return text, value, None
    percent = text.endswith("%")
    bare = text.removesuffix("%").rstrip()
    if not _NUMBER.fullmatch(bare):
        raise ValueError(f"{place}: {text!r} is not a number: write it alone, as 0.991 or 99.1%")
    number = Decimal(bare)
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)  # the pattern lets neither NaN nor infinity pass
    return text, Fraction(number) / (100 if percent else 1), max(0, 2 * percent - exponent)


def _read_rate(value: Any, place: str) -> tuple[str, Fraction, int | None]:
    text, number, shown = _read(value, place)
    if number < 0:
        raise ValueError(f"{place}: {text} is below 0")
    if number > 1 and text.endswith("%"):
        raise ValueError(f"{place}: {text} is above 100%")
    if number > 1:
        raise ValueError(f"{place}: {text} is above 1: divide by 100, or write {text}%")
    return text, number, shown


def _figure(value: Any, place: str, decimals: int | None) -> _Figure | None:
    """The figure in a cell, or None when there is none."""
    if _missing(value):
        return None
    text, number, shown = _read_rate(value, place)
    if shown is None:
        return _Figure(text, number, MOST_DECIMALS, (number, number))
    known = min(max(shown, decimals or 0), MOST_DECIMALS)
    return _Figure(text, number, known, _unrounded(number, known))


def _unrounded(number: Fraction, decimals: int) -> Range:
    half = Fraction(1, 2 * 10**decimals)
    return max(Fraction(0), number - half), min(Fraction(1), number + half)


def _size(value: Any, place: str) -> int | None:
    if _missing(value):
        return None
    text, number, _ = _read(value, place)
    if number < 1 or number.denominator != 1 or text.endswith("%"):
        raise ValueError(f"{place}: {text} is not a number of items: an AUC needs at least one of each class")
    return int(number)


def _given(value: Any, name: str, decimals: int | None) -> Range:
    if isinstance(value, tuple):
        return _pair(value, name)
    if isinstance(value, str):
        figure = _figure(value, name, decimals)
        if figure is None:
            raise ValueError(f"{name}: {value!r} is not a number: leave it out")
        return figure.range
    _, number, _ = _read_rate(value, name)
    return (number, number) if decimals is None else _unrounded(number, decimals)


def _pair(value: tuple[Any, ...], name: str) -> Range:
    if len(value) != 2:
        raise ValueError(f"{name} must be a number or a pair (low, high); got {len(value)} values")
    low, high = (_read_rate(end, name)[1] for end in value)
    if low > high:
        raise ValueError(f"{name} must be in ascending order; got {value!r}")
    return low, high


def _fraction(value: Any) -> Range:
    if isinstance(value, tuple):
        low, high = _pair(value, "positive_fraction")
    else:
        low = high = _read_rate(value, "positive_fraction")[1]
    if low == high and low in (0, 1):
        raise ValueError(f"positive_fraction must lie strictly between 0 and 1: an AUC needs both classes; got {value}")
    return low, high


def _decimals(value: Any) -> int | None:
    if value is None:
        return None
    try:
        if isinstance(value, bool):
            raise TypeError
        decimals = operator.index(value)
    except TypeError:
        raise TypeError(f"decimals must be an integer; got {value!r}") from None
    if not 0 <= decimals <= MOST_DECIMALS:
        raise ValueError(f"decimals must lie between 0 and {MOST_DECIMALS}; got {decimals}")
    return decimals
