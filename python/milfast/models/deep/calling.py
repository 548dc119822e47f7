"""How a torch module takes bags, found by trying it on small ones, behind one call on flat bags."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from milfast.models.deep.making import copied, detach, host_seeded
from milfast.models.signatures import POSITIONAL, signature_of
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
    # an argument that is True or False by default, such as use_mask, is a switch
    mask = next((p.name for p in later if "mask" in p.name.lower() and not isinstance(p.default, bool)), None)
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


def _normal_bags(sizes: list[int], n_features: int, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(len(sizes))
    offsets = torch.tensor([0, *sizes]).cumsum(0)
    return scale * torch.randn(sum(sizes), n_features, generator=generator), offsets


def _detect(module: nn.Module, n_features: int, style: str | None, name: str) -> Way:
    raised: list[Exception] = []
    tried: dict[str, list[str]] = {}
    unpooled = False
    fitting: list[tuple[bool, Way]] = []
    for way in _candidates(module, style):
        if fitting and (not way.masked or way.marks_padding == fitting[0][1].marks_padding):
            continue  # what is left to be found out is which side of the mask is marked
        trial = copied(module)
        try:
            with loop.evaluating(trial):
                for sizes in ([3, 5], [3, 3], [3]):
                    way.outputs(trial, *_normal_bags(sizes, n_features))
            if not way.masked:
                return way
            finite, varies, stays = _looked_at(trial, way, n_features)
        except Misfit as error:
            unpooled = unpooled or isinstance(error, Unpooled)
            # that it has to pool is said once, and first
            said = error.args[0] if isinstance(error, Unpooled) else str(error)
            tried.setdefault(said, []).append(f"{way.style}, {way}")
        except Exception as error:
            raised.append(error)
            tried.setdefault(f"raised {type(error).__name__}: {error}", []).append(f"{way.style}, {way}")
        else:
            # a module that looks at the padding alone gives all bags one score
            if stays and finite and (varies or not fitting):
                return way
            fitting.append((finite, way))
    if fitting:
        return max(fitting, key=lambda one: one[0])[1]
    advice = _advice(module, name, n_features, style, unpooled=unpooled)
    listed = [f"{' and '.join(dict.fromkeys(ways))}: {said}" for said, ways in tried.items()]
    if len(tried) == 1 and raised:
        [(said, [first, *_])] = tried.items()
        raised[0].add_note(f"{advice}; tried: {first}: {said}")
        raise raised[0]
    refused = TypeError(f"{advice}; tried: {'; '.join(listed)}")
    raise refused from (ExceptionGroup(f"what {name} raised", raised) if raised else None)


def _looked_at(module: nn.Module, way: Way, n_features: int) -> tuple[bool, bool, bool]:
    """Whether scores of small bags are finite, change with the instances, and stay when the bags are padded."""
    instances, offsets = _normal_bags([3, 5, 2, 1, 4], n_features)
    found = []
    with loop.evaluating(module):
        for rows, pad in ((instances, 0), (instances.roll(1, 0), 0), (instances, 4)):
            with loop.seeded(0), host_seeded(0):
                found.append(_alone(way, module, rows, offsets, pad))
    alone, other, longer = found
    return bool(alone.isfinite().all()), _moved(alone, other), not _moved(alone, longer)


def _advice(module: nn.Module, name: str, n_features: int, style: str | None, *, unpooled: bool) -> str:
    parameters = signature_of(module.forward) or []
    unknown = [p.name for p in parameters[1:] if p.default is p.empty and p.kind in POSITIONAL]
    unknown = [n for n in unknown if n not in OFFSETS and "mask" not in n.lower()]
    needs = f"it returns {UNPOOLED}; " if unpooled else ""
    needs += f"forward needs {', '.join(unknown)} as well, where a bag has instances only; " if unknown else ""
    others = {p.dtype for p in module.parameters() if p.is_floating_point() and p.dtype is not torch.float32}
    for dtype in sorted(map(str, others)):
        needs += f"it has parameters of {dtype.removeprefix('torch.')}, and instances are float32: module.float(); "
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


def _says_probabilities(module: nn.Module, way: Way, n_features: int, *, training: bool) -> bool:
    """Whether what a module returns are probabilities: all in [0, 1], whatever the bags and the parameters are.

    Parameters
    ----------
    training : bool
        Whether it is asked for what is returned in training mode; one that is evaluated may return something else.
    """
    # one instance is too few for batch normalisation that is trained
    sizes = [3, 5, 4, 2] if training else [3, 5, 1, 2]

    def within(made: nn.Module) -> bool:
        with loop.evaluating(made):
            made.train(training)
            outputs = [way.outputs(made, *_normal_bags(sizes, n_features, scale)) for scale in (0.1, 1.0, 10.0, 100.0)]
        found = torch.cat(outputs)
        found = found[~found.isnan()]
        return bool(((found >= 0) & (found <= 1)).all())

    if not within(copied(module)):
        return False
    # bounded logits (after a normalisation, say) may lie there as well: with other parameters they do not
    for draw in range(8):
        other = copied(module)
        generator = torch.Generator().manual_seed(draw)
        with torch.no_grad():
            for parameter in other.parameters():
                if parameter.requires_grad and parameter.is_floating_point():
                    parameter.copy_(torch.randn(parameter.shape, generator=generator))
        try:
            if not within(other):
                return False
        except Exception:  # a scale that must be positive, say: what such parameters give does not count
            continue
    return True


def _says_so_in_training(module: nn.Module, way: Way, n_features: int, *, otherwise: bool) -> bool:
    """Whether it returns probabilities in training mode; `otherwise` where it cannot be called with so few bags."""
    with loop.seeded(0), host_seeded(0):  # dropout must not shift what the module draws later
        try:
            return _says_probabilities(module, way, n_features, training=True)
        except Exception:  # training will raise it, if it was not for the few bags
            return otherwise


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
    ValueError
        When it returns NaN for one of some small bags.
    Exception
        What the module raised, when it raised the same whatever was tried, with a note that says so.
    """
    way = _detect(module, n_features, style, name)
    if any(nn.parameter.is_lazy(tensor) for tensor in (*module.parameters(), *module.buffers())):
        with loop.evaluating(module):  # they are made when the module is first called
            way.outputs(module, *_normal_bags([3, 5], n_features))
    if not any(p.requires_grad for p in module.parameters()):
        raise TypeError(f"{name} has no parameters to train: a check needs a model that learns")
    trial = copied(module).eval()
    sizes = [3, 5, 1, 2]
    outputs = way.outputs(trial, *_normal_bags(sizes, n_features))
    if bool(outputs.isnan().any()):
        lost = dict.fromkeys(size for size, row in zip(sizes, outputs, strict=True) if bool(row.isnan().any()))
        what = "for small bags of normal numbers"
        if len(lost) < len(sizes):
            what = f"for a bag of {' or '.join(map(str, lost))} instance{'s' if max(lost) > 1 else ''}"
        raise ValueError(
            f"{name} returns NaN {what}, before any training: bags may be that small, and the standard deviation over "
            "one instance, say, is NaN; return a finite number for every bag"
        )
    if not outputs.requires_grad:
        raise TypeError(
            f"what {name} returns cannot be trained: it does not depend on its parameters, or was cut off from them by "
            "detach(), torch.no_grad() or argmax"
        )
    columns = outputs.shape[1]
    probabilities = _says_probabilities(module, way, n_features, training=False)
    in_training = _says_so_in_training(module, way, n_features, otherwise=probabilities)
    if probabilities and columns == 2 and not bool((outputs.sum(1) - 1).abs().max() < 1e-4):
        raise TypeError(
            f"{name} returns two values in [0, 1] for each bag that do not add up to 1: return two logits, two "
            "probabilities, or one logit"
        )
    made = BagModule(module, way, columns, (in_training, probabilities), batch_size, int(torch.randint(2**31, ())))
    made.seen = made.findings(*_normal_bags([1, 2, 3, 1, 4, 5, 2, 1], n_features))
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
