"""Two accuracies on different items compared, from their counts alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from milfast.uncertainty.comparison import Comparison, read_names
from milfast.uncertainty.intervals import Interval, _choose, _count, _require_level, _successes, _wilson, _z
from milfast.uncertainty.search import crossing
from milfast.uncertainty.tails import log_two_sided_normal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def compare_proportions(
    k_a: float,
    n_a: int,
    k_b: float,
    n_b: int,
    *,
    method: str = "z",
    interval: str = "newcombe",
    level: float = 0.95,
    measure: str = "accuracy",
    names: Sequence[str] | None = None,
) -> Comparison:
    """Compare two proportions on different items, such as the accuracies of two papers.

    Classifiers that were tried on the same items should be compared by `mcnemar`, which needs far fewer of them. That
    two 95 % intervals overlap is no test: for equal sizes they are disjoint only when p is below about 0.006.

    Parameters
    ----------
    k_a, k_b : float
        Number of successes; a fraction is allowed (a printed accuracy times `n_a`).
    n_a, n_b : int
        Number of items.
    method : {"z", "fisher"}
        - ``"z"``: (p_a - p_b) / sqrt(p (1 - p) (1 / n_a + 1 / n_b)) with the pooled p; its square is Pearson's
          chi-squared.
        - ``"fisher"``: Fisher's exact test, cautious; needs whole counts.
    interval : {"newcombe", "agresti-caffo", "score", "wald"}
        How the difference is bounded:

        - ``"newcombe"``: Wilson intervals of both joined (Newcombe 1998, Stat. Med. 17, method 10 for independent
          proportions).
        - ``"agresti-caffo"``: the Wald interval after adding a success and a failure to each (Agresti and Caffo 2000,
          Am. Stat. 54).
        - ``"score"``: all differences that the score test does not reject (Miettinen and Nurminen 1985, Stat. Med. 4,
          with their factor N / (N - 1)).
        - ``"wald"``: p_a - p_b +- z sqrt(p_a (1 - p_a) / n_a + p_b (1 - p_b) / n_b). Too narrow for small counts.
    level : float
        Nominal coverage of the interval.
    measure : str
        What the proportions are.
    names : sequence of str, optional
        The models; A and B otherwise.

    Returns
    -------
    Comparison
        When all items are successes, or none, the p-value is 1.

    Raises
    ------
    ValueError
        When a count is out of range or looks like a proportion, `method` or `interval` is unknown, or `level` is not
        strictly between 0 and 1.
    TypeError
        When a count is not a number.

    Examples
    --------
    >>> from milfast.uncertainty import compare_proportions
    >>> compare_proportions(8402, 10_000, 8248, 10_000)
    Comparison(A - B: 0.015 [0.005, 0.026], p = 0.0035, method='two-proportion z', n=20000)
    """
    size_a, size_b = _trials(n_a, "n_a"), _trials(n_b, "n_b")
    count_a, count_b = _of(k_a, size_a, "a"), _of(k_b, size_b, "b")
    _require_level(level)
    title = _choose(method, {"z": "two-proportion z", "fisher": "Fisher's exact"})
    if interval not in _RULES:
        raise ValueError(f"interval must be one of {', '.join(_RULES)}; got {interval!r}")
    low, high = _RULES[interval](count_a, size_a, count_b, size_b, level)
    p_a, p_b = count_a / size_a, count_b / size_b
    pooled = (count_a + count_b) / (size_a + size_b)
    notes: tuple[str, ...] = ()
    if method == "fisher":
        statistic, log_p = math.nan, _log_fisher(count_a, size_a, count_b, size_b)
    elif 0 < pooled < 1:
        statistic = (p_a - p_b) / math.sqrt(pooled * (1 - pooled) * (1 / size_a + 1 / size_b))
        log_p = log_two_sided_normal(statistic)
        expected = min(size_a, size_b) * min(pooled, 1 - pooled)
        if expected < 5:
            notes = (f"{expected:.1f} successes or failures are expected: method='fisher' is safer below 5",)
    else:
        statistic, log_p = 0.0, 0.0
        notes = ("all items are alike: nothing tells the two apart",)
    return Comparison(
        names=read_names(names, 2),
        estimates=(p_a, p_b),
        difference=Interval(p_a - p_b, low, high, float(level), interval, size_a + size_b),
        log_p=log_p,
        statistic=statistic,
        df=(),
        method=title,
        n=size_a + size_b,
        measure=measure,
        paired=False,
        notes=notes,
        details={"k_a": count_a, "n_a": size_a, "k_b": count_b, "n_b": size_b},
    )


def _log_fisher(k_a: float, n_a: int, k_b: float, n_b: int) -> float:
    """Log of the probability of all tables with the same margins that are no likelier than this one."""
    # Imported here because scipy takes longer to load than the rest of milfast.
    import numpy as np
    from scipy.special import gammaln

    for k, name in ((k_a, "k_a"), (k_b, "k_b")):
        if k != int(k):
            raise ValueError(f"{name} must be whole for method='fisher'; got {k:g}")
    total = int(k_a + k_b)
    tables = np.arange(max(0, total - n_b), min(n_a, total) + 1)

    def choose(n: int, r: Any) -> Any:
        return gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1)

    logs = choose(n_a, tables) + choose(n_b, total - tables) - choose(n_a + n_b, total)
    own = logs[int(k_a) - int(tables[0])]
    # ties count, whatever rounding makes of them
    kept = logs[logs <= own + 1e-7]
    if len(kept) == len(logs):
        return 0.0
    return min(0.0, float(np.logaddexp.reduce(kept)))


# -------------------------------------------------------------------- intervals for a difference


def _newcombe(k_a: float, n_a: int, k_b: float, n_b: int, level: float) -> tuple[float, float]:
    p_a, p_b = k_a / n_a, k_b / n_b
    low_a, high_a = _wilson(k_a, n_a, level)
    low_b, high_b = _wilson(k_b, n_b, level)
    gap = p_a - p_b
    return gap - math.hypot(p_a - low_a, high_b - p_b), gap + math.hypot(high_a - p_a, p_b - low_b)


def _wald(k_a: float, n_a: int, k_b: float, n_b: int, level: float) -> tuple[float, float]:
    p_a, p_b = k_a / n_a, k_b / n_b
    half = _z(level) * math.sqrt(p_a * (1 - p_a) / n_a + p_b * (1 - p_b) / n_b)
    return max(-1.0, p_a - p_b - half), min(1.0, p_a - p_b + half)


def _agresti_caffo(k_a: float, n_a: int, k_b: float, n_b: int, level: float) -> tuple[float, float]:
    return _wald(k_a + 1, n_a + 2, k_b + 1, n_b + 2, level)


def _score(k_a: float, n_a: int, k_b: float, n_b: int, level: float) -> tuple[float, float]:
    z, gap = _z(level), k_a / n_a - k_b / n_b
    return crossing(lambda d: _score_statistic(k_a, n_a, k_b, n_b, d) < z, -1.0, gap), crossing(
        lambda d: _score_statistic(k_a, n_a, k_b, n_b, d) < -z, gap, 1.0
    )


def _score_statistic(k_a: float, n_a: int, k_b: float, n_b: int, delta: float) -> float:
    """Miettinen and Nurminen's z against p_a - p_b = delta; positive when the observed difference is larger."""
    p_b = _restricted(k_a, n_a, k_b, n_b, delta)
    p_a = min(1.0, max(0.0, p_b + delta))
    n = n_a + n_b
    variance = (p_a * (1 - p_a) / n_a + p_b * (1 - p_b) / n_b) * n / (n - 1)
    gap = k_a / n_a - k_b / n_b - delta
    if variance <= 0:
        return 0.0 if abs(gap) < 1e-12 else math.copysign(math.inf, gap)
    return gap / math.sqrt(variance)


