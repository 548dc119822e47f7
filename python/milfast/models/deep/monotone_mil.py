"""MonotoneMIL: an OR of ANDs of concept presences (ours); the no instance can count against a bag.

MIL assumption: **threshold**. Whatever its weights, the bag logit never falls when an instance is added, so the absence
of an instance cannot be evidence, and frequency only up to `max_count`; `MonotoneNetwork` has the proof.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor, nn
from torch.nn import functional

from milfast.models.deep import base
from milfast.models.deep.layers import Perceptron
from milfast.models.deep.monotone_rule import ConceptScores, Rule, find_rule
from milfast.seeding import seed_value
from milfast.training import loop
from milfast.training.ragged import segment_index, segment_max

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.bags import Bags

__all__ = ["MonotoneMIL"]

NAME = "MonotoneMIL"
REQUIRES = ("torch",)

# Logit of what is surely not there. Concept logits count down to here, so that a bag of too few instances has a finite
# score that no further instance can lower.
ABSENT = -30.0
# Squares are taken of features cut off at -3 and 3, so many standard deviations where features are standardised: those
# of heavy tails would drown the others.
SQUARED_UP_TO = 3.0


class MonotoneNetwork(nn.Module):
    r"""OR of ANDs of concept presences, a bag logit that an instance can only raise.

    A perceptron gives every instance x a logit a_k(x) for each of K concepts. A bag X has l_kr(X), the r-th largest
    a_k(x) of its instances, for r = 1 to `max_count` (-30 where there are fewer than r or it is less): how sure it is
    that concept k is there at least r times. M units are ANDs of these, and the logit of the bag is their OR::

        u_m(X) = b_m + sum_kr |w_mkr| log sigmoid(l_kr(X))
        f(X)   = log sum_m exp(u_m(X))

    **Monotone.** The r-th largest of a set of numbers does not fall when a number is added; log sigmoid rises, the
    weights |w| are not negative, and log-sum-exp rises in each of its arguments. So f(X + {x}) >= f(X) for all X, x and
    weights. **Order.** The r-th largest number does not depend on the order. **Copies.** With ``max_count=1``
    only the largest logit counts, which copies of instances leave as it is, so f is a function of the *set* of
    instances: frequency cannot be evidence. With a larger `max_count` copies may raise f, as they must where counts
    decide, and never beyond `max_count` of them.

    All of this is exact in what is pooled, given the logits; logits and f are computed up to the rounding of floats.

    Parameters
    ----------
    n_features : int
    hidden : int
        Width of the two hidden layers.
    n_concepts, n_units : int
        K and M.
    max_count : int
        Largest number of instances of a concept that can be asked for.
    dropout : float
        After each hidden layer, in [0, 1).

    Notes
    -----
    With saturating units (tanh) in place of logarithms the gradients vanish, and nothing is learned. Weights of a unit
    start uneven, most of them near zero, with a sum of 2, and b_m such that f starts near 0. Where weights start alike
    (softplus of normals), f starts far below 0, and 2 of 10 fits of ``threshold-poison``, spelled ``notebook``, stopped
    at a single concept.

    The perceptron sees the features and the squares of the features cut off at -3 and 3, because the log-likelihood
    ratio of two normal laws is a quadratic function. The cut is meant for standardised features; with
    ``standardize=False`` give features of about that scale. A concept that differs by its variance is learned from
    fewer bags so: with 2,000 bags of ``presence``, spelled ``paper``, the shifted AUC is 0.981 in place of 0.971.

    Examples
    --------
    >>> import torch
    >>> network = MonotoneNetwork(16)
    >>> network(torch.zeros(3, 16), torch.tensor([0, 1, 3])).shape
    torch.Size([2])
    """

    def __init__(
        self,
        n_features: int,
        hidden: int = 128,
        n_concepts: int = 16,
        n_units: int = 16,
        max_count: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.max_count = max_count
        self.embed = Perceptron(2 * n_features, hidden, dropout, depth=2)
        self.head = nn.Linear(hidden, n_concepts)
        uneven = torch.rand(n_units, n_concepts, max_count) ** 4
        self.weight = nn.Parameter(2 * uneven / uneven.sum((1, 2), keepdim=True))
        self.bias = nn.Parameter(torch.full((n_units,), 2 * math.log(2) - math.log(n_units)))

    def concept_logits(self, instances: Tensor) -> Tensor:
        """Logit of each concept for each instance.

        Parameters
        ----------
        instances : Tensor, shape (n_instances, n_features)

        Returns
        -------
        Tensor, shape (n_instances, n_concepts)
        """
        squares = (instances.clamp(-SQUARED_UP_TO, SQUARED_UP_TO).square() - 1) / math.sqrt(2)
        logits: Tensor = self.head(self.embed(torch.cat((instances, squares), dim=1)))
        return logits

    def combine(self, largest: Tensor) -> Tensor:
        """Logit of each bag from its largest concept logits.

        Parameters
        ----------
        largest : Tensor, shape (n_bags, n_concepts, max_count)
            Those below `ABSENT` count as `ABSENT`.

        Returns
        -------
        Tensor, shape (n_bags,)
        """
        units = functional.linear(
            functional.logsigmoid(largest.clamp(min=ABSENT)).flatten(1), self.weight.abs().flatten(1), self.bias
        )
        return torch.logsumexp(units, dim=1)

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
        logits = self.concept_logits(instances)
        if self.max_count == 1:
            return self.combine(segment_max(logits, offsets)[:, :, None])
        return self.combine(segment_largest(logits, offsets, self.max_count)[0])


def segment_largest(values: Tensor, offsets: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest values of each bag in descending order, per column, and where they are.

    Parameters
    ----------
    values : Tensor of floats, shape (n_instances, k)
    offsets : Tensor of int64, shape (n_bags + 1,)
    count : int
        How many of them.

    Returns
    -------
    largest : Tensor, shape (n_bags, k, count)
        -inf where a bag has fewer instances.
    rows : Tensor of int64, shape (n_bags, k, count)
        Their rows, the first of equal ones first; -1 where a bag has fewer instances.

    Examples
    --------
    >>> import torch
    >>> largest, rows = segment_largest(torch.tensor([[5.0], [1.0], [2.0]]), torch.tensor([0, 1, 3]), 2)
    >>> largest[:, 0], rows[:, 0]
    (tensor([[5., -inf],
            [2., 1.]]), tensor([[ 0, -1],
            [ 2,  1]]))
    """
    bag = segment_index(offsets, n_instances=len(values))[:, None].expand_as(values)
    last = (offsets[1:] - 1)[:, None].expand(-1, values.shape[1])
    place = torch.arange(len(values), device=values.device)[:, None].expand_as(values)
    left = values.detach().clone()
    found: list[Tensor] = []
    for rank in range(count):
        if rank:
            left = left.scatter(0, found[-1], -torch.inf)
        is_largest = (left == segment_max(left, offsets).gather(0, bag)) | left.isnan()
        candidates = torch.where(is_largest, place, len(values))
        found.append(last.scatter_reduce(0, bag, candidates, "amin"))
    rows = torch.stack(found, dim=2)
    there = (torch.arange(count, device=offsets.device) < offsets.diff()[:, None])[:, None, :]
    largest = torch.stack([values.gather(0, each) for each in found], dim=2)
    return torch.where(there, largest, -torch.inf), torch.where(there, rows, -1)


