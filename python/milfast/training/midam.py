"""Multiple-instance deep AUC maximisation: losses with stochastic pooling, and their optimiser (Zhu et al. 2023)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "ALPHA_RULES",
    "GRADIENT_STATES",
    "AUCMarginLoss",
    "MIDAMAttLoss",
    "MIDAMOptimizer",
    "MIDAMSmxLoss",
    "minmax_margin",
]

#: "batch-max": alpha moves towards what maximises the batch's loss, by a share of 1 at first (the authors' code).
#: "gradient": alpha takes a step of the optimiser along its gradient at a and b (LibAUC).
ALPHA_RULES = ("batch-max", "gradient")
#: Whether an instance's weight is relative to the average with this batch in it (both codes) or before (the text).
GRADIENT_STATES = ("current", "previous")

#: Logarithm of the largest weight of an instance. With the state "current" none is above 1 / gamma.
LARGEST = 60.0


# ---------------------------------------------------------------- what is computed, for one model or many


class Terms(NamedTuple):
    """Value of the min-max-margin loss of a batch, and its gradients; one of each for every model.

    Attributes
    ----------
    value : Tensor, shape (*models,)
    scores : Tensor, shape (*models, n)
        Gradient by the scores.
    a, b : Tensor, shape (*models,)
    gap : Tensor, shape (*models,)
        ``margin + mean of negative scores - mean of positive scores``, the best alpha where it is above 0.
    """

    value: Tensor
    scores: Tensor
    a: Tensor
    b: Tensor
    gap: Tensor


def minmax_margin(
    scores: Tensor,
    positive: Tensor,
    negative: Tensor,
    a: Tensor,
    b: Tensor,
    alpha: Tensor,
    margin: Tensor,
    weight: float = 1.0,
) -> Terms:
    """``mean (h+ - a)^2 + mean (h- - b)^2 + weight (alpha (margin + mean h- - mean h+) - alpha^2 / 2)``.

    Parameters
    ----------
    scores : Tensor of floats, shape (*models, n)
    positive, negative : Tensor of bool, shape (*models, n)
        A bag may be in neither: it does not count. Where a class has none, its terms and that of alpha are 0.
    a, b, alpha, margin : Tensor, shape (*models,)
    weight : float
        1 in MIDAM, 2 in the AUC-M loss.

    Returns
    -------
    Terms

    Examples
    --------
    >>> import torch
    >>> one = torch.ones(())
    >>> h, positive = torch.tensor([0.75, 0.25]), torch.tensor([True, False])
    >>> minmax_margin(h, positive, ~positive, 0.75 * one, 0.25 * one, 0.5 * one, one).value
    tensor(0.1250)
    """
    dtype = scores.dtype
    n_positive, n_negative = positive.sum(-1), negative.sum(-1)
    both = ((n_positive > 0) & (n_negative > 0)).to(dtype)
    share_positive = positive.to(dtype) / n_positive.clamp(min=1)[..., None]
    share_negative = negative.to(dtype) / n_negative.clamp(min=1)[..., None]
    a, b, alpha, margin = (x.detach().to(dtype) for x in (a, b, alpha, margin))
    from_a, from_b = scores - a[..., None], scores - b[..., None]
    mean_from_a, mean_from_b = (share_positive * from_a).sum(-1), (share_negative * from_b).sum(-1)
    variance = (share_positive * from_a.square()).sum(-1) + (share_negative * from_b.square()).sum(-1)
    gap = both * (margin + mean_from_b + b - mean_from_a - a)
    alpha = both * alpha
    pull = (weight * alpha)[..., None]
    return Terms(
        variance + weight * (alpha * gap - alpha.square() / 2),
        share_positive * (2 * from_a - pull) + share_negative * (2 * from_b + pull),
        -2 * mean_from_a,
        -2 * mean_from_b,
        gap,
    )


class Pooled(NamedTuple):
    """Scores of bags, and how a change of each drawn instance's value moves them.

    Attributes
    ----------
    bags : Tensor, shape (*models, n)
    by_score : Tensor, shape (*models, n, k)
        Derivative of a bag's score by the score of each instance.
    by_attention : Tensor of that shape, or None
        By what attention says of each instance, before exp.
    state : tuple of Tensor, shape (*models, n)
        New moving averages.
    """

    bags: Tensor
    by_score: Tensor
    by_attention: Tensor | None
    state: tuple[Tensor, ...]


def smoothed_max(
    scores: Tensor, mask: Tensor, log_s: Tensor, gamma: Tensor, tau: Tensor, *, previous: bool = False
) -> Pooled:
    """Moving average of ``mean exp(score / tau)`` in its logarithm, and ``tau log`` of it.

    Parameters
    ----------
    scores : Tensor of floats, shape (*models, n, k)
        Of the instances drawn from each bag.
    mask : Tensor of bool, same shape
    log_s : Tensor, shape (*models, n)
        Logarithm of the moving average; -inf for a bag that was never seen.
    gamma, tau : Tensor, shape (*models,) or ()
    previous : bool
        See `GRADIENT_STATES`. A bag that was never seen has no previous average, and the current one is taken.

    Returns
    -------
    Pooled
        Its state is the new `log_s`.
    """
    tau, gamma = tau[..., None], gamma[..., None]
    powers = (scores / tau[..., None]).masked_fill(~mask, -torch.inf)
    log_k = mask.sum(-1).clamp(min=1).to(scores.dtype).log()
    new = torch.logaddexp(torch.log1p(-gamma) + log_s, gamma.log() + powers.logsumexp(-1) - log_k)
    basis = torch.where(log_s.isneginf(), new, log_s) if previous else new
    weights = (powers - (log_k + basis)[..., None]).clamp(max=LARGEST).exp().masked_fill(~mask, 0.0)
    pooled = (tau * basis).masked_fill(~mask.any(-1), 0.0)
    return Pooled(pooled, weights, None, (new,))


def attention(
    scores: Tensor,
    says: Tensor,
    mask: Tensor,
    log_s2: Tensor,
    ratio: Tensor,
    gamma: Tensor,
    *,
    previous: bool = False,
) -> Pooled:
    """Moving averages of numerator and denominator of attention, kept as a logarithm and a quotient.

    With ``p`` the share of the drawn instances in the new denominator, the new quotient is ``(1 - p)`` of the old one
    and ``p`` of the weighted mean of the drawn: neither can overflow, whatever attention says.

    Parameters
    ----------
    scores, says : Tensor of floats, shape (*models, n, k)
        Scores delta of the instances drawn from each bag, and what attention says of them, before exp.
    mask : Tensor of bool, same shape
    log_s2, ratio : Tensor, shape (*models, n)
        Logarithm of the moving average of the denominator; moving average of the numerator divided by it.
    gamma : Tensor, shape (*models,) or ()
    previous : bool
        See `GRADIENT_STATES`.

    Returns
    -------
    Pooled
        Of sigmoids of quotients; its state is the new `log_s2` and `ratio`.
    """
    gamma = gamma[..., None]
    powers = says.masked_fill(~mask, -torch.inf)
    log_k = mask.sum(-1).clamp(min=1).to(scores.dtype).log()
    total = powers.logsumexp(-1)
    new = torch.logaddexp(torch.log1p(-gamma) + log_s2, gamma.log() + total - log_k)
    scores = scores.masked_fill(~mask, 0.0)
    drawn = ((powers - total[..., None]).exp().masked_fill(~mask, 0.0) * scores).sum(-1)
    # a place without a bag shows nothing
    part = (gamma.log() + total - log_k - new).exp().masked_fill(~mask.any(-1), 0.0)
    mixed = torch.lerp(ratio, drawn, part)
    basis, quotient = (log_s2, ratio) if previous else (new, mixed)
    weights = (powers - (log_k + basis)[..., None]).clamp(max=LARGEST).exp().masked_fill(~mask, 0.0)
    pooled = quotient.sigmoid()
    by_score = (pooled * (1 - pooled))[..., None] * weights
    return Pooled(pooled, by_score, by_score * (scores - quotient[..., None]), (new, mixed))


# ---------------------------------------------------------------- losses


class _KnownGradient(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, value: Tensor, *pairs: Tensor) -> Tensor:
        half = len(pairs) // 2
        context.save_for_backward(*pairs[half:])
        return value.clone()

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        known = context.saved_tensors
        return (None, *(gradient * held for held in known), *(None for _ in known))


def _with_gradients(value: Tensor, gradients: list[tuple[Tensor, Tensor]]) -> Tensor:
    """A value whose gradients by some tensors are what was worked out."""
    tensors = [tensor for tensor, _ in gradients]
    known = [gradient.to(tensor.dtype) for tensor, gradient in gradients]
    result: Tensor = _KnownGradient.apply(value, *tensors, *known)
    return result


class _MarginLoss(nn.Module):
    """Variables of the min-max-margin loss: a, b, alpha, margin."""

    a: nn.Parameter
    b: nn.Parameter
    alpha: Tensor
    _margin: Tensor
    _eta: Tensor
    weight: float = 1.0

    def __init__(self, margin: float, alpha_rule: str, one_class: str, eta: float) -> None:
        super().__init__()
        _one_of("alpha_rule", alpha_rule, ALPHA_RULES)
        _one_of("one_class", one_class, ("error", "partial"))
        self.alpha_rule = alpha_rule
        self.one_class = one_class
        self._limits: dict[str, tuple[float | None, float | None, float]] = {}
        self.a = nn.Parameter(torch.zeros(()))
        self.b = nn.Parameter(torch.zeros(()))
        self.register_buffer("alpha", torch.zeros(()))
        self._number("margin", margin, least=0.0)
        self._number("eta", eta, most=1.0, above=0.0)

    def _number(
        self,
        name: str,
        value: float,
        *,
        least: float | None = None,
        most: float | None = None,
        above: float = -math.inf,
    ) -> None:
        """Keep a setting as a buffer, so that it is part of the state."""
        self.register_buffer(f"_{name}", torch.zeros((), dtype=torch.float64))
        self._limits[name] = least, most, above
        self._set(name, value)

    def _set(self, name: str, value: float) -> None:
        least, most, above = self._limits[name]
        if isinstance(value, (str, bool)) or not hasattr(value, "__float__"):
            raise TypeError(f"{name} must be a number; got {value!r}")
        number = float(value)
        if not (
            math.isfinite(number)
            and number > above
            and (least is None or number >= least)
            and (most is None or number <= most)
        ):
            told = [f"at least {least:g}"] if least is not None else [f"above {above:g}"] if above > -math.inf else []
            told += [f"at most {most:g}"] if most is not None else []
            raise ValueError(f"{name} must be finite{''.join(', ' + limit for limit in told)}; got {value!r}")
        self.get_buffer(f"_{name}").fill_(number)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        kept = dict(self._buffers)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, buffer in kept.items():
            moved = self._buffers[name]
            # 16 bits hold neither 0.1 nor the logarithm of an average at a small tau
            if buffer is not None and moved is not None and moved.dtype in (torch.float16, torch.bfloat16):
                self._buffers[name] = buffer.to(moved.device)
        return self

    @property
    def margin(self) -> float:
        """By how much the mean score of positive bags is to be above that of negative ones; it may be set anew."""
        return float(self._margin)

    @margin.setter
    def margin(self, value: float) -> None:
        self._set("margin", value)

    @property
    def eta(self) -> float:
        """Share of the way to the batch's best that alpha goes by the rule "batch-max"; it may be set anew."""
        return float(self._eta)

    @eta.setter
    def eta(self, value: float) -> None:
        self._set("eta", value)

    def objective(self, scores: Tensor, labels: Tensor, *, best: bool = True) -> Tensor:
        """The objective F itself, for scores of bags from all of their instances.

        Parameters
        ----------
        scores : Tensor of floats, shape (n_bags,)
        labels : Tensor, shape (n_bags,)
        best : bool
            Whether a, b and alpha are the best for these scores, a = mean h+, b = mean h- and alpha = max(0, margin +
            b - a), so that F is ``var h+ + var h- + weight / 2 max(0, margin + b - a)^2``; otherwise those of the loss.

        Returns
        -------
        Tensor, shape ()
            With a gradient by `scores`.

        Raises
        ------
        ValueError
            When shapes differ or a class has no bag.
        """
        positive = self._positive(labels, tuple(scores.shape), scores.device)
        if scores.ndim != 1 or bool(positive.all()) or not bool(positive.any()):
            raise ValueError("objective needs scores of shape (n_bags,) of bags of both classes")
        above, below = scores[positive], scores[~positive]
        a, b, alpha, margin = (x.detach().to(scores.dtype) for x in (self.a, self.b, self.alpha, self._margin))
        if best:
            a, b = above.mean(), below.mean()
            alpha = (margin + b - a).clamp(min=0)
        cross = alpha * (margin + below.mean() - above.mean()) - alpha**2 / 2
        return (above - a).square().mean() + (below - b).square().mean() + self.weight * cross

    def ascend(self, lr: float) -> None:
        """Step of alpha along the gradient at a and b: what `MIDAMOptimizer` does by the rule "gradient".

        Parameters
        ----------
        lr : float
        """
        with torch.no_grad():
            slope = self._margin.to(self.alpha.dtype) + self.b - self.a - self.alpha
            self.alpha.add_(slope, alpha=lr * self.weight).clamp_(min=0)

    def _positive(self, labels: Tensor, shape: tuple[int, ...], device: torch.device) -> Tensor:
        labels = torch.as_tensor(labels, device=device)
        if tuple(labels.shape) != shape:
            raise ValueError(f"labels must have shape {shape}, one a bag; got {tuple(labels.shape)}")
        if labels.is_floating_point() and bool(labels.isnan().any()):
            raise ValueError(f"labels[{int(labels.isnan().nonzero()[0, 0])}] is NaN: drop that bag, or give it a label")
        return labels > 0

    def _terms(self, scores: Tensor, positive: Tensor) -> Terms:
        if bool((positive == positive[0]).all()) and self.one_class == "error":
            which = "positive" if bool(positive[0]) else "negative"
            raise ValueError(
                f"all {len(positive)} bags of the batch are {which}: draw batches by BalancedBagSampler, or make the "
                "loss with one_class='partial', which leaves out what needs both classes"
            )
        return minmax_margin(
            scores, positive, ~positive, self.a, self.b, self.alpha, self._margin.to(scores.dtype), self.weight
        )

    def _follow(self, terms: Terms, positive: Tensor) -> None:
        """Move alpha by the rule "batch-max"; a batch of one class leaves it."""
        if self.alpha_rule == "batch-max" and not bool((positive == positive[0]).all()):
            eta = self._eta.to(self.alpha.dtype)
            self.alpha.copy_(torch.lerp(self.alpha, terms.gap.to(self.alpha.dtype), eta).clamp(min=0))

    def extra_repr(self) -> str:
        """What `repr` shows between the brackets."""
        return f"margin={self.margin:g}, alpha_rule={self.alpha_rule!r}"


