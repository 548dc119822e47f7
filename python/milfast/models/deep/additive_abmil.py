"""Additive ABMIL: sum of a classifier's values for the attended instances (Javed et al. 2022).

MIL assumption: **none**, and none is claimed. Contributions to the bag logit have either sign, and a further instance
takes attention from all others, so that it can lower the logit even where its own contribution is positive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from torch import Tensor, nn

from milfast.models.deep.abmil import ABMIL
from milfast.models.deep.attention import Attention
from milfast.models.deep.layers import Perceptron
from milfast.training.ragged import segment_softmax, segment_sum

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from milfast.bags import Bags

__all__ = ["AdditiveABMIL"]

NAME = "Additive-ABMIL"
REQUIRES = ("torch",)


class AdditiveNetwork(nn.Module):
    """Bag logit ``sum_i c(a_i h_i)`` of embeddings ``h_i`` with attention ``a``; ``c`` has one hidden layer.

    Parameters
    ----------
    n_features : int
    hidden : int
        Length of an embedding, and width of the hidden layer of ``c``.
    dropout : float
        Of the perceptron that embeds, in [0, 1).
    attention_dim : int

    Examples
    --------
    >>> import torch
    >>> network = AdditiveNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(self, n_features: int, hidden: int = 128, dropout: float = 0.5, attention_dim: int = 128) -> None:
        super().__init__()
        self.embed = Perceptron(n_features, hidden, dropout)
        self.attention = Attention(hidden, attention_dim)
        self.classifier = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

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
        return segment_softmax(self.attention(self.embed(instances)), offsets).squeeze(1)

    def contributions(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """What each instance adds to the logit of its bag.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)

        Returns
        -------
        Tensor, shape (n_instances,)
        """
        embedded = self.embed(instances)
        weights = segment_softmax(self.attention(embedded), offsets)
        added: Tensor = self.classifier(weights * embedded)
        return added.squeeze(1)

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
        return segment_sum(self.contributions(instances, offsets), offsets)


class AdditiveABMIL(ABMIL):
    """Additive ABMIL: the bag logit is a sum of contributions of instances. Parameters are those of `ABMIL`.

    With a linear ``c`` it would be ABMIL with an intercept for each instance; with the hidden layer that it has here it
    is not. Weighing ``c(h_i)`` by attention, as some reimplementations do, is another model.

    It respects **no** MIL assumption: contributions have either sign, and an instance's depends on the rest of its bag.

    References
    ----------
    .. [1] S. A. Javed, D. Juyal, H. Padigela, A. Taylor-Weiner, L. Yu, A. Prakash, "Additive MIL: intrinsically
       interpretable multiple instance learning for pathology", NeurIPS 2022.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> model = AdditiveABMIL(hidden=8, epochs=2, random_state=0).fit(bags)
    >>> model.instance_weights(bags).shape, model.contributions(bags).shape
    ((3,), (3,))
    """

    claims: ClassVar[str | None] = None

    def build(self, n_features: int) -> nn.Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return AdditiveNetwork(n_features, self.hidden, self.dropout, self.attention_dim)

    def contributions(self, bags: Bags) -> NDArray[np.float64]:
        """What each instance adds to the logit of its bag. In another bag, the same instance may add something else.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of float64, shape (n_instances,)
            Those of a bag add up to its logit.

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError
            As `decision_function`.
        """
        return self._per_instance(bags, "contributions")
