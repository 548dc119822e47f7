"""How a torch module takes bags, found by trying it on small ones."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from milfast.models.deep.calling import BagModule, alone, moved
from milfast.models.deep.making import copied, host_seeded
from milfast.models.deep.ways import UNPOOLED, Misfit, Unpooled, Way
from milfast.models.signatures import POSITIONAL, signature_of
from milfast.training import loop

__all__ = ["adapted"]

#: Names by which a module tells that it takes flat bags.
OFFSETS = ("offsets", "bag_offsets", "cuts", "ptr", "indptr", "cu_seqlens")


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
                found.append(alone(way, module, rows, offsets, pad))
    first, other, longer = found
    return bool(first.isfinite().all()), moved(first, other), not moved(first, longer)


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
