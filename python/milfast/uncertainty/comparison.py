"""The result of comparing models: their figures, the difference with its interval, and a p-value that never is 0."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.uncertainty.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: The smallest positive double: what `Comparison.p_value` says where the true one is smaller still.
_LEAST = math.ulp(0.0)
#: Readers compare p-values with these; a rounded p-value must not change sides.
_THRESHOLDS = (0.1, 0.05, 0.01, 0.001)


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two or more models compared by one test.

    Attributes
    ----------
    names : tuple of str
        The models, in the order they were given.
    estimates : tuple of float
        The figure of each model, such as its accuracy or AUC.
    difference : Interval or None
        First model minus second, with its interval; None when there are more than two models.
    log_p : float
        Natural logarithm of the p-value: minus infinity never occurs, NaN when the test is undefined.
    statistic : float
        Value of the test statistic; NaN when it is undefined.
    df : tuple of float
        Its degrees of freedom: none, one, or two for an F statistic.
    method : str
        The test. It differs from what was asked for when a degenerate case needed another rule.
    n : int
        How many units the test rests on.
    unit : str
        What `n` counts: ``"items"``, ``"runs"`` or another plural.
    measure : str
        What is compared, such as ``"accuracy"`` or ``"AUC"``.
    paired : bool
        Whether the models were tried on the same units.
    notes : tuple of str
        What a reader should know beside the figures.
    details : dict
        Counts behind the test, by name.
    pairs : tuple of Comparison
        For more than two models, each pair of them.
    log_p_adjusted : float or None
        For one of several pairs, the logarithm of its p-value after the correction for their number.

    Examples
    --------
    >>> from milfast.uncertainty import mcnemar_from_counts
    >>> result = mcnemar_from_counts(both=11831, first_only=696, second_only=268, neither=599)
    >>> result.p_value < 1e-40
    True
    >>> result
    Comparison(A - B: 0.032 [0.027, 0.037], p = 1.2e-44, method='mid-p McNemar', n=13394)
    """

    names: tuple[str, ...]
    estimates: tuple[float, ...]
    difference: Interval | None
    log_p: float
    statistic: float
    df: tuple[float, ...]
    method: str
    n: int
    unit: str = "items"
    measure: str = "accuracy"
    paired: bool = True
    notes: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict, hash=False)
    pairs: tuple[Comparison, ...] = ()
    log_p_adjusted: float | None = None

    @property
    def p_value(self) -> float:
        """The p-value; NaN when the test is undefined.

        Where it is too small for a double this is the smallest positive one (5e-324), which it is below; `log_p` has
        it.
        """
        return _exp(self.log_p)

    @property
    def p_adjusted(self) -> float | None:
        """The p-value of a pair after the correction for the number of pairs; None when there was none."""
        return None if self.log_p_adjusted is None else _exp(self.log_p_adjusted)

    def __repr__(self) -> str:
        size = f"n={self.n}" if self.unit == "items" else f"n={self.n} {self.unit}"
        if self.difference is None:
            figures = ", ".join(f"{name} {text}" for name, text in zip(self.names, self._figures(), strict=True))
        else:
            estimate, low, high = self.difference._rounded()
            figures = f"{self.names[0]} - {self.names[1]}: {estimate} [{low}, {high}]"
        adjusted = "" if self.log_p_adjusted is None else f", adjusted {show_p(self.log_p_adjusted)}"
        return f"Comparison({figures}, {show_p(self.log_p)}{adjusted}, method={self.method!r}, {size})"

    def _repr_html_(self) -> str:
        rows = [self._sentence(), *(pair._sentence() for pair in self.pairs)]
        text = "<br>".join(html.escape(row) for row in rows)
        notes = "".join(f"<br><small>{html.escape(note)}</small>" for note in self.notes)
        return f'<span title="log_p = {self.log_p!r}">{text}{notes}</span>'

    def summary(self) -> str:
        """What was found, in sentences for people.

        Returns
        -------
        str
            One line for the test, one for each pair of models and one for each note.

        Examples
        --------
        >>> from milfast.uncertainty import mcnemar_from_counts
        >>> result = mcnemar_from_counts(both=40, first_only=10, second_only=2, neither=8, names=("ours", "theirs"))
        >>> print(result.summary())
        accuracy: ours 0.83, theirs 0.70; difference 0.13, 95 % interval 0.02 to 0.25 (score);
        p = 0.022 (mid-p McNemar, 60 paired items)
        """
        return "\n".join((self._sentence(), *(f"  {pair._sentence()}" for pair in self.pairs), *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Every attribute by name, and the p-values, ready for JSON.

        Returns
        -------
        dict
            An undefined number is None here, because JSON has no NaN.

        Examples
        --------
        >>> from milfast.uncertainty import mcnemar_from_counts
        >>> values = mcnemar_from_counts(both=40, first_only=10, second_only=2, neither=8).to_dict()
        >>> round(values["p_value"], 12), values["difference"]["estimate"]
        (0.0224609375, 0.13333333333333333)
        """
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        own |= {
            "difference": None if self.difference is None else self.difference.to_dict(),
            "pairs": [pair.to_dict() for pair in self.pairs],
            "p_value": self.p_value,
            "p_adjusted": self.p_adjusted,
        }
        return {name: _plain(value) for name, value in own.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Comparison:
        """The comparison that `to_dict` described.

        Parameters
        ----------
        values : dict

        Returns
        -------
        Comparison

        Examples
        --------
        >>> from milfast.uncertainty import Comparison, mcnemar_from_counts
        >>> result = mcnemar_from_counts(both=40, first_only=10, second_only=2, neither=8)
        >>> Comparison.from_dict(result.to_dict()) == result
        True
        """
        read = {name: value for name, value in values.items() if name not in ("p_value", "p_adjusted")}
        for name in ("log_p", "statistic"):
            read[name] = math.nan if read[name] is None else read[name]
        for name in ("names", "df", "notes"):
            read[name] = tuple(read[name])
        read["estimates"] = tuple(math.nan if value is None else value for value in read["estimates"])
        read["difference"] = None if read["difference"] is None else Interval.from_dict(read["difference"])
        read["pairs"] = tuple(cls.from_dict(pair) for pair in read["pairs"])
        return cls(**read)

    def _sentence(self) -> str:
        figures = ", ".join(f"{name} {text}" for name, text in zip(self.names, self._figures(), strict=True))
        shown = f"{self.measure}: {figures}; "
        if self.difference is not None:
            estimate, low, high = self.difference._rounded()
            bounds = "undefined" if math.isnan(self.difference.half_width) else f"{low} to {high}"
            shown += (
                f"difference {estimate}, {self.difference._percent()} interval {bounds} ({self.difference.method}); "
            )
        unit = self.unit.removesuffix("s") if self.n == 1 else self.unit
        size = f"{self.n} {'paired' if self.paired else 'unpaired'} {unit}"
        if "n_clusters" in self.details:
            size += f" in {self.details['n_clusters']} clusters"
        adjusted = "" if self.log_p_adjusted is None else f", adjusted {show_p(self.log_p_adjusted)}"
        return f"{shown}{show_p(self.log_p)}{adjusted} ({self.method}, {size})"

    def _figures(self) -> list[str]:
        """Each model's figure, to the decimal place that the difference is shown to."""
        decimals = 3
        if self.difference is not None and math.isfinite(self.difference.half_width):
            decimals = len(self.difference._rounded()[0].partition(".")[2])
        return [f"{estimate:.{decimals}f}" for estimate in self.estimates]


def show_p(log_p: float) -> str:
    """A p-value with its sign of relation and honest digits.

    Two digits, and more where rounding would carry the p-value to the other side of 0.1, 0.05, 0.01 or 0.001.

    Parameters
    ----------
    log_p : float
        Natural logarithm of the p-value.

    Returns
    -------
    str

    Examples
    --------
    >>> import math
    >>> from milfast.uncertainty.comparison import show_p
    >>> show_p(math.log(0.0321)), show_p(math.log(0.0499)), show_p(-9000.0), show_p(math.nan)
    ('p = 0.032', 'p = 0.0499', 'p < 1e-300', 'p undefined')
    """
    if math.isnan(log_p):
        return "p undefined"
    if log_p < -300 * math.log(10):
        return "p < 1e-300"
    p = math.exp(log_p)
    for digits in range(2, 7):
        text = f"{p:.{digits}g}" if p < 1e-3 else f"{p:.{digits - 1 - math.floor(math.log10(p))}f}"
        if all((float(text) < t) == (p < t) for t in _THRESHOLDS):
            break
    return f"p = {'1' if float(text) >= 1 else text}"


def holm(log_p: Sequence[float]) -> list[float]:
    """Logarithms of p-values after Holm's step-down correction (Holm 1979, Scand. J. Stat. 6).

    Parameters
    ----------
    log_p : sequence of float
        Natural logarithms; NaN, an undefined test, is left as it is and not counted.

    Returns
    -------
    list of float

    Examples
    --------
    >>> import math
    >>> from milfast.uncertainty.comparison import holm
    >>> [round(math.exp(x), 3) for x in holm([math.log(p) for p in (0.01, 0.04, 0.03)])]
    [0.03, 0.06, 0.06]
    """
    defined = sorted((value, i) for i, value in enumerate(log_p) if not math.isnan(value))
    adjusted = list(log_p)
    largest = -math.inf
    for rank, (value, i) in enumerate(defined):
        largest = max(largest, min(0.0, value + math.log(len(defined) - rank)))
        adjusted[i] = largest
    return adjusted


def adjust(pairs: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Pairs with Holm's correction for their number."""
    given = tuple(pairs)
    return tuple(
        replace(pair, log_p_adjusted=log_p)
        for pair, log_p in zip(given, holm([pair.log_p for pair in given]), strict=True)
    )


# -------------------------------------------------------------------- shared reading of arguments


def read_names(names: Any, k: int) -> tuple[str, ...]:
    """`k` names; A, B, C, ... when none are given."""
    if names is None:
        return tuple(chr(ord("A") + i) if k <= 26 else f"model {i + 1}" for i in range(k))
    if isinstance(names, str):
        raise TypeError(f"names must be a sequence of {k} strings; got the one string {names!r}")
    read = tuple(str(name) for name in names)
    if len(read) != k:
        raise ValueError(f"names must hold one name a model: {k}; got {len(read)}")
    if len(set(read)) < k:
        raise ValueError(f"names must differ; got {', '.join(read)}")
    return read


def read_numbers(values: Any, name: str, ndim: tuple[int, ...] = (1,)) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A finite float64 array of one of the dimensions allowed, with the first bad entry named."""
    try:
        x = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} cannot be read as numbers: {error}") from None
    if x.ndim not in ndim or x.size == 0:
        dimensions = " or ".join(str(d) for d in ndim)
        raise ValueError(f"{name} must be a non-empty array of dimension {dimensions}; got shape {x.shape}")
    odd = np.argwhere(~np.isfinite(x))
    if len(odd):
        place = ", ".join(str(i) for i in odd[0])
        raise ValueError(f"{name}[{place}] is {x[tuple(odd[0])]}: drop it with its partner or say why it is missing")
    return x


def _exp(log_p: float) -> float:
    return math.nan if math.isnan(log_p) else max(math.exp(log_p), _LEAST)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value
