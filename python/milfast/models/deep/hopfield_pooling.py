"""Hopfield pooling (Ramsauer et al. 2021): a learned state retrieves a summary of the bag from its instances."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from milfast.training.ragged import segment_index, segment_softmax, segment_sum

__all__ = ["HopfieldPooling"]


class HopfieldPooling(nn.Module):
    """Attention of one learned state pattern to the instances of a bag, with several heads.

    With instances ``x_i`` as stored patterns and the state ``q``, each after a LayerNorm of its own, a head has

    ``k_i = W_K x_i + b_K``, ``v_i = W_V x_i + b_V``, ``r = W_Q q + b_Q``, ``a = softmax_i(beta r . k_i)``

    and gives ``sum_i a_i v_i``; an update step before that replaces ``r`` by ``sum_i a_i k_i``. The heads, joined, are
    projected back to the width of an instance. All weights and the state start as N(0, 0.02^2), biases as 0.

    Parameters
    ----------
    n_features : int
        Width of the instances, of the state and of what is returned.
    head_dim, heads : int
    beta : float, optional
        Inverse temperature; ``1 / sqrt(head_dim)`` unless given.
    update_steps : int
        Updates of the state before values are retrieved. The published layer has 0, or updates until the state settles;
        here it is a fixed number, as when a state has settled must not be decided by the other bags of a batch.
    norm : bool
        Whether there are LayerNorms. On instances as they are given they hide everything that adds a multiple of
        (1, ..., 1) to an instance or multiplies it.

    Notes
    -----
    No instance is projected: as all instances meet the same state, ``r . W_K x_i`` is ``(W_K' r) . x_i``, and
    ``sum_i a_i v_i`` is ``W_V sum_i a_i x_i + b_V`` because weights add up to 1. What ``b_K`` adds to ``r . k_i`` is
    the same for all instances, so a softmax does not see it.

    References
    ----------
    .. [1] H. Ramsauer et al., "Hopfield networks is all you need", ICLR 2021, section 3 and appendix C.

    Examples
    --------
    >>> import torch
    >>> layer = HopfieldPooling(16, head_dim=128, heads=8)
    >>> layer(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2, 16])
    >>> sum(p.numel() for p in layer.parameters())
    68736
    """

    def __init__(
        self,
        n_features: int,
        head_dim: int = 32,
        heads: int = 1,
        *,
        beta: float | None = None,
        update_steps: int = 0,
        norm: bool = True,
    ) -> None:
        super().__init__()
        self.heads, self.head_dim = heads, head_dim
        self.beta = head_dim**-0.5 if beta is None else beta
        self.update_steps = update_steps
        self.norm = norm
        self.state = nn.Parameter(torch.empty(n_features))
        self.query = nn.Linear(n_features, heads * head_dim)
        self.key = nn.Linear(n_features, heads * head_dim)
        self.value = nn.Linear(n_features, heads * head_dim)
        self.out = nn.Linear(heads * head_dim, n_features)
        if norm:
            self.norm_state = nn.LayerNorm(n_features)
            self.norm_key = nn.LayerNorm(n_features)
            self.norm_value = nn.LayerNorm(n_features)
        nn.init.normal_(self.state, std=0.02)
        for layer in (self.query, self.key, self.value, self.out):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)

    def weights(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """How much each head attends to each instance.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)

        Returns
        -------
        Tensor, shape (n_instances, heads)
            Those of a bag add up to 1 for each head.
        """
        stored = self.norm_key(instances) if self.norm else instances
        state = self.norm_state(self.state) if self.norm else self.state
        keys = self.key.weight.view(self.heads, self.head_dim, -1)
        query = torch.einsum("hkd,hk->hd", keys, self.query(state).view(self.heads, self.head_dim))
        weights = segment_softmax(self.beta * (stored @ query.T), offsets)
        if self.update_steps:
            bag = segment_index(offsets, n_instances=len(instances))
            bias = self.key.bias.view(self.heads, self.head_dim)
        for _ in range(self.update_steps):
            updated = torch.einsum("hkd,bhd->bhk", keys, _retrieved(weights, stored, offsets)) + bias
            queries = torch.einsum("hkd,bhk->bhd", keys, updated)
            weights = segment_softmax(self.beta * (queries[bag] * stored[:, None]).sum(2), offsets)
        return weights

    def forward(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Summary of each bag.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)

        Returns
        -------
        Tensor, shape (n_bags, n_features)
        """
        stored = self.norm_value(instances) if self.norm else instances
        retrieved = _retrieved(self.weights(instances, offsets), stored, offsets)
        values = torch.einsum("hkd,bhd->bhk", self.value.weight.view(self.heads, self.head_dim, -1), retrieved)
        summary: Tensor = self.out(values.flatten(1) + self.value.bias)
        return summary


def _retrieved(weights: Tensor, instances: Tensor, offsets: Tensor) -> Tensor:
    """Weighted sum of the instances of each bag for each head, shape (n_bags, heads, n_features)."""
    weighted = weights[:, :, None] * instances[:, None]
    return segment_sum(weighted.flatten(1), offsets).view(-1, weights.shape[1], instances.shape[1])
