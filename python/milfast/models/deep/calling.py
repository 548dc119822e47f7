"""A torch module of any style as one that takes flat bags and returns one logit for each."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from milfast.models.deep.making import detach, host_seeded
from milfast.models.deep.ways import Misfit
from milfast.training import loop
from milfast.training.ragged import gather_bags

if TYPE_CHECKING:
    from collections.abc import Callable

    from milfast.models.deep.ways import Way

__all__ = ["BagModule", "alone", "moved"]

#: Probabilities are kept this far from 0 and 1 when they are made logits.
EPS = 1e-7
#: Scores that differ by less, relative to the largest one, differ by rounding.
ROUNDING = 1e-3
#: Draws of a score that depends on chance, and standard errors by which the means of two such sets must differ.
DRAWS, CERTAIN = 32, 6.0


class BagModule(nn.Module):
    """A module of any style, as one that takes flat bags and returns one logit for each.

    Of two logits a bag, the second minus the first is the logit; probabilities are made logits.

    Parameters
    ----------
    inner : torch.nn.Module
    way : Way
        How it is called.
    columns : {1, 2}
        Values that it returns for each bag.
    probabilities : (bool, bool)
        Whether these are probabilities: in training mode, and in evaluation mode.
    batch_size : int
        Bags that are padded together when they are scored.
    seed : int
        For scores that depend on chance.

    Attributes
    ----------
    seen : tuple of str
        What `findings` said of small bags before any training.
    """

    def __init__(
        self, inner: nn.Module, way: Way, columns: int, probabilities: tuple[bool, bool], batch_size: int, seed: int
    ) -> None:
        super().__init__()
        self.inner = inner
        self.way = way
        self.columns = columns
        self.probabilities = probabilities
        self.batch_size = batch_size
        self.seed = seed
        self.seen: tuple[str, ...] = ()

    def __str__(self) -> str:
        trained, scored = ("probabilities" if kind else "logits" for kind in self.probabilities)
        kinds = scored if trained == scored else f"{trained} in training and {scored} in evaluation"
        return f"{self.way.style}: {self.way}, returns {'two ' if self.columns == 2 else ''}{kinds}"

    def __deepcopy__(self, memo: dict[int, Any]) -> BagModule:
        detach(self, memo)
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__setstate__(copy.deepcopy(vars(self), memo))  # type: ignore[no-untyped-call]
        return made

    def forward(self, instances: Tensor, offsets: Tensor) -> Tensor:
        """Logit of each bag.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)

        Returns
        -------
        Tensor, shape (n_bags,)

        Raises
        ------
        ValueError
            When the module returns something else than it did on small bags, or, where it returned probabilities, a
            value outside of [0, 1].
        """
        return self._logits(
            lambda: self.way.outputs(self.inner, instances, offsets, limit=None if self.training else self.batch_size)
        )

    @property
    def instance_logits(self) -> Callable[[Tensor], Tensor]:
        """That of the module, where it has one."""
        logits: Callable[[Tensor], Tensor] = getattr(self.inner, "instance_logits")  # noqa: B009  # nn.Module's type
        return logits

    def _logits(self, outputs: Callable[[], Tensor]) -> Tensor:
        # drawn from torch's generator, which whoever trains or scores has seeded
        with host_seeded(int(torch.randint(2**31, ()))):
            try:
                found = outputs()
            except Misfit as error:
                raise ValueError(f"{type(self.inner).__name__} {error}") from None
        if found.shape[1] != self.columns:
            raise ValueError(
                f"{type(self.inner).__name__} returned {found.shape[1]} values for each bag, where it returned "
                f"{self.columns} on small ones"
            )
        if self.probabilities[not self.inner.training]:
            outside = (found < -ROUNDING) | (found > 1 + ROUNDING)
            if bool(outside.any()):
                mode = "training" if self.inner.training else "evaluation"
                raise ValueError(
                    f"{type(self.inner).__name__} returned {float(found.detach()[outside][0]):g} in {mode}, where all "
                    "that it returned on small bags lay in [0, 1], as probabilities do: return logits"
                )
            found = found.clamp(EPS, 1 - EPS).logit() if self.columns == 1 else found.clamp_min(EPS).log()
        return found[:, 0] if self.columns == 1 else found[:, 1] - found[:, 0]

    def findings(self, instances: Tensor, offsets: Tensor) -> tuple[str, ...]:
        """What a score depends on beside the bag.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)
            Some bags.

        Returns
        -------
        tuple of str
            "unstable" when it depends on chance or on the bags that are scored along, "padding" when on padding.
        """
        device = next(self.inner.parameters()).device
        instances, offsets = instances.to(device), offsets.to(device)

        def drawn(n: int, offsets: Tensor, pad: int = 0) -> Tensor:
            found = []
            for seed in range(n):
                with loop.seeded(seed, device):
                    found.append(self._logits(lambda: alone(self.way, self.inner, instances, offsets, pad)))
            return torch.stack(found)[..., None]

        found = []
        with loop.evaluating(self.inner), loop.seeded(0, device):
            first, second = drawn(2, offsets)
            chance = moved(first, second)
            if chance or self._minds_company(instances, offsets, first):
                found.append("unstable")
            if self.way.masked:
                few, draws = (offsets[:5], DRAWS) if chance else (offsets, 1)
                if moved(drawn(draws, few), drawn(draws, few, pad=8)):
                    found.append("padding")
        return tuple(found)

    def _minds_company(self, instances: Tensor, offsets: Tensor, each: Tensor) -> bool:
        """Whether bags of one size, which need no padding, get other scores together."""
        if self.way.style == "single":
            return False
        if self.way.style == "flat":
            return moved(each[:, 0], self(instances, offsets))
        sizes = offsets.diff()
        for size in dict.fromkeys(sizes.tolist()):
            alike = (sizes == size).nonzero()[:, 0]
            together = self(*gather_bags(instances, offsets, alike))
            if len(alike) > 1 and moved(each[alike, 0], together):
                return True
        return False


def alone(way: Way, module: nn.Module, instances: Tensor, offsets: Tensor, pad: int = 0) -> Tensor:
    """What the module returns for each bag when it is handed over by itself."""
    parts = []
    for first, last in pairwise(offsets.tolist()):
        own = torch.tensor([0, last - first], device=instances.device)
        parts.append(way.outputs(module, instances[first:last], own, pad=pad))
    return torch.cat(parts)


def moved(first: Tensor, second: Tensor) -> bool:
    """Whether scores differ by more than rounding; sets of draws, by more than chance."""
    if first.ndim == 3 and len(first) > 1:
        error = ((first.var(0) + second.var(0)) / len(first)).sqrt()
        return bool(((first.mean(0) - second.mean(0)).abs() > CERTAIN * error).any())
    largest = first.abs()[first.isfinite()]
    rounding = ROUNDING * largest.max() if len(largest) else 0.0
    # the other way round, so that a NaN has moved
    return not bool(((first == second) | ((first - second).abs() <= rounding)).all())
