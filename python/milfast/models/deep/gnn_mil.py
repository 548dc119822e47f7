"""GNN-MIL: graph convolutions between nearest neighbours and a mean, as tested by Raff & Holt (2023).

MIL assumption: **none**, although table 1 of Raff & Holt lists the threshold assumption as its claim. A mean falls as
easily as it rises, and an instance that comes between two neighbours changes their graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from milfast.models.deep.base import DeepMIL, whole_number
from milfast.models.deep.layers import Dropout
from milfast.training.ragged import Padding, segment_mean

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["GNNMIL"]

NAME = "GNN-MIL"
REQUIRES = ("torch",)


def nearest(instances: Tensor, offsets: Tensor, neighbours: int) -> tuple[Tensor, Tensor]:
    """Edges from each instance to its nearest ones in the same bag.

    Parameters
    ----------
    instances : Tensor, shape (n_instances, n_features)
    offsets : Tensor of int64, shape (n_bags + 1,)
    neighbours : int
        Fewer in bags that have no more than that many instances.

    Returns
    -------
    source, target : Tensor of int64, shape (n_edges,)
        Rows of instances. Which of several at one distance are taken depends on their order.

    Examples
    --------
    >>> import torch
    >>> nearest(torch.tensor([[0.0], [3.0], [4.0]]), torch.tensor([0, 3]), 1)
    (tensor([0, 1, 2]), tensor([1, 2, 1]))
    """
    sources, targets = [], []
    for padding in Padding.of(offsets):
        rows = padding.pad(instances)
        # Distances of each pair alone, not by way of a matrix product, whose rounding depends on the other bags.
        distances = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
        nobody = ~padding.mask[:, None, :] | torch.eye(padding.longest, dtype=torch.bool, device=rows.device)
        found = distances.masked_fill(nobody, torch.inf).topk(min(neighbours, padding.longest), largest=False)
        real = found.values.isfinite() & padding.mask[:, :, None]
        row = torch.zeros(padding.n_bags * padding.longest, dtype=torch.int64, device=rows.device)
        row[padding.places] = padding.rows
        row = row.view(padding.n_bags, padding.longest)
        sources.append(row[:, :, None].expand_as(found.indices)[real])
        targets.append(row.gather(1, found.indices.flatten(1)).view_as(found.indices)[real])
    return torch.cat(sources), torch.cat(targets)


class GraphConvolution(nn.Module):
    """``x_j' = sum_i x_i W / sqrt(d_i d_j) + b`` over the edges i to j and j itself; d counts what comes in.

    Parameters
    ----------
    in_features, out_features : int
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, values: Tensor, source: Tensor, target: Tensor, degree: Tensor) -> Tensor:
        """New values of the nodes.

        Parameters
        ----------
        values : Tensor, shape (n, in_features)
        source, target : Tensor of int64, shape (n_edges,)
            Without loops.
        degree : Tensor, shape (n,)
            One more than the number of edges to each node.

        Returns
        -------
        Tensor, shape (n, out_features)
        """
        scaled = functional.linear(values, self.linear.weight) * degree.rsqrt()[:, None]
        summed = scaled.index_add(0, target, scaled.index_select(0, source))
        return summed * degree.rsqrt()[:, None] + self.linear.bias


class GraphNetwork(nn.Module):
    """Bag logit ``w . mean_i G3(x)_i + b``: three graph convolutions with ReLU between them.

    Parameters
    ----------
    n_features : int
    hidden : int
    dropout : float
        Before the last layer, in [0, 1).
    neighbours : int
        Edges that leave an instance.

    Examples
    --------
    >>> import torch
    >>> network = GraphNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(self, n_features: int, hidden: int = 128, dropout: float = 0.1, *, neighbours: int = 2) -> None:
        super().__init__()
        self.neighbours = neighbours
        self.layers = nn.ModuleList(GraphConvolution(width, hidden) for width in (n_features, hidden, hidden))
        self.drop = Dropout(dropout)
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
        source, target = nearest(instances, offsets, self.neighbours)
        ones = instances.new_ones(len(instances))
        degree = ones.index_add(0, target, ones.index_select(0, target))
        values = instances
        for place, layer in enumerate(self.layers):
            values = layer(values if place == 0 else functional.relu(values), source, target, degree)
        logits: Tensor = self.head(self.drop(segment_mean(values, offsets)))
        return logits.squeeze(1)


class GNNMIL(DeepMIL):
    """GNN-MIL: graph convolutions between nearest neighbours, then a linear head on the mean.

    It respects **no** MIL assumption: further instances change the mean in either direction.

    Parameters
    ----------
    neighbours : int
        Edges that leave each instance, to the nearest others of its bag, in the standardised features.
    **settings
        Those of `DeepMIL`; `dropout` is 0.1 here, before the last layer only.

    References
    ----------
    .. [1] M. Tu, J. Huang, X. He, B. Zhou, "Multiple instance learning with graph neural networks", 2019. What was
       tested has two nearest neighbours in place of a threshold, and a mean in place of clustering.
    .. [2] E. Raff, J. Holt, "Reproducibility in multiple instance learning: a case for algorithmic unit tests",
       NeurIPS 2023 (widths, dropout and optimiser; one bag at a time there).
    .. [3] T. Kipf, M. Welling, "Semi-supervised classification with graph convolutional networks", ICLR 2017.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> GNNMIL(hidden=8, epochs=2, random_state=0).fit(bags).predict_proba(bags).shape
    (2, 2)
    """

    claims: ClassVar[str] = "threshold"

    def __init__(self, *, dropout: float = 0.1, neighbours: int = 2, **settings: Any) -> None:
        super().__init__(dropout=dropout, **settings)
        self.neighbours = neighbours

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole_number("neighbours", self.neighbours)

    def build(self, n_features: int) -> Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return GraphNetwork(n_features, self.hidden, self.dropout, neighbours=self.neighbours)
