"""MIL-Pooling: attention that sees the mean of the bag, as tested by Raff & Holt (2023).

MIL assumption: **none**, although the attention that it builds on claims the standard one (table 1 of Raff & Holt). The
weights of a bag add up to 1, so every further instance takes weight from the others, and a feature may be negative.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from milfast.models.deep.base import DeepMIL
from milfast.models.deep.layers import Perceptron
from milfast.training.ragged import segment_index, segment_mean, segment_softmax, segment_sum

__all__ = ["MILPooling"]

NAME = "MIL-Pooling"
REQUIRES = ("torch",)


class MILPoolingNetwork(nn.Module):
    """Bag logit ``sum_d sum_i a_i h_id`` with ``h_i = MLP3(x_i)`` and ``a = softmax_i(v . tanh(W [h_i; mean h] + b))``.

    Parameters
    ----------
    n_features : int
    hidden : int
        Width of the three hidden layers and of the attention.
    dropout : float
        After each hidden layer, in [0, 1).

    Examples
    --------
    >>> import torch
    >>> network = MILPoolingNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(self, n_features: int, hidden: int = 128, dropout: float = 0.5) -> None:
        super().__init__()
        self.embed = Perceptron(n_features, hidden, dropout)
        self.context = nn.Linear(2 * hidden, hidden)
        self.attention = nn.Linear(hidden, 1)

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
        embedded = self.embed(instances)
        bag = segment_index(offsets, n_instances=len(instances))
        # W [h; c] is W_h h + W_c c, and W_c c is the same for a whole bag
        of_instance, of_bag = self.context.weight.tensor_split(2, dim=1)
        seen = functional.linear(embedded, of_instance, self.context.bias)
        seen = seen + functional.linear(segment_mean(embedded, offsets), of_bag).index_select(0, bag)
        weights = segment_softmax(self.attention(torch.tanh(seen)).squeeze(1), offsets)
        return segment_sum(weights * embedded.sum(dim=1), offsets)


class MILPooling(DeepMIL):
    """MIL-Pooling: the sum of a pooled embedding. Parameters and methods are those of `DeepMIL`.

    It respects **no** MIL assumption: attention weights are relative, so an instance changes the weights of all others,
    and the model can learn from what is absent.

    References
    ----------
    .. [1] M. Ilse, J. Tomczak, M. Welling, "Attention-based deep multiple instance learning", ICML 2018. What was
       tested has no classifier: the pooled embedding is summed up.
    .. [2] E. Raff, J. Holt, "Reproducibility in multiple instance learning: a case for algorithmic unit tests",
       NeurIPS 2023 (widths, dropout and optimiser).

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> MILPooling(hidden=8, epochs=2, random_state=0).fit(bags).predict_proba(bags).shape
    (2, 2)
    """

    claims: ClassVar[str] = "standard"

    def build(self, n_features: int) -> nn.Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return MILPoolingNetwork(n_features, self.hidden, self.dropout)
