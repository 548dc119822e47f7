"""How a torch module takes bags, found by trying it on small ones, behind one call on flat bags."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from milfast.models.deep.making import POSITIONAL, host_seeded, signature_of
from milfast.training import loop
from milfast.training.ragged import gather_bags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["BagModule", "Way", "adapted"]

#: Names by which a module tells that it takes flat bags.
OFFSETS = ("offsets", "bag_offsets", "cuts", "ptr", "indptr", "cu_seqlens")
#: Probabilities are kept this far from 0 and 1 when they are made logits.
EPS = 1e-7
#: Scores that differ by less, relative to the largest one, differ by rounding.
ROUNDING = 1e-3
#: Draws of a score that depends on chance, and standard errors by which the means of two such sets must differ.
DRAWS, CERTAIN = 32, 6.0
#: Bags on which a trained module is looked at.
LOOKED_AT = 16


class Misfit(Exception):
    """What a module returned is no score for each bag."""


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
        """What to call the module with.

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
            yield list(range(n_bags)), *self._arguments(instances, offsets)
        elif self.style == "single":
            for bag, (first, last) in enumerate(pairwise(cuts)):
                rows = instances[first:last]
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
            parts.append(_per_bag(module(*args, **kwargs), len(bags), args[0]))
            order += bags
        if len({part.shape[1] for part in parts}) > 1:
            raise Misfit("returned one value for some bags and two for others")
        joined = torch.cat(parts)
        if order == sorted(order):
            return joined
        return joined[torch.tensor(order, device=joined.device).argsort()]


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
            raise Misfit(f"{whole}: one value for each instance, where a bag needs one: pool over its instances")
        if len(shape) == 2 and shape[0] == n_bags:
            raise Misfit(f"{whole}: {shape[1]} classes, where milfast has two")
        raise Misfit(whole)
    if not first.is_floating_point():
        raise Misfit(f"returned {str(first.dtype)[6:]}{among}: labels, where scores before the threshold are needed")
    return first


def _candidates(module: nn.Module, style: str | None) -> list[Way]:
    """Ways that the signature of `forward` leaves, most likely first."""
    parameters = signature_of(module.forward)
    flat, single = [Way("flat", "")], [Way("single"), Way("single", batched=True)]
    if parameters is None:
        found = [*flat, *_masked("", False), Way("padded"), *single]
        return [way for way in found if style in (None, way.style)]
    later = parameters[1:]
    needed = [p for p in later if p.default is p.empty and p.kind in POSITIONAL]
    offsets = next((p.name for p in later if p.name in OFFSETS), None)
    mask = next((p.name for p in later if "mask" in p.name.lower()), None)
    if offsets is not None and offsets != later[0].name:
        flat = [Way("flat", offsets)]
    if mask is not None:
        padded = _masked(mask, "pad" in mask.lower())
    else:
        padded = _masked("", False) if needed else [Way("padded")]
    if style is not None:
        return {"flat": flat, "padded": padded, "single": single}[style]
    if offsets is not None:
        return flat
    if mask is not None:
        return padded
    return [*flat, *padded] if needed else [*padded, *single]


def _masked(name: str, marks_padding: bool) -> list[Way]:
    return [
        Way("padded", name, dtype, marks)
        for marks in (marks_padding, not marks_padding)
        for dtype in (torch.bool, torch.float32)
    ]


