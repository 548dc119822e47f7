"""What a model is fitted to and tried on: labelled bags of a training and of a shifted distribution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from milfast import _core

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from milfast.bags import Bags
    from milfast.seeding import RandomState


class Task(ABC):
    """Synthetic bags with a true rule.

    Attributes
    ----------
    n_features : int
        Number of features of its instances.
    """

    n_features: int

    @abstractmethod
    def along(self, direction: ArrayLike | int) -> Self:
        """The same task along another direction of the features.

        Parameters
        ----------
        direction : int or array_like, shape (n_features,)
            A vector, or the seed of a random direction.

        Returns
        -------
        Self
        """

    @abstractmethod
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
        training : bool
            True for the training distribution, False for the shifted one.
        positive_fraction : float
            Share of positive bags, met to the nearest bag.
        pad_to : int, optional
            Size that every bag has at least.
        random_state : int, Generator, SeedSequence or None
        dtype : {"float32", "float64"}

        Returns
        -------
        Bags
            With labels and kinds.
        """

    @abstractmethod
    def oracle(self, bags: Bags) -> NDArray[np.float64]:
        """Score of a bag by the true rule.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        ndarray of float64, shape (n_bags,)
        """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything that determines the bags, as plain values.

        Returns
        -------
        dict
        """

    @classmethod
    @abstractmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The task that `to_dict` described.

        Parameters
        ----------
        values : dict

        Returns
        -------
        Self
        """

    def oracle_auc(self, bags: Bags) -> float:
        """AUC of `oracle` on labelled bags.

        Parameters
        ----------
        bags : Bags

        Returns
        -------
        float

        Raises
        ------
        ValueError
            When the bags carry no labels.
        """
        if bags.labels is None:
            raise ValueError("bags carry no labels")
        return _core.auc(self.oracle(bags), bags.labels)

    def ceilings(self, bags: Bags) -> dict[str, float]:
        """AUC of rules, other than `oracle` on shifted bags, that say what can be reached; none unless a task has some.

        Parameters
        ----------
        bags : Bags
            Labelled bags of the training distribution.

        Returns
        -------
        dict of str to float
        """
        return {}

    def strata(self, bags: Bags) -> dict[str, NDArray[np.bool_]]:
        """Sorts of negative bags; none where they are all alike.

        Parameters
        ----------
        bags : Bags
            Sampled from this task.

        Returns
        -------
        dict of str to ndarray of bool, shape (n_bags,)
        """
        return {}
