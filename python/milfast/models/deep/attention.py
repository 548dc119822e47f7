"""What models with attention share: the attention of Ilse et al. (2018), and weights of instances from an estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from milfast.models.deep.base import BLOCK, DeepMIL, whole_number
from milfast.models.deep.layers import Dropout, tanh
from milfast.training import loop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from milfast.bags import Bags

__all__ = ["Attention", "AttentionMIL", "PerInstance"]


class Attention(nn.Module):
    """Attention score ``w . tanh(V h + b) + c`` of instances; gated ``w . (tanh(V h + b) * sigmoid(U h + d)) + c``.

    A softmax within the bag turns scores into weights; see `milfast.training.ragged.segment_softmax`.

    Parameters
    ----------
    n_features, width : int
        Length of an embedding h; rows of V and U.
    gated : bool
    branches : int
        Number of scores (rows w) of an instance; V and U are shared.
    dropout : float
        Of the values of tanh and of sigmoid, in [0, 1).

    References
    ----------
    .. [1] M. Ilse, J. Tomczak, M. Welling, "Attention-based deep multiple instance learning", ICML 2018, equations 8
       and 9.

    Examples
    --------
    >>> import torch
    >>> sum(p.numel() for p in Attention(500, 128).parameters())
    64257
    >>> Attention(16, gated=True, branches=2)(torch.zeros(3, 16)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self, n_features: int, width: int = 128, *, gated: bool = False, branches: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.value = nn.Linear(n_features, width)
        self.gate = nn.Linear(n_features, width) if gated else None
        self.score = nn.Linear(width, branches)
        self.dropout = Dropout(dropout)

    def forward(self, embedded: Tensor) -> Tensor:
        """Scores of each instance.

        Parameters
        ----------
        embedded : Tensor, shape (n_instances, n_features)

        Returns
        -------
        Tensor, shape (n_instances, branches)
        """
        if self.gate is None and not (self.training and self.dropout.p):
            # w . tanh(z) + c is 2 w . sigmoid(2 z) + c - sum w, and two passes over all values less
            halved = torch.sigmoid(functional.linear(embedded, 2 * self.value.weight, 2 * self.value.bias))
            return functional.linear(halved, 2 * self.score.weight, self.score.bias - self.score.weight.sum(dim=1))
        values: Tensor = self.dropout(tanh(self.value(embedded)))
        if self.gate is not None:
            values = values * self.dropout(torch.sigmoid(self.gate(embedded)))
        scores: Tensor = self.score(values)
        return scores


class PerInstance(nn.Module):
    """A network seen by one of its methods that gives a value for each instance of the bags, as `loop.scores` takes it.

    Parameters
    ----------
    network : torch.nn.Module
    method : str
        ``network.method(instances, offsets)`` gives a Tensor of shape (n_instances,).

    Examples
    --------
    >>> import torch
    >>> from milfast.models.deep.abmil import AttentionNetwork
    >>> weights = PerInstance(AttentionNetwork(4, dropout=0.0), "instance_weights")
    >>> weights(torch.zeros(4, 4), torch.tensor([0, 4])).detach()
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def __init__(self, network: nn.Module, method: str) -> None:
        super().__init__()
        self.network = network
        self.method = method

    def forward(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Value of each instance."""
        values: Tensor = getattr(self.network, self.method)(instances, offsets)
        return values


class AttentionMIL(DeepMIL):
    """A `DeepMIL` whose network has a method ``instance_weights(instances, offsets)``."""

    def instance_weights(self, bags: Bags) -> NDArray[np.float64]:
        """How much the bag's summary takes from each instance; no statement about the instance's label.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of float64, shape (n_instances,)
            Not negative; those of a bag add up to 1.

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError
            As `decision_function`.
        """
        return self._per_instance(bags, "instance_weights")

    def _per_instance(self, bags: Bags, method: str) -> NDArray[np.float64]:
        instances = self._prepare(bags)
        network = PerInstance(self.module_, method)
        values = loop.scores(network, instances, torch.tensor(bags.offsets), batch_instances=BLOCK)
        found: NDArray[np.float64] = values.double().numpy()
        return found

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if "attention_dim" in self._get_param_names():
            whole_number("attention_dim", self.attention_dim)