class AUCMarginLoss(_MarginLoss):
    """AUC-M: the min-max-margin loss of bag scores, ``mean (h+ - a)^2 + mean (h- - b)^2 + 2 alpha gap - alpha^2``.

    Parameters
    ----------
    margin : float
        At least 0.
    alpha_rule : {"gradient", "batch-max"}
    one_class : {"error", "partial"}
        What a batch of one class does: raise a ValueError, or count for the terms of its class only.

    References
    ----------
    .. [1] Z. Yuan, Y. Yan, M. Sonka, T. Yang, "Large-scale robust deep AUC maximization", ICCV 2021.

    Examples
    --------
    >>> import torch
    >>> loss = AUCMarginLoss(margin=1.0)
    >>> loss(torch.tensor([0.5, 0.5]), torch.tensor([1, 0])).item()
    0.5
    """

    weight = 2.0

    def __init__(self, margin: float = 1.0, *, alpha_rule: str = "gradient", one_class: str = "error") -> None:
        super().__init__(margin, alpha_rule, one_class, 1.0)

    def forward(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Loss of a batch.

        Parameters
        ----------
        scores : Tensor of floats, shape (n_bags,)
        labels : Tensor, shape (n_bags,)
            Positive bags are above 0.

        Returns
        -------
        Tensor, shape ()

        Raises
        ------
        ValueError
            When shapes differ, a score or label is not a finite number, or all bags are of one class and `one_class`
            is "error".
        """
        if scores.ndim != 1 or len(scores) == 0:
            raise ValueError(f"scores must have shape (n_bags,) of a batch; got {tuple(scores.shape)}: squeeze(-1)?")
        positive = self._positive(labels, (len(scores),), scores.device)
        _finite("scores", scores)
        terms = self._terms(scores.detach(), positive)
        value = _with_gradients(terms.value, [(scores, terms.scores), (self.a, terms.a), (self.b, terms.b)])
        self._follow(terms, positive)
        return value


class _StochasticPooling(_MarginLoss):
    """What both losses of MIDAM share: moving averages of each bag, gamma, and how a batch is checked."""

    _gamma: Tensor

    def __init__(
        self,
        n_bags: int,
        margin: float,
        gamma: float,
        alpha_rule: str,
        gradient_state: str,
        one_class: str,
        eta: float,
    ) -> None:
        super().__init__(margin, alpha_rule, one_class, eta)
        if isinstance(n_bags, bool) or int(n_bags) != n_bags or n_bags < 1:
            raise ValueError(f"n_bags must be an integer of at least 1; got {n_bags!r}")
        _one_of("gradient_state", gradient_state, GRADIENT_STATES)
        self.n_bags = int(n_bags)
        self.gradient_state = gradient_state
        self._number("gamma", gamma, most=1.0, above=0.0)

    @property
    def gamma(self) -> float:
        """Share of what a batch shows in a moving average; it may be set anew."""
        return float(self._gamma)

    @gamma.setter
    def gamma(self, value: float) -> None:
        self._set("gamma", value)

    def update_smoothing(self, factor: float = 2.0) -> None:
        """Divide gamma and eta, as both codes do after epochs 50 and 75 of 100.

        Parameters
        ----------
        factor : float
            Above 0.
        """
        if not (factor > 0 and math.isfinite(factor)):
            raise ValueError(f"factor must be above 0 and finite; got {factor!r}")
        self.gamma = self.gamma / factor
        self.eta = self.eta / factor

    def _checked(
        self, values: Tensor, labels: Tensor, index: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if values.ndim != 2 or 0 in values.shape:
            raise ValueError(f"scores must have shape (n_bags, n_sampled) of a batch; got {tuple(values.shape)}")
        shape = (len(values),)
        positive = self._positive(labels, shape, values.device)
        index = torch.as_tensor(index, device=values.device)
        if tuple(index.shape) != shape or index.is_floating_point() or index.dtype == torch.bool:
            raise ValueError(
                f"index must be integers of shape {shape}, one a bag; got {index.dtype} of shape {tuple(index.shape)}"
            )
        index = index.long()
        found = torch.bincount(index.clamp(0, self.n_bags - 1))
        if int(index.min()) < 0 or int(index.max()) >= self.n_bags:
            raise IndexError(f"index runs from {int(index.min())} to {int(index.max())}, of {self.n_bags} bags")
        if int(found.max()) > 1:
            raise ValueError(
                f"bag {int(found.argmax())} is in the batch {int(found.max())} times: its moving average takes one "
                "batch at a time, so draw each bag once (BalancedBagSampler does)"
            )
        if mask is None:
            mask = torch.ones_like(values, dtype=torch.bool)
        mask = torch.as_tensor(mask, device=values.device)
        if mask.shape != values.shape:
            raise ValueError(f"mask must have the shape {tuple(values.shape)} of scores; got {tuple(mask.shape)}")
        if mask.dtype != torch.bool:
            raise ValueError(f"mask must be bool; got {mask.dtype}")
        empty = ~mask.any(dim=1)
        if bool(empty.any()):
            raise ValueError(f"bag {int(index[int(empty.nonzero()[0, 0])])} of the batch has no instance in mask")
        _finite("scores", values.masked_fill(~mask, 0.0))
        return positive, index, mask

    def extra_repr(self) -> str:
        """What `repr` shows between the brackets."""
        return f"{self.n_bags}, {super().extra_repr()}, gamma={self.gamma:g}, gradient_state={self.gradient_state!r}"


class MIDAMSmxLoss(_StochasticPooling):
    """MIDAM with the smoothed maximum ``h = tau log mean exp(score / tau)``, of which batches see a few instances.

    The value of a batch is the objective at the moving averages of its bags. Its gradient is that of the algorithm, in
    which a drawn instance counts by ``exp(score / tau) / s`` with the moving average s. That is kept as a logarithm, so
    that any tau and scores of any size are finite. a and b are parameters, which an optimiser moves together with those
    of the network; alpha and the averages are buffers: all of it is in ``state_dict``.

    Parameters
    ----------
    n_bags : int
        Training bags: the index of a batch is below it.
    margin : float
        At least 0.
    tau : float
        Above 0; small ones come close to the maximum, large ones to the mean.
    gamma : float
        Share of what a batch shows in a moving average, in (0, 1].
    alpha_rule : {"batch-max", "gradient"}
        See `ALPHA_RULES`.
    gradient_state : {"current", "previous"}
        See `GRADIENT_STATES`.
    one_class : {"error", "partial"}
        What a batch of one class does: raise a ValueError, or count for the terms of its class only and leave alpha.
    eta : float
        Share of the way that alpha goes by the rule "batch-max", in (0, 1].

    References
    ----------
    .. [1] D. Zhu, B. Wang, Z. Chen, Y. Wang, M. Sonka, X. Wu, T. Yang, "Provable multi-instance deep AUC maximization
       with stochastic pooling", ICML 2023.

    Examples
    --------
    >>> import torch
    >>> loss = MIDAMSmxLoss(n_bags=3, gamma=1.0)
    >>> scores = torch.tensor([[0.9, 0.1], [0.2, 0.2]], requires_grad=True)
    >>> value = loss(scores, torch.tensor([1, 0]), index=torch.tensor([2, 0]))
    >>> value.backward()
    >>> (scores.grad[0, 0] > scores.grad[0, 1]).item(), sorted(loss.state_dict())[:3]
    (True, ['_eta', '_gamma', '_margin'])
    """

    log_s: Tensor
    _tau: Tensor

    def __init__(
        self,
        n_bags: int,
        margin: float = 1.0,
        tau: float = 0.1,
        gamma: float = 0.9,
        *,
        alpha_rule: str = "batch-max",
        gradient_state: str = "current",
        one_class: str = "error",
        eta: float = 1.0,
    ) -> None:
        super().__init__(n_bags, margin, gamma, alpha_rule, gradient_state, one_class, eta)
        self._number("tau", tau, above=0.0)
        # twice as long as scores are: what counts is a difference, divided by tau
        self.register_buffer("log_s", torch.full((self.n_bags,), -torch.inf, dtype=torch.float64))

    @property
    def tau(self) -> float:
        """Temperature of the smoothed maximum; moving averages are of one, so it cannot be set."""
        return float(self._tau)

    def forward(self, scores: Tensor, labels: Tensor, index: Tensor, mask: Tensor | None = None) -> Tensor:
        """Loss of a batch; moving averages and alpha go on.

        Parameters
        ----------
        scores : Tensor of floats, shape (n_bags, n_sampled)
            Of the instances drawn from each bag of the batch, after the last activation.
        labels : Tensor, shape (n_bags,)
            Positive bags are above 0.
        index : Tensor of int64, shape (n_bags,)
            Which bags these are, each once.
        mask : Tensor of bool, shape (n_bags, n_sampled), optional
            What is there: see `milfast.training.instance_sampler.sample_instances`.

        Returns
        -------
        Tensor, shape ()

        Raises
        ------
        ValueError
            When shapes differ, a score or label is not a finite number, a bag comes twice or has no instance, or all
            bags are of one class and `one_class` is "error"; nothing has changed then.
        IndexError
            When `index` is out of range.
        """
        positive, index, mask = self._checked(scores, labels, index, mask)
        held = self.log_s
        dtype = held.dtype
        pooled = smoothed_max(
            scores.detach().to(dtype),
            mask,
            held[index],
            self._gamma.to(dtype),
            self._tau.to(dtype),
            previous=self.gradient_state == "previous",
        )
        terms = self._terms(pooled.bags, positive)
        gradient = terms.scores[:, None] * pooled.by_score
        value = _with_gradients(
            terms.value.to(scores.dtype), [(scores, gradient), (self.a, terms.a), (self.b, terms.b)]
        )
        held[index] = pooled.state[0]
        self._follow(terms, positive)
        return value


class MIDAMAttLoss(_StochasticPooling):
    """MIDAM with attention, ``h = sigmoid(sum e^g delta / sum e^g)``, of which batches see a few instances.

    As `MIDAMSmxLoss`, with moving averages of numerator and denominator. They are kept as the logarithm of the
    denominator and the quotient, which cannot overflow whatever g is.

    Parameters
    ----------
    n_bags, margin, gamma, alpha_rule, gradient_state, one_class, eta
        As in `MIDAMSmxLoss`. Both averages begin at 1, as in both codes.

    References
    ----------
    .. [1] D. Zhu, B. Wang, Z. Chen, Y. Wang, M. Sonka, X. Wu, T. Yang, "Provable multi-instance deep AUC maximization
       with stochastic pooling", ICML 2023.

    Examples
    --------
    >>> import torch
    >>> loss = MIDAMAttLoss(n_bags=3)
    >>> delta, g = torch.zeros(2, 4, requires_grad=True), torch.full((2, 4), 1e4)
    >>> loss(delta, g, torch.tensor([1, 0]), index=torch.tensor([2, 0])).isfinite().item()
    True
    """

    log_s2: Tensor
    ratio: Tensor

    def __init__(
        self,
        n_bags: int,
        margin: float = 1.0,
        gamma: float = 0.9,
        *,
        alpha_rule: str = "batch-max",
        gradient_state: str = "current",
        one_class: str = "error",
        eta: float = 1.0,
    ) -> None:
        super().__init__(n_bags, margin, gamma, alpha_rule, gradient_state, one_class, eta)
        self.register_buffer("log_s2", torch.zeros(self.n_bags, dtype=torch.float64))
        self.register_buffer("ratio", torch.ones(self.n_bags, dtype=torch.float64))

    def forward(
        self, scores: Tensor, says: Tensor, labels: Tensor, index: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Loss of a batch; moving averages and alpha go on.

        Parameters
        ----------
        scores, says : Tensor of floats, shape (n_bags, n_sampled)
            delta and g of the instances drawn from each bag of the batch.
        labels, index, mask
            As in `MIDAMSmxLoss.forward`.

        Returns
        -------
        Tensor, shape ()

        Raises
        ------
        ValueError, IndexError
            As `MIDAMSmxLoss.forward`.
        """
        positive, index, mask = self._checked(scores, labels, index, mask)
        if says.shape != scores.shape:
            raise ValueError(f"says must have the shape {tuple(scores.shape)} of scores; got {tuple(says.shape)}")
        _finite("says", says.masked_fill(~mask, 0.0))
        dtype = self.log_s2.dtype
        pooled = attention(
            scores.detach().to(dtype),
            says.detach().to(dtype),
            mask,
            self.log_s2[index],
            self.ratio[index],
            self._gamma.to(dtype),
            previous=self.gradient_state == "previous",
        )
        terms = self._terms(pooled.bags, positive)
        assert pooled.by_attention is not None
        outer = terms.scores[:, None]
        value = _with_gradients(
            terms.value.to(scores.dtype),
            [
                (scores, outer * pooled.by_score),
                (says, outer * pooled.by_attention),
                (self.a, terms.a),
                (self.b, terms.b),
            ],
        )
        self.log_s2[index], self.ratio[index] = pooled.state
        self._follow(terms, positive)
        return value


def _finite(name: str, values: Tensor) -> None:
    """Refuse what would stay in moving averages and alpha for good."""
    wrong = ~values.isfinite()
    if bool(wrong.any()):
        place = [int(number) for number in wrong.nonzero()[0]]
        raise ValueError(f"{name}{place} is {float(values[tuple(place)]):g}: training has gone astray, lower lr")


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} must be {' or '.join(map(repr, known))}; got {value!r}")


