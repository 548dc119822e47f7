"""The AUC of scores that come in parts: batch by batch, or from many machines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast import _core

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike

__all__ = ["AUCAccumulator", "AccumulatedAUC"]


@dataclass(frozen=True)
class AccumulatedAUC:
    """An AUC from an accumulator, with bounds that are certain.

    Attributes
    ----------
    auc : float
        The estimate, within the bounds; NaN when a class is absent.
    low, high : float
        The exact AUC of all scores lies between them, both included. They say nothing about a wider population: an
        interval for that is `milfast.uncertainty.auc_interval`.
    n_pos, n_neg : int
        Class sizes.

    Examples
    --------
    >>> from milfast.accumulator import AccumulatedAUC
    >>> AccumulatedAUC(auc=0.75, low=0.7, high=0.8, n_pos=2, n_neg=2).to_dict()
    {'auc': 0.75, 'low': 0.7, 'high': 0.8, 'n_pos': 2, 'n_neg': 2}
    """

    auc: float
    low: float
    high: float
    n_pos: int
    n_neg: int

    def to_dict(self) -> dict[str, Any]:
        """Every attribute by name, ready for JSON.

        Returns
        -------
        dict
            An undefined AUC is None here, because JSON has no NaN.
        """
        return {name: None if value != value else value for name, value in asdict(self).items()}


class AUCAccumulator:
    """AUC of scores that do not fit into memory, or that lie on several machines.

    Scores are counted in bins that are the same everywhere, whatever the data: cut from the sign, the exponent and the
    first bits of the mantissa of a float64. So any two accumulators with the same `bins` can be merged, in any order,
    with the same result as one that has seen all scores. The order of two scores in one bin is not known, unless the
    bin has held a single value; the result counts such pairs once as lost and once as won, and so bounds the exact AUC
    from both sides. An accumulator can be pickled.

    Parameters
    ----------
    exact : bool, default False
        Keep all scores, in float64: the result is the AUC itself, and memory grows by nine bytes a score.
    bins : int, default 1024
        Bins between a power of two and the next (from 1 to 2, from 2 to 4, ...): itself a power of two up to 65536.
        Scores that differ by more than a share of 1/bins lie in different bins. A power of two costs 24 bytes a bin
        where there are scores in it. Scores that crowd elsewhere than at zero, such as probabilities near one, lie in
        few bins: give logits where there are any.

    Raises
    ------
    ValueError
        When `bins` is not a power of two from 1 to 65536.

    Examples
    --------
    >>> import milfast as mf
    >>> first, second = mf.AUCAccumulator(), mf.AUCAccumulator()
    >>> first.update([0.1, 0.8], [0, 1])
    >>> second.update([0.4, 0.35], [0, 1])
    >>> first.merge(second)
    >>> first.result()
    AccumulatedAUC(auc=0.75, low=0.75, high=0.75, n_pos=2, n_neg=2)
    """

    def __init__(self, *, exact: bool = False, bins: int = 1024) -> None:
        if not exact and (isinstance(bins, bool) or not isinstance(bins, (int, np.integer))):
            raise TypeError(f"bins must be an integer; got {type(bins).__name__}")
        if not exact and not 0 < bins <= 1 << 16:
            raise ValueError(f"bins must be a power of two from 1 to 65536; got {bins}")
        self._bins = None if exact else int(bins)
        self._core = _core.Accumulator(self._bins)

    @property
    def exact(self) -> bool:
        """Whether all scores are kept."""
        return self._bins is None

    @property
    def bins(self) -> int | None:
        """Bins between a power of two and the next; None when all scores are kept."""
        return self._bins

    def update(self, scores: ArrayLike, labels: ArrayLike, *, pos_label: object = None) -> None:
        """Take scores and labels in: all of them or, on an error, none.

        Parameters
        ----------
        scores : array_like, shape (n,)
            As in `milfast.auc`.
        labels : array_like, shape (n,)
            As in `milfast.auc`.
        pos_label : object, optional
            The label of the positive class.

        Raises
        ------
        ValueError, TypeError
            As `milfast.auc`; when a class would have 2**63 members; with ``exact=True`` when a score is an integer
            that float64 cannot hold.
        """
        self._core.update(scores, labels, pos_label=pos_label)

    def merge(self, other: AUCAccumulator) -> None:
        """Take in all that another accumulator has seen: as if its scores had been given to this one.

        Parameters
        ----------
        other : AUCAccumulator
            With the same `exact` and `bins`. It is left as it is.

        Raises
        ------
        ValueError
            When `exact` or `bins` differ, or a class would have 2**63 members.
        TypeError
            When `other` is something else.
        """
        if not isinstance(other, AUCAccumulator):
            raise TypeError(f"other must be an AUCAccumulator; got {type(other).__name__}")
        self._core.merge(other._core)

    def result(self) -> AccumulatedAUC:
        """What is known about the AUC of all scores so far.

        Returns
        -------
        AccumulatedAUC
            Estimate, bounds and class sizes. Estimate and bounds are NaN when a class is absent.
        """
        return AccumulatedAUC(*self._core.bounds())

    def to_dict(self) -> dict[str, Any]:
        """The whole state, in lists: ready for JSON, and for `from_dict` elsewhere.

        Returns
        -------
        dict
            ``bins``, and for each bin that holds scores its number, its only value (None where it has held several)
            and its numbers of negatives and positives; or all scores and labels.

        Examples
        --------
        >>> import milfast as mf
        >>> accumulator = mf.AUCAccumulator(bins=1)
        >>> accumulator.update([1.0, 1.5, 4.0], [0, 1, 1])
        >>> accumulator.to_dict()
        {'bins': 1, 'number': [3071, 3073], 'value': [None, 4.0], 'neg': [1, 0], 'pos': [1, 1]}
        >>> mf.AUCAccumulator.from_dict(accumulator.to_dict()).result() == accumulator.result()
        True
        """
        state: dict[str, Any] = {name: getattr(v, "tolist", lambda v=v: v)() for name, v in self.__getstate__().items()}
        if "value" in state:
            state["value"] = [None if value != value else value for value in state["value"]]
        return state

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> AUCAccumulator:
        """An accumulator with the state that `to_dict` gave.

        Parameters
        ----------
        state : mapping

        Returns
        -------
        AUCAccumulator

        Raises
        ------
        ValueError, TypeError
            When the state is not that of an accumulator.
        """
        accumulator = cls.__new__(cls)
        accumulator.__setstate__(state)
        return accumulator

    def __getstate__(self) -> dict[str, Any]:
        held, kept = self._core.held(), self._core.kept()
        if held is not None:
            return {"bins": self._bins, **dict(zip(("number", "value", "neg", "pos"), held, strict=True))}
        return {"bins": None, **dict(zip(("score", "label"), kept or (), strict=True))}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        names = ("score", "label") if state.get("bins") is None else ("number", "value", "neg", "pos")
        if set(state) != {"bins", *names}:
            raise ValueError(f"state must have the entries bins, {', '.join(names)}; got {', '.join(map(str, state))}")
        bins = state["bins"]
        AUCAccumulator.__init__(self, exact=bins is None, bins=1 if bins is None else bins)
        if bins is None:
            self._core.update(np.asarray(state["score"], dtype=float), np.asarray(state["label"], dtype=bool))
        else:
            value = np.asarray(state["value"], dtype=float)  # None becomes NaN
            self._core.restore(state["number"], value, state["neg"], state["pos"])

    def __repr__(self) -> str:
        options = "exact=True" if self.exact else f"bins={self._bins}"
        _, low, high, n_pos, n_neg = self._core.bounds()
        return f"AUCAccumulator({options}): AUC in [{low:.6g}, {high:.6g}], n_pos={n_pos}, n_neg={n_neg}"
