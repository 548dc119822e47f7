"""MI-Net: per-feature maximum of instance embeddings (Wang et al. 2018), as tested by Raff & Holt (2023).

MIL assumption: **none**, although its authors claim the standard one (table 1 of Raff & Holt). The linear head after
the maximum may weigh a feature negatively; a further instance that raises this feature then lowers the bag logit, so
the model can take the absence of an instance as evidence for a positive bag.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from milfast.models.deep.base import DeepMIL
from milfast.models.deep.layers import Perceptron
from milfast.training.ragged import segment_max

__all__ = ["BagMINet"]

NAME = "MI-Net"
REQUIRES = ("torch",)


class BagMaxNetwork(nn.Module):
    """Bag logit ``w . max_i MLP3(x_i) + b``, the maximum taken for each feature alone.

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
    >>> network = BagMaxNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(self, n_features: int, hidden: int = 128, dropout: float = 0.5) -> None:
        super().__init__()
        self.embed = Perceptron(n_features, hidden, dropout)
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
        logits: Tensor = self.head(segment_max(self.embed(instances), offsets))
        return logits.squeeze(1)


class BagMINet(DeepMIL):
    """MI-Net: a linear head on the per-feature maximum of a bag. Parameters and methods are those of `DeepMIL`.

    It respects **no** MIL assumption: the head's weights have either sign, so a further instance can lower the bag
    logit and the model can learn from what is absent. Instances have no score of their own.

    References
    ----------
    .. [1] X. Wang, Y. Yan, P. Tang, X. Bai, W. Liu, "Revisiting multiple instance neural networks", Pattern
       Recognition 74, 2018, section 3.2.
    .. [2] E. Raff, J. Holt, "Reproducibility in multiple instance learning: a case for algorithmic unit tests",
       NeurIPS 2023 (widths, dropout and optimiser).

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> BagMINet(hidden=8, epochs=2, random_state=0).fit(bags).predict_proba(bags).shape
    (2, 2)
    """

    claims: ClassVar[str] = "standard"

    def build(self, n_features: int) -> nn.Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return BagMaxNetwork(n_features, self.hidden, self.dropout)
