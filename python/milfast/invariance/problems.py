"""The six problems by name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import numpy as np

from milfast.invariance.example1 import Example1
from milfast.invariance.example2 import Example2
from milfast.invariance.example3 import Example3
from milfast.invariance.problem import TEST_SHUFFLES, Problem
from milfast.invariance.sources import RNGS
from milfast.seeding import root_seed

if TYPE_CHECKING:
    from milfast.seeding import RandomState

FAMILIES: dict[str, type[Problem]] = {
    f"{family.__name__}{scrambled}": family for family in (Example1, Example2, Example3) for scrambled in ("", "s")
}


def names() -> list[str]:
    """Names of the problems; those with an s at the end are scrambled.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from milfast import invariance
    >>> invariance.names()
    ['Example1', 'Example1s', 'Example2', 'Example2s', 'Example3', 'Example3s']
    """
    return list(FAMILIES)


def make_problem(
    name: str,
    *,
    d_inv: int = 5,
    d_spu: int = 5,
    n_env: int = 3,
    random_state: RandomState = None,
    rng: str = "native",
    test_shuffle: str = "invariant",
) -> Problem:
    """One of the linear unit tests of Aubin et al. [1]_, with everything drawn that comes before its rows.

    Parameters
    ----------
    name : str
        One of `names`.
    d_inv, d_spu : int
        Numbers of invariant and of spurious features, of which there is one at least. Without invariant features the
        target of Example1 and Example2 is 0 in all rows.
    n_env : int
        Number of environments. Example1 and Example2 have given parameters in the first three and random ones beyond.
        The published code has no rows for fewer than two.
    random_state : int, numpy.random.Generator, numpy.random.SeedSequence or None
        With ``rng="torch"`` the published data seed, 0 to 49 in the paper.
    rng : {"native", "torch"}
        What draws. "torch" gives the published rows bit for bit; it needs torch, whose global generator it leaves
        alone. The two agree in distribution.
    test_shuffle : {"invariant", "2021"}
        What is permuted in the test split: columns from d_inv on, or, for Example2 and Example2s, columns from d_spu
        on, as in the published code until 2021-11-29 and so in the published tables. It is the same where
        d_spu = d_inv.

    Returns
    -------
    Problem

    Raises
    ------
    ValueError
        When an argument is out of range, or there is no problem of that name.
    TypeError
        When `random_state` is no seed.
    ImportError
        When torch is asked for and missing.

    References
    ----------
    .. [1] Aubin, Słowik, Arjovsky, Bottou & Lopez-Paz (2021), Linear unit-tests for invariance discovery.

    Examples
    --------
    >>> from milfast.invariance import make_problem
    >>> problem = make_problem("Example1", random_state=0)
    >>> float(problem.invariant_risk.mean().round(4))
    10.4333
    >>> [rows.X.shape for rows in problem.draw(1000).train]
    [(1000, 10), (1000, 10), (1000, 10)]
    """
    if name not in FAMILIES:
        near = difflib.get_close_matches(str(name), FAMILIES, n=1, cutoff=0.8)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"there is no problem {name!r}: {hint}known are {', '.join(FAMILIES)}")
    for argument, value, least in (("d_inv", d_inv, 0), ("d_spu", d_spu, 0), ("n_env", n_env, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise ValueError(f"{argument} must be an integer of at least {least}; got {value!r}")
    if d_inv + d_spu == 0:
        raise ValueError("d_inv and d_spu are both 0: give a problem one feature at least")
    for argument, chosen, known in (("rng", rng, RNGS), ("test_shuffle", test_shuffle, TEST_SHUFFLES)):
        if chosen not in known:
            raise ValueError(f"{argument} must be one of {', '.join(known)}; got {chosen!r}")
    return FAMILIES[name].make(
        name,
        int(d_inv),
        int(d_spu),
        int(n_env),
        random_state=root_seed(random_state),
        rng=rng,
        test_shuffle=test_shuffle,
    )
