"""What MIDAM-smx, MIDAM-att, AUC-M and CE share: steps on a few instances of each bag of a balanced batch."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from milfast.bags import Bags
from milfast.lazy_bags import LazyBags
from milfast.models.deep import base
from milfast.models.deep.base import DeepMIL, positive_number, share, whole_number
from milfast.seeding import seed_value
from milfast.training import loop, stacked
from milfast.training.bag_scores import POOLINGS, InstanceNetwork, PooledNetwork, pieces
from milfast.training.devices import device_of
from milfast.training.midam import ALPHA_RULES, GRADIENT_STATES

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MarginMIL", "SampledMIL"]


class SampledMIL(DeepMIL):
    """Estimator that is trained on a few instances of each bag, so that bags may be of any size.

    The defaults are those of the authors' experiments on tables: a hidden layer as wide as the input, 100 epochs of
    batches of 16 bags, half of them positive, 4 instances of each, a learning rate of 0.01 that is divided by 10 after
    epochs 50 and 75. Scores come from all instances.

    Parameters
    ----------
    module : torch.nn.Module, class or callable, optional
        An instance network of one's own, made for each fit as `milfast.models.deep.wrap.ModuleMIL` makes a module. It
        takes instances of shape (n, n_features), or those of `milfast.lazy_bags.LazyBags` in their own shape, and
        returns features of shape (n, k), which get a linear score and where it is asked for attention on top, or one
        score for each instance. `hidden` is of no use then.
    n_sampled : int
        Instances drawn from each bag of a batch, without replacement.
    positive_share : float
        Share of positive bags in a batch, in (0, 1). Every bag of the longer class comes once an epoch.
    milestones : sequence of int
        Epochs after which lr is divided by 10, and gamma by 2.
    hidden : int or None
        None takes as many as there are features.
    epochs, batch_size, lr, weight_decay
        Of `DeepMIL`; `batch_size` is at least 2.
    **settings
        Other parameters of `DeepMIL`, but for `dropout`, `optimizer` and `faults`.

    Attributes
    ----------
    module_ : PooledNetwork
        The trained network, in evaluation mode, which takes standardised float32 instances and offsets.
    mean_, scale_, classes_, n_features_in_, loss_curve_, auc_curve_
        As in `DeepMIL`.
    """

    _fixed: ClassVar[frozenset[str]] = frozenset({"dropout", "optimizer", "faults"})
    method: ClassVar[str]

    def __init__(
        self,
        *,
        module: Any = None,
        n_sampled: int = 4,
        positive_share: float = 0.5,
        milestones: Iterable[int] = (50, 75),
        hidden: int | None = None,
        epochs: int = 100,
        batch_size: int = 16,
        lr: float = 1e-2,
        weight_decay: float = 1e-4,
        clip_value: float | None = None,
        **settings: Any,
    ) -> None:
        if alien := self._fixed & settings.keys():
            raise TypeError(f"{type(self).__name__} takes no {' and no '.join(sorted(alien))}")
        super().__init__(
            epochs=epochs, batch_size=batch_size, lr=lr, weight_decay=weight_decay, clip_value=clip_value, **settings
        )
        self.hidden = hidden  # type: ignore[assignment]  # None is good here
        self.module = module
        self.n_sampled = n_sampled
        self.positive_share = positive_share
        self.milestones = milestones
        self.dropout = 0.0

    def _own_pooling(self) -> str:
        """How instances' scores are pooled."""
        return str(getattr(self, "pooling", stacked.METHODS[self.method]["pooling"]))

    def _built(self, shape: tuple[int, ...]) -> PooledNetwork:
        pooling = self._own_pooling()
        network = stacked.network_of(shape, self.hidden, pooling == "att", self.module)
        return PooledNetwork(network, pooling, squash=self.method != "ce", tau=float(getattr(self, "tau", 0.1)))

    def build(self, n_features: int) -> nn.Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return self._built((n_features,))

    def fit(self, bags: Bags | LazyBags, y: None = None) -> Self:
        """Train on labelled bags.

        Parameters
        ----------
        bags : Bags or LazyBags
            With labels of both classes.
        y : None
            Labels are read from `bags`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            When a parameter or `bags` cannot be used; nothing was done then.
        FloatingPointError
            When the training loss is not finite.
        """
        self._check_parameters()
        if y is not None:
            raise ValueError("y must be None: labels are part of bags, Bags(instances, offsets, labels)")
        _check(bags)
        if bags.labels is None:
            raise ValueError("bags has no labels to learn from: make it with labels")
        positive = int(bags.labels.sum())
        if positive in (0, bags.n_bags):
            raise ValueError(
                f"all {bags.n_bags} labels in bags are {int(positive > 0)}: training needs bags of both classes"
            )
        device = base._usable_device(self.device)
        shape = bags.instance_shape if isinstance(bags, LazyBags) else (bags.n_features,)

        def build() -> InstanceNetwork:
            made = self.build(bags.n_features) if len(shape) == 1 else self._built(shape)
            assert isinstance(made, PooledNetwork)
            return made.network

        settings = {
            name: getattr(self, name)
            for name in ("pooling", "tau", "gamma", "alpha_rule", "gradient_state", "momentum", "decay_auxiliary")
            if hasattr(self, name)
        }
        found = stacked.fit_stacked(
            bags,
            None,
            [np.arange(bags.n_bags)],
            method=self.method,
            margins=float(getattr(self, "margin", 1.0)),
            epochs=int(self.epochs),
            batch_size=int(self.batch_size),
            positive_share=float(self.positive_share),
            n_sampled=int(self.n_sampled),
            lr=float(self.lr),
            weight_decay=float(self.weight_decay),
            clip_value=np.inf if self.clip_value is None else float(self.clip_value),
            clip_norm=self.clip_norm,
            milestones=tuple(self.milestones),
            build=build,
            standardize=bool(self.standardize),
            evaluate_every=None,
            random_state=[seed_value(self.random_state)],
            device=device,
            deterministic=bool(self.deterministic),
            checkpoint=self.checkpoint,
            checkpoint_every=1,
            identity=None if self.checkpoint is None else self._identity(),
            callback=self.callback,
            stop=lambda aucs: loop._settled(aucs, self.patience, float(self.tol)),
            **settings,
        )
        self.module_ = found.network(0).to(device)
        self.mean_, self.scale_ = found.mean[0], found.scale[0]
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = bags.n_features
        self.loss_curve_, self.auc_curve_ = found.losses[0].tolist(), found.aucs[0].tolist()
        return self

    def decision_function(self, bags: Bags | LazyBags) -> NDArray[np.float64]:
        """Bag logits, from all instances, a piece at a time.

        Parameters
        ----------
        bags : Bags or LazyBags
            With the number of features trained on.

        Returns
        -------
        ndarray of float64, shape (n_bags,)

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError, ValueError
            When `bags` or `device` cannot be used.
        FloatingPointError
            When a logit is NaN.
        """
        found = stacked.score_bags(self._ready(bags), bags, self.mean_, self.scale_)
        missing = np.isnan(found)
        if missing.any():
            raise FloatingPointError(
                f"the logit of bag {int(np.argmax(missing))} is NaN, the first of {int(missing.sum())} among "
                f"{bags.n_bags} bags: rescale the features, or train with standardize=True or a lower lr than {self.lr}"
            )
        return found

    def instance_scores(self, bags: Bags | LazyBags) -> NDArray[np.float64]:
        """Scores of instances, before a sigmoid.

        Parameters
        ----------
        bags : Bags or LazyBags

        Returns
        -------
        ndarray of float64, shape (n_instances,)

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError
            As `decision_function`.
        """
        network = self._ready(bags)
        device = device_of(network)
        parts = []
        with loop.evaluating(network):
            for first, last in pieces(bags.n_instances, max(1, stacked.BLOCK // bags.n_features)):
                rows = stacked._standard(stacked._read(bags, first, last), self.mean_, self.scale_, first)
                parts.append(network.instance_logits(torch.from_numpy(rows).to(device)).cpu())
        scores: NDArray[np.float64] = torch.cat(parts).double().numpy()
        return scores

    def _ready(self, bags: Bags | LazyBags) -> PooledNetwork:
        check_is_fitted(self, "module_")
        _check(bags)
        if bags.n_features != self.n_features_in_:
            raise ValueError(
                f"bags has {bags.n_features} features, but {type(self).__name__} was fitted on {self.n_features_in_}: "
                "pass bags with the same features"
            )
        network = self.module_
        assert isinstance(network, PooledNetwork)
        return network.to(base._usable_device(self.device))

    def _check_hidden(self) -> None:
        if self.hidden is not None:
            whole_number("hidden", self.hidden)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole_number("batch_size", self.batch_size, least=2)
        whole_number("n_sampled", self.n_sampled)
        share("positive_share", self.positive_share)
        if float(self.positive_share) == 0:
            raise ValueError("positive_share must be in (0, 1); got 0")
        if not isinstance(self.milestones, Iterable):
            raise TypeError(f"milestones must be a sequence of epochs; got {self.milestones!r}")
        if any(isinstance(epoch, bool) or not isinstance(epoch, Integral) for epoch in self.milestones):
            raise TypeError(f"milestones must be a sequence of integers; got {self.milestones!r}")
        if self.module is not None and not (isinstance(self.module, nn.Module) or callable(self.module)):
            raise TypeError(
                f"module must be a torch module, or a class or function that makes one; got {self.module!r}"
            )
        for name, known in {
            "pooling": POOLINGS,
            "alpha_rule": ALPHA_RULES,
            "gradient_state": GRADIENT_STATES,
        }.items():
            if hasattr(self, name) and getattr(self, name) not in known:
                raise ValueError(f"{name} must be {', '.join(map(repr, known))}; got {getattr(self, name)!r}")
        for name in ("tau", "gamma"):
            if hasattr(self, name):
                positive_number(name, getattr(self, name))
        if hasattr(self, "gamma") and self.gamma > 1:
            raise ValueError(f"gamma must be at most 1; got {self.gamma!r}")
        if hasattr(self, "margin"):
            positive_number("margin", self.margin, or_zero=True)
        if hasattr(self, "momentum"):
            share("momentum", self.momentum)
        if hasattr(self, "decay_auxiliary") and not isinstance(self.decay_auxiliary, (bool, np.bool_)):
            raise TypeError(f"decay_auxiliary must be True or False; got {self.decay_auxiliary!r}")


class MarginMIL(SampledMIL):
    """MIDAM with either pooling; see its two forms.

    Parameters
    ----------
    margin : float
        By how much the mean score of positive bags is to be above that of negative ones; at least 0.
    gamma : float
        Share of what a batch shows in the moving averages of its bags, in (0, 1].
    alpha_rule : {"batch-max", "gradient"}
        What alpha does in a step: it becomes what maximises the batch's loss (the authors' code), or follows its
        gradient at a and b with the learning rate (LibAUC).
    gradient_state : {"current", "previous"}
        Whether the weight of an instance is relative to the average with this batch in it (both codes) or before (the
        text).
    momentum : float
        Share of the last step in the next, in [0, 1).
    decay_auxiliary : bool
        Whether weight decay acts on a and b too, as in both codes.
    **settings
        Those of `SampledMIL`.
    """

    claims: ClassVar[str | None] = "standard"

    def __init__(
        self,
        *,
        margin: float = 1.0,
        gamma: float = 0.9,
        alpha_rule: str = "batch-max",
        gradient_state: str = "current",
        momentum: float = 0.1,
        decay_auxiliary: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.margin = margin
        self.gamma = gamma
        self.alpha_rule = alpha_rule
        self.gradient_state = gradient_state
        self.momentum = momentum
        self.decay_auxiliary = decay_auxiliary


def _check(bags: object) -> None:
    if not isinstance(bags, (Bags, LazyBags)):
        raise TypeError(
            f"bags must be milfast.Bags or LazyBags; got {type(bags).__name__}: join a list of arrays by Bags.from_list"
        )