def _small_bags(sizes: list[int], n_features: int, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(len(sizes))
    offsets = torch.tensor([0, *sizes]).cumsum(0)
    return scale * torch.randn(sum(sizes), n_features, generator=generator), offsets


def _detect(module: nn.Module, n_features: int, style: str | None, name: str) -> Way:
    raised: list[Exception] = []
    tried: list[str] = []
    fitting: list[tuple[bool, Way]] = []
    for way in _candidates(module, style):
        if fitting and (not way.masked or way.marks_padding == fitting[0][1].marks_padding):
            continue  # what is left to be found out is which side of the mask is marked
        trial = copy.deepcopy(module)
        try:
            with loop.evaluating(trial):
                for sizes in ([3, 5], [3, 3], [3]):
                    way.outputs(trial, *_small_bags(sizes, n_features))
            if not way.masked:
                return way
            finite, varies, stays = _looked_at(trial, way, n_features)
        except Misfit as error:
            tried.append(f"{way.style}, {way}: {error}")
        except Exception as error:
            raised.append(error)
            tried.append(f"{way.style}, {way}: raised {type(error).__name__}: {error}")
        else:
            # a module that looks at the padding alone gives all bags one score
            if stays and finite and (varies or not fitting):
                return way
            fitting.append((finite, way))
    if fitting:
        return max(fitting, key=lambda one: one[0])[1]
    if len(tried) == len(raised) and len({str(error) for error in raised}) == 1:
        raised[0].add_note(f"{_advice(module, name, n_features, style)}; tried: {tried[0]}")
        raise raised[0]
    refused = TypeError(f"{_advice(module, name, n_features, style)}; tried: {'; '.join(dict.fromkeys(tried))}")
    raise refused from (ExceptionGroup(f"what {name} raised", raised) if raised else None)


def _looked_at(module: nn.Module, way: Way, n_features: int) -> tuple[bool, bool, bool]:
    """Whether scores of small bags are finite, change with the instances, and stay when the bags are padded."""
    instances, offsets = _small_bags([3, 5, 2, 1, 4], n_features)
    found = []
    with loop.evaluating(module):
        for rows, pad in ((instances, 0), (instances.roll(1, 0), 0), (instances, 4)):
            with loop.seeded(0), host_seeded(0):
                found.append(_alone(way, module, rows, offsets, pad))
    alone, other, longer = found
    return bool(alone.isfinite().all()), _moved(alone, other), not _moved(alone, longer)


def _advice(module: nn.Module, name: str, n_features: int, style: str | None) -> str:
    parameters = signature_of(module.forward) or []
    unknown = [p.name for p in parameters[1:] if p.default is p.empty and p.kind in POSITIONAL]
    unknown = [n for n in unknown if n not in OFFSETS and "mask" not in n.lower()]
    needs = f"forward needs {', '.join(unknown)} as well, where a bag has instances only; " if unknown else ""
    asked = "" if style is None else f" in the style {style!r}"
    return (
        f"{name} gives no logit for each of two small bags of {n_features} features{asked}: {needs}"
        "it should take (instances, offsets), which is the style 'flat', (x_padded, mask), 'padded', or one bag of "
        "shape (n, d) at a time, 'single'; name the one that is meant by style=, on the command line --style"
    )


def _alone(way: Way, module: nn.Module, instances: Tensor, offsets: Tensor, pad: int = 0) -> Tensor:
    parts = []
    for first, last in pairwise(offsets.tolist()):
        own = torch.tensor([0, last - first], device=instances.device)
        parts.append(way.outputs(module, instances[first:last], own, pad=pad))
    return torch.cat(parts)


def _moved(first: Tensor, second: Tensor) -> bool:
    """Whether scores differ by more than rounding; sets of draws, by more than chance."""
    if first.ndim == 3 and len(first) > 1:
        error = ((first.var(0) + second.var(0)) / len(first)).sqrt()
        return bool(((first.mean(0) - second.mean(0)).abs() > CERTAIN * error).any())
    largest = first.abs()[first.isfinite()]
    rounding = ROUNDING * largest.max() if len(largest) else 0.0
    # the other way round, so that a NaN has moved
    return not bool(((first == second) | ((first - second).abs() <= rounding)).all())


def _says_probabilities(module: nn.Module, way: Way, n_features: int) -> bool:
    """Whether what a module returns are probabilities: all in [0, 1], whatever the bags and the parameters are."""

    def within(made: nn.Module) -> bool:
        with loop.evaluating(made):
            outputs = [
                way.outputs(made, *_small_bags([3, 5, 1, 2], n_features, scale)) for scale in (0.1, 1.0, 10.0, 100.0)
            ]
        found = torch.cat(outputs)
        found = found[~found.isnan()]
        return bool(((found >= 0) & (found <= 1)).all())

    if not within(copy.deepcopy(module)):
        return False
    # bounded logits (after a normalisation, say) may lie there as well: with other parameters they do not
    for draw in range(8):
        other = copy.deepcopy(module)
        generator = torch.Generator().manual_seed(draw)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
        if not within(other):
            return False
    return True


def adapted(module: nn.Module, n_features: int, *, style: str | None, batch_size: int, name: str) -> BagModule:
    """Find out how a module takes bags, on small ones and before any training.

    Parameters
    ----------
    module : torch.nn.Module
        On the CPU.
    n_features : int
    style : {"flat", "padded", "single"} or None
        None finds it out: from the names of the arguments of ``forward``, and by trying.
    batch_size : int
        Bags that are padded together when they are scored.
    name : str
        What the module is called in messages.

    Returns
    -------
    BagModule

    Raises
    ------
    TypeError
        When it returns no logit for each bag in any style, or has nothing to train; the message says what was tried.
    Exception
        What the module raised, when it raised the same whatever was tried, with a note that says so.
    """
    way = _detect(module, n_features, style, name)
    if any(nn.parameter.is_lazy(p) for p in module.parameters()):
        with loop.evaluating(module):  # they are made when the module is first called
            way.outputs(module, *_small_bags([3, 5], n_features))
    if not any(p.requires_grad for p in module.parameters()):
        raise TypeError(f"{name} has no parameters to train: a check needs a model that learns")
    trial = copy.deepcopy(module).eval()
    outputs = way.outputs(trial, *_small_bags([3, 5, 1, 2], n_features))
    if not outputs.requires_grad:
        raise TypeError(
            f"what {name} returns cannot be trained: it does not depend on its parameters, or was cut off from them by "
            "detach(), torch.no_grad() or argmax"
        )
    columns = outputs.shape[1]
    probabilities = _says_probabilities(module, way, n_features)
    if probabilities and columns == 2 and not bool((outputs.sum(1) - 1).abs().max() < 1e-4):
        raise TypeError(
            f"{name} returns two values in [0, 1] for each bag that do not add up to 1: return two logits, two "
            "probabilities, or one logit"
        )
    made = BagModule(module, way, columns, probabilities, batch_size, int(torch.randint(2**31, ())))
    made.seen = made.findings(*_small_bags([1, 2, 3, 1, 4, 5, 2, 1], n_features))
    return made


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
    probabilities : bool
        Whether these are probabilities.
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
        self, inner: nn.Module, way: Way, columns: int, probabilities: bool, batch_size: int, seed: int
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
        kind = "probabilities" if self.probabilities else "logits"
        return f"{self.way.style}: {self.way}, returns {'two ' if self.columns == 2 else ''}{kind}"

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
            When the module returns something else than it did on small bags.
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
        if self.probabilities:
            found = found.clamp(EPS, 1 - EPS).logit() if self.columns == 1 else found.clamp_min(EPS).log()
        return found[:, 0] if self.columns == 1 else found[:, 1] - found[:, 0]

    def findings(self, instances: Tensor, offsets: Tensor) -> tuple[str, ...]:
        """What a score depends on beside the bag.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)
        offsets : Tensor of int64, shape (n_bags + 1,)
            Some bags; the first sixteen are looked at.

        Returns
        -------
        tuple of str
            "unstable" when it depends on chance or on the bags that are scored along, "padding" when on padding.
        """
        device = next(self.inner.parameters()).device
        offsets = offsets[: LOOKED_AT + 1].to(device)
        instances = instances[: int(offsets[-1])].to(device)

        def drawn(n: int, offsets: Tensor, pad: int = 0) -> Tensor:
            found = []
            for seed in range(n):
                with loop.seeded(seed, device):
                    found.append(self._logits(lambda: _alone(self.way, self.inner, instances, offsets, pad)))
            return torch.stack(found)[..., None]

        found = []
        with loop.evaluating(self.inner), loop.seeded(0, device):
            first, second = drawn(2, offsets)
            chance = _moved(first, second)
            if chance or self._minds_company(instances, offsets, first):
                found.append("unstable")
            if self.way.masked:
                few, draws = (offsets[:5], DRAWS) if chance else (offsets, 1)
                if _moved(drawn(draws, few), drawn(draws, few, pad=8)):
                    found.append("padding")
        return tuple(found)

    def _minds_company(self, instances: Tensor, offsets: Tensor, alone: Tensor) -> bool:
        """Whether bags of one size, which need no padding, get other scores together."""
        if self.way.style == "single":
            return False
        if self.way.style == "flat":
            return _moved(alone[:, 0], self(instances, offsets))
        sizes = offsets.diff()
        for size in dict.fromkeys(sizes.tolist()):
            alike = (sizes == size).nonzero()[:, 0]
            together = self(*gather_bags(instances, offsets, alike))
            if len(alike) > 1 and _moved(alone[alike, 0], together):
                return True
        return False