class MonotoneMIL(base.DeepMIL):
    """MonotoneMIL: an OR of ANDs of concept presences, which no instance can lower.

    Made for the **threshold** assumption: a bag is positive when each of several concepts is there often enough, or
    when another such rule is met. For any weights no instance can count against a bag, their order means nothing, and
    neither do copies beyond `max_count`; `MonotoneNetwork` has the proof. Which concepts they are, and that there are
    several, is learned. Methods beyond those of `DeepMIL`: `concept_scores` and `rule`.

    Parameters
    ----------
    n_concepts, n_units : int
        Number of concepts, and of ANDs of them. More than are needed: with few, training can stop at a single concept.
    max_count : int
        Largest number of instances of one concept that the rule may ask for. 1 asks for presence only; the score then
        does not change when instances are copied.
    n_restarts : int
        Initialisations that are tried for a quarter of the epochs, whatever `patience` says; the one with the lowest
        training loss is trained. One whose loss is not finite is left out.
    **settings
        Those of `DeepMIL`; `dropout` is 0 here, and `callback` is told of the epochs of the fit that is kept.

    Attributes
    ----------
    restart_losses_ : ndarray of float64, shape (n_restarts,)
        Training loss of each initialisation when one was chosen, infinite where it was not finite; of the whole fit if
        there is only one.

    References
    ----------
    .. [1] N. Weidmann, E. Frank, B. Pfahringer, "A two-level learning method for generalized multi-instance problems",
       ECML 2003 (presence-based and threshold-based concepts).

    Examples
    --------
    Two concepts must both be there:

    >>> import milfast as mf
    >>> bags = mf.sample_bags("threshold-poison", 400, recipe="strict", random_state=0)
    >>> model = MonotoneMIL(hidden=32, epochs=5, random_state=0).fit(bags)
    >>> model.concept_scores(bags).presence.shape
    (400, 16)
    """

    claims: ClassVar[str] = "threshold"

    def __init__(
        self,
        *,
        n_concepts: int = 16,
        n_units: int = 16,
        max_count: int = 1,
        n_restarts: int = 1,
        dropout: float = 0.0,
        **settings: Any,
    ) -> None:
        super().__init__(dropout=dropout, **settings)
        self.n_concepts = n_concepts
        self.n_units = n_units
        self.max_count = max_count
        self.n_restarts = n_restarts

    def build(self, n_features: int) -> nn.Module:
        """Untrained network for `n_features` features; called with torch's generators seeded."""
        return MonotoneNetwork(
            n_features, int(self.hidden), int(self.n_concepts), int(self.n_units), int(self.max_count), self.dropout
        )

    def fit(self, bags: Bags, y: None = None) -> Self:
        """Train on labelled bags, from the best of `n_restarts` initialisations.

        Parameters
        ----------
        bags : Bags
            With labels of both classes.
        y : None
            Labels are read from `bags`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError, FloatingPointError
            As `DeepMIL.fit`.
        """
        self._check_parameters()
        if self.n_restarts == 1:
            super().fit(bags, y)
            self.restart_losses_ = np.array(self.loss_curve_[-1:])
            return self
        seed = seed_value(self.random_state)
        seeds = [seed_value(seed, restart) for restart in range(int(self.n_restarts))]
        short = math.ceil(self.epochs / 4)
        losses = [self._loss_of(self._candidate(each, short), bags, y) for each in seeds]
        if not np.isfinite(losses).any():
            raise FloatingPointError(
                f"the training loss of all {len(seeds)} initialisations was not finite: "
                f"standardise the features or lower lr (it is {self.lr})"
            )
        # the same seed begins with the same steps, so what was tried is what goes on
        best = self._candidate(seeds[int(np.argmin(losses))], self.epochs)
        best.set_params(callback=self.callback, checkpoint=self.checkpoint, patience=self.patience)
        best.fit(bags, y)
        for name, value in vars(best).items():
            if name.endswith("_"):
                setattr(self, name, value)
        self.restart_losses_ = np.array(losses)
        return self

    @staticmethod
    def _loss_of(candidate: MonotoneMIL, bags: Bags, y: None) -> float:
        try:
            return candidate.fit(bags, y).loss_curve_[-1]
        except FloatingPointError:
            return math.inf

    def _candidate(self, seed: int, epochs: int) -> MonotoneMIL:
        alone = {"callback": None, "checkpoint": None, "patience": None}
        return type(self)(**self.get_params() | alone | {"n_restarts": 1, "random_state": seed, "epochs": epochs})

    def concept_scores(self, bags: Bags) -> ConceptScores:
        """Presence of each concept in each bag, and the instances that witness it.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ConceptScores

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError
            As `decision_function`.
        """
        largest, rows = self._largest(bags)
        return ConceptScores(expit(largest), rows)

    def rule(self, bags: Bags, *, agreement: float = 0.99, max_terms: int = 8, max_length: int = 4) -> Rule:
        """The learned rule in words: an OR of ANDs of concepts that are there or not.

        The model weighs concepts by degrees; the rule is yes or no. So the rule is searched for, small, among those
        that can be said: whether a concept is there is whether its score lies above a cut, one for each concept, and
        ANDs of that are added until they say what the model predicts on `agreement` of the bags. What is stated is how
        often the rule, read as it stands, is right about the model, also where that is less than was asked for.
        Another choice of bags, training bags or test bags, may give another rule.

        Parameters
        ----------
        bags : Bags
            Training bags, as a rule; labels are not looked at.
        agreement : float
            Share of the bags, in (0, 1], on which the rule should say what the model predicts. With fewer than 100
            bags, the default asks for all of them.
        max_terms, max_length : int
            Number of ANDs, and of concepts in each of them, at most.

        Returns
        -------
        Rule
            ``rule.holds(model.concept_scores(bags))`` is what it says about bags.

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError
            As `decision_function`, and when another argument is out of range.

        Examples
        --------
        >>> import milfast as mf
        >>> bags = mf.sample_bags("threshold-poison", 400, recipe="strict", random_state=0)
        >>> model = MonotoneMIL(hidden=32, epochs=5, random_state=0).fit(bags)
        >>> rule = model.rule(bags)
        >>> said = rule.holds(model.concept_scores(bags))
        >>> bool((said == model.predict(bags)).mean() == rule.agreement)
        True
        """
        if isinstance(agreement, bool) or not isinstance(agreement, (int, float, np.integer, np.floating)):
            raise TypeError(f"agreement must be a number; got {agreement!r}")
        if not 0 < agreement <= 1:
            raise ValueError(f"agreement must be above 0 and at most 1; got {agreement!r}")
        base.whole_number("max_terms", max_terms)
        base.whole_number("max_length", max_length)
        scores = self.concept_scores(bags).scores
        return find_rule(
            scores, self.predict(bags) == 1, float(agreement), max_terms=int(max_terms), max_length=int(max_length)
        )

    def _largest(self, bags: Bags) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Largest concept logits of each bag, in descending order, and their rows; as `segment_largest`."""
        instances = self._prepare(bags)
        network = self._network()
        with loop.evaluating(network):
            blocks = torch.split(instances, base.BLOCK)
            logits = torch.cat([network.concept_logits(block.to(network.bias.device)).cpu() for block in blocks])
            largest, rows = segment_largest(logits, torch.tensor(bags.offsets), network.max_count)
        return largest.double().numpy(), rows.numpy()

    def _network(self) -> MonotoneNetwork:
        assert isinstance(self.module_, MonotoneNetwork)
        return self.module_

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("n_concepts", "n_units", "max_count", "n_restarts"):
            base.whole_number(name, getattr(self, name))
