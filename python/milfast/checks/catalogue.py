"""The checks that are there, by name, and bags of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from milfast.checks.recipe import BagRecipe
from milfast.registry import Registry

if TYPE_CHECKING:
    from types import ModuleType

    import numpy as np
    from numpy.typing import ArrayLike

    from milfast.bags import Bags
    from milfast.seeding import RandomState

#: How a check can be spelled: the paper's text read literally, what its authors ran, and a version without side doors.
SPELLINGS = ("paper", "notebook", "strict")

registry = Registry("check", "milfast.checks")


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes
    ----------
    name : str
        Its name.
    summary : str
        What it tests, in one line.
    """

    name: str
    summary: str
    _module: ModuleType

    @property
    def spellings(self) -> tuple[str, ...]:
        """How it can be spelled."""
        return tuple(self._module.SPELLINGS)

    def recipe(self, spelling: str = "paper", **options: Any) -> BagRecipe:
        """The check's bags.

        Parameters
        ----------
        spelling : {"paper", "notebook", "strict"}
            The paper's text read literally, what its authors ran, or a version without side doors: one law of the bag
            size for all bags, exact balance, and an oracle that is never wrong.
        **options
            Overrides of single options; the docstring of `build` in the check's file lists them.

        Returns
        -------
        BagRecipe

        Raises
        ------
        ValueError
            When the spelling or an option is unknown.

        Examples
        --------
        >>> from milfast.checks import get
        >>> get("presence").recipe("strict").size
        (8, 16)
        """
        if spelling not in self.spellings:
            raise ValueError(f"recipe must be one of {', '.join(self.spellings)} for {self.name}; got {spelling!r}")
        try:
            recipe: BagRecipe = self._module.build(**{**self._module.SPELLINGS[spelling], **options})
        except TypeError:
            known = list(self._module.build.__kwdefaults__)
            unknown = [k for k in options if k not in known]
            if not unknown:
                raise
            raise ValueError(f"{self.name} has no option {unknown[0]!r}; its options are {', '.join(known)}") from None
        return recipe


def names() -> list[str]:
    """Names of all checks.

    Returns
    -------
    list of str

    Examples
    --------
    >>> import milfast as mf
    >>> "presence" in mf.checks.names()
    True
    """
    return registry.names()


def get(name: str) -> Check:
    """The check of that name.

    Parameters
    ----------
    name : str

    Returns
    -------
    Check

    Raises
    ------
    ValueError
        When there is no such check; the message lists the known ones.
    """
    entry = registry[name]
    return Check(entry.name, entry.summary, entry.load())


def sample_bags(
    check: str | BagRecipe,
    n_bags: int,
    *,
    training: bool = True,
    recipe: str = "paper",
    random_state: RandomState = None,
    dtype: str | type[np.floating[Any]] | np.dtype[Any] = "float32",
    positive_fraction: float = 0.5,
    pad_to: int | None = None,
    direction: ArrayLike | int | None = None,
    **options: Any,
) -> Bags:
    """Draw synthetic bags of a check, or of a recipe of your own.

    Parameters
    ----------
    check : str or BagRecipe
        Name of a check, or a recipe.
    n_bags : int
        Number of bags.
    training : bool
        True for the training distribution, False for the shifted one.
    recipe : {"paper", "notebook", "strict"}
        How the check is spelled; see `Check.recipe`.
    random_state : int, Generator, SeedSequence or None
        The same integer gives the same bits for any number of threads and any processor.
    dtype : {"float32", "float64"}
        The float32 sample is the float64 sample rounded.
    positive_fraction : float
        Share of positive bags, met to the nearest bag.
    pad_to : int, optional
        Fill every bag with background up to this size.
    direction : int or array_like, optional
        Direction in which the components lie, or the seed of a random one; (1, ..., 1) by default.
    **options
        Options of the check, such as ``n_features``; see `Check.recipe`.

    Returns
    -------
    Bags
        With labels and instance kinds.

    Raises
    ------
    ValueError
        When a name, an option or a number is out of range.

    Examples
    --------
    >>> import milfast as mf
    >>> mf.sample_bags("presence", 100, random_state=0)
    Bags(n_bags=100, n_instances=782, n_features=16, dtype=float32, positive=50, sizes=2..14)
    """
    if isinstance(check, BagRecipe):
        if options:
            raise ValueError(f"a BagRecipe takes no options, but {', '.join(options)} was given")
        chosen = check
    else:
        chosen = get(check).recipe(recipe, **options)
    if direction is not None:
        chosen = chosen.along(direction)
    return chosen.sample(
        n_bags,
        training=training,
        positive_fraction=positive_fraction,
        pad_to=pad_to,
        random_state=random_state,
        dtype=dtype,
    )
