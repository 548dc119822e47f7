"""Hopfield pooling of embedded instances (Ramsauer et al. 2021).

MIL assumption: **none**, although table 1 of Raff & Holt (2023) lists the threshold assumption as the claim of Hopfield
pooling. What is pooled is a weighted average under a linear head, which a further instance can lower.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from milfast.models.deep.attention import AttentionMIL
from milfast.models.deep.base import positive_number, whole_number
from milfast.models.deep.hopfield_pooling import HopfieldPooling
from milfast.models.deep.layers import Dropout, Perceptron

__all__ = ["EmbeddedHopfield"]

NAME = "Hopfield-embedded"
REQUIRES = ("torch",)


class EmbeddedHopfieldNetwork(nn.Module):
    """Bag logit ``w . pool_i MLP3(x_i) + b`` with Hopfield pooling.

    Parameters
    ----------
    n_features : int
    hidden : int
        Length of an embedding, which a perceptron of three layers makes.
    dropout : float
        Of the perceptron and of the pooled embedding, in [0, 1).
    head_dim, heads, beta, update_steps, norm
        Of `milfast.models.deep.hopfield_pooling.HopfieldPooling`.

    Examples
    --------
    >>> import torch
    >>> network = EmbeddedHopfieldNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(
        self,
        n_features: int,
        hidden: int = 128,
        dropout: float = 0.1,
        head_dim: int = 32,
        heads: int = 1,
        *,
        beta: float | None = None,
        update_steps: int = 0,
        norm: bool = True,
    ) -> None:
        super().__init__()
        self.embed = Perceptron(n_features, hidden, dropout)
        self.pool = HopfieldPooling(hidden, head_dim, heads, beta=beta, update_steps=update_steps, norm=norm)
        self.dropout = Dropout(dropout)
        self.head = nn.Linear(hidden, 1)

    def instance_weights(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Attention of each instance, the mean over heads.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)

        Returns
        -------
        Tensor, shape (n_instances,)
        """
        return self.pool.weights(self.embed(instances), offsets).mean(1)

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
        logits: Tensor = self.head(self.dropout(self.pool(self.embed(instances), offsets)))
        return logits.squeeze(1)


class EmbeddedHopfield(AttentionMIL):
    """Hopfield pooling of embedded instances, and a linear head.

    Other parameters and methods are those of `DeepMIL`. Defaults are those of the example that its authors published
    with the layer, on bags of images: one head, dropout 0.1 before the linear head, AdamW and a bound on the norm of
    the gradient; except that a step takes 32 bags and not one, and that a perceptron embeds vectors where a LeNet
    embedded images. As instances are embedded before the LayerNorms of the pooling see them, it is not blind to what
    these hide; see `milfast.models.deep.hopfield_pooling.HopfieldPooling`.

    It respects **no** MIL assumption: a further instance takes attention from the others, and can lower the bag logit.

    Parameters
    ----------
    heads, head_dim : int
        Number of attention heads; length of a head's keys and values.
    beta : float, optional
        Inverse temperature of the attention, above 0; ``1 / sqrt(head_dim)`` unless given.
    update_steps : int
        Updates of the state pattern before values are retrieved, at least 0.
    norm : bool
        Whether the embedded instances and the state pattern go through LayerNorms.
    dropout, lr, weight_decay, clip_value, clip_norm
        Of `DeepMIL`.

    References
    ----------
    .. [1] H. Ramsauer et al., "Hopfield networks is all you need", ICLR 2021.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> model = EmbeddedHopfield(hidden=8, epochs=2, random_state=0).fit(bags)
    >>> model.predict_proba(bags).shape, model.instance_weights(bags).shape
    ((2, 2), (3,))
    """

    claims: ClassVar[str | None] = "threshold"

    def __init__(
        self,
        *,
        heads: int = 1,
        head_dim: int = 32,
        beta: float | None = None,
        update_steps: int = 0,
        norm: bool = True,
        dropout: float = 0.1,
        lr: float = 5e-4,
        weight_decay: float = 1e-4,
        clip_value: float | None = None,
        clip_norm: float | None = 1.0,
        **settings: Any,
    ) -> None:
        super().__init__(
            dropout=dropout,
            lr=lr,
            weight_decay=weight_decay,
            clip_value=clip_value,
            clip_norm=clip_norm,
            **settings,
        )
        self.heads = heads
        self.head_dim = head_dim
        self.beta = beta
        self.update_steps = update_steps
        self.norm = norm

    def build(self, n_features: int) -> nn.Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return EmbeddedHopfieldNetwork(
            n_features,
            self.hidden,
            self.dropout,
            self.head_dim,
            self.heads,
            beta=self.beta,
            update_steps=int(self.update_steps),
            norm=bool(self.norm),
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("heads", "head_dim"):
            whole_number(name, getattr(self, name))
        whole_number("update_steps", self.update_steps, least=0)
        if self.beta is not None:
            positive_number("beta", self.beta)
        if not isinstance(self.norm, (bool, np.bool_)):
            raise TypeError(f"norm must be True or False; got {self.norm!r}")
