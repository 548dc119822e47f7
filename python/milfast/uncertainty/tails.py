"""Tail probabilities as natural logarithms, right where the probability itself would underflow to zero."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

#: Below this scipy's own tails lose digits (they near the smallest double) and the continued fractions take over.
_SMALL = 1e-290
#: More than any of the fractions needs: they take about the square root of their largest parameter.
_MOST_STEPS = 1_000_000


def log_two_sided_normal(z: float) -> float:
    """Log of P(abs(Z) >= abs(z)) for a standard normal Z; NaN for NaN."""
    # Imported here because scipy takes longer to load than the rest of milfast; so below.
    from scipy.special import log_ndtr

    return min(0.0, math.log(2) + float(log_ndtr(-abs(z)))) if not math.isnan(z) else math.nan


def log_upper_normal(z: float) -> float:
    """Log of P(Z >= z) for a standard normal Z."""
    from scipy.special import log_ndtr

    return float(log_ndtr(-z))


def log_two_sided_t(t: float, df: float) -> float:
    """Log of P(abs(T) >= abs(t)) for Student's T with `df` degrees of freedom."""
    if math.isnan(t):
        return math.nan
    if math.isinf(t):
        return -math.inf
    # t^2 / (df + t^2) and its complement, each without cancellation
    return log_beta(df / 2, 0.5, df / (df + t * t), t * t / (df + t * t))


def log_upper_t(t: float, df: float) -> float:
    """Log of P(T >= t) for Student's T with `df` degrees of freedom."""
    both = log_two_sided_t(t, df)
    return both - math.log(2) if not t < 0 else math.log1p(-math.exp(both) / 2)


def t_quantile(df: float, level: float) -> float:
    """What abs(T) passes with probability 1 - level, for Student's T with `df` degrees of freedom (may be infinite)."""
    tail = (1 - level) / 2
    if math.isinf(df):
        return -NormalDist().inv_cdf(tail)
    from scipy.special import stdtrit

    return -float(stdtrit(df, tail))


def log_upper_f(f: float, df1: float, df2: float) -> float:
    """Log of P(F >= f) for an F variable with (df1, df2) degrees of freedom."""
    if math.isnan(f):
        return math.nan
    if math.isinf(f):
        return -math.inf
    total = df2 + df1 * f
    return log_beta(df2 / 2, df1 / 2, df2 / total, df1 * f / total)


def log_upper_chi2(x: float, df: float) -> float:
    """Log of P(X >= x) for a chi-squared variable with `df` degrees of freedom."""
    from scipy.special import gammaincc

    if math.isnan(x):
        return math.nan
    a, x = df / 2, x / 2
    plain = float(gammaincc(a, x))
    if plain > _SMALL:
        return math.log(plain)
    if math.isinf(x):
        return -math.inf

    # Q(a, x) = x^a e^-x / Gamma(a) / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...))
    def terms() -> Iterator[tuple[float, float]]:
        for n in range(1, _MOST_STEPS):
            yield -n * (n - a), x + 2 * n + 1 - a

    return a * math.log(x) - x - math.lgamma(a) - math.log(_fraction(x + 1 - a, terms()))


def log_beta(a: float, b: float, x: float, complement: float) -> float:
    """Log of the regularised incomplete beta function I_x(a, b), with 1 - x given too so that neither loses digits."""
    from scipy.special import betainc, betaincc, betaln

    # I_x(a, b) = 1 - I_(1-x)(b, a): the smaller of x and 1 - x says more
    plain = float(betainc(a, b, x) if x < complement else betaincc(b, a, complement))
    if plain > _SMALL:
        return min(0.0, math.log(plain))
    if x == 0:
        return -math.inf

    def terms() -> Iterator[tuple[float, float]]:
        for m in range(_MOST_STEPS):
            yield -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), 1.0
            k = m + 1
            yield k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)), 1.0

    front = a * math.log(x) + b * math.log(complement) - math.log(a) - float(betaln(a, b))
    return front - math.log(_fraction(1.0, terms()))


def log_binomial_tail(k: int, n: int) -> tuple[float, float]:
    """Logs of P(X <= k) and P(X = k) for X the number of heads among `n` tosses of a fair coin, k at most n / 2."""
    return log_beta(n - k, k + 1, 0.5, 0.5), _log_heads(k, n)


def _log_heads(k: int, n: int) -> float:
    """Log of P(X = k), without the difference of large logarithms of factorials (Loader 2000, saddle-point form)."""
    if k == 0:
        return -n * math.log(2)
    less, more, d = 2 * k / n, 2 * (n - k) / n, (n - 2 * k) / n
    shape = 2 * d * math.atanh(d) + math.log1p(-d * d) if d < 0.5 else less * math.log(less) + more * math.log(more)
    size = math.log(2 * math.pi) + math.log(k) + math.log((n - k) / n)
    return -n / 2 * shape - size / 2 + _beyond_stirling(n) - _beyond_stirling(k) - _beyond_stirling(n - k)


def _beyond_stirling(n: int) -> float:
    """How far log n! is above Stirling's approximation."""
    if n < 16:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - math.log(2 * math.pi) / 2
    square = 1 / (n * n)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / n


def log_sign_flips(steps: NDArray[np.int64]) -> tuple[float, float]:
    """Logs of P(S <= s) and P(S = s) for a sum S of `steps` with signs of fair coins, s being minus their sum's size.

    Parameters
    ----------
    steps : ndarray of int
        At most a thousand that are not 0.

    Returns
    -------
    tuple of float and float
    """
    import numpy as np

    sizes = np.abs(steps[steps != 0])
    total, less = int(sizes.sum()), (int(sizes.sum()) - abs(int(steps.sum()))) // 2
    # how likely each sum of the steps with a plus is: all terms are positive, nothing cancels
    chance = np.zeros(total + 1)
    chance[0] = 1.0
    for size in sizes.tolist():
        half = chance * 0.5
        half[size:] += chance[:-size] * 0.5
        chance = half
    return math.log(math.fsum(chance[: less + 1])), math.log(chance[less])


def _fraction(first: float, terms: Iterator[tuple[float, float]]) -> float:
    """Value of first + a1 / (b1 + a2 / (b2 + ...)) by Lentz's method as modified by Thompson and Barnett (1986)."""
    tiny = 1e-300
    value = c = first or tiny
    d = 0.0
    for a, b in terms:
        d = 1 / ((b + a * d) or tiny)
        c = (b + a / c) or tiny
        step = c * d
        value *= step
        if abs(step - 1) < 1e-16:
            break
    return value
