"""Bags described by what they are made of: the language in which checks are written."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from milfast import _core
from milfast.bags import Bags
from milfast.checks.arguments import MOST, is_integer, require_unit_vector, sampling_dtype, unit_vector
from milfast.checks.task import Task
from milfast.seeding import seed_value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.seeding import RandomState

Range: TypeAlias = tuple[int, int]
Choice: TypeAlias = Literal["each", "bag", "balanced", "instance"]
Split: TypeAlias = Literal["both", "train", "test"]
Order: TypeAlias = Literal["shuffled", "negatives-first"]


#: Means and variances may be as large as this, so that no feature overflows in float32.
LARGEST = 1e30


@dataclass(frozen=True)
class Component:
    """Instances of one kind: N(mean, variance I).

    Parameters
    ----------
    name : str
        Name of the kind.
    mean : float or tuple of float
        A number is a multiple of the recipe's direction, (1, ..., 1) by default; a tuple is the mean itself, one entry
        a feature.
    variance : float
        Variance of each feature.
    concept : str, optional
        The concept whose presence such an instance shows. None for instances that mean nothing (the null class).
    at_least : int
        Number of instances of the concept that a positive bag needs, the same for all components that show it.
    """

    name: str
    mean: float | tuple[float, ...] = 0.0
    variance: float = 1.0
    concept: str | None = None
    at_least: int = 1

    def __post_init__(self) -> None:
        if not is_integer(self.at_least) or not 1 <= self.at_least <= MOST:
            raise ValueError(
                f"at_least of component {self.name!r} must be a positive integer up to 2**31; got {self.at_least!r}"
            )
        object.__setattr__(self, "at_least", int(self.at_least))
        if self.at_least > 1 and self.concept is None:
            raise ValueError(
                f"component {self.name!r} shows no concept of which there could be at_least {self.at_least}"
            )
        if not 1 / LARGEST <= self.variance <= LARGEST:
            raise ValueError(
                f"variance of component {self.name!r} must be positive, {1 / LARGEST:g} to {LARGEST:g}; "
                f"got {self.variance}"
            )
        if not (np.abs(self.mean) <= LARGEST).all():
            raise ValueError(
                f"mean of component {self.name!r} must be finite, at most {LARGEST:g} in size; got {self.mean}"
            )
        if np.ndim(self.mean) == 1:
            object.__setattr__(self, "mean", tuple(np.asarray(self.mean, dtype=np.float64).tolist()))
        elif np.ndim(self.mean) > 1:
            raise ValueError(f"mean of component {self.name!r} must be a number or one number a feature")


@dataclass(frozen=True)
class Draw:
    """Instances that a bag receives.

    Parameters
    ----------
    components : str or sequence of str
        Names of the components to pick from.
    count : int, (low, high) or sequence of (low, high)
        Number of instances: fixed, uniform over low..high (both included), or the sum of several such numbers.
    choice : {"bag", "instance", "balanced", "each"}
        One component for the whole bag; one for each instance; one for the whole bag with exact shares over the bags
        of the class; or `count` instances of every component.
    weights : sequence of float, optional
        Weights of the components; equal by default.
    split : {"both", "train", "test"}
        Where the draw takes place: this is how a shift is written.
    probability : float
        Chance that the draw takes place in a bag.
    """

    components: str | Sequence[str]
    count: int | Range | Sequence[Range] = 1
    choice: Choice = "bag"
    weights: Sequence[float] | None = None
    split: Split = "both"
    probability: float = 1.0

    def __post_init__(self) -> None:
        if self.choice not in ("each", "bag", "balanced", "instance"):
            raise ValueError(f"choice must be each, bag, balanced or instance; got {self.choice!r}")
        if self.split not in ("both", "train", "test"):
            raise ValueError(f"split must be both, train or test; got {self.split!r}")
        if not 0 <= self.probability <= 1:
            raise ValueError(f"probability must lie in [0, 1]; got {self.probability}")
        if not self.names:
            raise ValueError("components must name at least one component")
        for low, high in self.ranges:
            if not 0 <= low <= high <= MOST:
                raise ValueError(
                    f"count must be a range low..high of non-negative integers up to 2**31; got ({low}, {high})"
                )
        if self.weights is not None:
            if len(self.weights) != len(self.names):
                raise ValueError(
                    f"weights must have one entry for each of {len(self.names)} components; got {self.weights}"
                )
            if not (np.isfinite(self.weights).all() and min(self.weights) >= 0 and max(self.weights) > 0):
                raise ValueError(f"weights must not be negative, and not all zero; got {self.weights}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the components."""
        return (self.components,) if isinstance(self.components, str) else tuple(self.components)

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Count ranges whose uniform numbers are added up."""
        count: Any = self.count
        try:
            if np.ndim(count) == 0:
                count = (count, count)
            if np.ndim(count) == 1:
                count = (count,)
            return tuple((index(low), index(high)) for low, high in count)
        except (TypeError, ValueError):
            raise ValueError(
                f"count must be an integer, a pair (low, high) of integers, or several such pairs; got {self.count!r}"
            ) from None


@dataclass(frozen=True)
class BagRecipe(Task):
    """What negative and positive bags are made of, in training and in testing.

    A bag is positive if and only if every concept is present in it, or present often enough where components say
    `at_least`. What differs between training and testing must not touch that rule: then a model that has learned the
    rule scores alike on both.

    Parameters
    ----------
    name : str
        Name of the recipe.
    components : tuple of Component
        All kinds of instances. Their position is the code in `Bags.kinds`.
    negative, positive : tuple of Draw
        What a bag of the class receives.
    filler : str
        Component that fills a bag up to `size` and `pad_to`.
    size : (low, high), optional
        Bags are filled up to a size uniform over low..high.
    order : {"shuffled", "negatives-first"}
        Order of the bags of a sample.
    n_features : int
        Number of features.
    direction : tuple of float, optional
        Unit vector along which scalar means lie; (1, ..., 1) / sqrt(n_features) by default.

    Raises
    ------
    ValueError
        When a name is unknown or used twice, or a number is out of range.

    Examples
    --------
    Positive bags hold a "signal"; training negatives are given away by a "tag" that moves to the positives in testing:

    >>> import milfast as mf
    >>> from milfast.checks import BagRecipe, Component, Draw
    >>> mine = BagRecipe(
    ...     name="tagged",
    ...     components=(Component("background"), Component("signal", 3.0, concept="signal"), Component("tag", -9.0)),
    ...     negative=(Draw("tag", split="train"), Draw("background", (3, 8))),
    ...     positive=(Draw("tag", split="test"), Draw("signal", (1, 2)), Draw("background", (3, 8))),
    ... )
    >>> bags = mf.sample_bags(mine, 1000, training=False, random_state=0)
    >>> bags.labels.mean(), mine.oracle_auc(bags)
    (np.float64(0.5), 1.0)
    """

    name: str
    components: tuple[Component, ...]
    negative: tuple[Draw, ...]
    positive: tuple[Draw, ...]
    filler: str = "background"
    size: Range | None = None
    order: Order = "shuffled"
    n_features: int = 16
    direction: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        names = [component.name for component in self.components]
        if len(names) > 32767:
            raise ValueError(f"recipe {self.name!r} has {len(names)} components: at most 32767 kinds can be told apart")
        if len(set(names)) < len(names):
            raise ValueError(f"components of recipe {self.name!r} share a name: {', '.join(names)}")
        for role in ("negative", "positive"):
            for i, draw in enumerate(getattr(self, role)):
                for component in draw.names:
                    if component not in names:
                        raise ValueError(f"{role}[{i}] draws {component!r}; components are {', '.join(names)}")
        if self.filler not in names:
            raise ValueError(f"filler {self.filler!r} is not among the components {', '.join(names)}")
        if not self.concepts:
            raise ValueError(f"recipe {self.name!r} has no component with a concept, so no bag could be positive")
        for concept in self.concepts:
            asked = sorted({c.at_least for c in self.components if c.concept == concept})
            if len(asked) > 1:
                raise ValueError(
                    f"components of recipe {self.name!r} that show {concept!r} disagree about at_least: "
                    f"{' and '.join(map(str, asked))}"
                )
        if self.order not in ("shuffled", "negatives-first"):
            raise ValueError(f"order must be shuffled or negatives-first; got {self.order!r}")
        if self.size is not None and not (
            len(self.size) == 2 and all(is_integer(v) for v in self.size) and 1 <= self.size[0] <= self.size[1] <= MOST
        ):
            raise ValueError(f"size must be a range low..high of positive integers; got {self.size}")
        if not is_integer(self.n_features) or self.n_features < 1:
            raise ValueError(f"n_features must be a positive integer; got {self.n_features!r}")
        for component in self.components:
            if isinstance(component.mean, tuple) and len(component.mean) != self.n_features:
                raise ValueError(
                    f"mean of component {component.name!r} has {len(component.mean)} entries "
                    f"for {self.n_features} features"
                )
        require_unit_vector(self.direction, self.n_features)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Name of each code in `Bags.kinds`."""
        return tuple(component.name for component in self.components)

    @property
    def concepts(self) -> tuple[str, ...]:
        """Concepts that must all be present in a positive bag."""
        return tuple(self.at_least)

    @property
    def at_least(self) -> dict[str, int]:
        """Number of instances of each concept that a positive bag needs."""
        return {c.concept: c.at_least for c in self.components if c.concept is not None}

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Mean of each component, shape (n_components, n_features)."""
        ones = np.ones(self.n_features)
        axis = ones if self.direction is None else np.sqrt(self.n_features) * np.asarray(self.direction)
        return np.stack(
            [
                np.broadcast_to(np.asarray(c.mean) * (ones if isinstance(c.mean, tuple) else axis), axis.shape)
                for c in self.components
            ]
        )

    def along(self, direction: ArrayLike | int) -> BagRecipe:
        """The same recipe with its scalar means along another direction.

        Parameters
        ----------
        direction : int or array_like, shape (n_features,)
            A vector, or the seed of a random direction.

        Returns
        -------
        BagRecipe

        Raises
        ------
        ValueError
            When the vector has the wrong length or is zero.
        """
        return dataclasses.replace(self, direction=unit_vector(direction, self.n_features))

    def sample(
        self,
        n_bags: int,
        *,
        training: bool = True,
        positive_fraction: float = 0.5,
        pad_to: int | None = None,
        random_state: RandomState = None,
        dtype: str | type[np.floating[Any]] | np.dtype[Any] = "float32",
    ) -> Bags:
        """Draw bags.

        Parameters
        ----------
        n_bags : int
            Number of bags.
        training : bool
            True for the training distribution, False for the shifted one.
        positive_fraction : float
            Share of positive bags, met to the nearest bag.
        pad_to : int, optional
            Fill every bag with the filler up to this size.
        random_state : int, Generator, SeedSequence or None
            The same integer gives the same bits for any number of threads.
        dtype : {"float32", "float64"}
            The float32 sample is the float64 sample rounded.

        Returns
        -------
        Bags
            With labels and kinds.

        Raises
        ------
        ValueError
            When a number is out of range, a bag would be empty, or the recipe gives a bag the wrong label.
        """
        precision = sampling_dtype(n_bags, positive_fraction, pad_to, dtype)
        n_positive = int(np.floor(n_bags * positive_fraction + 0.5))
        split = "train" if training else "test"
        concepts = self.concepts
        counted = max(self.at_least.values()) > 1
        instances, offsets, labels, kinds = _core.sample_bags(
            name=self.name,
            means=self.means,
            deviations=[float(np.sqrt(c.variance)) for c in self.components],
            # the sampler checks labels by presence; where counts matter they are checked below
            concepts=[None if counted or c.concept is None else concepts.index(c.concept) for c in self.components],
            negative=[self._tuple(d) for d in self.negative if d.split in ("both", split)],
            positive=[self._tuple(d) for d in self.positive if d.split in ("both", split)],
            filler=self.kinds.index(self.filler),
            size=self.size,
            pad_to=pad_to or 0,
            n_negative=int(n_bags) - n_positive,
            n_positive=n_positive,
            shuffled=self.order == "shuffled",
            seed=seed_value(random_state),
            single=precision == np.float32,
        )
        bags = Bags._trusted(instances, offsets, labels, kinds)
        if counted and len(wrong := np.flatnonzero(self.holds(bags) != (labels == 1))):
            role, holds = ("positive", "lacks a") if labels[wrong[0]] else ("negative", "holds every")
            raise ValueError(
                f"recipe {self.name!r} contradicts itself: its {role} bag {wrong[0]} {holds} concept, but a bag is "
                f"positive if and only if every concept is present often enough: {self.at_least}"
            )
        return bags

    def _tuple(self, draw: Draw) -> tuple[Sequence[Range], list[int], list[float], str, float]:
        largest = 1.0 if draw.weights is None else max(draw.weights)  # weights may be as large or small as floats get
        weights = [float(w / largest) for w in draw.weights or [1.0] * len(draw.names)]
        return draw.ranges, [self.kinds.index(n) for n in draw.names], weights, draw.choice, float(draw.probability)

    def holds(self, bags: Bags) -> NDArray[np.bool_]:
        """Whether every concept is present (often enough) in a bag, according to the kinds of its instances.

        Parameters
        ----------
        bags : Bags
            Sampled from this recipe.

        Returns
        -------
        ndarray of bool, shape (n_bags,)

        Raises
        ------
        ValueError
            When the bags do not know their kinds.
        """
        if bags.kinds is None:
            raise ValueError("bags carry no kinds: only bags sampled from a recipe do")
        present: NDArray[np.bool_] = np.logical_and.reduce(self._shown(bags) == list(self.at_least.values()), axis=1)
        return present

    def _shown(self, bags: Bags) -> NDArray[np.int64]:
        """How often a bag holds each concept, counted as far as it matters, shape (n_bags, n_concepts)."""
        shown = np.empty((len(bags), len(self.concepts)), dtype=np.int64)
        for column, (concept, least) in enumerate(self.at_least.items()):
            shows = np.array([c.concept == concept for c in self.components])[bags.kinds]
            if least == 1:
                shown[:, column] = np.logical_or.reduceat(shows, bags.offsets[:-1])
            else:
                shown[:, column] = np.add.reduceat(shows, bags.offsets[:-1], dtype=np.int64).clip(max=least)
        return shown

    def strata(self, bags: Bags) -> dict[str, NDArray[np.bool_]]:
        """Negative bags by the concepts that they hold, enough of them or too few, where they differ in that.

        Parameters
        ----------
        bags : Bags
            Sampled from this recipe.

        Returns
        -------
        dict of str to ndarray of bool, shape (n_bags,)
            Which bags; empty when all negative bags hold the same concepts.

        Examples
        --------
        >>> from milfast.checks import get
        >>> recipe = get("false-frequency").recipe("strict")
        >>> {name: int(bags.sum()) for name, bags in recipe.strata(recipe.sample(100, random_state=0)).items()}
        {'low': 25, 'high': 25}
        """
        if bags.kinds is None or bags.labels is None:
            raise ValueError("bags carry no kinds or no labels: only bags sampled from a recipe carry both")
        shown = self._shown(bags)
        negative = bags.labels == 0
        groups = np.unique(shown[negative], axis=0)[::-1]
        if len(groups) < 2:
            return {}
        names = [self._sort(group, str) for group in groups]
        if "" in names or len(set(names)) < len(names):  # concepts of odd names
            names = [self._sort(group, repr) for group in groups]
        return {
            name: np.logical_and(negative, (shown == group).all(axis=1))
            for name, group in zip(names, groups, strict=True)
        }

    def _sort(self, group: NDArray[np.int64], name: Callable[[str], str]) -> str:
        """What a sort of bags is called that holds each concept that often."""
        held = [
            name(concept) if count == least else f"too few {name(concept)}"
            for (concept, least), count in zip(self.at_least.items(), group, strict=True)
            if count
        ]
        return " and ".join(held) if held else "no concept"

    def oracle(self, bags: Bags) -> NDArray[np.float64]:
        """Score of a bag by the true rule: what a model could reach at best.

        The evidence of an instance for a concept is the logarithm of its likelihood ratio, kinds of the concept against
        all other kinds of the recipe; a bag has the largest evidence of its instances (the t-th largest where at least
        t of them are needed), and the smallest over concepts. It knows the law of every kind, but sees the features
        only.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of float64, shape (n_bags,)
        """
        density = np.empty((len(self.components), bags.n_instances))
        for row, mean, component in zip(density, self.means, self.components, strict=True):
            difference = bags.instances - mean
            distance = np.einsum("ij,ij->i", difference, difference)
            row[:] = -0.5 * (distance / component.variance + self.n_features * np.log(component.variance))
        worst = np.full(len(bags), np.inf)
        for concept, least in self.at_least.items():
            shows = np.array([c.concept == concept for c in self.components])
            evidence = np.logaddexp.reduce(density[shows]) - np.logaddexp.reduce(density[~shows])
            largest = (
                np.maximum.reduceat(evidence, bags.offsets[:-1]) if least == 1 else _largest(evidence, bags, least)
            )
            worst = np.minimum(worst, largest)
        return worst

    def to_dict(self) -> dict[str, Any]:
        """Everything the recipe says, as plain values.

        Returns
        -------
        dict
            Without `at_least` where presence is enough, so that studies know recipes again that were written before
            there were counts.
        """
        values = dataclasses.asdict(self)
        for component in values["components"]:
            if component["at_least"] == 1:
                del component["at_least"]
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> BagRecipe:
        """The recipe that `to_dict` described, also after a way through JSON.

        Parameters
        ----------
        values : dict

        Returns
        -------
        BagRecipe

        Examples
        --------
        >>> import json, milfast as mf
        >>> recipe = mf.checks.get("presence").recipe("strict")
        >>> again = mf.checks.BagRecipe.from_dict(json.loads(json.dumps(recipe.to_dict())))
        >>> again.to_dict() == recipe.to_dict()
        True
        """
        parts = {
            "components": tuple(Component(**{k: _tuples(v) for k, v in c.items()}) for c in values["components"]),
            **{
                role: tuple(Draw(**{k: _tuples(v) for k, v in draw.items()}) for draw in values[role])
                for role in ("negative", "positive")
            },
        }
        return cls(**{**{k: _tuples(v) for k, v in values.items()}, **parts})


def _largest(values: NDArray[np.float64], bags: Bags, rank: int) -> NDArray[np.float64]:
    """The value of that rank in each bag, 1 for the largest; -inf for bags of fewer instances."""
    descending = np.lexsort((-values, bags.bag_index))
    found = np.full(len(bags), -np.inf)
    enough = bags.sizes >= rank
    found[enough] = values[descending[bags.offsets[:-1][enough] + rank - 1]]
    return found


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, (list, tuple)) else value
