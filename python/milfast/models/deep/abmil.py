"""ABMIL: sum of instance embeddings weighted by attention (Ilse et al. 2018).

MIL assumption: **none**, although its authors start from the standard one. The embeddings of a bag are averaged with
weights that add up to 1 and the head may weigh a feature of the average negatively: one more instance draws weight from
the others or pulls the average back, so it can lower the bag logit, and what a bag lacks can be evidence.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn

from milfast.models.deep.attention import Attention, AttentionMIL
from milfast.models.deep.layers import Perceptron
from milfast.training.ragged import segment_softmax, segment_sum

__all__ = ["ABMIL"]

NAME = "ABMIL"
REQUIRES = ("torch",)


class AttentionNetwork(nn.Module):
    """Bag logit ``c . sum_i a_i h_i + b`` of embeddings ``h_i`` and attention ``a = softmax_i(w . tanh(V h_i))``.

    Parameters
    ----------
    n_features : int
    hidden : int
        Length of an embedding, which a perceptron of three layers makes.
    dropout : float
        Of the perceptron, in [0, 1).
    attention_dim : int
    gated : bool
        See `milfast.models.deep.attention.Attention`.

    Examples
    --------
    >>> import torch
    >>> network = AttentionNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(
        self,
        n_features: int,
        hidden: int = 128,
        dropout: float = 0.5,
        attention_dim: int = 128,
        *,
        gated: bool = False,
    ) -> None:
        super().__init__()
        self.embed = Perceptron(n_features, hidden, dropout)
        self.attention = Attention(hidden, attention_dim, gated=gated)
        self.head = nn.Linear(hidden, 1)

    def instance_weights(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Attention of each instance, shape (n_instances,).

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)

        Returns
        -------
        Tensor, shape (n_instances,)
        """
        return self._attended(instances, offsets)[1].squeeze(1)

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
        embedded, weights = self._attended(instances, offsets)
        logits: Tensor = self.head(segment_sum(weights * embedded, offsets))
        return logits.squeeze(1)

    def _attended(self, instances: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings, and their weights as a column."""
        embedded = self.embed(instances)
        return embedded, segment_softmax(self.attention(embedded), offsets)


class ABMIL(AttentionMIL):
    """ABMIL: attention over the instances of a bag, and a linear head on their weighted sum.

    Other parameters and methods are those of `DeepMIL`. Optimiser and rates are the published ones, except that a step
    takes 32 bags and not one. The published network embeds images by LeNet; instances that are vectors are embedded by
    the perceptron of mi-Net instead. The published loss clamps probabilities to [1e-5, 1 - 1e-5], which is not needed
    for a loss of logits.

    It respects **no** MIL assumption: a further instance takes attention from the others, and can lower the bag logit.

    Parameters
    ----------
    attention_dim : int
        Width of the attention's hidden layer.
    lr, weight_decay, optimizer, clip_value
        Of `DeepMIL`.

    References
    ----------
    .. [1] M. Ilse, J. Tomczak, M. Welling, "Attention-based deep multiple instance learning", ICML 2018, equations 7
       and 8.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> model = ABMIL(hidden=8, epochs=2, random_state=0).fit(bags)
    >>> model.predict_proba(bags).shape, model.instance_weights(bags).shape
    ((2, 2), (3,))
    """

    claims: ClassVar[str | None] = "standard"

    def __init__(
        self,
        *,
        attention_dim: int = 128,
        lr: float = 5e-4,
        weight_decay: float = 1e-4,
        optimizer: str = "adam",
        clip_value: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(lr=lr, weight_decay=weight_decay, optimizer=optimizer, clip_value=clip_value, **settings)
        self.attention_dim = attention_dim

    def build(self, n_features: int) -> nn.Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return AttentionNetwork(n_features, self.hidden, self.dropout, self.attention_dim)
