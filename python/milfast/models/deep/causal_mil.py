"""CausalMIL: largest score of a latent variable with a prior of the bag (Zhang et al. 2022).

MIL assumption: **standard** when it scores. The logit of a bag is then the largest logit of its instances, each of
which is seen alone. In training the prior of the latent variable depends on the mean of the bag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from milfast.models.deep.base import DeepMIL, positive_number, whole_number
from milfast.models.deep.layers import Perceptron
from milfast.training.ragged import segment_argmax, segment_max, segment_mean

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["CausalMIL"]

NAME = "CausalMIL"
REQUIRES = ("torch",)

#: How much more a wrong label costs than a wrong reconstruction.
CLASSIFICATION = 1000.0
#: Logarithms of variances are kept between minus and plus this: otherwise a prior that has become too sure of itself
#: ends the training in an overflow, as one of three fits to 100,000 bags did.
LOG_VARIANCE = 10.0


class CausalNetwork(nn.Module):
    """Variational autoencoder of instances whose prior is that of their bag; bag logit ``max_i w . z_i + b``.

    Parameters
    ----------
    n_features : int
    hidden : int
        Width of the three layers of the encoder and of the decoder.
    dropout : float
        After each of them, in [0, 1).
    latent : int
        Dimensions of z.
    beta : float
        Weight of the divergence from the prior.

    Examples
    --------
    >>> import torch
    >>> network = CausalNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(
        self, n_features: int, hidden: int = 128, dropout: float = 0.0, *, latent: int = 24, beta: float = 1.0
    ) -> None:
        super().__init__()
        self.beta = beta
        self.embed = Perceptron(n_features, hidden, dropout)
        self.posterior = nn.Linear(hidden, 2 * latent)
        self.prior = nn.Linear(hidden, 2)
        self.head = nn.Linear(latent, 1)
        self.decode = nn.Sequential(Perceptron(latent, hidden, dropout), nn.Linear(hidden, n_features))

    def instance_logits(self, instances: Tensor) -> Tensor:
        """Logit of each instance, at the mean of its latent variable.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)

        Returns
        -------
        Tensor, shape (n_instances,)
        """
        mean, _ = self.posterior(self.embed(instances)).tensor_split(2, dim=1)
        logits: Tensor = self.head(mean)
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
        return segment_max(self.instance_logits(instances), offsets)

    def training_loss(self, instances: Tensor, offsets: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Cross-entropy of the bags, and a thousandth of reconstruction and divergence of their witnesses.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)
        labels : Tensor, shape (n_bags,)

        Returns
        -------
        loss : Tensor, shape ()
        logits : Tensor, shape (n_bags,)
            At the drawn latent variables.
        """
        embedded = self.embed(instances)
        mean, log_variance = bounded(self.posterior(embedded))
        drawn = mean + (log_variance / 2).exp() * torch.randn_like(mean)
        scores = self.head(drawn).squeeze(1)
        witness = segment_argmax(scores, offsets)
        logits = scores.index_select(0, witness)
        mean, log_variance, drawn = (value.index_select(0, witness) for value in (mean, log_variance, drawn))

        prior_mean, prior_log_variance = bounded(self.prior(segment_mean(embedded, offsets)))
        of_prior = (prior_mean**2 + prior_log_variance.exp() - prior_log_variance - 1).squeeze(1) / 2
        divergence = (
            of_prior + log_normal(drawn, mean, log_variance) - log_normal(drawn, prior_mean, prior_log_variance)
        )
        reconstruction = functional.mse_loss(self.decode(drawn), instances.index_select(0, witness))
        rest = reconstruction + self.beta * divergence.mean()
        return functional.binary_cross_entropy_with_logits(logits, labels) + rest / CLASSIFICATION, logits


def bounded(parameters: Tensor) -> tuple[Tensor, Tensor]:
    """Means, and logarithms of variances that are not too large either way.

    Parameters
    ----------
    parameters : Tensor, shape (n, 2 k)

    Returns
    -------
    mean, log_variance : Tensor, shape (n, k)

    Examples
    --------
    >>> import torch
    >>> bounded(torch.tensor([[99.0, -99.0]]))
    (tensor([[99.]]), tensor([[-10.]]))
    """
    mean, log_variance = parameters.tensor_split(2, dim=1)
    return mean, log_variance.clamp(-LOG_VARIANCE, LOG_VARIANCE)


def log_normal(values: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """Log density of independent normal variables, without its constant.

    Parameters
    ----------
    values : Tensor, shape (n, k)
    mean, log_variance : Tensor, shape (n, k) or (n, 1)

    Returns
    -------
    Tensor, shape (n,)

    Examples
    --------
    >>> import torch
    >>> log_normal(torch.tensor([[1.0, 2.0]]), torch.zeros(1, 1), torch.zeros(1, 1))
    tensor([-2.5000])
    """
    return -(((values - mean) ** 2 / log_variance.exp() + log_variance) / 2).sum(dim=1)


class CausalMIL(DeepMIL):
    """CausalMIL: the largest score of a latent variable, trained with a prior that depends on the bag.

    It respects the **standard** assumption: when it scores, the latent variable of an instance is the mean that its
    features alone decide, and the bag logit is the maximum.

    Parameters
    ----------
    latent : int
        Dimensions of the latent variable.
    beta : float
        Weight of the divergence from the prior of the bag.
    **settings
        Those of `DeepMIL`; `dropout` is 0 and `weight_decay` 1e-4 here.

    Notes
    -----
    The loss of the publication, ``MSE + beta KL + 1000 BCE`` over the witnesses of the bags, divided by 1000: steps of
    Adam are the same, and entries of the gradient are of the size that `clip_value` is meant for. The code published
    with it takes the reconstruction and the divergence of an instance of the first bag for all bags; here they are
    those of each bag's witness.

    References
    ----------
    .. [1] W. Zhang, X. Zhang, H. Deng, M.-L. Zhang, "Multi-instance causal representation learning for instance label
       prediction and out-of-distribution generalization", NeurIPS 2022. Encoder and decoder are perceptrons of the
       widths of [2], as there are no images.
    .. [2] E. Raff, J. Holt, "Reproducibility in multiple instance learning: a case for algorithmic unit tests",
       NeurIPS 2023.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> model = CausalMIL(hidden=8, epochs=2, random_state=0).fit(bags)
    >>> model.decision_function(bags).shape, model.instance_scores(bags).shape
    ((2,), (3,))
    """

    claims: ClassVar[str] = "standard"

    def __init__(
        self,
        *,
        dropout: float = 0.0,
        weight_decay: float = 1e-4,
        latent: int = 24,
        beta: float = 1.0,
        **settings: Any,
    ) -> None:
        super().__init__(dropout=dropout, weight_decay=weight_decay, **settings)
        self.latent = latent
        self.beta = beta

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole_number("latent", self.latent)
        positive_number("beta", self.beta, or_zero=True)

    def build(self, n_features: int) -> Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return CausalNetwork(n_features, self.hidden, self.dropout, latent=self.latent, beta=float(self.beta))
