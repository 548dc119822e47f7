"""DSMIL: the best instance, and attention by similarity to it (Li, Li & Eliceiri 2021).

MIL assumption: **none**, although its authors start from the standard one. Half of the bag logit is the largest
instance logit, which respects it; the other half is a linear head on a weighted average, in which a further instance
can lower the logit, or turn all attention elsewhere by becoming the critical one.
"""

from __future__ import annotations

from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional

from milfast.models.deep.attention import AttentionMIL
from milfast.models.deep.layers import Perceptron
from milfast.training.ragged import segment_argmax, segment_index, segment_softmax, segment_sum

__all__ = ["DSMIL"]

NAME = "DSMIL"
REQUIRES = ("torch",)


class DualStreamNetwork(nn.Module):
    """Bag logit ``(s_m + w_b . sum_i u_i v_i + b_b) / 2`` around the critical instance ``m``.

    ``s_i = w_0 . h_i + b_0`` of embeddings ``h_i``, ``m = argmax_i s_i``, ``q_i = W_q h_i + b_q``,
    ``v_i = W_v h_i + b_v`` and ``u = softmax_i(q_i . q_m)``.

    Parameters
    ----------
    n_features : int
    hidden : int
        Length of an embedding, which a perceptron of three layers makes.
    dropout : float
        Of the perceptron, in [0, 1).
    attention_dim : int
        Length of ``q_i``.

    Notes
    -----
    Only the critical instance is projected by W_q, and only the average by W_v: ``q_i . q_m`` is
    ``h_i . W_q' q_m`` up to a term that is the same for all ``i``, and the ``u_i`` add up to 1.

    Examples
    --------
    >>> import torch
    >>> network = DualStreamNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(self, n_features: int, hidden: int = 128, dropout: float = 0.5, attention_dim: int = 128) -> None:
        super().__init__()
        self.embed = Perceptron(n_features, hidden, dropout)
        self.instance_head = nn.Linear(hidden, 1)
        self.query = nn.Linear(hidden, attention_dim)
        self.value = nn.Linear(hidden, hidden)
        self.bag_head = nn.Linear(hidden, 1)

    def instance_logits(self, instances: Tensor) -> Tensor:
        """Logit of each instance.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)

        Returns
        -------
        Tensor, shape (n_instances,)
        """
        logits: Tensor = self.instance_head(self.embed(instances))
        return logits.squeeze(1)

    def _attention(self, embedded: Tensor, critical: Tensor, offsets: Tensor) -> Tensor:
        best = self.query(embedded.index_select(0, critical)) @ self.query.weight
        bag = segment_index(offsets, n_instances=len(embedded))
        return segment_softmax((embedded * best.index_select(0, bag)).sum(1), offsets)

    def instance_weights(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Attention of each instance.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)

        Returns
        -------
        Tensor, shape (n_instances,)
        """
        embedded = self.embed(instances)
        return self._attention(embedded, segment_argmax(self.instance_head(embedded).squeeze(1), offsets), offsets)

    def streams(self, instances: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of each bag by its critical instance and by all instances.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)

        Returns
        -------
        Tensor, shape (n_bags,)
        Tensor, shape (n_bags,)
        """
        embedded = self.embed(instances)
        logits = self.instance_head(embedded).squeeze(1)
        critical = segment_argmax(logits, offsets)
        weights = self._attention(embedded, critical, offsets)
        summary = self.value(segment_sum(weights[:, None] * embedded, offsets))
        return logits.index_select(0, critical), self.bag_head(summary).squeeze(1)

    def forward(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Logit of each bag, the mean of the two streams.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)

        Returns
        -------
        Tensor, shape (n_bags,)
        """
        first, second = self.streams(instances, offsets)
        return (first + second) / 2

    def training_loss(self, instances: Tensor, offsets: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Mean of the cross-entropies of the two streams, and the bag logits.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)
        labels : Tensor of floats, shape (n_bags,)

        Returns
        -------
        Tensor, shape ()
        Tensor, shape (n_bags,)
        """
        first, second = self.streams(instances, offsets)
        losses = [functional.binary_cross_entropy_with_logits(stream, labels) for stream in (first, second)]
        return (losses[0] + losses[1]) / 2, (first + second) / 2


class DSMIL(AttentionMIL):
    """DSMIL: the largest instance logit and an attention head, averaged in the logit and in the loss.

    Other parameters and methods are those of `DeepMIL`. Critical instances are sought among the instances of a bag,
    never among padding. The published model takes features of a pretrained network as embeddings; here a perceptron
    embeds, trained along. The optimiser is the published one, its rates those of ABMIL.

    It respects **no** MIL assumption: its first stream respects the standard one, its second stream none, so that the
    sum can fall when an instance is added.

    Parameters
    ----------
    attention_dim : int
        Length of the queries.
    lr, weight_decay, optimizer, clip_value
        Of `DeepMIL`.

    References
    ----------
    .. [1] B. Li, Y. Li, K. W. Eliceiri, "Dual-stream multiple instance learning network for whole slide image
       classification with self-supervised contrastive learning", CVPR 2021.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> model = DSMIL(hidden=8, epochs=2, random_state=0).fit(bags)
    >>> model.instance_weights(bags).shape, model.instance_scores(bags).shape
    ((3,), (3,))
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
        return DualStreamNetwork(n_features, self.hidden, self.dropout, self.attention_dim)
