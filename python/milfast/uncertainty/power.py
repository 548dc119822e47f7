"""How many items or runs a study needs, before it is done."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

from milfast.uncertainty.intervals import _choose, _hanley_mcneil, _number, _require_level, _wilson, _z
from milfast.uncertainty.search import crossing


@dataclass(frozen=True)
class SampleSize:
    """A number of units, and what it is enough for.

    Attributes
    ----------
    n : int
        The number, rounded up.
    exact : float
        What the formula gives.
    unit : str
        What `n` counts.
    purpose : str
        What it is enough for.
    method : str
        The formula.

    Examples
    --------
    >>> from milfast.uncertainty import sample_size_half_width
    >>> size = sample_size_half_width(0.9, 0.01)
    >>> size.n, int(size), size.unit
    (3458, 3458, 'items')
    """

    n: int
    exact: float
    unit: str
    purpose: str
    method: str

    def __int__(self) -> int:
        return self.n

    def __index__(self) -> int:
        return self.n

    def summary(self) -> str:
        """One sentence for people.

        Returns
        -------
        str

        Examples
        --------
        >>> from milfast.uncertainty import sample_size_paired
        >>> sample_size_paired(0.032, discordant=0.072).summary()
        '550 items, tried by both models, to find a difference of 0.032 at level 0.95 with power 0.8 (Connor)'
        """
        return f"{self.n} {self.unit} {self.purpose} ({self.method})"

    def to_dict(self) -> dict[str, Any]:
        """Every attribute by name, ready for JSON.

        Returns
        -------
        dict
        """
        return asdict(self)


def sample_size_half_width(
    proportion: float, half_width: float, *, level: float = 0.95, method: str = "normal"
) -> SampleSize:
    """Items for an interval of an accuracy that is no wider.

    Parameters
    ----------
    proportion : float
        The accuracy that is expected, between 0 and 1; 0.5 is the worst case.
    half_width : float
        Half the width that is wanted.
    level : float
        Nominal coverage.
    method : {"normal", "wilson"}
        ``"normal"``: n = z^2 p (1 - p) / half_width^2. ``"wilson"``: the smallest n whose Wilson interval, which is
        what `proportion_interval` gives, is no wider; it needs at most a few items more or less.

    Returns
    -------
    SampleSize

    Raises
    ------
    ValueError
        When a number is out of range or `method` is unknown.
    TypeError
        When an argument is not a number.

    Examples
    --------
    >>> from milfast.uncertainty import sample_size_half_width
    >>> sample_size_half_width(0.9, 0.01).n, sample_size_half_width(0.9, 0.01, method="wilson").n
    (3458, 3461)
    """
    _require_level(level)
    p, half = _between(proportion, "proportion"), _reachable(_between(half_width, "half_width"), "half_width")
    title = _choose(method, {"normal": "normal interval", "wilson": "Wilson interval"})
    exact = _z(level) ** 2 * p * (1 - p) / half**2
    if method == "wilson":

        def narrow(n: float) -> bool:
            low, high = _wilson(p * n, n, level)
            return (high - low) / 2 <= half

        # the width at n is below z / (2 sqrt(n)), so that this is wide enough
        exact = crossing(narrow, 1.0, (_z(level) / half) ** 2 + 1)
    return SampleSize(_up(exact), exact, "items", f"for {p:g} +- {half:g} at level {level:g}", title)


def sample_size_auc(
    auc: float, half_width: float, *, positive_fraction: float = 0.5, level: float = 0.95
) -> SampleSize:
    """Items for an interval of an AUC that is no wider.

    Parameters
    ----------
    auc : float
        The AUC that is expected, between 0 and 1.
    half_width : float
        Half the width that is wanted.
    positive_fraction : float
        Share of positive items.
    level : float
        Nominal coverage.

    Returns
    -------
    SampleSize
        From the variance of Hanley and McNeil (1982, Radiology 143), with at least one item of each class.

    Raises
    ------
    ValueError
        When a number is out of range.
    TypeError
        When an argument is not a number.

    Examples
    --------
    >>> from milfast.uncertainty import sample_size_auc
    >>> sample_size_auc(0.9, 0.05).n
    158
    """
    _require_level(level)
    area, half = _between(auc, "auc"), _reachable(_between(half_width, "half_width"), "half_width")
    share = _between(positive_fraction, "positive_fraction")
    variance = (half / _z(level)) ** 2

    def narrow(n: float) -> bool:
        # the formula is smooth in both sizes: they need not be whole here
        sizes: Any = (share * n, (1 - share) * n)
        return _hanley_mcneil(area, *sizes) <= variance

    least = 1 / min(share, 1 - share)
    exact = crossing(narrow, least, max(2 * least, 2 / (variance * min(share, 1 - share))))
    purpose = f"for an AUC of {area:g} +- {half:g} at level {level:g}, {share:g} of them positive"
    return SampleSize(_up(exact), exact, "items", purpose, "Hanley-McNeil")


def sample_size_unpaired(
    p_a: float, p_b: float, *, level: float = 0.95, power: float = 0.8, method: str = "fleiss"
) -> SampleSize:
    """Items for each of two models, on different items, to find a difference of their accuracies.

    Parameters
    ----------
    p_a, p_b : float
        The accuracies, between 0 and 1.
    level : float
        One minus the two-sided error rate.
    power : float
        Probability of finding the difference.
    method : {"fleiss", "arcsine"}
        ``"fleiss"``: ((z_a sqrt(2 p (1 - p)) + z_b sqrt(p_a (1 - p_a) + p_b (1 - p_b))) / (p_a - p_b))^2 with the mean
        p (Fleiss 1981, Statistical Methods for Rates and Proportions). ``"arcsine"``: 2 (d / h)^2 with Cohen's
        h, where a normal of mean d passes z_a or -z_a with that power (Cohen 1988, Statistical Power Analysis).

    Returns
    -------
    SampleSize
        For each model; on the same items far fewer do: `sample_size_paired`.

    Raises
    ------
    ValueError
        When a number is out of range, the accuracies are equal, or `method` is unknown.
    TypeError
        When an argument is not a number.

    Examples
    --------
    >>> from milfast.uncertainty import sample_size_unpaired
    >>> sample_size_unpaired(0.90, 0.92).n
    3213
    """
    _require_level(level)
    a, b = _between(p_a, "p_a"), _between(p_b, "p_b")
    z_a, z_b = _z(level), _power_z(power)
    title = _choose(method, {"fleiss": "Fleiss", "arcsine": "arcsine"})
    if a == b:
        raise ValueError(f"p_a and p_b must differ: no number of items finds no difference; got {a:g} twice")
    if method == "fleiss":
        mean = (a + b) / 2
        spread = z_a * math.sqrt(2 * mean * (1 - mean)) + z_b * math.sqrt(a * (1 - a) + b * (1 - b))
        exact = (spread / (a - b)) ** 2
    else:
        effect = 2 * (math.asin(math.sqrt(a)) - math.asin(math.sqrt(b)))
        # the other tail counts too, as little as it is
        tails, chance = NormalDist(), _between(power, "power")
        shift = crossing(lambda d: tails.cdf(d - z_a) + tails.cdf(-d - z_a) >= chance, 0.0, z_a + max(z_b, 0.0) + 1)
        exact = 2 * (shift / effect) ** 2
    purpose = f"for each model to tell {a:g} from {b:g} at level {level:g} with power {power:g}"
    return SampleSize(_up(exact), exact, "items", purpose, title)


def sample_size_paired(difference: float, *, discordant: float, level: float = 0.95, power: float = 0.8) -> SampleSize:
    """Items for two models, on the same items, to find a difference of their accuracies by McNemar's test.

    Parameters
    ----------
    difference : float
        Of the accuracies.
    discordant : float
        Share of items that one model gets right and the other wrong: at least abs(difference). Pilot data tell it;
        models that err independently have p_a (1 - p_b) + p_b (1 - p_a), which is about the most.
    level : float
        One minus the two-sided error rate.
    power : float
        Probability of finding the difference.

    Returns
    -------
    SampleSize
        ((z_a sqrt(discordant) + z_b sqrt(discordant - difference^2)) / difference)^2 (Connor 1987, Biometrics 43).

    Raises
    ------
    ValueError
        When a number is out of range.
    TypeError
        When an argument is not a number.

    Examples
    --------
    >>> from milfast.uncertainty import sample_size_paired
    >>> sample_size_paired(0.032, discordant=0.072).n
    550
    """
    _require_level(level)
    gap, share = _number(difference, "difference"), _number(discordant, "discordant")
    if not 0 < abs(gap) < 1:
        raise ValueError(f"difference must lie between -1 and 1 and not be 0; got {gap:g}")
    if not abs(gap) <= share <= 1:
        raise ValueError(f"discordant must lie between abs(difference)={abs(gap):g} and 1; got {share:g}")
    _reachable(gap, "difference")
    exact = ((_z(level) * math.sqrt(share) + _power_z(power) * math.sqrt(share - gap**2)) / gap) ** 2
    purpose = f"to find a difference of {gap:g} at level {level:g} with power {power:g}"
    return SampleSize(_up(exact), exact, "items, tried by both models,", purpose, "Connor")


def sample_size_improvement(gamma: float = 0.75, *, level: float = 0.95, power: float = 0.95) -> SampleSize:
    """Pairs of runs to find that one model beats another with probability `gamma`.

    Parameters
    ----------
    gamma : float
        P(A > B) to be found, above one half.
    level : float
        One minus the one-sided error rate.
    power : float
        Probability of finding it.

    Returns
    -------
    SampleSize
        ((z_a + z_b) / (sqrt(6) (gamma - 1/2)))^2 (Noether 1987, J. Am. Stat. Assoc. 82), as Bouthillier et al. (2021,
        arXiv 2103.03098) use it: 29 pairs for 0.75.

    Raises
    ------
    ValueError
        When a number is out of range.
    TypeError
        When an argument is not a number.

    Examples
    --------
    >>> from milfast.uncertainty import sample_size_improvement
    >>> sample_size_improvement().n
    29
    """
    _require_level(level)
    probability = _number(gamma, "gamma")
    if not 0.5 < probability <= 1:
        raise ValueError(f"gamma must lie above 0.5, which is no improvement, and not above 1; got {probability:g}")
    z = NormalDist().inv_cdf(level)
    exact = ((z + _power_z(power)) / (math.sqrt(6) * (probability - 0.5))) ** 2
    purpose = f"to find P(A > B) = {probability:g} at one-sided level {level:g} with power {power:g}"
    return SampleSize(_up(exact), exact, "pairs of runs", purpose, "Noether")


def _up(exact: float) -> int:
    # a whole number that rounding put a little above itself is not one more
    return max(1, math.ceil(exact * (1 - 1e-12)))


def _between(value: Any, name: str) -> float:
    number = _number(value, name)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1 (0.9 for 90 %); got {number:g}")
    return number


def _reachable(value: float, name: str) -> float:
    # squares of smaller numbers underflow
    if abs(value) < 1e-100:
        raise ValueError(f"{name} is too small for any study: {value:g}")
    return value


def _power_z(power: Any) -> float:
    return NormalDist().inv_cdf(_between(power, "power"))
