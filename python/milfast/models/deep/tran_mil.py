"""Tran-MIL: a transformer over the instances and a maximum per feature, as tested by Raff & Holt (2023).

MIL assumption: **none**. Table 1 of Raff & Holt lists the threshold assumption as its claim; TransMIL, which it is
named after, is about correlated instances. Each instance sees all others, so one more can change a bag either way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from milfast.models.deep.base import DeepMIL, whole_number
from milfast.models.deep.transformer import EncoderLayer
from milfast.training.ragged import Padding, segment_max

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["TranMIL"]

NAME = "Tran-MIL"
REQUIRES = ("torch",)


class TransformerNetwork(nn.Module):
    """Bag logit ``w . max_i T(E x)_i + b`` with a linear embedding E and transformer layers T.

    Parameters
    ----------
    n_features : int
    hidden : int
        Width of the embedding and of all layers; a multiple of `heads`.
    dropout : float
        In the layers, in [0, 1).
    layers, heads : int

    Examples
    --------
    >>> import torch
    >>> network = TransformerNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(
        self, n_features: int, hidden: int = 128, dropout: float = 0.1, *, layers: int = 3, heads: int = 8
    ) -> None:
        super().__init__()
        self.embed = nn.Linear(n_features, hidden)
        self.layers = nn.ModuleList(EncoderLayer(hidden, heads, hidden, dropout) for _ in range(layers))
        self.head = nn.Linear(hidden, 1)

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
        paddings = Padding.of(offsets)
        values = self.embed(instances)
        for layer in self.layers:
            values = layer(values, paddings)
        logits: Tensor = self.head(segment_max(values, offsets))
        return logits.squeeze(1)


class TranMIL(DeepMIL):
    """Tran-MIL: three transformer layers, then a linear head on the per-feature maximum.

    It respects **no** MIL assumption: instances see each other, and the head weighs features with either sign.

    Parameters
    ----------
    layers, heads : int
        `hidden` is a multiple of `heads`.
    **settings
        Those of `DeepMIL`; `dropout` is 0.1 here.

    References
    ----------
    .. [1] Z. Shao et al., "TransMIL: transformer based correlated multiple instance learning for whole slide image
       classification", NeurIPS 2021. What was tested is a plain transformer encoder: no Nystrom attention, no position
       encoding, no class token. For those see the model TransMIL.
    .. [2] E. Raff, J. Holt, "Reproducibility in multiple instance learning: a case for algorithmic unit tests",
       NeurIPS 2023 (widths, dropout and optimiser).

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> TranMIL(hidden=8, heads=2, epochs=2, random_state=0).fit(bags).predict_proba(bags).shape
    (2, 2)
    """

    claims: ClassVar[str] = "threshold"

    def __init__(self, *, dropout: float = 0.1, layers: int = 3, heads: int = 8, **settings: Any) -> None:
        super().__init__(dropout=dropout, **settings)
        self.layers = layers
        self.heads = heads

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole_number("layers", self.layers)
        whole_number("heads", self.heads)
        if self.hidden % self.heads:
            raise ValueError(f"hidden must be a multiple of heads, {self.heads}; got {self.hidden}")

    def build(self, n_features: int) -> Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return TransformerNetwork(n_features, self.hidden, self.dropout, layers=self.layers, heads=self.heads)
