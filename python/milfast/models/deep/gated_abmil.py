"""gated ABMIL: sum of instance embeddings weighted by gated attention (Ilse et al. 2018).

MIL assumption: **none**, although its authors start from the standard one; as ABMIL, from which only the attention
differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from milfast.models.deep.abmil import ABMIL, AttentionNetwork

if TYPE_CHECKING:
    from torch import nn

__all__ = ["GatedABMIL"]

NAME = "gated-ABMIL"
REQUIRES = ("torch",)


class GatedABMIL(ABMIL):
    """ABMIL with attention ``softmax_i(w . (tanh(V h_i) * sigmoid(U h_i)))``. Parameters are those of `ABMIL`.

    It respects **no** MIL assumption, as `ABMIL`.

    References
    ----------
    .. [1] M. Ilse, J. Tomczak, M. Welling, "Attention-based deep multiple instance learning", ICML 2018, equations 7
       and 9.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> GatedABMIL(hidden=8, epochs=2, random_state=0).fit(bags).instance_weights(bags).shape
    (3,)
    """

    def build(self, n_features: int) -> nn.Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return AttentionNetwork(n_features, self.hidden, self.dropout, self.attention_dim, gated=True)
