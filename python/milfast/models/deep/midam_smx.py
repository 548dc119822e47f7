"""MIDAM-smx: AUC maximisation with a smoothed maximum, on a few instances of each bag (Zhu et al. 2023).

MIL assumption: **none**, although it is made for the standard one. The smoothed maximum is one of a mean: an instance
with a low score lowers the score of its bag, the less so the smaller tau is.
"""

from __future__ import annotations

from typing import Any, ClassVar

from milfast.models.deep.sampled import MarginMIL

__all__ = ["MIDAMSmx"]

NAME = "MIDAM-smx"
REQUIRES = ("torch",)


class MIDAMSmx(MarginMIL):
    """MIDAM-smx: ``h = tau log mean exp(sigmoid(score) / tau)``, trained for a high AUC of h.

    Parameters
    ----------
    tau : float
        Above 0; small ones come close to the maximum, large ones to the mean.
    **settings
        Those of `MarginMIL` and `SampledMIL`.

    Notes
    -----
    The score of a bag is h less the midpoint between the mean h of positive and of negative training bags, so that
    `predict` cuts between them; `predict_proba` is its sigmoid, which no one has calibrated.

    References
    ----------
    .. [1] D. Zhu, B. Wang, Z. Chen, Y. Wang, M. Sonka, X. Wu, T. Yang, "Provable multi-instance deep AUC maximization
       with stochastic pooling", ICML 2023.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> model = MIDAMSmx(epochs=2, random_state=0).fit(bags)
    >>> model.decision_function(bags).shape, model.instance_scores(bags).shape
    ((2,), (3,))
    """

    method: ClassVar[str] = "midam-smx"

    def __init__(self, *, tau: float = 0.1, **settings: Any) -> None:
        super().__init__(**settings)
        self.tau = tau
