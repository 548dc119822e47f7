"""CLAM-MB: gated attention with a branch for each class, and clustering of its first and last (Lu et al. 2021).

MIL assumption: **none**, and none is claimed. Each class has a weighted average of its own under a linear head, and the
branch of class 0 looks for evidence against a positive bag by design.
"""

from __future__ import annotations

from typing import ClassVar

from milfast.models.deep.clam import ClamMIL

__all__ = ["ClamMB"]

NAME = "CLAM-MB"
REQUIRES = ("torch",)


class ClamMB(ClamMIL):
    """CLAM with one attention branch for each of the classes 0 and 1. Parameters are those of `ClamMIL` and `DeepMIL`.

    See `milfast.models.deep.clam.ClamNetwork` for formulas, and CLAM-SB for where it differs from what is published.
    The branches share their hidden layers. `instance_weights` are the attention of class 1.

    It respects **no** MIL assumption: a further instance takes attention from the others, and can lower the bag logit.

    References
    ----------
    .. [1] M. Y. Lu, D. F. K. Williamson, T. Y. Chen, R. J. Chen, M. Barbieri, F. Mahmood, "Data-efficient and weakly
       supervised computational pathology on whole-slide images", Nature Biomedical Engineering 5, 2021, Methods.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> ClamMB(hidden=8, epochs=2, random_state=0).fit(bags).instance_weights(bags).shape
    (3,)
    """

    branches: ClassVar[int] = 2
