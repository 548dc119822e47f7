"""MIDAM-att: AUC maximisation with attention, on a few instances of each bag (Zhu et al. 2023).

MIL assumption: **none**, although it is made for the standard one. The weights of a bag add up to 1, so that an
instance takes weight from all others.
"""

from __future__ import annotations

from typing import ClassVar

from milfast.models.deep.sampled import MarginMIL

__all__ = ["MIDAMAtt"]

NAME = "MIDAM-att"
REQUIRES = ("torch",)


class MIDAMAtt(MarginMIL):
    """MIDAM-att: ``h = sigmoid(sum_i a_i score_i)`` with attention ``a``, trained for a high AUC of h.

    Parameters and methods are those of `MarginMIL` and `SampledMIL`.

    Notes
    -----
    The score of a bag is that before the sigmoid, less the midpoint between the means of positive and of negative
    training bags, so that `predict` cuts between them; `predict_proba` is its sigmoid, which no one has calibrated.

    References
    ----------
    .. [1] D. Zhu, B. Wang, Z. Chen, Y. Wang, M. Sonka, X. Wu, T. Yang, "Provable multi-instance deep AUC maximization
       with stochastic pooling", ICML 2023.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> model = MIDAMAtt(epochs=2, random_state=0).fit(bags)
    >>> model.decision_function(bags).shape, model.instance_scores(bags).shape
    ((2,), (3,))
    """

    method: ClassVar[str] = "midam-att"
