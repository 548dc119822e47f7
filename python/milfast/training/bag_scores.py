"""An instance network with a pooling of its scores, and scores of bags of any size, a piece of a bag at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from milfast.models.deep.layers import tanh
from milfast.training.ragged import segment_index, segment_max, segment_mean, segment_softmax, segment_sum

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["POOLINGS", "AttentionHead", "InstanceNetwork", "PooledNetwork", "RunningPool", "Tanh"]

#: How scores of instances make the score of a bag.
POOLINGS = ("mean", "max", "smx", "att")


class Tanh(nn.Module):
    """Hyperbolic tangent as `milfast.models.deep.layers.tanh` has it.

    Examples
    --------
    >>> import torch
    >>> Tanh()(torch.zeros(2))
    tensor([0., 0.])
    """

    def forward(self, values: Tensor) -> Tensor:
        """``tanh(values)``."""
        return tanh(values)


class AttentionHead(nn.Module):
    """What attention says of an instance: ``w . tanh(V h + c) + d``, before exp.

    Parameters
    ----------
    n_features : int
        Length of h.

    Examples
    --------
    >>> import torch
    >>> AttentionHead(4)(torch.zeros(3, 4)).shape
    torch.Size([3])
    """

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.value = nn.Linear(n_features, n_features)
        self.score = nn.Linear(n_features, 1)
        _xavier(self.value, self.score)

    def forward(self, features: Tensor) -> Tensor:
        """One number for each instance.

        Parameters
        ----------
        features : Tensor, shape (n_instances, n_features)

        Returns
        -------
        Tensor, shape (n_instances,)
        """
        said: Tensor = self.score(tanh(self.value(features)))
        return said.squeeze(1)


class InstanceNetwork(nn.Module):
    """Score of each instance, and what attention says of it.

    Without a module of one's own the features are ``h = tanh(W x + c)`` and the score is ``w . h + d``, with weights
    from Xavier's normal distribution: the network of the authors' experiments on tables.

    Parameters
    ----------
    n_features : int
        Values of one instance.
    hidden : int or None
        Length of h; None takes `n_features`. A module of one's own does without.
    attention : bool
    module : torch.nn.Module, optional
        Takes instances of shape (n, *instance_shape). It returns features of shape (n, k), and gets a linear score on
        top; or one score for each instance, of shape (n,) or (n, 1), which attention cannot work with.
    instance_shape : tuple of int, optional
        Shape of an instance where it is not ``(n_features,)``.

    Raises
    ------
    ValueError
        When `module` returns something else.

    Examples
    --------
    >>> import torch
    >>> scores, says = InstanceNetwork(4, attention=True)(torch.zeros(3, 4))
    >>> scores.shape, says.shape
    (torch.Size([3]), torch.Size([3]))
    """

    def __init__(
        self,
        n_features: int,
        hidden: int | None = None,
        *,
        attention: bool = False,
        module: nn.Module | None = None,
        instance_shape: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__()
        self.instance_shape = (n_features,) if instance_shape is None else tuple(instance_shape)
        width = int(n_features if hidden is None else hidden)
        self.tabular = module is None
        self.score: nn.Linear | None
        self.attention: AttentionHead | None
        if module is None:
            first = nn.Linear(n_features, width)
            _xavier(first)
            self.features: nn.Module = nn.Sequential(first, Tanh())
        else:
            if any(p.requires_grad and p.dtype != torch.float32 for p in module.parameters()):
                raise ValueError("parameters of module must be float32: module.float() makes them so")
            self.features = module
            width = _width(module, self.instance_shape)
        self.score = None if width == 0 else nn.Linear(width, 1)
        if self.score is not None:
            _xavier(self.score)
        if attention and width == 0:
            raise ValueError(
                "module returns one score for each instance, and attention needs features: return shape (n, k)"
            )
        self.attention = AttentionHead(width) if attention else None

    def forward(self, instances: Tensor) -> tuple[Tensor, Tensor | None]:
        """Scores, and what attention says, of instances.

        Parameters
        ----------
        instances : Tensor, shape (n, n_features)

        Returns
        -------
        scores : Tensor, shape (n,)
        says : Tensor of that shape, or None
        """
        given = instances if len(self.instance_shape) == 1 else instances.reshape(-1, *self.instance_shape)
        features: Tensor = self.features(given)
        scores = features if self.score is None else self.score(features)
        return scores.reshape(len(instances)), None if self.attention is None else self.attention(features)


def _xavier(*layers: nn.Linear) -> None:
    for layer in layers:
        nn.init.xavier_normal_(layer.weight)


def _width(module: nn.Module, shape: tuple[int, ...]) -> int:
    """Features that a module returns for an instance; 0 where it returns one score."""
    was = module.training
    module.eval()
    with torch.no_grad():
        found = module(torch.zeros(2, *shape))
    module.train(was)
    if not isinstance(found, Tensor) or found.ndim not in (1, 2) or len(found) != 2 or 0 in found.shape:
        told = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ValueError(
            f"module must return scores of shape (n,) or features of shape (n, k) for n instances; for 2 of shape "
            f"{shape} it returned {told}"
        )
    return 0 if found.ndim == 1 or found.shape[1] == 1 else int(found.shape[1])


class PooledNetwork(nn.Module):
    """Logit of a bag: the pooled scores of all its instances, less a midpoint.

    Parameters
    ----------
    network : InstanceNetwork
    pooling : {"mean", "max", "smx", "att"}
        Mean, maximum, ``tau log mean exp(score / tau)``, or the mean weighted by attention.
    squash : bool
        Whether scores of instances go through a sigmoid before they are pooled, as they do in training by AUC losses.
        With attention the sigmoid comes after pooling there and is left out here, as it changes no order of bags.
    tau : float
        Of "smx".

    Attributes
    ----------
    midpoint : Tensor, shape ()
        What is subtracted from the score of each bag, so that 0 lies between the classes.

    Examples
    --------
    >>> import torch
    >>> network = PooledNetwork(InstanceNetwork(4), "max", squash=True)
    >>> network(torch.zeros(3, 4), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    midpoint: Tensor

    def __init__(self, network: InstanceNetwork, pooling: str, *, squash: bool, tau: float = 0.1) -> None:
        super().__init__()
        self.network = network
        self.pooling = pooling
        self.squash = squash
        self.tau = tau
        self.register_buffer("midpoint", torch.zeros(()))

    def instance_logits(self, instances: Tensor) -> Tensor:
        """Score of each instance, before a sigmoid.

        Parameters
        ----------
        instances : Tensor, shape (n, n_features)

        Returns
        -------
        Tensor, shape (n,)
        """
        scores: Tensor = self.network(instances)[0]
        return scores

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
        scores, says = self.network(instances)
        if self.squash and self.pooling != "att":
            scores = scores.sigmoid()
        if self.pooling == "mean":
            pooled = segment_mean(scores, offsets)
        elif self.pooling == "max":
            pooled = segment_max(scores, offsets)
        elif self.pooling == "smx":
            top = segment_max(scores.detach(), offsets)
            bag = segment_index(offsets, n_instances=len(scores))
            raised = segment_mean(((scores - top.index_select(0, bag)) / self.tau).exp(), offsets)
            pooled = top + self.tau * raised.log()
        else:
            pooled = segment_sum(segment_softmax(says, offsets) * scores, offsets)
        logits: Tensor = pooled - self.midpoint
        return logits

    def extra_repr(self) -> str:
        """What `repr` shows between the brackets."""
        return f"pooling={self.pooling!r}, squash={self.squash}" + (
            f", tau={self.tau:g}" if self.pooling == "smx" else ""
        )


class RunningPool:
    """Scores of bags of many models, from instances that come in pieces of any size, in order.

    It holds a maximum and sums relative to it for each bag and model, in double precision: no bag is ever there as a
    whole, and where the pieces are cut changes scores by rounding only.

    Parameters
    ----------
    offsets : ndarray of int64, shape (n_bags + 1,)
    n_models : int
    pooling, squash, tau
        As in `PooledNetwork`.
    device : torch.device

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> pool = RunningPool(np.array([0, 1, 3]), 1, "max", squash=False, tau=0.1, device=torch.device("cpu"))
    >>> for first in range(3):
    ...     pool.add(first, torch.tensor([[float(first)]]), None)
    >>> pool.scores()
    tensor([[0.],
            [2.]], dtype=torch.float64)
    """

    def __init__(
        self, offsets: Any, n_models: int, pooling: str, *, squash: bool, tau: float, device: torch.device
    ) -> None:
        self.offsets = np.asarray(offsets)
        self.pooling = pooling
        self.squash = squash and pooling != "att"
        self.tau = tau
        self.device = device
        self.dtype = torch.float32 if device.type == "mps" else torch.float64  # which knows no other
        shape = len(self.offsets) - 1, n_models
        self.top = torch.full(shape, -torch.inf, dtype=self.dtype, device=device)
        self.total = torch.zeros(shape, dtype=self.dtype, device=device)
        self.weighted = torch.zeros(shape, dtype=self.dtype, device=device)

    def add(self, first: int, scores: Tensor, says: Tensor | None) -> None:
        """Take in instances.

        Parameters
        ----------
        first : int
            Number of the first of them among all.
        scores : Tensor of floats, shape (n, n_models)
        says : Tensor of that shape, or None
            What attention says, for pooling "att".
        """
        held, last = slice(*self._bags(first, first + len(scores))), first + len(scores)
        cuts = torch.from_numpy(np.clip(self.offsets[held.start : held.stop + 1], first, last) - first).to(self.device)
        values = scores.to(self.dtype)
        if self.squash:
            values = values.sigmoid()
        if self.pooling == "mean":
            self.total[held] += segment_sum(values, cuts)
            return
        if self.pooling == "max":
            self.top[held] = torch.maximum(self.top[held], segment_max(values, cuts))
            return
        powers = values / self.tau
        if self.pooling == "att":
            assert says is not None
            powers = says.to(self.dtype)
        before = self.top[held]
        top = torch.maximum(before, segment_max(powers, cuts))
        raised = (powers - top.index_select(0, segment_index(cuts, n_instances=len(powers)))).exp()
        kept = (before - top).exp()
        self.top[held] = top
        self.total[held] = self.total[held] * kept + segment_sum(raised, cuts)
        if self.pooling == "att":
            self.weighted[held] = self.weighted[held] * kept + segment_sum(raised * values, cuts)

    def scores(self) -> Tensor:
        """Scores of bags, when all instances have come.

        Returns
        -------
        Tensor of float64, shape (n_bags, n_models)
        """
        if self.pooling == "max":
            return self.top
        sizes = torch.from_numpy(np.diff(self.offsets)).to(self.device, self.dtype)[:, None]
        if self.pooling == "mean":
            return self.total / sizes
        if self.pooling == "smx":
            return self.tau * (self.top + self.total.log() - sizes.log())
        return self.weighted / self.total

    def _bags(self, first: int, last: int) -> tuple[int, int]:
        begin = int(np.searchsorted(self.offsets, first, side="right")) - 1
        return begin, int(np.searchsorted(self.offsets, last, side="left"))


def pieces(n_rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most `size` rows.

    Parameters
    ----------
    n_rows, size : int

    Yields
    ------
    first, last : int

    Examples
    --------
    >>> list(pieces(5, 2))
    [(0, 2), (2, 4), (4, 5)]
    """
    for first in range(0, n_rows, size):
        yield first, min(first + size, n_rows)
