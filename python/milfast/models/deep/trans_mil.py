"""TransMIL: Nystroem attention between instances, and convolutions over the square they fill (Shao et al. 2021).

MIL assumption: **correlated**, as its authors call it: which instances a bag holds does not decide alone, the order
counts too. None for sets is respected: instances attend to each other, and a further one can move the logit either way.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from milfast.models.deep.base import DeepMIL, whole_number
from milfast.models.deep.layers import Dropout

__all__ = ["TransMIL"]

NAME = "TransMIL"
REQUIRES = ("torch",)

#: Of the convolution along the sequence that is added to the attended values.
KERNEL = 33
#: Steps towards the inverse.
STEPS = 6
#: Squares up to this side are convolved by a matrix.
SMALL = 8


class NystromAttention(nn.Module):
    """Self-attention of sequences of one length by landmarks, with a convolution of the values added.

    With queries Q, divided by the root of their length, keys K and values V of a head, and landmarks Q~ and K~, the
    means of consecutive stretches, a head gives ``softmax(Q K~') Z softmax(Q~ K') V + conv(V)`` where Z is an iterated
    inverse of ``softmax(Q~ K~')``.

    Parameters
    ----------
    width : int
        Of tokens; a multiple of `heads`.
    heads : int
    landmarks : int
        A sequence that is shorter has as many landmarks as tokens.
    dropout : float
        Of what is returned, in [0, 1).

    References
    ----------
    .. [1] Y. Xiong et al., "Nystroemformer: a Nystroem-based algorithm for approximating self-attention", AAAI 2021.

    Examples
    --------
    >>> import torch
    >>> NystromAttention(16, 4, 8)(torch.zeros(2, 10, 16)).shape
    torch.Size([2, 10, 16])
    """

    def __init__(self, width: int, heads: int = 8, landmarks: int = 64, dropout: float = 0.1) -> None:
        super().__init__()
        self.heads = heads
        self.landmarks = landmarks
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.conv = nn.Conv1d(heads, heads, KERNEL, padding=KERNEL // 2, groups=heads, bias=False)
        self.out = nn.Linear(width, width)
        self.dropout = Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """Attend.

        Parameters
        ----------
        tokens : Tensor, shape (n, length, width)

        Returns
        -------
        Tensor, shape (n, length, width)
        """
        n, length, width = tokens.shape
        marks = min(self.landmarks, length)
        # as published, zeros in front make stretches of one length; they are attended to
        tokens = functional.pad(tokens, (0, 0, -length % marks, 0))
        parts = self.qkv(tokens).view(n, -1, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        query = query * (width // self.heads) ** -0.5
        if marks == length:
            whole = torch.softmax(query @ key.transpose(2, 3), 3)
            mixed = inverse_product(whole) @ whole
            attended = (mixed + convolution_matrix(self.conv.weight[:, 0], length)) @ value
        else:
            few = (n, self.heads, marks, -1, width // self.heads)
            few_queries, few_keys = query.reshape(few).mean(3), key.reshape(few).mean(3)
            to_few = torch.softmax(query @ few_keys.transpose(2, 3), 3)
            among = torch.softmax(few_queries @ few_keys.transpose(2, 3), 3)
            to_all = torch.softmax(few_queries @ key.transpose(2, 3), 3)
            attended = to_few @ (pseudo_inverse(among) @ (to_all @ value))
            rows = value.permute(0, 3, 1, 2)
            convolved: Tensor = self.conv(rows.flatten(0, 1))
            attended = attended + convolved.view(rows.shape).permute(0, 2, 3, 1)
        made: Tensor = self.dropout(self.out(attended.transpose(1, 2).flatten(2)))
        return made[:, -length:]


def convolution_matrix(kernels: Tensor, side: int) -> Tensor:
    """Matrices that convolve a line, or a square, with zeros around it.

    For short lines and small squares, a product with these takes a fraction of the time of torch's convolutions.

    Parameters
    ----------
    kernels : Tensor, shape (n, k) or (n, k, k)
        k is odd.
    side : int
        Length of the line, or of a side of the square.

    Returns
    -------
    Tensor, shape (n, side, side) or (n, side * side, side * side)

    Examples
    --------
    >>> import torch
    >>> convolution_matrix(torch.tensor([[1.0, 2.0, 3.0]]), 3)
    tensor([[[2., 3., 0.],
             [1., 2., 3.],
             [0., 1., 2.]]])
    """
    dims = range(1, kernels.ndim)
    # one weight for each distance that there is, then all stretches of them
    matrices = functional.pad(kernels, [side - 1 - kernels.shape[1] // 2] * (2 * len(dims)))
    for dim in dims:
        matrices = matrices.unfold(dim, side, 1)
    return matrices.flip(tuple(dims)).reshape(len(kernels), side ** len(dims), -1)


def pseudo_inverse(matrices: Tensor) -> Tensor:
    """Approximate inverses by six steps of an iteration of third order, each matrix by itself.

    ``Z <- Z (13 I - A Z (15 I - A Z (7 I - A Z))) / 4`` from ``Z = A' / (largest column sum * largest row sum)``.

    Parameters
    ----------
    matrices : Tensor, shape (..., m, m)
        Not negative.

    Returns
    -------
    Tensor, shape (..., m, m)

    Examples
    --------
    >>> import torch
    >>> pseudo_inverse(torch.tensor([[[0.8, 0.2], [0.4, 0.6]]]))
    tensor([[[ 1.5000, -0.5000],
             [-1.0000,  2.0000]]])
    """
    given = matrices.flatten(0, -3)
    sums = given.sum(-1).amax(-1) * given.sum(-2).amax(-1)
    inverse = given.transpose(1, 2) / sums[:, None, None]
    one = torch.eye(given.shape[-1], dtype=given.dtype, device=given.device)
    for _ in range(STEPS):
        near = given @ inverse
        inner = torch.baddbmm(15 * one, near, 7 * one - near, alpha=-1)
        inverse = inverse @ torch.baddbmm(13 / 4 * one, near, inner, alpha=-1 / 4)
    return inverse.view(matrices.shape)


def inverse_product(matrices: Tensor) -> Tensor:
    """``A Z`` for the approximate inverse ``Z`` of `pseudo_inverse`, in half as many matrix products.

    ``P = A Z`` follows an iteration of its own, ``P <- (13 P - 15 P^2 + 7 P^3 - P^4) / 4`` from ``A A'``, scaled.

    Parameters
    ----------
    matrices : Tensor, shape (..., m, m)
        Not negative.

    Returns
    -------
    Tensor, shape (..., m, m)

    Examples
    --------
    >>> import torch
    >>> matrices = torch.tensor([[[0.8, 0.2], [0.4, 0.6]]])
    >>> bool(torch.allclose(inverse_product(matrices), matrices @ pseudo_inverse(matrices), atol=1e-6))
    True
    """
    given = matrices.flatten(0, -3)
    sums = given.sum(-1).amax(-1) * given.sum(-2).amax(-1)
    product = given @ given.transpose(1, 2) / sums[:, None, None]
    for _ in range(STEPS):
        square = product @ product
        low = torch.sub(13 / 4 * product, square, alpha=15 / 4)
        product = torch.baddbmm(low, square, 7 * product - square, alpha=1 / 4)
    return product.view(matrices.shape)


class PositionEncoding(nn.Module):
    """PPEG: depth-wise convolutions of sizes 7, 5 and 3 over the square of tokens, added to it; class tokens pass.

    Parameters
    ----------
    width : int

    Examples
    --------
    >>> import torch
    >>> layer = PositionEncoding(16)
    >>> layer(torch.zeros(2, 10, 16), 3).shape, sum(p.numel() for p in layer.parameters())
    (torch.Size([2, 10, 16]), 1376)
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv7, self.conv5, self.conv3 = (
            nn.Conv2d(width, width, k, padding=k // 2, groups=width) for k in (7, 5, 3)
        )

    def forward(self, tokens: Tensor, side: int) -> Tensor:
        """Encode positions.

        Parameters
        ----------
        tokens : Tensor, shape (n, 1 + side * side, width)
            The class token first.
        side : int

        Returns
        -------
        Tensor, shape of `tokens`
        """
        n, _, width = tokens.shape
        # the three kernels are one kernel in sum
        kernel = (
            self.conv7.weight + functional.pad(self.conv5.weight, [1] * 4) + functional.pad(self.conv3.weight, [2] * 4)
        )
        first, second, third = self.conv7.bias, self.conv5.bias, self.conv3.bias
        assert first is not None
        assert second is not None
        assert third is not None
        bias = first + second + third  # a sum of them stacked would give all three one gradient in common
        square = tokens[:, 1:]
        if side <= SMALL:
            matrices = convolution_matrix(kernel[:, 0], side)
            product = matrices @ square.permute(2, 1, 0).contiguous()
            if product.requires_grad:
                # torch multiplies batches of matrices laid out otherwise one by one
                product.register_hook(Tensor.contiguous)  # type: ignore[no-untyped-call]
            convolved = product.permute(2, 1, 0) + bias
        else:
            picture = square.transpose(1, 2).reshape(n, width, side, side)
            convolved = functional.conv2d(picture, kernel, bias, padding=3, groups=width).flatten(2).transpose(1, 2)
        return torch.cat((tokens[:, :1], square + convolved), 1)


class TransMILNetwork(nn.Module):
    """``t + A(LN(t))``, position encoding, ``t + A(LN(t))``, LN, and a linear head on the class token.

    Tokens are a learned class token and ``ReLU(W x_i + b)`` of the instances, whose first ones come once more until
    their number is a square.

    Parameters
    ----------
    n_features : int
    hidden : int
        Width of tokens.
    dropout : float
        After attention, in [0, 1).
    heads, landmarks : int
        Of `NystromAttention`.

    Notes
    -----
    Bags whose squares have equal sides go through the network together, so that there is no padding.

    Examples
    --------
    >>> import torch
    >>> network = TransMILNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(
        self, n_features: int, hidden: int = 128, dropout: float = 0.1, heads: int = 8, landmarks: int = 64
    ) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(n_features, hidden), nn.ReLU())
        self.class_token = nn.Parameter(torch.randn(hidden))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(3))
        self.attention = nn.ModuleList(NystromAttention(hidden, heads, landmarks, dropout) for _ in range(2))
        self.position = PositionEncoding(hidden)
        self.head = nn.Linear(hidden, 2)

    def _scores(self, tokens: Tensor, side: int) -> Tensor:
        """Scores of the classes of bags whose squares have one side, shape (n, 2)."""
        tokens = torch.cat((self.class_token.expand(len(tokens), 1, -1), tokens), 1)
        tokens = tokens + self.attention[0](self.norms[0](tokens))
        tokens = self.position(tokens, side)
        tokens = tokens + self.attention[1](self.norms[1](tokens))
        scores: Tensor = self.head(self.norms[2](tokens[:, 0]))
        return scores

    def forward(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Logit of each bag: score of class 1 minus that of class 0, whose cross-entropy is that of the softmax.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)

        Returns
        -------
        Tensor, shape (n_bags,)
        """
        embedded = self.embed(instances)
        sizes = offsets.diff()
        sides = sizes.double().sqrt().ceil().long()
        made, order = [], []
        for side in sorted(set(sides.tolist())):
            chosen = (sides == side).nonzero().squeeze(1)
            places = torch.arange(side * side, device=offsets.device) % sizes[chosen, None]
            rows = offsets[chosen, None] + places
            tokens = embedded.index_select(0, rows.flatten()).view(len(chosen), side * side, -1)
            made.append(self._scores(tokens, side))
            order.append(chosen)
        scores = torch.cat(made)[torch.cat(order).argsort()]
        return scores[:, 1] - scores[:, 0]


class TransMIL(DeepMIL):
    """TransMIL: a small transformer with a class token. Other parameters and methods are those of `DeepMIL`.

    **The order of instances matters**, by design: position encoding takes them row by row for a square of neighbours,
    and landmarks are means of consecutive instances. Of a bag that is no square the first instances count twice.

    It differs from the published code in what makes the logit of a bag depend on other bags, or costs without need:

    - The start of the iterated inverse is scaled for each bag and head, and not by the largest sums in the batch.
    - There are no more landmarks than tokens, where the code fills short bags with zeros up to their number, and
      attends to those. A bag of fewer tokens than `landmarks` so has plain attention, up to the iterated inverse. In
      longer ones stretches are filled with zeros in front as published.
    - `hidden` is 128 and not 512, with head length and landmarks in the published proportion.
    - Adam in the place of RAdam with Lookahead, at the published rates; a step takes 32 bags and not one; single
      precision and not half; a fixed number of epochs.

    Of the assumptions for sets it respects **none**: tokens attend to each other under weights of either sign.

    Parameters
    ----------
    heads : int
        Attention heads; `hidden` must be a multiple.
    landmarks : int
        Of each attention at most.
    dropout, lr, weight_decay, optimizer, clip_value
        Of `DeepMIL`.

    References
    ----------
    .. [1] Z. Shao, H. Bian, Y. Chen, Y. Wang, J. Zhang, X. Ji, Y. Zhang, "TransMIL: transformer based correlated
       multiple instance learning for whole slide image classification", NeurIPS 2021.
    .. [2] Y. Xiong et al., "Nystroemformer: a Nystroem-based algorithm for approximating self-attention", AAAI 2021.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.Bags([[0.0], [1.0], [2.0]], offsets=[0, 1, 3], labels=[0, 1])
    >>> TransMIL(hidden=16, epochs=2, random_state=0).fit(bags).predict_proba(bags).shape
    (2, 2)
    """

    claims: ClassVar[str | None] = "correlated"
    order_matters: ClassVar[bool] = True

    def __init__(
        self,
        *,
        heads: int = 8,
        landmarks: int = 64,
        dropout: float = 0.1,
        lr: float = 2e-4,
        weight_decay: float = 1e-5,
        optimizer: str = "adam",
        clip_value: float | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(
            dropout=dropout,
            lr=lr,
            weight_decay=weight_decay,
            optimizer=optimizer,
            clip_value=clip_value,
            **settings,
        )
        self.heads = heads
        self.landmarks = landmarks

    def build(self, n_features: int) -> nn.Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return TransMILNetwork(n_features, self.hidden, self.dropout, self.heads, self.landmarks)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("heads", "landmarks"):
            whole_number(name, getattr(self, name))
        if self.hidden % self.heads:
            raise ValueError(f"hidden must be a multiple of heads={self.heads}; got {self.hidden}")
