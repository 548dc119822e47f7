"""CE: cross-entropy of scores pooled from a few instances of each bag, what MIDAM is compared with.

MIL assumption: **none**. With the mean every instance counts, and a low score counts against the bag.
"""

from __future__ import annotations

from typing import Any, ClassVar

from milfast.models.deep.sampled import SampledMIL

__all__ = ["CE"]

NAME = "CE"
REQUIRES = ("torch",)


class CE(SampledMIL):
    """CE: binary cross-entropy of pooled logits, by Adam, on balanced batches.

    Parameters
    ----------
    pooling : {"mean", "max", "smx", "att"}
        Of the logits of instances.
    tau : float
        Of "smx", in units of logits.
    **settings
        Those of `SampledMIL`.

    Notes
    -----
    Half of a batch is positive whatever the share of positive bags is, so that a logit of 0 stands for as likely
    positive as negative among as many of both.

    References
    ----------
    .. [1] D. Zhu, B. Wang, Z. Chen, Y. Wang, M. Sonka, X. Wu, T. Yang, "Provable multi-instance deep AUC maximization
       with stochastic pooling", ICML 2023, of whose experiments the settings are.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> CE(pooling="att", epochs=2, random_state=0).fit(bags).predict_proba(bags).shape
    (2, 2)
    """

    claims: ClassVar[str | None] = None
    method: ClassVar[str] = "ce"

    def __init__(self, *, pooling: str = "mean", tau: float = 0.1, **settings: Any) -> None:
        super().__init__(**settings)
        self.pooling = pooling
        self.tau = tau
