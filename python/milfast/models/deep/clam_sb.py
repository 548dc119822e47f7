"""CLAM-SB: gated attention with one branch, and clustering of the instances it puts first and last (Lu et al. 2021).

MIL assumption: **none**, and none is claimed. The bag logit is that of gated ABMIL: a weighted average under a linear
head, which a further instance can lower. Clustering shapes the embeddings but does not bind the bag logit.
"""

from __future__ import annotations

from typing import ClassVar

from milfast.models.deep.clam import ClamMIL

__all__ = ["ClamSB"]

NAME = "CLAM-SB"
REQUIRES = ("torch",)


class ClamSB(ClamMIL):
    """CLAM with a single attention branch. Parameters and methods are those of `ClamMIL` and `DeepMIL`.

    See `milfast.models.deep.clam.ClamNetwork` for formulas. Rates, margins and weights are the published ones; a step
    takes 32 bags and not one. The embedding is the published single layer, `hidden` wide and not 512. Of bags with
    fewer than 16 instances fewer than 8 are sampled at each end, where the published code takes the same instance for
    both ends, or stops. What is published for mutually exclusive classes, clustering by the other classes as well, is
    left out: of two classes that say present and absent, it is not used there either.

    It respects **no** MIL assumption: a further instance takes attention from the others, and can lower the bag logit.

    References
    ----------
    .. [1] M. Y. Lu, D. F. K. Williamson, T. Y. Chen, R. J. Chen, M. Barbieri, F. Mahmood, "Data-efficient and weakly
       supervised computational pathology on whole-slide images", Nature Biomedical Engineering 5, 2021, Methods.
    .. [2] L. Berrada, A. Zisserman, M. P. Kumar, "Smooth loss functions for deep top-k classification", ICLR 2018.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> model = ClamSB(hidden=8, epochs=2, random_state=0).fit(bags)
    >>> model.instance_weights(bags).shape, model.instance_scores(bags).shape
    ((3,), (3,))
    """

    branches: ClassVar[int] = 1
