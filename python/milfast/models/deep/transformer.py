"""A transformer layer on flat bags: padded only where instances look at each other."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from milfast.models.deep.layers import Dropout
from milfast.training.ragged import Padding, rejoined

__all__ = ["EncoderLayer"]


class EncoderLayer(nn.Module):
    """Self-attention within each bag and a feed-forward layer, each added to its input and normalised after.

    What `torch.nn.TransformerEncoderLayer` does with its defaults, for bags that are stored flat: projections and the
    feed-forward layer, which make up nearly all of the work, see no padding.

    Parameters
    ----------
    width : int
        Of instances, in and out; a multiple of `heads`.
    heads : int
    feedforward : int
        Width of the feed-forward layer.
    dropout : float
        In [0, 1).

    Examples
    --------
    >>> import torch
    >>> offsets = torch.tensor([0, 1, 3])
    >>> EncoderLayer(8, 2, 8, 0.1)(torch.zeros(3, 8), Padding.of(offsets)).shape
    torch.Size([3, 8])
    """

    def __init__(self, width: int, heads: int, feedforward: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.widen = nn.Linear(width, feedforward)
        self.narrow = nn.Linear(feedforward, width)
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.drop = Dropout(dropout)
        # as torch.nn.MultiheadAttention begins
        nn.init.xavier_uniform_(self.project.weight)
        nn.init.zeros_(self.project.bias)
        nn.init.zeros_(self.out.bias)

    def forward(self, values: Tensor, paddings: list[Padding]) -> Tensor:
        """New values of the instances.

        Parameters
        ----------
        values : Tensor, shape (n_instances, width)
        paddings : list of Padding
            Of the bags.

        Returns
        -------
        Tensor, shape (n_instances, width)
        """
        values = self.first_norm(values + self.drop(self.out(self.attend(values, paddings))))
        widened = self.drop(functional.relu(self.widen(values)))
        normed: Tensor = self.second_norm(values + self.drop(self.narrow(widened)))
        return normed

    def attend(self, values: Tensor, paddings: list[Padding]) -> Tensor:
        """Attention of all heads, side by side, before the last projection.

        Parameters
        ----------
        values : Tensor, shape (n_instances, width)
        paddings : list of Padding

        Returns
        -------
        Tensor, shape (n_instances, width)
        """
        projected = self.project(values)
        parts = []
        for padding in paddings:
            shape = (padding.n_bags, padding.longest, 3, self.heads, -1)
            query, key, value = padding.pad(projected).view(shape).permute(2, 0, 3, 1, 4)
            bias = torch.zeros(padding.mask.shape, dtype=values.dtype, device=values.device)
            bias = bias.masked_fill(~padding.mask, -torch.inf)[:, None, None, :]
            if self.training and self.drop.p:
                # scaled_dot_product_attention draws its dropout on the CPU three times as slowly as `Dropout`
                weights = (query * query.shape[-1] ** -0.5) @ key.transpose(-1, -2) + bias
                mixed = self.drop(weights.softmax(dim=-1)) @ value
            else:
                mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
            parts.append(padding.flat(mixed.transpose(1, 2).flatten(2)))
        return rejoined(paddings, parts)
