"""Hopfield: Hopfield pooling of the instances as they are, as tested by Raff & Holt (2023).

MIL assumption: **none**, although table 1 of Raff & Holt lists the threshold assumption as its claim. With its
LayerNorms, which it has unless told otherwise, it cannot see any signal of the three published tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from milfast.models.deep.base import DeepMIL, whole_number
from milfast.models.deep.hopfield_pooling import HopfieldPooling

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["Hopfield"]

NAME = "Hopfield"
REQUIRES = ("torch",)


class HopfieldNetwork(nn.Module):
    """Bag logit ``w . pooled(x) + b``.

    Parameters
    ----------
    n_features : int
    hidden : int
        Dimensions of a head.
    heads : int
    norm : bool
        Whether instances go through a LayerNorm.

    Examples
    --------
    >>> import torch
    >>> network = HopfieldNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(self, n_features: int, hidden: int = 128, *, heads: int = 8, norm: bool = True) -> None:
        super().__init__()
        self.pool = HopfieldPooling(n_features, hidden, heads, norm=norm)
        self.head = nn.Linear(n_features, 1)

    def forward(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Logit of each bag.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)

        Returns
        -------
        Tensor, shape (n_bags,)
        """
        logits: Tensor = self.head(self.pool(instances, offsets))
        return logits.squeeze(1)


class Hopfield(DeepMIL):
    """Hopfield pooling without an embedding before it, then a linear head.

    It respects **no** MIL assumption: what is pooled is a weighted mean. With `norm`, which is how it was tested, the
    published tests say nothing about its pooling: a LayerNorm takes away what adds a multiple of (1, ..., 1) to an
    instance or multiplies it, and there is no other signal in them. It then stays near chance. The model
    Hopfield-embedded has a perceptron before the pooling.

    Parameters
    ----------
    heads : int
        Of `hidden` dimensions each.
    norm : bool
        Whether instances go through a LayerNorm of their own before anything else.
    **settings
        Those of `DeepMIL`; there is no dropout in this model.

    References
    ----------
    .. [1] H. Ramsauer et al., "Hopfield networks is all you need", ICLR 2021.
    .. [2] E. Raff, J. Holt, "Reproducibility in multiple instance learning: a case for algorithmic unit tests",
       NeurIPS 2023 (the first of three variants in their notebook).

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> Hopfield(hidden=8, epochs=2, random_state=0).fit(bags).predict_proba(bags).shape
    (2, 2)
    """

    claims: ClassVar[str] = "threshold"

    def __init__(self, *, dropout: float = 0.0, heads: int = 8, norm: bool = True, **settings: Any) -> None:
        super().__init__(dropout=dropout, **settings)
        self.heads = heads
        self.norm = norm

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole_number("heads", self.heads)
        if not isinstance(self.norm, bool):
            raise TypeError(f"norm must be True or False; got {self.norm!r}")

    def build(self, n_features: int) -> Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return HopfieldNetwork(n_features, self.hidden, heads=self.heads, norm=self.norm)
