"""What was published of the six problems, beside what was found."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

#: Setting of the default table.
N_ENV, D_INV, D_SPU = 3, 5, 5


@dataclass(frozen=True)
class Published:
    """One cell of a published table.

    Attributes
    ----------
    mean, sd : float
        Of the mean error over environments, over 50 data seeds; mean squared error for Example1 and Example1s, share of
        errors for the others.
    decimals : int
        How many were printed.
    environments : tuple of float or None
        Mean error in each environment, where that was published.
    trial : int or None
        Which of 20 trials was chosen, where that is known; 0 is the default.
    source : {"archive", "ib_irm"}
        The archive of results of Aubin et al. (2021), or table 3 of Ahuja et al. (2021).
    faulty : bool
        Whether the code of the time tested something else than it says: Example2 with `d_spu` other than `d_inv`, where
        it permuted the wrong columns. ``test_shuffle="2021"`` repeats it.
    """

    mean: float
    sd: float
    decimals: int
    environments: tuple[float, ...] | None
    trial: int | None
    source: str
    faulty: bool


@cache
def _tables() -> dict[str, Any]:
    text = files("milfast.invariance").joinpath("published.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


def published(
    learner: str, problem: str, *, n_env: int = N_ENV, d_inv: int = D_INV, d_spu: int = D_SPU
) -> Published | None:
    """Published figures of a learner on a problem.

    Parameters
    ----------
    learner : str
        ERM, IRMv1, IGA, AND-mask or Oracle; also IB-ERM and IB-IRM.
    problem : str
        Example1, Example1s, Example2, Example2s, Example3 or Example3s.
    n_env, d_inv, d_spu : int
        Environments, and features of either sort.

    Returns
    -------
    Published or None
        None where nothing was published.

    Examples
    --------
    >>> from milfast.invariance.published import published
    >>> found = published("ERM", "Example1")
    >>> found.mean, found.sd, found.environments, found.trial
    (13.3629, 1.4867, (1.622, 14.2489, 24.2177), 4)
    >>> published("ERM", "Example2", d_spu=10).faulty
    True
    """
    tables = _tables()
    if d_inv != D_INV or (n_env != N_ENV and d_spu != D_SPU):
        return None
    coarse = 2 if problem.startswith("Example1") else 4
    if (n_env, d_spu) == (N_ENV, D_SPU):
        pair, decimals = tables["default"].get(problem, {}).get(learner), 4
    elif n_env != N_ENV:
        pair, decimals = tables["n_env"].get(problem, {}).get(str(n_env), {}).get(learner), coarse
    else:
        pair, decimals = tables["d_spu"].get(problem, {}).get(str(d_spu), {}).get(learner), coarse
    if pair is None:
        if d_spu == D_SPU and learner in ("IB-ERM", "IB-IRM"):
            pair = tables["ib_irm"].get(problem, {}).get(str(n_env), {}).get(learner)
        return None if pair is None else Published(pair[0], pair[1], 2, None, None, "ib_irm", False)
    default = (n_env, d_spu) == (N_ENV, D_SPU)
    return Published(
        mean=pair[0],
        sd=pair[1],
        decimals=decimals,
        environments=tuple(tables["environments"][problem][learner]) if default else None,
        trial=tables["selected"][problem][learner] if default else None,
        source="archive",
        faulty=problem.startswith("Example2") and d_spu != D_INV,
    )


def sources() -> dict[str, str]:
    """Where the figures are from.

    Returns
    -------
    dict of str to str
    """
    return dict(_tables()["source"])
