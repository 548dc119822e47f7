"""The training loop and the scoring loop: bags stay flat from the arrays to the loss."""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from milfast import _core
from milfast.seeding import seed_value
from milfast.training import notebook
from milfast.training.checkpoint import Checkpoint, digest_of
from milfast.training.devices import device_of
from milfast.training.flat import flattened
from milfast.training.ragged import batches_of, gather_bags, remembered

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

__all__ = ["OPTIMIZERS", "History", "clamp_gradients", "evaluating", "fit", "scores", "seeded"]

_TURN = threading.RLock()

OPTIMIZERS: dict[str, type[torch.optim.AdamW | torch.optim.Adam]] = {
    "adamw": torch.optim.AdamW,
    "adam": torch.optim.Adam,
}


class History(NamedTuple):
    """What happened in each epoch, as bags were scored during training.

    Attributes
    ----------
    loss : list of float
        Mean training loss over the bags.
    auc : list of float
        AUC of the logits that the training bags had when it was their turn, with dropout; NaN where they are of one
        class, or a logit is not finite.
    """

    loss: list[float]
    auc: list[float]


def fit(
    module: nn.Module,
    instances: Tensor,
    offsets: Tensor,
    labels: Tensor,
    *,
    epochs: int = 20,
    batch_size: int = 32,
    lr: float = 1e-3,
    weight_decay: float = 1e-2,
    optimizer: str = "adamw",
    clip_value: float | None = 5.0,
    clip_norm: float | None = None,
    patience: int | None = None,
    tol: float = 1e-4,
    seed: int = 0,
    deterministic: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    identity: Mapping[str, Any] | None = None,
    faults: Collection[str] = (),
    callback: Callable[[int, int, float], object] | None = None,
) -> History:
    """Train a bag classifier in place, by default on binary cross-entropy with logits.

    Bags are shuffled anew every epoch and the last, short batch is kept. `seed` decides shuffling and whatever the
    module draws while it trains (dropout); torch's global generators are left as they were found, and the same seed
    gives the same bits on a CPU.

    Parameters
    ----------
    module : torch.nn.Module
        ``module(instances, offsets)`` returns bag logits of shape (n_bags,). It trains on the device its parameters
        live on and is left in evaluation mode. A module with a method ``training_loss(instances, offsets, labels)``
        decides itself what is minimised: the method returns the loss and the bag logits.
    instances : Tensor of floats, shape (n_instances, n_features)
        Moved to the module's device as a whole, once.
    offsets : Tensor of int64, shape (n_bags + 1,)
    labels : Tensor, shape (n_bags,)
        In {0, 1}.
    epochs, batch_size : int
        Passes over the bags at most; bags per step.
    lr, weight_decay : float
        Passed to the optimiser.
    optimizer : {"adamw", "adam"}
        Raff & Holt's text says Adam, their code AdamW.
    clip_value : float or None
        Before each step, NaN gradient entries become 0 and all entries are clamped to [-clip_value, clip_value]. None
        leaves gradients alone.
    clip_norm : float or None
        After that, the gradient of all parameters together is scaled down to this Euclidean norm.
    patience : int or None
        Stop when the best AUC so far was reached, to within `tol`, this many epochs ago. It is the AUC of the training
        bags, as they were scored during training: no bags are held out. One that is NaN is no better than any other.
        None never stops before `epochs`.
    tol : float
        What the training AUC must gain to count as better.
    seed : int
        Not negative.
    deterministic : bool
        Whether torch is told to use only algorithms that give the same bits again; it makes a difference on a GPU.
    checkpoint : path, optional
        File that is written after each epoch. When it exists, training goes on from it, to the same bits as if it had
        never stopped. It may go on with other `epochs`, `patience` and `tol`, unless training would have stopped before
        the last epoch that the file holds.
    identity : dict, optional
        Parameters that tell apart what is trained, by name: a checkpoint with other ones is refused.
        What is trained in which way, from which seed and on which bags, is looked at in any case; of `module` these are
        the classes of its parts, the names, shapes and dtypes of its parameters and buffers, and the values of those
        parameters that are not trained.
    faults : collection of str
        See `milfast.training.notebook`.
    callback : callable, optional
        ``callback(epoch, n_epochs, loss)`` after each epoch, counted from 1.

    Returns
    -------
    History

    Raises
    ------
    ValueError
        When `optimizer` is unknown, the shapes of `offsets`, `labels` and `instances` disagree, or `checkpoint` is of
        another training, or of one that would have stopped earlier.
    FloatingPointError
        When the loss is not finite. It is looked at once an epoch: looking more often would make a GPU wait.

    References
    ----------
    .. [1] E. Raff, J. Holt, "Reproducibility in multiple instance learning: a case for algorithmic unit tests",
       NeurIPS 2023; defaults follow the notebook published with it.

    Examples
    --------
    >>> import torch
    >>> from milfast.models.deep.instance_mi_net import InstanceMaxNetwork
    >>> network = InstanceMaxNetwork(n_features=1, hidden=4)
    >>> instances, offsets = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([0, 1, 3])
    >>> len(fit(network, instances, offsets, torch.tensor([0, 1]), epochs=3).loss)
    3
    """
    if optimizer not in OPTIMIZERS:
        raise ValueError(f"optimizer must be one of {', '.join(OPTIMIZERS)}; got {optimizer!r}")
    n_bags = len(offsets) - 1
    if labels.shape != (n_bags,):
        raise ValueError(f"labels must have shape ({n_bags},), one for each bag of offsets; got {tuple(labels.shape)}")
    if int(offsets[-1]) != len(instances):
        raise ValueError(f"offsets must end with {len(instances)}, the number of instances; got {int(offsets[-1])}")
    faults = notebook.checked(tuple(faults))
    device = device_of(module)
    file = None
    if checkpoint is not None:
        training = {"batch_size": batch_size, "lr": lr, "weight_decay": weight_decay, "optimizer": optimizer}
        training |= {"clip_value": clip_value, "clip_norm": clip_norm, "faults": sorted(faults)}
        # settings of an estimator that it passed on are here already
        own = {name: value for name, value in (identity or {}).items() if name not in training}
        training |= {"network": _described(module), "seed": seed}
        training |= {"instances": instances, "offsets": offsets, "labels": labels}
        training |= {f"parameter {name}" if name in training else name: value for name, value in own.items()}
        file = Checkpoint(checkpoint, training)

    offsets, labels = offsets.cpu(), labels.cpu()
    if "biased-split" in faults:
        instances, offsets, labels = _only(notebook.split(labels), instances, offsets, labels)
        n_bags = len(labels)
    instances = instances.to(device)
    targets = labels.to(device, instances.dtype)
    fixed = notebook.sorted_batches(offsets.diff(), batch_size) if "sorted-batches" in faults else None

    own_loss: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] | None = getattr(module, "training_loss", None)

    def batches() -> Sequence[Tensor]:
        if fixed is None:
            return torch.split(torch.randperm(n_bags), batch_size)
        return [fixed[int(number)] for number in torch.randperm(len(fixed))]

    def loss_of(rows: Tensor, cuts: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
        if "unmasked-padding" in faults:
            rows, cuts = notebook.pad_with_zeros(rows, cuts)
        if own_loss is not None:
            loss, logits = own_loss(rows, cuts, wanted)
            return loss, logits
        logits = module(rows, cuts)
        return functional.binary_cross_entropy_with_logits(logits, wanted), logits

    history = History([], [])
    with flattened(module) as flat:
        parameter = flat.whole
        stepper = OPTIMIZERS[optimizer](
            [parameter], lr=lr, weight_decay=weight_decay, fused=True if device.type in ("cpu", "cuda") else None
        )
        if file is not None and (state := file.read()) is not None:
            _check_reached(f"checkpoint {str(checkpoint)!r}", state["auc"], epochs, patience, tol)
            _restore(state, parameter, module, stepper, history)
        for epoch in range(len(history.loss) + 1, epochs + 1):
            if _settled(history.auc, patience, tol):
                break
            module.train()
            losses: list[Tensor] = []
            logits: list[Tensor] = []
            # Each epoch has its own seed: the callback runs outside and may draw random numbers or train as well, and
            # a training that goes on from a checkpoint needs no state of a generator.
            with _deterministic(deterministic), seeded(seed_value(seed, epoch), device):
                order = batches()
                wanted = torch.split(targets[torch.cat(list(order)).to(device)], [len(chosen) for chosen in order])
                for (rows, cuts), labelled in zip(batches_of(instances, offsets, order), wanted, strict=True):
                    loss, made = loss_of(rows, cuts, labelled)
                    flat.gradient.zero_()
                    torch.autograd.backward(loss)
                    flat.gather()
                    if clip_value is not None:
                        clamp_gradients(parameter, clip_value)
                    if clip_norm is not None:
                        nn.utils.clip_grad_norm_([parameter], clip_norm)
                    stepper.step()
                    losses.append(loss.detach())
                    logits.append(made.detach())
            sizes = torch.tensor([len(chosen) for chosen in order], dtype=torch.float64)
            mean = float(torch.stack(losses).cpu().double() @ sizes) / n_bags
            if not math.isfinite(mean):
                if epoch == 1 and not math.isfinite(first := float(losses[0])):
                    raise FloatingPointError(
                        f"the training loss of the first batch is {first}, before any step was taken: the network "
                        "gives NaN or infinity as it is initialised; look at what its forward divides by, or takes a "
                        "root or logarithm of, and standardise the features"
                    )
                raise FloatingPointError(
                    f"the training loss became {mean} in epoch {epoch} of {epochs}: "
                    f"standardise the features or lower lr (it is {lr})"
                )
            history.loss.append(mean)
            history.auc.append(_auc(torch.cat(logits).cpu(), labels[torch.cat(list(order))]))
            if file is not None:
                file.write(_state(parameter, module, stepper, history))
            if callback is not None:
                callback(epoch, epochs, mean)
    module.eval()
    return history


def _only(chosen: Tensor, instances: Tensor, offsets: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    rows, cuts = gather_bags(instances, offsets, chosen)
    return rows, cuts.cpu(), labels[chosen]


def _auc(logits: Tensor, labels: Tensor) -> float:
    values = logits.double().numpy()
    if not math.isfinite(values.sum()) or bool((labels == labels[0]).all()):
        return math.nan
    return _core.auc(values, labels.numpy())


def _settled(aucs: list[float], patience: int | None, tol: float) -> bool:
    """Whether the last `patience` epochs were no better than those before."""
    if patience is None or len(aucs) <= patience:
        return False
    known = [-math.inf if math.isnan(auc) else auc for auc in aucs]
    return max(known[-patience:]) <= max(known[:-patience]) + tol


def _described(module: nn.Module) -> list[list[Any]]:
    """What a network consists of, without the values that training changes, nor any address."""
    parts: list[list[Any]] = []
    for name, part in module.named_modules():
        kind = type(part)
        # those of torch tell their settings
        told = part.extra_repr() if kind.__module__.startswith("torch.") else ""
        parts.append([name, f"{kind.__module__}.{kind.__qualname__}", told])
    for name, parameter in module.named_parameters():
        values = None if parameter.requires_grad else digest_of(parameter)
        parts.append([name, list(parameter.shape), str(parameter.dtype), values])
    return parts + [[name, list(buffer.shape), str(buffer.dtype)] for name, buffer in module.named_buffers()]


def _state(parameter: nn.Parameter, module: nn.Module, stepper: Any, history: History) -> dict[str, Any]:
    buffers = {name: buffer.detach().cpu() for name, buffer in module.named_buffers()}
    return {
        "parameter": parameter.detach().cpu(),
        "buffers": buffers,
        "optimizer": stepper.state_dict(),
        "loss": history.loss,
        "auc": history.auc,
    }


def _restore(state: dict[str, Any], parameter: nn.Parameter, module: nn.Module, stepper: Any, history: History) -> None:
    buffers = dict(module.named_buffers())
    kept = {name: value.shape for name, value in state["buffers"].items()}
    # of one shape, or copying would repeat what was kept
    if state["parameter"].shape != parameter.shape or kept != {name: value.shape for name, value in buffers.items()}:
        raise ValueError("checkpoint holds a network of other sizes: remove it, or name another file")
    with torch.no_grad():
        parameter.copy_(state["parameter"])
        for name, buffer in buffers.items():
            buffer.copy_(state["buffers"][name])
    stepper.load_state_dict(state["optimizer"])
    history.loss.extend(state["loss"])
    history.auc.extend(state["auc"])


def _check_reached(file: str, aucs: list[float], epochs: int, patience: int | None, tol: float) -> None:
    """Refuse to go on from where this training would not have come to."""
    held = len(aucs)
    holds = f"{file} holds {held} epochs"
    if held > epochs:
        raise ValueError(f"{holds}, more than epochs={epochs}: name another file to train anew")
    for epoch in range(1, held):
        if _settled(aucs[:epoch], patience, tol):
            raise ValueError(
                f"{holds}, and with patience={patience} and tol={tol} training stops after {epoch}: name another file "
                "to train anew"
            )


@contextmanager
def _deterministic(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    with _TURN:
        before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def clamp_gradients(parameter: nn.Parameter, limit: float) -> None:
    """Set NaN gradient entries to 0 and clamp all entries to [-limit, limit], in place.

    Parameters
    ----------
    parameter : torch.nn.Parameter
        Skipped when it has no gradient.
    limit : float
        Positive.

    Notes
    -----
    Unlike clipping by norm this bounds each entry alone; it is what the code of Raff & Holt (2023) does.

    Examples
    --------
    >>> import torch
    >>> weight = torch.nn.Parameter(torch.zeros(3))
    >>> weight.grad = torch.tensor([torch.nan, 2.0, -torch.inf])
    >>> clamp_gradients(weight, 5.0)
    >>> weight.grad
    tensor([ 0.,  2., -5.])
    """
    if parameter.grad is not None:
        parameter.grad.nan_to_num_(nan=0.0, posinf=limit, neginf=-limit).clamp_(-limit, limit)


def scores(
    module: nn.Module,
    instances: Tensor,
    offsets: Tensor,
    *,
    batch_instances: int = 65536,
    faulty_batch: int | None = None,
) -> Tensor:
    """Bag logits in evaluation mode, without gradients.

    Parameters
    ----------
    module : torch.nn.Module
        As in `fit`. Each of its parts is put back into the mode (training or evaluation) it was found in.
    instances : Tensor of floats, shape (n_instances, n_features)
        On any device; moved to the module's block by block.
    offsets : Tensor of int64, shape (n_bags + 1,)
    batch_instances : int
        Instances per block. Blocks hold whole bags, so a larger bag is a block of its own.
    faulty_batch : int, optional
        Bags of a batch in which the fault "unmasked-padding" is repeated; see `milfast.training.notebook`.

    Returns
    -------
    Tensor, shape (n_bags,)
        On the CPU. A bag's logit does not depend on the other bags, up to the rounding of matrix products.

    Examples
    --------
    >>> import torch
    >>> from milfast.models.deep.instance_mi_net import InstanceMaxNetwork
    >>> network = InstanceMaxNetwork(n_features=1, hidden=4)
    >>> scores(network, torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """
    device = device_of(module)
    offsets = offsets.cpu()
    parts = []
    with evaluating(module):
        if faulty_batch is not None:
            return notebook.scores(module, instances, offsets, faulty_batch)
        for first, last in _blocks(offsets, batch_instances):
            cuts = offsets[first : last + 1]
            rows = instances[int(cuts[0]) : int(cuts[-1])]
            parts.append(module(rows.to(device), remembered((cuts - cuts[0]).to(device))).cpu())
    return torch.cat(parts)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients inside, every part's own mode restored after.

    Parameters
    ----------
    module : torch.nn.Module

    Examples
    --------
    >>> import torch
    >>> dropout = torch.nn.Dropout(0.5)
    >>> with evaluating(dropout):
    ...     dropout(torch.ones(3))
    tensor([1., 1., 1.])
    >>> dropout.training
    True
    """
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, training in modes:
            part.training = training


@contextmanager
def seeded(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch's global generators of the CPU and of one device inside; leave them as they were found.

    Parameters
    ----------
    seed : int
        In [0, 2**63).
    device : torch.device or str

    Notes
    -----
    `torch.manual_seed` would not do: it seeds the generators of all devices, those not in use as well.

    Examples
    --------
    >>> import torch
    >>> before = torch.get_rng_state()
    >>> with seeded(0):
    ...     first = torch.rand(2)
    >>> with seeded(0):
    ...     bool((torch.rand(2) == first).all())
    True
    >>> bool((torch.get_rng_state() == before).all())
    True
    """
    with _TURN:  # other threads wait: they would draw from the same generators
        generators = _generators(torch.device(device))
        states = [generator.get_state() for generator in generators]
        try:
            for generator in generators:
                generator.manual_seed(seed)
            yield
        finally:
            for generator, state in zip(generators, states, strict=True):
                generator.set_state(state)


def _generators(device: torch.device) -> list[torch.Generator]:
    generators = [torch.default_generator]
    if device.type == "cuda":
        current = torch.cuda.current_device()  # initialises CUDA, before which there are no generators
        generators.append(torch.cuda.default_generators[current if device.index is None else device.index])
    elif device.type == "mps":
        generators.append(torch.mps._get_default_mps_generator())
    return generators


def _blocks(offsets: Tensor, batch_instances: int) -> Iterator[tuple[int, int]]:
    """Ranges of bags of at most `batch_instances` instances, or of one bag."""
    first, n_bags = 0, len(offsets) - 1
    while first < n_bags:
        within = int(torch.searchsorted(offsets, offsets[first] + batch_instances, right=True)) - 1
        last = max(within, first + 1)
        yield first, last
        first = last
