"""Which of several margins and epochs is taken, by what it scored on bags that did not train it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ties: TypeAlias = Literal["first", "last", "mean", "final"]
#: Rules, and what they do.
TIES: dict[str, str] = {
    "first": "of the best epochs the earliest, of its margins the smallest",
    "last": "of the best epochs the latest, of its margins the largest",
    "mean": "the mean over all that are best",
    "final": "the last epoch, with its best margin, the smallest of several",
}


@dataclass(frozen=True)
class Choice:
    """What a rule takes.

    Attributes
    ----------
    taken : ndarray of int64, shape (n_taken, 2)
        Margin and epoch, as places in the table; one row unless the rule is "mean".
    n_ties : int
        How many of the candidates reach the best value, those that are taken among them.
    value : float
        The best value.
    tied : ndarray of int64, shape (n_ties, 2)
        All that reach it.
    """

    taken: NDArray[np.int64]
    n_ties: int
    value: float
    tied: NDArray[np.int64]


def choose(values: NDArray[np.float64], ties: str = "first") -> Choice:
    """Take the best of a table of margins and epochs.

    With few bags to choose by, many candidates are best. Papers seldom say which of them was taken, and what they score
    on other bags differs.

    Parameters
    ----------
    values : ndarray of float64, shape (n_margins, n_epochs)
        Higher is better.
    ties : {"first", "last", "mean", "final"}
        Which of the best candidates is taken; see `TIES`.

    Returns
    -------
    Choice

    Raises
    ------
    ValueError
        When the table is empty or holds a NaN, or there is no such rule.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.protocol.selection import choose
    >>> table = np.array([[0.5, 0.9, 0.8], [0.7, 0.9, 0.9]])
    >>> [choose(table, rule).taken.tolist() for rule in ("first", "last", "mean", "final")]
    [[[0, 1]], [[1, 2]], [[0, 1], [1, 1], [1, 2]], [[1, 2]]]
    >>> choose(table).n_ties
    3
    """
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}; got {ties!r}")
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"values must have shape (n_margins, n_epochs), neither 0; got {values.shape}")
    if np.isnan(values).any():
        margin, epoch = np.argwhere(np.isnan(values))[0]
        raise ValueError(f"values[{margin}, {epoch}] is NaN: there is nothing to choose by")
    allowed = np.ones(values.shape, dtype=bool)
    if ties == "final":
        allowed[:, :-1] = False
    best = float(values[allowed].max())
    # by epoch, and within an epoch by margin
    tied = np.argwhere((allowed & (values == best)).T)[:, ::-1].astype(np.int64)
    taken = {"mean": tied, "last": tied[-1:]}.get(ties, tied[:1])
    return Choice(taken, len(tied), best, tied)