def _restricted(k_a: float, n_a: int, k_b: float, n_b: int, delta: float) -> float:
    """The likeliest p_b when p_a = p_b + delta: where the slope of the likelihood, which falls, is 0."""

    def falls(p: float) -> bool:
        slope = 0.0
        for k, n, q in ((k_a, n_a, p + delta), (k_b, n_b, p)):
            slope += (k / q if k else 0.0) if q > 0 else (math.inf if k else 0.0)
            slope -= ((n - k) / (1 - q) if k < n else 0.0) if q < 1 else (math.inf if k < n else 0.0)
        return not slope > 0

    return crossing(falls, max(0.0, -delta), min(1.0, 1 - delta))


_RULES: dict[str, Callable[[float, int, float, int, float], tuple[float, float]]] = {
    "newcombe": _newcombe,
    "agresti-caffo": _agresti_caffo,
    "score": _score,
    "wald": _wald,
}


# -------------------------------------------------------------------- reading arguments


def _trials(n: Any, name: str) -> int:
    try:
        return _count(n)
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("n must", f"{name} must")) from None


def _of(k: Any, n: int, side: str) -> float:
    try:
        return _successes(k, n)
    except (TypeError, ValueError) as error:
        text = str(error).replace("n=", f"n_{side}=").replace("* n", f"* n_{side}")
        raise type(error)(
            text.replace("k must", f"k_{side} must").replace("k counts", f"k_{side} counts").replace("k=", f"k_{side}=")
        ) from None
