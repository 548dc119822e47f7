"""AUC-M: the min-max-margin loss of AUC on scores pooled from a few instances of each bag (Yuan et al. 2021).

MIL assumption: **none**. With the mean every instance counts, and a low score counts against the bag.
"""

from __future__ import annotations

from typing import Any, ClassVar

from milfast.models.deep.sampled import SampledMIL

__all__ = ["AUCM"]

NAME = "AUC-M"
REQUIRES = ("torch",)


class AUCM(SampledMIL):
    """AUC-M: what MIDAM is compared with, a loss of AUC without moving averages.

    Bags of a batch are pooled from the drawn instances as if these were all of them; their scores go into ``mean (h+ -
    a)^2 + mean (h- - b)^2 + 2 alpha (margin + mean h- - mean h+) - alpha^2``. Steps are those of PESG without its
    proximal term: entries of the gradient are clamped to [-1, 1], alpha follows its gradient.

    Parameters
    ----------
    pooling : {"mean", "max", "smx", "att"}
        Of the sigmoids of scores; "att" takes the sigmoid of the mean of scores weighted by attention.
    margin : float
        At least 0.
    tau : float
        Of "smx".
    alpha_rule : {"gradient", "batch-max"}
        As in `milfast.models.deep.sampled.MarginMIL`.
    momentum : float
        Share of the last step in the next, in [0, 1).
    decay_auxiliary : bool
        Whether weight decay acts on a and b too.
    clip_value : float or None
        Of `DeepMIL`.
    **settings
        Those of `SampledMIL`.

    References
    ----------
    .. [1] Z. Yuan, Y. Yan, M. Sonka, T. Yang, "Large-scale robust deep AUC maximization: a new surrogate loss and
       empirical studies on medical image classification", ICCV 2021.
    .. [2] D. Zhu, B. Wang, Z. Chen, Y. Wang, M. Sonka, X. Wu, T. Yang, "Provable multi-instance deep AUC maximization
       with stochastic pooling", ICML 2023, of whose experiments the settings are.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> AUCM(pooling="max", epochs=2, random_state=0).fit(bags).decision_function(bags).shape
    (2,)
    """

    claims: ClassVar[str | None] = None
    method: ClassVar[str] = "auc-m"

    def __init__(
        self,
        *,
        pooling: str = "mean",
        margin: float = 1.0,
        tau: float = 0.1,
        alpha_rule: str = "gradient",
        momentum: float = 0.0,
        decay_auxiliary: bool = True,
        clip_value: float | None = 1.0,
        **settings: Any,
    ) -> None:
        super().__init__(clip_value=clip_value, **settings)
        self.pooling = pooling
        self.margin = margin
        self.tau = tau
        self.alpha_rule = alpha_rule
        self.momentum = momentum
        self.decay_auxiliary = decay_auxiliary
