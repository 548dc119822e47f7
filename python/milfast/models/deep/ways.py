"""The ways in which a torch module can take bags, behind one call on flat bags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from milfast.training.ragged import gather_bags

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["UNPOOLED", "Misfit", "Unpooled", "Way"]

#: What a network lacks that scores instances.
UNPOOLED = "one value for each instance, where a bag needs one: pool over its instances"


class Misfit(Exception):
    """What a module returned is no score for each bag."""


class Unpooled(Misfit):
    """It is one for each instance."""

    def __str__(self) -> str:
        return f"{super().__str__()}: {UNPOOLED}"


@dataclass(frozen=True)
class Way:
    """One way to hand bags to a module.

    Attributes
    ----------
    style : {"flat", "padded", "single"}
    second : str or None
        What the second argument (offsets or mask) is called; "" when it goes by its place, None when there is none.
    dtype : torch.dtype
        Of the mask.
    marks_padding : bool
        Whether the mask is true where there is padding rather than where there is an instance.
    batched : bool
        Whether a single bag is handed over as a batch of one.
    """

    style: str
    second: str | None = None
    dtype: torch.dtype = torch.bool
    marks_padding: bool = False
    batched: bool = False

    def __str__(self) -> str:
        if self.style == "flat":
            return f"module(instances, {f'{self.second}=' if self.second else ''}offsets)"
        if self.style == "single":
            return "module(bag), a bag being " + ("(1, n, d)" if self.batched else "(n, d)")
        if self.second is None:
            return "module(x), x holding bags of one size"
        kind = "" if self.dtype is torch.bool else f" of {str(self.dtype).removeprefix('torch.')}"
        true = ", true where there is padding" if self.marks_padding else ""
        return f"module(x_padded, {f'{self.second}=' if self.second else ''}mask{kind}{true})"

    @property
    def masked(self) -> bool:
        """Whether bags are padded, and a mask says how far."""
        return self.style == "padded" and self.second is not None

    def calls(
        self, instances: Tensor, offsets: Tensor, *, limit: int | None = None, pad: int = 0
    ) -> Iterator[tuple[list[int], tuple[Tensor, ...], dict[str, Tensor]]]:
        """What to call the module with: tensors of its own, which it may change in place.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)
        limit : int, optional
            Most bags of one call, where they are padded.
        pad : int
            Padding beyond the longest bag of a call.

        Yields
        ------
        bags : list of int
            Numbers of the bags, in the order in which the call returns them.
        args : tuple of Tensor
        kwargs : dict of str to Tensor
        """
        cuts = offsets.tolist()
        n_bags = len(cuts) - 1
        if self.style == "flat":
            yield list(range(n_bags)), *self._arguments(instances.clone(), offsets.clone())
        elif self.style == "single":
            for bag, (first, last) in enumerate(pairwise(cuts)):
                rows = instances[first:last].clone()
                yield [bag], (rows[None] if self.batched else rows,), {}
        elif self.second is None:
            alike: dict[int, list[int]] = {}
            for bag, (first, last) in enumerate(pairwise(cuts)):
                alike.setdefault(last - first, []).append(bag)
            here = offsets.cpu()
            for size, members in alike.items():
                for start in range(0, len(members), limit or n_bags):
                    bags = members[start : start + (limit or n_bags)]
                    rows, _ = gather_bags(instances, here, torch.tensor(bags))
                    yield bags, (rows.view(len(bags), size, -1),), {}
        else:
            for first in range(0, n_bags, limit or n_bags):
                last = min(first + (limit or n_bags), n_bags)
                sizes = offsets[first : last + 1].diff()
                longest = max(b - a for a, b in pairwise(cuts[first : last + 1])) + pad
                real = torch.arange(longest, device=sizes.device) < sizes[:, None]
                x = instances.new_zeros((*real.shape, instances.shape[1]))
                x[real] = instances[cuts[first] : cuts[last]]
                mask = (~real if self.marks_padding else real).to(self.dtype)
                yield list(range(first, last)), *self._arguments(x, mask)

    def _arguments(self, first: Tensor, second: Tensor) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
        return ((first,), {self.second: second}) if self.second else ((first, second), {})

    def outputs(
        self, module: nn.Module, instances: Tensor, offsets: Tensor, *, limit: int | None = None, pad: int = 0
    ) -> Tensor:
        """What the module returns for each bag.

        Parameters
        ----------
        module : torch.nn.Module
        instances, offsets, limit, pad
            As `calls`.

        Returns
        -------
        Tensor, shape (n_bags, 1) or (n_bags, 2)

        Raises
        ------
        Misfit
            When it is something else.
        """
        parts, order = [], []
        for bags, args, kwargs in self.calls(instances, offsets, limit=limit, pad=pad):
            try:
                returned = module(*args, **kwargs)
            except ValueError as error:
                if "more than 1 value per channel" in str(error):
                    error.add_note(self._too_few(bags, len(offsets) - 1, args[0]))
                raise
            parts.append(_per_bag(returned, len(bags), args[0]))
            order += bags
        if len({part.shape[1] for part in parts}) > 1:
            raise Misfit("returned one value for some bags and two for others")
        joined = torch.cat(parts)
        if order == sorted(order):
            return joined
        return joined[torch.tensor(order, device=joined.device).argsort()]

    def _too_few(self, bags: list[int], n_bags: int, x: Tensor) -> str:
        """What batch normalisation could not be trained on, and the way out."""
        shape = tuple(x.shape)
        if self.style == "single":
            of = f"bag {bags[0]} of the {n_bags} of a batch, which was handed over alone in shape {shape}"
            out = ""
        elif self.masked or self.style == "flat":
            of = f"a batch of {len(bags)} bag{'s' if len(bags) > 1 else ''} in shape {shape}"
            out = "choose a batch_size that leaves no single bag for the last batch, or "
        else:
            of = f"bag {bags[0]} of the {n_bags} of a batch, the only one of its size, in shape {shape}"
            out = "take a mask as well, so that bags of all sizes come together, or "
        return (
            f"batch normalisation was to be trained on {of}: it needs more than one value of each feature; {out}"
            "normalise by nn.LayerNorm, which needs no others"
        )


def _per_bag(returned: Any, n_bags: int, x: Tensor) -> Tensor:
    """What was returned, as one row a bag."""
    first = returned
    while isinstance(first, (tuple, list)) and first:
        first = first[0]
    if isinstance(first, Mapping):
        key = next((key for key in ("logits", "logit") if key in first), None)
        if key is None:
            raise Misfit(f"returned a {type(first).__name__} with {', '.join(map(str, first))}, but no 'logits'")
        first = first[key]
    among = " first" if isinstance(returned, (tuple, list)) else ""
    if not isinstance(first, Tensor):
        raise Misfit(f"returned {type(first).__name__}{among}, no tensor")
    shape = tuple(first.shape)
    if n_bags == 1 and shape in ((), (1,), (2,)):
        first = first.reshape(1, -1)
    elif shape == (n_bags,):
        first = first[:, None]
    if tuple(first.shape) not in ((n_bags, 1), (n_bags, 2)):
        whole = f"returned shape {shape}{among} for {n_bags} bag{'s' if n_bags > 1 else ''} in shape {tuple(x.shape)}"
        if shape and (shape[: x.ndim - 1] == tuple(x.shape[:-1]) or shape[0] == len(x) != n_bags):
            raise Unpooled(whole)
        if len(shape) == 2 and shape[0] == n_bags:
            raise Misfit(f"{whole}: {shape[1]} classes, where milfast has two")
        raise Misfit(whole)
    if first.is_complex():
        raise Misfit(f"returned {str(first.dtype)[6:]}{among}: complex numbers have no order; return real ones")
    if not first.is_floating_point():
        raise Misfit(f"returned {str(first.dtype)[6:]}{among}: labels, where scores before the threshold are needed")
    return first