# ---------------------------------------------------------------- optimiser


class MIDAMOptimizer(torch.optim.Optimizer):
    """Steps along a moving average of gradients: ``v = momentum v + (1 - momentum) g``, the first being g itself.

    Parameters
    ----------
    params : iterable of torch.nn.Parameter, or of groups
        Of any network.
    loss : torch.nn.Module, optional
        A loss of this file: its a and b are moved too, and its alpha after each step where its rule is "gradient".
    lr : float
        Above 0.
    momentum : float
        In [0, 1).
    weight_decay : float
        At least 0; times the parameter, it is added to the gradient.
    decay_auxiliary : bool
        Whether a and b decay as well, as they do in both codes.
    clip_value : float, optional
        Entries of the gradient are clamped to [-clip_value, clip_value] before decay is added, as PESG does.

    Examples
    --------
    >>> import torch
    >>> network, loss = torch.nn.Linear(2, 1), MIDAMSmxLoss(n_bags=2)
    >>> optimizer = MIDAMOptimizer(network.parameters(), loss, lr=0.1)
    >>> scores = network(torch.randn(2, 4, 2)).squeeze(-1).sigmoid()
    >>> loss(scores, torch.tensor([1, 0]), torch.tensor([0, 1])).backward()
    >>> optimizer.step()
    >>> loss.a.item() > 0
    True
    """

    def __init__(
        self,
        params: Iterable[Any],
        loss: nn.Module | None = None,
        *,
        lr: float = 1e-2,
        momentum: float = 0.1,
        weight_decay: float = 1e-4,
        decay_auxiliary: bool = True,
        clip_value: float | None = None,
    ) -> None:
        if not (lr > 0 and math.isfinite(lr)):
            raise ValueError(f"lr must be above 0 and finite; got {lr!r}")
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must be in [0, 1); got {momentum!r}")
        if not (weight_decay >= 0 and math.isfinite(weight_decay)):
            raise ValueError(f"weight_decay must be at least 0 and finite; got {weight_decay!r}")
        if clip_value is not None and not clip_value > 0:
            raise ValueError(f"clip_value must be above 0 or None; got {clip_value!r}")
        if loss is not None and not isinstance(loss, _MarginLoss):
            raise TypeError(f"loss must be a loss of milfast.training.midam; got {type(loss).__name__}")
        groups = list(params)
        if groups and not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        if loss is not None:
            decay = weight_decay if decay_auxiliary else 0.0
            groups.append({"params": list(loss.parameters()), "weight_decay": decay})
        super().__init__(
            groups, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "clip_value": clip_value}
        )
        self.loss = loss

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "loss": self.loss}

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step.

        Parameters
        ----------
        closure : callable, optional
            Works out the loss anew and returns it.

        Returns
        -------
        object
            What `closure` returned.
        """
        found = None
        if closure is not None:
            with torch.enable_grad():
                found = closure()
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        self._move(parameter, group)
        if isinstance(self.loss, _MarginLoss) and self.loss.alpha_rule == "gradient":
            self.loss.ascend(self.param_groups[-1]["lr"])
        return found

    def _move(self, parameter: Tensor, group: dict[str, Any]) -> None:
        assert parameter.grad is not None
        gradient = parameter.grad
        if group["clip_value"] is not None:
            gradient = gradient.clamp(-group["clip_value"], group["clip_value"])
        if group["weight_decay"]:
            gradient = gradient.add(parameter, alpha=group["weight_decay"])
        if group["momentum"]:
            state = self.state[parameter]
            if "average" not in state:
                state["average"] = gradient.clone()
            else:
                state["average"].lerp_(gradient, 1 - group["momentum"])
            gradient = state["average"]
        parameter.add_(gradient, alpha=-group["lr"])

    def update_lr(self, factor: float = 10.0) -> None:
        """Divide the learning rate of all groups, as both codes do after epochs 50 and 75 of 100.

        Parameters
        ----------
        factor : float
            Above 0.
        """
        if not (factor > 0 and math.isfinite(factor)):
            raise ValueError(f"factor must be above 0 and finite; got {factor!r}")
        for group in self.param_groups:
            group["lr"] = group["lr"] / factor
