"""What CLAM-SB and CLAM-MB share: gated attention, and clustering of the instances it puts first and last."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from milfast.models.deep.attention import Attention, AttentionMIL
from milfast.models.deep.base import positive_number, whole_number
from milfast.models.deep.layers import Dropout
from milfast.training.ragged import segment_index, segment_softmax, segment_sum

__all__ = ["ClamMIL", "ClamNetwork", "segment_places"]


def segment_places(values: Tensor, offsets: Tensor) -> Tensor:
    """Place of each instance in its bag, 0 for that with the largest value.

    Parameters
    ----------
    values : Tensor, shape (n_instances,)
    offsets : Tensor of int64, shape (n_bags + 1,)
        On the device of `values`.

    Returns
    -------
    Tensor of int64, shape (n_instances,)
        Equal values are placed in the order of rows.

    Examples
    --------
    >>> import torch
    >>> segment_places(torch.tensor([1.0, 2.0, 5.0, 2.0]), torch.tensor([0, 1, 4]))
    tensor([0, 1, 0, 2])
    """
    bag = segment_index(offsets, n_instances=len(values))
    rows = torch.argsort(values.detach(), descending=True, stable=True)
    rows = rows[torch.argsort(bag[rows], stable=True)]
    places = torch.arange(len(values), device=values.device) - offsets[:-1][bag]
    return torch.empty_like(places).scatter_(0, rows, places)


class ClamNetwork(nn.Module):
    """CLAM for the classes 0 and 1, with one attention branch for both (SB) or one for each (MB).

    Embeddings ``h_i = ReLU(W x_i + b)``; gated attention ``a_ic`` of branch ``c``; scores of the classes
    ``s_c = w_c . sum_i a_ic h_i + b_c``; bag logit ``s_1 - s_0``, whose cross-entropy is that of the softmax of both.

    The clustering loss of a bag with label ``c`` takes the ``k`` instances with the largest attention of that class as
    positive examples of the instance classifier of class ``c``, which has two outputs ``p = W_c h_i + b_c``, and the
    ``k`` with the smallest as negative ones. It is the mean over them of the smooth top-1 SVM loss with margin and
    temperature 1, ``log sum_j exp([j != t] + p_j - p_t)`` with target ``t``, for two outputs
    ``softplus(1 + p_other - p_t)``.

    Parameters
    ----------
    n_features : int
    hidden : int
        Length of an embedding.
    dropout : float
        Of embeddings and of the hidden layer of attention, in [0, 1).
    attention_dim : int
    n_sampled : int
        Instances taken at each end. Of a bag of n it is at most ``n // 2``, so that no instance is on both sides; a bag
        of one has no clustering loss.
    bag_weight : float
        Share of the bag loss in the loss.
    branches : {1, 2}

    Examples
    --------
    >>> import torch
    >>> network = ClamNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(
        self,
        n_features: int,
        hidden: int = 128,
        dropout: float = 0.25,
        attention_dim: int = 256,
        n_sampled: int = 8,
        bag_weight: float = 0.7,
        *,
        branches: int = 1,
    ) -> None:
        super().__init__()
        self.n_sampled = n_sampled
        self.bag_weight = bag_weight
        self.branches = branches
        self.embed = nn.Sequential(nn.Linear(n_features, hidden), nn.ReLU(), Dropout(dropout))
        self.attention = Attention(hidden, attention_dim, gated=True, branches=branches, dropout=dropout)
        self.head = nn.Linear(hidden, 2)
        # two outputs for each class
        self.clusters = nn.Linear(hidden, 4)

    def instance_logits(self, instances: Tensor) -> Tensor:
        """What the instance classifier of class 1 says of each instance: ``p_1 - p_0``.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)

        Returns
        -------
        Tensor, shape (n_instances,)
        """
        outputs: Tensor = self.clusters(self.embed(instances))
        return outputs[:, 3] - outputs[:, 2]

    def instance_weights(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Attention of each instance; with two branches that of class 1.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)

        Returns
        -------
        Tensor, shape (n_instances,)
        """
        return segment_softmax(self.attention(self.embed(instances))[:, -1], offsets)

    def _logits(self, embedded: Tensor, attention: Tensor, offsets: Tensor) -> Tensor:
        weights = segment_softmax(attention, offsets)
        if self.branches == 1:
            scores: Tensor = self.head(segment_sum(weights * embedded, offsets))
        else:
            # as the head is linear, each class can be summed after it
            scores = segment_sum(weights * functional.linear(embedded, self.head.weight), offsets) + self.head.bias
        return scores[:, 1] - scores[:, 0]

    def clustering_losses(self, embedded: Tensor, attention: Tensor, offsets: Tensor, labels: Tensor) -> Tensor:
        """Clustering loss of each bag.

        Parameters
        ----------
        embedded : Tensor, shape (n_instances, hidden)
        attention : Tensor, shape (n_instances, branches)
            Before the softmax.
        offsets : Tensor of int64, shape (n_bags + 1,)
        labels : Tensor, shape (n_bags,)
            In {0, 1}.

        Returns
        -------
        Tensor, shape (n_bags,)
        """
        bag = segment_index(offsets, n_instances=len(embedded))
        sizes = offsets.diff()
        ends = (sizes // 2).clamp(max=self.n_sampled)
        own = labels.long()[bag]
        places = segment_places(attention[:, 0] if self.branches == 1 else _taken(attention, own), offsets)
        first = places < ends[bag]
        last = places >= (sizes - ends)[bag]
        outputs = self.clusters(embedded)
        positive = _taken(outputs, 2 * own + 1) - _taken(outputs, 2 * own)
        losses = functional.softplus(1 - torch.where(first, positive, -positive))
        kept = torch.where(first | last, losses, torch.zeros_like(losses))
        return segment_sum(kept, offsets) / (2 * ends).clamp(min=1)

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
        return self._logits(embedded, self.attention(embedded), offsets)

    def training_loss(self, instances: Tensor, offsets: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Mean over bags of the weighted sum of cross-entropy and clustering loss, and the bag logits.

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
        embedded = self.embed(instances)
        attention = self.attention(embedded)
        logits = self._logits(embedded, attention, offsets)
        bag_loss = functional.binary_cross_entropy_with_logits(logits, labels)
        clustering = self.clustering_losses(embedded, attention, offsets, labels).mean()
        return self.bag_weight * bag_loss + (1 - self.bag_weight) * clustering, logits


def _taken(values: Tensor, columns: Tensor) -> Tensor:
    """Value of each row in its column."""
    return values.gather(1, columns[:, None]).squeeze(1)


class ClamMIL(AttentionMIL):
    """CLAM; see its two forms.

    Parameters
    ----------
    attention_dim : int
        Width of the attention's hidden layers.
    n_sampled : int
        Instances at each end of a bag's attention that are clustered; half of the bag at most.
    bag_weight : float
        Share of the bag loss in the loss, from 0 to 1; the rest is clustering.
    dropout, lr, weight_decay, optimizer, clip_value
        Of `DeepMIL`.
    """

    claims: ClassVar[str | None] = None
    branches: ClassVar[int]

    def __init__(
        self,
        *,
        attention_dim: int = 256,
        n_sampled: int = 8,
        bag_weight: float = 0.7,
        dropout: float = 0.25,
        lr: float = 2e-4,
        weight_decay: float = 1e-5,
        optimizer: str = "adam",
        clip_value: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(
            dropout=dropout,
            lr=lr,
            weight_decay=weight_decay,
            optimizer=optimizer,
            clip_value=clip_value,
            **settings,
        )
        self.attention_dim = attention_dim
        self.n_sampled = n_sampled
        self.bag_weight = bag_weight

    def build(self, n_features: int) -> nn.Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return ClamNetwork(
            n_features,
            self.hidden,
            self.dropout,
            self.attention_dim,
            self.n_sampled,
            self.bag_weight,
            branches=self.branches,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole_number("n_sampled", self.n_sampled)
        positive_number("bag_weight", self.bag_weight, or_zero=True)
        if self.bag_weight > 1:
            raise ValueError(f"bag_weight must be from 0 to 1; got {self.bag_weight!r}")
