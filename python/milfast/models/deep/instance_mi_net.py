"""mi-Net: largest instance score of a shared network (Wang et al. 2018), as tested by Raff & Holt (2023).

MIL assumption: **standard**. The bag logit is the largest instance logit, so a bag is positive exactly when one of its
instances is, adding an instance never lowers the logit, and the absence of an instance can never be evidence.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from milfast.models.deep.base import DeepMIL
from milfast.models.deep.layers import Perceptron, witnesses
from milfast.training.ragged import segment_max

__all__ = ["InstanceMINet"]

NAME = "mi-Net"
REQUIRES = ("torch",)


class InstanceMaxNetwork(nn.Module):
    """Bag logit ``max_i w . MLP3(x_i) + b``.

    Parameters
    ----------
    n_features : int
    hidden : int
        Width of the three hidden layers.
    dropout : float
        After each hidden layer, in [0, 1).

    Examples
    --------
    >>> import torch
    >>> network = InstanceMaxNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(self, n_features: int, hidden: int = 128, dropout: float = 0.5) -> None:
        super().__init__()
        self.embed = Perceptron(n_features, hidden, dropout)
        self.head = nn.Linear(hidden, 1)

    def instance_logits(self, instances: Tensor, factors: list[Tensor | None] | None = None) -> Tensor:
        """Logit of each instance.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        factors : list, optional
            What dropout draws; see `milfast.models.deep.layers.Perceptron`.

        Returns
        -------
        Tensor, shape (n_instances,)
        """
        logits: Tensor = self.head(self.embed(instances, factors))
        return logits.squeeze(1)

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
        if not torch.is_grad_enabled():
            return segment_max(self.instance_logits(instances), offsets)
        rows, factors = witnesses(self.instance_logits, instances, offsets)
        return self.instance_logits(instances.index_select(0, rows), factors)


class InstanceMINet(DeepMIL):
    """mi-Net: the bag logit is the largest instance logit. Parameters and methods are those of `DeepMIL`.

    It respects the **standard** assumption (a bag is positive exactly when it holds a positive instance): the maximum
    is monotone in the set of instances, so no instance can turn a bag negative.

    References
    ----------
    .. [1] X. Wang, Y. Yan, P. Tang, X. Bai, W. Liu, "Revisiting multiple instance neural networks", Pattern
       Recognition 74, 2018, section 3.1 (the pooling acts on logits here, which orders bags as on probabilities).
    .. [2] E. Raff, J. Holt, "Reproducibility in multiple instance learning: a case for algorithmic unit tests",
       NeurIPS 2023 (widths, dropout and optimiser).

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> model = InstanceMINet(hidden=8, epochs=2, random_state=0).fit(bags)
    >>> model.decision_function(bags).shape, model.instance_scores(bags).shape
    ((2,), (3,))
    """

    claims: ClassVar[str] = "standard"

    def build(self, n_features: int) -> nn.Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return InstanceMaxNetwork(n_features, self.hidden, self.dropout)
