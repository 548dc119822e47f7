"""Many models of bags in one computation: folds times margins by MIDAM, AUC-M or cross-entropy."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from milfast import _core
from milfast.bags import Bags, _as_labels
from milfast.lazy_bags import LazyBags
from milfast.models.deep import making
from milfast.seeding import seed_sequence, seed_value
from milfast.training import loop
from milfast.training.bag_sampler import BalancedBagSampler
from milfast.training.bag_scores import POOLINGS, InstanceNetwork, PooledNetwork, RunningPool, pieces
from milfast.training.checkpoint import Checkpoint
from milfast.training.instance_sampler import sample_instances
from milfast.training.midam import ALPHA_RULES, GRADIENT_STATES, Pooled, attention, minmax_margin, smoothed_max
from milfast.training.stacks import Stack, stack_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.seeding import RandomState

__all__ = ["METHODS", "StackedFit", "fit_stacked", "network_of", "score_bags"]

#: What each method takes where nothing else is asked for.
METHODS: dict[str, dict[str, Any]] = {
    "midam-smx": {"pooling": "smx", "momentum": 0.1, "clip_value": math.inf, "alpha_rule": "batch-max"},
    "midam-att": {"pooling": "att", "momentum": 0.1, "clip_value": math.inf, "alpha_rule": "batch-max"},
    "auc-m": {"pooling": "mean", "momentum": 0.0, "clip_value": 1.0, "alpha_rule": "gradient"},
    "ce": {"pooling": "mean", "momentum": 0.0, "clip_value": math.inf, "alpha_rule": "gradient"},
}

#: Values of a block of instances that are scored together: 790 rows of 166 features, which with as many hidden units
#: and the weights of a network fit a processor's second cache.
BLOCK = 1 << 17


@dataclass(frozen=True, repr=False)
class StackedFit:
    """What came of `fit_stacked`.

    Attributes
    ----------
    method, pooling : str
    scores : ndarray of float32, shape (n_models, n_recorded, n_bags)
        Score of every bag, from all of its instances, after each recorded epoch.
    epochs : ndarray of int64, shape (n_recorded,)
        Which epochs were recorded, counted from 1.
    losses : ndarray of float64, shape (n_models, n_epochs)
        Mean loss over the batches of each epoch.
    aucs : ndarray of float64, shape (n_models, n_epochs)
        AUC of the training bags by the scores they had when they were trained on.
    mean, scale : ndarray of float64, shape (n_models, n_features)
        What each model's features are standardised with.
    midpoints : ndarray of float64, shape (n_models,)
        Halfway between the mean last score of the positive and of the negative training bags.
    seconds : float
    """

    method: str
    pooling: str
    scores: NDArray[np.float32]
    epochs: NDArray[np.int64]
    losses: NDArray[np.float64]
    aucs: NDArray[np.float64]
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    midpoints: NDArray[np.float64]
    seconds: float
    _stack: Stack = field(compare=False)
    _tau: float = 0.1

    def network(self, model: int) -> PooledNetwork:
        """One of the trained networks.

        Parameters
        ----------
        model : int

        Returns
        -------
        PooledNetwork
            In evaluation mode, on the CPU. It takes instances that are standardised by ``mean[model]`` and
            ``scale[model]``; for the losses of AUC its midpoint is ``midpoints[model]``, for cross-entropy 0.
        """
        made = PooledNetwork(self._stack.network(model), self.pooling, squash=self.method != "ce", tau=self._tau)
        if self.method != "ce":
            made.midpoint.fill_(float(self.midpoints[model]))
        return made.eval()

    def __repr__(self) -> str:
        models, recorded, bags = self.scores.shape
        return (
            f"StackedFit({self.method}, pooling={self.pooling}, n_models={models}, n_epochs={self.losses.shape[1]}, "
            f"n_recorded={recorded}, n_bags={bags}, seconds={self.seconds:.3g})"
        )


def fit_stacked(
    bags: Bags | LazyBags,
    labels: ArrayLike | None,
    train: NDArray[np.int64] | Sequence[ArrayLike],
    *,
    method: str = "midam-smx",
    pooling: str | None = None,
    margins: ArrayLike = 1.0,
    epochs: int = 100,
    batch_size: int = 16,
    positive_share: float = 0.5,
    n_sampled: int = 4,
    lr: float = 1e-2,
    momentum: float | None = None,
    weight_decay: float = 1e-4,
    decay_auxiliary: bool = True,
    clip_value: float | None = None,
    clip_norm: float | None = None,
    milestones: Sequence[int] = (50, 75),
    tau: float = 0.1,
    gamma: float = 0.9,
    alpha_rule: str | None = None,
    gradient_state: str = "current",
    hidden: int | None = None,
    module: Any = None,
    build: Callable[[], InstanceNetwork] | None = None,
    standardize: bool = True,
    evaluate_every: int | None = 1,
    random_state: RandomState | Sequence[int] = 0,
    device: str | torch.device = "cpu",
    deterministic: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 10,
    identity: Mapping[str, Any] | None = None,
    callback: Callable[[int, int, float], object] | None = None,
    stop: Callable[[list[float]], bool] | None = None,
) -> StackedFit:
    """Train many models at once, each on bags of its own, and score all bags by all models after each epoch.

    Models differ in their training bags, margin and seed, and are of one shape. Each is what it would be alone, up to
    the rounding of matrix products.

    Parameters
    ----------
    bags : Bags or LazyBags
        All bags, those to validate and to test among them.
    labels : array_like, shape (n_bags,), or None
        {0, 1}, bool or {-1, 1}. None takes those of `bags`. Only labels of training bags are looked at.
    train : array_like of int, shape (n_models, n_train), or a sequence of arrays
        Numbers of each model's training bags, of both classes.
    method : {"midam-smx", "midam-att", "auc-m", "ce"}
        MIDAM with the smoothed maximum or with attention; the min-max-margin loss or cross-entropy of scores that are
        pooled from the drawn instances.
    pooling : {"mean", "max", "smx", "att"}, optional
        Of "auc-m" and "ce", "mean" by default. MIDAM has its own.
    margins : float or array_like, shape (n_models,)
    epochs : int
    batch_size : int
        Bags of a batch.
    positive_share : float
        Of a batch; see `milfast.training.bag_sampler.BalancedBagSampler`.
    n_sampled : int
        Instances drawn from each bag of a batch.
    lr, weight_decay : float
        Cross-entropy goes by Adam, the others by `milfast.training.midam.MIDAMOptimizer`'s steps.
    momentum : float, optional
        0.1 for MIDAM and 0 for AUC-M by default.
    decay_auxiliary : bool
        Whether a and b decay as well.
    clip_value : float, optional
        Entries of gradients are clamped to this; 1 for AUC-M and none otherwise by default. ``math.inf`` leaves them.
    clip_norm : float, optional
        Each model's gradient is scaled down to this Euclidean norm.
    milestones : sequence of int
        After these epochs lr is divided by 10, and gamma and the share of alpha by 2.
    tau : float
        Of the smoothed maximum.
    gamma, alpha_rule, gradient_state
        See `milfast.training.midam.MIDAMSmxLoss`; for AUC-M `alpha_rule` is "gradient" by default.
    hidden : int, optional
        Width of the network; as many as there are features by default.
    module : torch.nn.Module, class or callable, optional
        An instance network of one's own, made for each model as `milfast.models.deep.making.make` does; see
        `milfast.training.bag_scores.InstanceNetwork` for what it returns. Such networks are trained one after the other
        within a step.
    build : callable, optional
        Makes the network of a model, in place of `hidden` and `module`; called with torch's generators seeded.
    standardize : bool
        Give each feature mean 0 and standard deviation 1 over the instances of each model's own training bags.
    evaluate_every : int or None
        Score all bags after every so many epochs, and after the last; None only after the last.
    random_state : int, numpy.random.Generator, numpy.random.SeedSequence, None, or a sequence of n_models integers
        Decides initialisation and what is drawn, for each model apart from the others.
    device : str or torch.device
    deterministic : bool
        Whether torch is told to use only algorithms that give the same bits again.
    checkpoint : path, optional
        File that is written after every `checkpoint_every` epochs and after the last. When it exists, training goes on
        from it to the same bits.
    checkpoint_every : int
    identity : dict, optional
        What else tells this training from another in a checkpoint.
    callback : callable, optional
        ``callback(epoch, n_epochs, mean loss)`` after each epoch.
    stop : callable, optional
        ``stop(aucs)`` with what the first model's `StackedFit.aucs` has so far: True ends the training.

    Returns
    -------
    StackedFit

    Raises
    ------
    TypeError, ValueError
        When an argument cannot be used; the message names it, and the model.
    FloatingPointError
        When a loss is not finite.

    Examples
    --------
    >>> import milfast as mf
    >>> import numpy as np
    >>> from milfast.training.stacked import fit_stacked
    >>> bags = mf.sample_bags("presence", 40, random_state=0)
    >>> folds = np.arange(40) % 2
    >>> train = [np.flatnonzero(folds != fold) for fold in (0, 1) for _ in range(3)]
    >>> fit_stacked(bags, None, train, margins=[0.1, 0.5, 1.0] * 2, epochs=3).scores.shape
    (6, 3, 40)
    """
    begun = time.perf_counter()
    if not isinstance(bags, (Bags, LazyBags)):
        raise TypeError(f"bags must be milfast.Bags or LazyBags; got {type(bags).__name__}")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}")
    known = METHODS[method]
    pooling = known["pooling"] if pooling is None else pooling
    _allowed("pooling", pooling, POOLINGS)
    if method.startswith("midam") and pooling != known["pooling"]:
        raise ValueError(f"pooling of {method} is {known['pooling']!r}; got {pooling!r}")
    alpha_rule = known["alpha_rule"] if alpha_rule is None else alpha_rule
    _allowed("alpha_rule", alpha_rule, ALPHA_RULES)
    _allowed("gradient_state", gradient_state, GRADIENT_STATES)
    momentum = known["momentum"] if momentum is None else momentum
    clip_value = known["clip_value"] if clip_value is None else clip_value
    given = bags.labels if labels is None else _as_labels(labels, bags.n_bags)
    if given is None:
        raise ValueError("labels is None and bags has none: pass labels")
    parts = [np.asarray(part) for part in train]
    if not parts:
        raise ValueError("train is empty: at least one model is needed")
    for number, part in enumerate(parts):
        if part.ndim != 1 or (part.size and part.dtype.kind not in "iu"):
            raise TypeError(
                f"train[{number}] must be a list of bag numbers, integers; got dtype {part.dtype}, shape {part.shape}"
            )
    chosen = [part.astype(np.int64) for part in parts]
    n_models = len(chosen)
    for number, part in enumerate(chosen):
        if part.size == 0 or int(part.min()) < 0 or int(part.max()) >= bags.n_bags:
            raise ValueError(f"train[{number}] must hold bag numbers from 0 to {bags.n_bags - 1}")
        if len(np.unique(part)) < len(part):
            raise ValueError(f"train[{number}] names a bag more than once")
    margin = np.asarray(margins, dtype=np.float64)
    if margin.ndim > 1 or (margin.ndim == 1 and len(margin) != n_models):
        raise ValueError(f"margins must be a number or have shape ({n_models},); got {margin.shape}")
    if not (np.isfinite(margin).all() and (margin >= 0).all()):
        raise ValueError(f"margins must be at least 0 and finite; got {margins!r}")
    seeds = _seeds(random_state, n_models)
    numbers = {"lr": lr, "tau": tau, "gamma": gamma, "clip_value": clip_value}
    for name, value in numbers.items():
        if not float(value) > 0 or (name != "clip_value" and not math.isfinite(value)):
            raise ValueError(f"{name} must be above 0 and finite; got {value!r}")
    if gamma > 1:
        raise ValueError(f"gamma must be at most 1; got {gamma!r}")
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum must be in [0, 1); got {momentum!r}")
    if not (weight_decay >= 0 and math.isfinite(weight_decay)):
        raise ValueError(f"weight_decay must be at least 0 and finite; got {weight_decay!r}")
    for name, count in {"epochs": epochs, "n_sampled": n_sampled, "checkpoint_every": checkpoint_every}.items():
        if isinstance(count, bool) or int(count) != count or count < 1:
            raise ValueError(f"{name} must be an integer of at least 1; got {count!r}")
    for name, maybe in {"evaluate_every": evaluate_every, "hidden": hidden}.items():
        if maybe is not None and (isinstance(maybe, bool) or int(maybe) != maybe or maybe < 1):
            raise ValueError(f"{name} must be an integer of at least 1 or None; got {maybe!r}")
    if clip_norm is not None and not (clip_norm > 0 and math.isfinite(clip_norm)):
        raise ValueError(f"clip_norm must be above 0 and finite, or None; got {clip_norm!r}")

    samplers = []
    for number, (part, seed) in enumerate(zip(chosen, seeds, strict=True)):
        try:
            samplers.append(
                BalancedBagSampler(
                    given,
                    batch_size,
                    positive_share=positive_share,
                    random_state=seed_value(seed, 1),
                    bags=part,
                )
            )
        except ValueError as error:
            raise ValueError(f"train[{number}]: {error}") from None
    where = torch.device(device)
    rows = Rows(bags, chosen, standardize=standardize, device=where)
    shape = bags.instance_shape if isinstance(bags, LazyBags) else (bags.n_features,)
    networks = []
    for seed in seeds:
        with loop.seeded(seed_value(seed, 0)):
            networks.append(network_of(shape, hidden, pooling == "att", module) if build is None else build())
    settings = {
        "method": method,
        "pooling": pooling,
        "batch_size": batch_size,
        "positive_share": positive_share,
        "n_sampled": n_sampled,
        "lr": lr,
        "momentum": momentum,
        "weight_decay": weight_decay,
        "decay_auxiliary": decay_auxiliary,
        "clip_value": clip_value,
        "clip_norm": clip_norm,
        "milestones": list(milestones),
        "tau": tau,
        "gamma": gamma,
        "alpha_rule": alpha_rule,
        "gradient_state": gradient_state,
    }
    training = _Training(rows, given, chosen, samplers, seeds, stack_of(networks, where), margin, settings)
    file = None
    if checkpoint is not None:
        told = settings | {"standardize": bool(standardize), "seeds": seeds, "margins": margin, "labels": given}
        told |= {"network": loop._described(networks[0]), "train": chosen, "bags": rows.digest()}
        told |= {f"parameter {name}" if name in told else name: value for name, value in (identity or {}).items()}
        file = Checkpoint(checkpoint, told)
        if (state := file.read()) is not None:
            training.restore(state, int(epochs))
    recorded = training.recorded
    recorded[:] = [(e, s) for e, s in recorded if e == epochs or (evaluate_every and e % evaluate_every == 0)]
    with loop._deterministic(deterministic):
        for epoch in range(training.epoch, int(epochs)):
            if stop is not None and stop(training.aucs[0]):
                break
            mean = training.run(epoch, epochs=int(epochs))
            last = epoch + 1 == epochs or (stop is not None and stop(training.aucs[0]))
            if last or (evaluate_every is not None and (epoch + 1) % evaluate_every == 0):
                recorded.append((epoch + 1, training.score_all()))
            if file is not None and (last or (epoch + 1) % checkpoint_every == 0):
                file.write(training.state())
            if callback is not None:
                callback(epoch + 1, int(epochs), mean)
    if not recorded or recorded[-1][0] != training.epoch:
        recorded.append((training.epoch, training.score_all()))
    scores = np.stack([s for _, s in recorded], axis=1)
    return StackedFit(
        method,
        pooling,
        scores,
        np.array([e for e, _ in recorded]),
        np.array(training.losses),
        np.array(training.aucs),
        rows.mean,
        rows.scale,
        np.array([_midpoint(scores[m, -1], given, part) for m, part in enumerate(chosen)]),
        time.perf_counter() - begun,
        training.stack,
        float(tau),
    )


def score_bags(
    network: PooledNetwork,
    bags: Bags | LazyBags,
    mean: NDArray[np.float64],
    scale: NDArray[np.float64],
    *,
    batch_instances: int | None = None,
) -> NDArray[np.float64]:
    """Logits of bags of any size, from pieces of at most so many instances, wherever bags begin and end.

    Parameters
    ----------
    network : PooledNetwork
        In evaluation mode while it is used, and in the mode it was in after.
    bags : Bags or LazyBags
    mean, scale : ndarray of float64, shape (n_features,)
        Instances are taken as ``(x - mean) / scale``.
    batch_instances : int, optional
        By default as many as have 131,072 values.

    Returns
    -------
    ndarray of float64, shape (n_bags,)
        They depend on `batch_instances` by rounding only.

    Examples
    --------
    >>> import milfast as mf
    >>> import numpy as np
    >>> network = PooledNetwork(InstanceNetwork(2), "max", squash=False)
    >>> score_bags(network, mf.Bags([[0.0, 0.0], [1.0, 1.0]], [0, 2]), np.zeros(2), np.ones(2)).shape
    (1,)
    """
    device = next(network.parameters()).device
    pool = RunningPool(bags.offsets, 1, network.pooling, squash=network.squash, tau=network.tau, device=device)
    size = batch_instances or max(1, BLOCK // bags.n_features)
    with loop.evaluating(network):
        for first, last in pieces(bags.n_instances, size):
            values = torch.from_numpy(_standard(_read(bags, first, last), mean, scale, first)).to(device)
            scores, says = network.network(values)
            pool.add(first, scores[:, None], None if says is None else says[:, None])
    found: NDArray[np.float64] = (pool.scores()[:, 0].cpu().double() - network.midpoint.cpu().double()).numpy()
    return found


# ---------------------------------------------------------------- instances


class Rows:
    """Instances, standardised by all that any model trains on; what is left to each model is a factor and a shift.

    The bags of `Bags` are there as one table in float32; those of `LazyBags` are read when they are asked for.

    Parameters
    ----------
    bags : Bags or LazyBags
    train : list of ndarray
        Training bags of each model.
    standardize : bool
    device : torch.device

    Attributes
    ----------
    mean, scale : ndarray of float64, shape (n_models, n_features)
    factor, shift : Tensor of float32, shape (n_models, n_features + 1), or None
        Model m sees ``row * factor[m] + shift[m]``; None where all see rows as they are.
    """

    def __init__(
        self, bags: Bags | LazyBags, train: list[NDArray[np.int64]], *, standardize: bool, device: torch.device
    ) -> None:
        self.bags = bags
        self.device = device
        width = bags.n_features
        self.block = max(1, BLOCK // width)
        self.mean, self.scale = np.zeros((len(train), width)), np.ones((len(train), width))
        if standardize:
            self.mean, self.scale = self._moments(train)
        same = bool((self.mean == self.mean[0]).all() and (self.scale == self.scale[0]).all())
        self.middle = self.mean[0] if same else self.mean.mean(axis=0)
        self.spread = self.scale[0] if same else self.scale.mean(axis=0)
        self.factor = self.shift = None
        if not same:
            factor, shift = np.ones((len(train), width + 1)), np.zeros((len(train), width + 1))
            factor[:, :-1] = self.spread / self.scale
            shift[:, :-1] = (self.middle - self.mean) / self.scale
            self.factor, self.shift = (torch.from_numpy(x).float().to(device) for x in (factor, shift))
        self.table = None
        if isinstance(bags, Bags):
            table = torch.ones((bags.n_instances, width + 1))
            for first, last in pieces(bags.n_instances, self.block):
                table[first:last, :-1] = torch.from_numpy(
                    _standard(bags.instances[first:last], self.middle, self.spread, first)
                )
            self.table = table.to(device)

    def _moments(self, train: list[NDArray[np.int64]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and standard deviation, 1 of what is constant, of each model's training instances."""
        bags = self.bags
        shape = bags.n_bags, bags.n_features
        sums, squares = np.zeros(shape), np.zeros(shape)
        low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
        needed = np.zeros(bags.n_bags, dtype=bool)
        needed[np.concatenate(train)] = True
        # a first guess, from a bag that is trained on: others do not change as much as a rounding
        start = int(bags.offsets[np.argmax(needed)])
        end = min(start + self.block, int(bags.offsets[np.argmax(needed) + 1]))
        near = _flat(_read(bags, start, end)).mean(axis=0, dtype=np.float64)
        for first, last in pieces(bags.n_instances, self.block):
            begin = int(np.searchsorted(bags.offsets, first, side="right")) - 1
            end = int(np.searchsorted(bags.offsets, last, side="left"))
            if not needed[begin:end].any():
                continue
            values = _flat(_read(bags, first, last)).astype(np.float64, copy=False)
            starts = np.clip(bags.offsets[begin:end], first, last) - first
            low[begin:end] = np.minimum(low[begin:end], np.minimum.reduceat(values, starts))
            high[begin:end] = np.maximum(high[begin:end], np.maximum.reduceat(values, starts))
            with np.errstate(over="ignore", invalid="ignore"):
                values = values - near
                sums[begin:end] += np.add.reduceat(values, starts)
                squares[begin:end] += np.add.reduceat(values * values, starts)
        found: dict[bytes, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
        for part in train:
            if (key := part.tobytes()) in found:
                continue
            count = bags.sizes[part].sum()
            with np.errstate(over="ignore", invalid="ignore"):
                off = sums[part].sum(axis=0) / count
                variance = squares[part].sum(axis=0) / count - off * off
            wide = np.flatnonzero(~np.isfinite(variance))
            if len(wide):
                raise ValueError(f"feature {wide[0]} of bags is too large for its variance to be a number: rescale it")
            least, most = low[part].min(axis=0), high[part].max(axis=0)
            mean = np.where(least == most, least, near + off)
            scale = np.sqrt(np.maximum(variance, 0))
            scale[(least == most) | (scale == 0)] = 1.0
            found[key] = mean, scale
        pairs = [found[part.tobytes()] for part in train]
        return np.stack([mean for mean, _ in pairs]), np.stack([scale for _, scale in pairs])

    def take(self, rows: NDArray[np.int64]) -> Tensor:
        """Rows by number, shape (*rows.shape, n_features + 1)."""
        if self.table is not None:
            flat = torch.from_numpy(rows.reshape(-1)).to(self.device)
            return self.table.index_select(0, flat).view(*rows.shape, -1)
        assert isinstance(self.bags, LazyBags)
        distinct, places = np.unique(rows.reshape(-1), return_inverse=True)
        values = self._with_one(_standard(self.bags.gather(distinct), self.middle, self.spread, -1))
        return values[torch.from_numpy(places.reshape(-1)).to(self.device)].view(*rows.shape, -1)

    def blocks(self) -> Iterable[tuple[int, Tensor]]:
        """All rows, a block at a time, each with the number of its first."""
        for first, last in pieces(self.bags.n_instances, self.block):
            if self.table is not None:
                yield first, self.table[first:last]
            else:
                yield first, self._with_one(_standard(_read(self.bags, first, last), self.middle, self.spread, first))

    def _with_one(self, values: NDArray[np.float32]) -> Tensor:
        return torch.nn.functional.pad(torch.from_numpy(values).to(self.device), (0, 1), value=1.0)

    def digest(self) -> list[Any]:
        """What tells these bags from others: all of them, or what there is of lazy ones without reading them."""
        if isinstance(self.bags, Bags):
            return [torch.from_numpy(np.array(self.bags.instances)), self.bags.offsets]
        return [repr(self.bags), self.bags.offsets]


def _read(bags: Bags | LazyBags, first: int, last: int) -> NDArray[Any]:
    return bags.instances[first:last] if isinstance(bags, Bags) else bags.gather(np.arange(first, last))


def _flat(values: NDArray[Any]) -> NDArray[Any]:
    return values.reshape(len(values), -1)


def _standard(
    values: NDArray[Any], mean: NDArray[np.float64], scale: NDArray[np.float64], first: int
) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        result = ((_flat(values) - mean) / scale).astype(np.float32)
    finite = np.isfinite(result).all(axis=1)
    if not finite.all():
        which = f"instances[{first + int(np.argmin(finite))}]" if first >= 0 else "an instance"
        raise ValueError(f"{which} of bags does not fit float32: rescale its features first")
    return result


# ---------------------------------------------------------------- training


def network_of(shape: tuple[int, ...], hidden: int | None, attends: bool, module: Any) -> InstanceNetwork:
    """An untrained network; what it draws comes from torch's generator, of numpy and `random` as well.

    Parameters
    ----------
    shape : tuple of int
        Of an instance.
    hidden : int or None
    attends : bool
    module : torch.nn.Module, class, callable or None

    Returns
    -------
    InstanceNetwork

    Examples
    --------
    >>> network_of((4,), None, False, None).score
    Linear(in_features=4, out_features=1, bias=True)
    """
    n_features = math.prod(shape)
    if module is None:
        return InstanceNetwork(n_features, hidden, attention=attends)
    with making.host_seeded(int(torch.randint(2**31, ()))):
        own = making.make(module, n_features)
        return InstanceNetwork(n_features, attention=attends, module=own, instance_shape=shape)


class _Training:
    """All that changes while models are trained."""

    def __init__(
        self,
        rows: Rows,
        labels: NDArray[np.int64],
        train: list[NDArray[np.int64]],
        samplers: list[BalancedBagSampler],
        seeds: list[int],
        stack: Stack,
        margin: NDArray[np.float64],
        settings: dict[str, Any],
    ) -> None:
        self.rows, self.labels, self.train = rows, labels, train
        self.samplers, self.seeds, self.stack = samplers, seeds, stack
        self.settings = settings
        self.method, self.pooling = settings["method"], settings["pooling"]
        n_models, n_bags = len(train), len(labels)
        device = rows.device
        self.dtype = torch.float32 if device.type == "mps" else torch.float64
        self.margin = torch.from_numpy(np.broadcast_to(margin, (n_models,)).copy()).to(device, self.dtype)
        self.alpha = torch.zeros(n_models, dtype=self.dtype, device=device)
        # one column more: where what is no bag is written to
        shape = n_models, n_bags + 1
        if self.method == "midam-smx":
            self.averages = [torch.full(shape, -torch.inf, dtype=self.dtype, device=device)]
        elif self.method == "midam-att":
            zeros = torch.zeros(shape, dtype=self.dtype, device=device)
            self.averages = [zeros, torch.ones_like(zeros)]
        else:
            self.averages = []
        self.seen = torch.zeros(shape, dtype=self.dtype, device=device)
        self.tau = torch.tensor(settings["tau"], dtype=self.dtype, device=device)
        # a parameter for each model, and one for its a and b: those of models that have no batch left get no step
        self.weights = [[torch.nn.Parameter(part) for part in (row[:-2], row[-2:])] for row in stack.values]
        self.optimizer = self._optimizer()
        self.losses: list[list[float]] = [[] for _ in range(n_models)]
        self.aucs: list[list[float]] = [[] for _ in range(n_models)]
        self.recorded: list[tuple[int, NDArray[np.float32]]] = []
        self.epoch = 0

    # ------------------------------------------------------------ an epoch

    def run(self, epoch: int, *, epochs: int) -> float:
        """Train for one epoch, and return the mean loss."""
        bags, labels, rows, mask, counts = self._drawn(epoch)
        passed = sum(epoch >= milestone for milestone in self.settings["milestones"])
        self.lr = self.settings["lr"] / 10**passed
        self.gamma = torch.tensor(self.settings["gamma"] / 2**passed, dtype=self.dtype, device=self.rows.device)
        self.eta = 0.5**passed
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr
        total = torch.zeros(len(self.train), dtype=self.dtype, device=self.rows.device)
        with torch.no_grad(), loop.seeded(seed_value(self.seeds[0], 3, epoch), self.rows.device):
            for step in range(len(bags)):
                active = counts > step
                total += self._step(bags[step], labels[step], rows[step], mask[step], active)
        self.epoch = epoch + 1
        losses = (total.cpu() / torch.from_numpy(counts)).double().numpy()
        wrong = np.flatnonzero(~np.isfinite(losses))
        if len(wrong):
            raise FloatingPointError(
                f"the training loss of model {int(wrong[0])} became {losses[wrong[0]]} in epoch {epoch + 1} of "
                f"{epochs}: standardise the features or lower lr (it is {self.settings['lr']})"
            )
        seen = self.seen.cpu().double().numpy()
        for model, part in enumerate(self.train):
            self.losses[model].append(float(losses[model]))
            self.aucs[model].append(_core.auc(seen[model, part], self.labels[part]))
        return float(losses.mean())

    def _drawn(self, epoch: int) -> tuple[Tensor, Tensor, NDArray[np.int64], Tensor, NDArray[np.int64]]:
        """Bags, labels, rows and what of them is there, for all steps, models, places in a batch (and draws)."""
        plans = [sampler.batches(epoch) for sampler in self.samplers]
        counts = np.array([len(plan) for plan in plans])
        longest = max(len(batch) for plan in plans for batch in plan)
        bags = np.full((len(plans), int(counts.max()), longest), -1, dtype=np.int64)
        for model, plan in enumerate(plans):
            for step, batch in enumerate(plan):
                bags[model, step, : len(batch)] = batch
        chance = [np.random.Generator(np.random.PCG64(seed_sequence(seed, 2, epoch))) for seed in self.seeds]
        rows, mask = sample_instances(self.rows.bags.offsets, bags, self.settings["n_sampled"], chance)
        labels = np.where(bags >= 0, self.labels[bags], -1)
        # the column of what is no bag
        bags[bags < 0] = len(self.labels)
        device = self.rows.device
        by_step = (np.ascontiguousarray(x.swapaxes(0, 1)) for x in (bags, labels, mask))
        tensors = [torch.from_numpy(x).to(device) for x in by_step]
        return tensors[0], tensors[1], np.ascontiguousarray(rows.swapaxes(0, 1)), tensors[2], counts

    def _step(
        self, bags: Tensor, labels: Tensor, rows: NDArray[np.int64], mask: Tensor, active: NDArray[np.bool_]
    ) -> Tensor:
        n_models, n, k = mask.shape
        instances = self.rows.take(rows.reshape(n_models, n * k))
        if self.rows.factor is not None and self.rows.shift is not None:
            instances = torch.addcmul(self.rows.shift[:, None], instances, self.rows.factor[:, None])
        every = bool(active.all())
        which = range(n_models) if every else [int(model) for model in np.flatnonzero(active)]
        scores, says = self.stack.forward(instances, which, mask.view(n_models, n * k))
        wide = scores.to(self.dtype).view(n_models, n, k)
        said = None if says is None else says.to(self.dtype).view(n_models, n, k)
        value, pooled, by_score, by_says, by_a, by_b, gap = self._loss(wide, said, mask, bags, labels)
        self.seen.scatter_(1, bags, pooled)
        self.stack.backward(
            by_score.view(n_models, -1).to(scores.dtype),
            None if by_says is None else by_says.view(n_models, -1).to(scores.dtype),
        )
        matters = None if every else torch.from_numpy(active).to(self.rows.device)
        self._move(by_a, by_b, which)
        if self.method != "ce":
            self._ascend(gap, matters)
        return value if matters is None else value * matters

    def _loss(
        self, scores: Tensor, says: Tensor | None, mask: Tensor, bags: Tensor, labels: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor, Tensor, Tensor]:
        """Loss of a batch, scores of bags, and gradients by scores, attention, a and b; the gap of alpha."""
        previous = self.settings["gradient_state"] == "previous"
        squash = self.method != "ce"
        by_says: Tensor | None = None
        if self.method == "midam-smx":
            squashed = scores.sigmoid()
            pooled = smoothed_max(
                squashed, mask, self.averages[0].gather(1, bags), self.gamma, self.tau, previous=previous
            )
            by_score = pooled.by_score * squashed * (1 - squashed)
        elif self.method == "midam-att":
            assert says is not None
            held = [average.gather(1, bags) for average in self.averages]
            pooled = attention(scores, says, mask, held[0], held[1], self.gamma, previous=previous)
            by_score, by_says = pooled.by_score, pooled.by_attention
        else:
            pooled, by_score, by_says = _pooled(scores, says, mask, self.pooling, self.tau, squash=squash)
        for average, new in zip(self.averages, pooled.state, strict=True):
            average.scatter_(1, bags, new)
        positive, negative = labels == 1, labels == 0
        if self.method == "ce":
            there = labels >= 0
            share = there / there.sum(1, keepdim=True).clamp(min=1)
            target = positive.to(scores.dtype)
            losses = torch.nn.functional.softplus(pooled.bags) - target * pooled.bags
            value, outer = (share * losses).sum(1), share * (pooled.bags.sigmoid() - target)
            zeros = torch.zeros_like(value)
            by_a = by_b = gap = zeros
        else:
            a, b = self.stack.values[:, -2], self.stack.values[:, -1]
            weight = 2.0 if self.method == "auc-m" else 1.0
            terms = minmax_margin(pooled.bags, positive, negative, a, b, self.alpha, self.margin, weight)
            value, outer, by_a, by_b, gap = terms
        by_score = outer[..., None] * by_score
        by_says = None if by_says is None else outer[..., None] * by_says
        return value, pooled.bags, by_score, by_says, by_a, by_b, gap

    def _move(self, by_a: Tensor, by_b: Tensor, which: Iterable[int]) -> None:
        gradient = self.stack.gradient
        gradient[:, -2], gradient[:, -1] = by_a, by_b
        if math.isfinite(self.settings["clip_value"]):
            limit = self.settings["clip_value"]
            gradient.nan_to_num_(nan=0.0, posinf=limit, neginf=-limit).clamp_(-limit, limit)
        if self.settings["clip_norm"] is not None:
            length = torch.linalg.vector_norm(gradient, dim=1, keepdim=True)
            gradient.mul_((self.settings["clip_norm"] / (length + 1e-6)).clamp(max=1.0))
        for pair in self.weights:
            for weights in pair:
                weights.grad = None
        for model in which:
            self.weights[model][0].grad = gradient[model, :-2]
            if self.method != "ce":
                self.weights[model][1].grad = gradient[model, -2:]
        self.optimizer.step()

    def _optimizer(self) -> torch.optim.Optimizer:
        """Adam, or the steps of `MIDAMOptimizer`, which torch takes in one pass as those of SGD."""
        decay, momentum = self.settings["weight_decay"], self.settings["momentum"]
        groups = [
            {"params": [pair[0] for pair in self.weights], "weight_decay": decay},
            {"params": [pair[1] for pair in self.weights], "weight_decay": decay * self.settings["decay_auxiliary"]},
        ]
        fused = True if self.rows.device.type in ("cpu", "cuda") else None
        if self.method == "ce":
            return torch.optim.Adam(groups, lr=self.settings["lr"], fused=fused)
        return torch.optim.SGD(groups, lr=self.settings["lr"], momentum=momentum, dampening=momentum, fused=fused)

    def _ascend(self, gap: Tensor, matters: Tensor | None) -> None:
        if self.settings["alpha_rule"] == "batch-max":
            new = torch.lerp(self.alpha, gap, self.eta)
        else:
            a, b = self.stack.values[:, -2], self.stack.values[:, -1]
            rate = self.lr * (2.0 if self.method == "auc-m" else 1.0)
            new = self.alpha + rate * (self.margin + b - a - self.alpha)
        new = new.clamp(min=0)
        self.alpha = new if matters is None else torch.where(matters, new, self.alpha)

    # ------------------------------------------------------------ scores and state

    def score_all(self) -> NDArray[np.float32]:
        """Scores of all bags by all models, shape (n_models, n_bags)."""
        pool = RunningPool(
            self.rows.bags.offsets,
            len(self.train),
            self.pooling,
            squash=self.method != "ce",
            tau=self.settings["tau"],
            device=self.rows.device,
        )
        with torch.no_grad():
            self.stack.prepare(self.rows.factor, self.rows.shift)
            for first, block in self.rows.blocks():
                pool.add(first, *self.stack.of_all(block))
            found: NDArray[np.float32] = pool.scores().T.float().contiguous().cpu().numpy()
        return found

    def state(self) -> dict[str, Any]:
        """All of it, as tensors and plain values."""
        return {
            "epoch": self.epoch,
            "values": self.stack.values.cpu(),
            "optimizer": self.optimizer.state_dict(),
            "alpha": self.alpha.cpu(),
            "averages": [average.cpu() for average in self.averages],
            "seen": self.seen.cpu(),
            "buffers": self.stack.buffers(),
            "losses": self.losses,
            "aucs": self.aucs,
            "recorded": [(epoch, torch.from_numpy(scores)) for epoch, scores in self.recorded],
        }

    def restore(self, state: dict[str, Any], epochs: int) -> None:
        """Go on from a state."""
        if state["epoch"] > epochs:
            raise ValueError(
                f"the checkpoint holds {state['epoch']} epochs, more than epochs={epochs}: name another file to train "
                "anew"
            )
        device = self.rows.device
        with torch.no_grad():
            self.stack.values.copy_(state["values"])
            for held, kept in zip(self.stack.buffers(), state["buffers"], strict=True):
                for name, buffer in held.items():
                    buffer.copy_(kept[name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.alpha = state["alpha"].to(device)
        self.averages = [average.to(device) for average in state["averages"]]
        self.seen = state["seen"].to(device)
        self.losses, self.aucs = state["losses"], state["aucs"]
        self.recorded = [(epoch, scores.numpy()) for epoch, scores in state["recorded"]]
        self.epoch = state["epoch"]


def _pooled(
    scores: Tensor, says: Tensor | None, mask: Tensor, pooling: str, tau: Tensor, *, squash: bool
) -> tuple[Pooled, Tensor, Tensor | None]:
    """Scores of bags pooled from the drawn instances alone, with derivatives by scores and attention."""
    there = mask.any(-1)
    counts = mask.sum(-1).clamp(min=1).to(scores.dtype)
    if pooling == "att":
        assert says is not None
        powers = says.masked_fill(~mask, -torch.inf)
        weights = (powers - powers.logsumexp(-1, keepdim=True)).exp().masked_fill(~mask, 0.0)
        mean = (weights * scores).sum(-1)
        bags, slope = mean, torch.ones_like(mean)
        if squash:
            bags = mean.sigmoid()
            slope = bags * (1 - bags)
        by_score = slope[..., None] * weights
        return Pooled(bags, by_score, None, ()), by_score, by_score * (scores - mean[..., None])
    values = scores.sigmoid() if squash else scores
    if pooling == "mean":
        weights = mask / counts[..., None]
        bags = (weights * values).sum(-1)
    elif pooling == "max":
        bags, best = values.masked_fill(~mask, -torch.inf).max(-1)
        weights = torch.zeros_like(values).scatter_(-1, best[..., None], 1.0)
    else:
        powers = (values / tau).masked_fill(~mask, -torch.inf)
        total = powers.logsumexp(-1)
        bags = tau * (total - counts.log())
        weights = (powers - total[..., None]).exp()
    bags = bags.masked_fill(~there, 0.0)
    weights = weights.masked_fill(~mask, 0.0)
    by_score = weights * values * (1 - values) if squash else weights
    return Pooled(bags, by_score, None, ()), by_score, None


def _midpoint(scores: NDArray[np.float32], labels: NDArray[np.int64], part: NDArray[np.int64]) -> float:
    known, values = labels[part], scores[part].astype(np.float64)
    return float(values[known == 1].mean() + values[known == 0].mean()) / 2


def _seeds(random_state: Any, n_models: int) -> list[int]:
    if isinstance(random_state, (list, tuple, np.ndarray)):
        if len(random_state) != n_models:
            raise ValueError(f"random_state must be one or {n_models} integers; got {len(random_state)}")
        return [seed_value(int(one)) for one in random_state]
    root = seed_value(random_state)
    return [seed_value(root, model) for model in range(n_models)]


def _allowed(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} must be {', '.join(map(repr, known))}; got {value!r}")
