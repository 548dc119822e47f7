"""The checks that are there, by name, and bags of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from milfast.checks.arguments import one_of
from milfast.checks.codes import OWN_RECIPE
from milfast.checks.recipe import BagRecipe
from milfast.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from milfast.bags import Bags
    from milfast.checks.fitted import Fitted
    from milfast.checks.task import Task
    from milfast.seeding import RandomState

#: How a check can be spelled: the paper's text read literally, what its authors ran, and a version without side doors.
SPELLINGS = ("paper", "notebook", "strict")

#: Groups of checks that can be asked for by one name, beside "all".
GROUPS = ("paper", "laws")

#: What a model that claims one assumption can be held to. One that claims nothing is held to both assumptions for sets.
CLAIMED: dict[str | None, tuple[str, ...]] = {
    "standard": ("standard",),
    "threshold": ("standard", "threshold"),
    "correlated": ("correlated",),
    None: ("standard", "threshold"),
}

registry = Registry("check", "milfast.checks")


@dataclass(frozen=True)
class About:
    """What the statistics of a verdict have to know about a check.

    Attributes
    ----------
    code : str
        Code of the check.
    assumption : {"standard", "threshold", "correlated"}
        What it tests.
    learned : str
        What a model learned instead that fails.
    bar : float
        AUC on the shifted bags that parts a pass from a fail.
    swapped : bool
        Whether the shifted bags are scored by a second model that was fitted to swapped labels.
    """

    code: str = OWN_RECIPE
    assumption: str = "standard"
    learned: str = "something that the MIL assumption rules out"
    bar: float = 0.5
    swapped: bool = False


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes
    ----------
    name : str
        Its name.
    summary : str
        What it tests, in one line.
    code : str
        Its code, under which docs/checks.md describes it.
    """

    name: str
    summary: str
    code: str
    _module: ModuleType

    @property
    def is_law(self) -> bool:
        """Whether it tries a law on a model that was fitted for another check, instead of shifting bags."""
        return hasattr(self._module, "broken")

    @property
    def task(self) -> str:
        """The check whose bags the model is fitted to: the check itself, unless it is a law."""
        return str(getattr(self._module, "TASK", self.name))

    @property
    def spellings(self) -> tuple[str, ...]:
        """How it can be spelled."""
        return get(self.task).spellings if self.is_law else tuple(self._module.SPELLINGS)

    def spelled(self, asked: Sequence[str]) -> list[str]:
        """Which of the spellings asked for there are; a check that has one only is not asked twice.

        Parameters
        ----------
        asked : sequence of str
            Spellings, or "all".

        Returns
        -------
        list of str

        Raises
        ------
        ValueError
            When a spelling is unknown.
        """
        for spelling in asked:
            if spelling != "all":
                one_of("recipe", spelling, SPELLINGS)
        if len(self.spellings) == 1 or "all" in asked:
            return list(self.spellings)
        return list(dict.fromkeys(asked))

    @property
    def about(self) -> About:
        """What the statistics of a verdict have to know."""
        module = self._module
        return About(
            self.code,
            module.ASSUMPTION,
            module.LEARNED,
            getattr(module, "BAR", About.bar),
            getattr(module, "SWAPPED", About.swapped),
        )

    def broken(self, fitted: Fitted) -> dict[str, NDArray[np.bool_]]:
        """Try the law on a fitted model.

        Parameters
        ----------
        fitted : Fitted

        Returns
        -------
        dict of str to ndarray of bool
            For each sort of bags, which of them break the law.
        """
        flags: dict[str, NDArray[np.bool_]] = self._module.broken(fitted)
        return flags

    def recipe(self, spelling: str | None = None, **options: Any) -> Task:
        """The check's bags; for a law those of the check whose model it is tried on.

        Parameters
        ----------
        spelling : {"paper", "notebook", "strict"}, optional
            The paper's text read literally (the default where there is such a text), what its authors ran, or a version
            without side doors: one law of the bag size for all bags, exact balance, and an oracle that is never wrong.
        **options
            Overrides of single options; the docstring of `build` in the check's file lists them.

        Returns
        -------
        Task
            A `BagRecipe`, except for the check ``correlated``.

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
        if self.is_law:
            return get(self.task).recipe(spelling, **options)
        if spelling is None:
            spelling = self.spellings[0]
        if spelling not in self.spellings:
            raise ValueError(f"recipe must be one of {', '.join(self.spellings)} for {self.name}; got {spelling!r}")
        try:
            recipe: Task = self._module.build(**{**self._module.SPELLINGS[spelling], **options})
        except TypeError:
            known = list(self._module.build.__kwdefaults__)
            unknown = [k for k in options if k not in known]
            if not unknown:
                raise
            raise ValueError(f"{self.name} has no option {unknown[0]!r}; its options are {', '.join(known)}") from None
        return recipe


def names(group: str | None = None) -> list[str]:
    """Names of all checks, or those of a group.

    Parameters
    ----------
    group : {"paper", "laws"}, optional
        The three of Raff & Holt (2023), or those that try a law on a model which was fitted for another check.

    Returns
    -------
    list of str
        In the order of their codes.

    Raises
    ------
    ValueError
        When there is no such group.

    Examples
    --------
    >>> import milfast as mf
    >>> mf.checks.names("paper")
    ['presence', 'threshold-poison', 'false-frequency']
    """
    if group is None:
        return registry.names()
    one_of("group", group, GROUPS)
    members = map(get, registry.names())
    # what its authors ran makes a check one of the paper's; a check of one's own may have several spellings too
    return [c.name for c in members if (c.is_law if group == "laws" else not c.is_law and "notebook" in c.spellings)]


def expand(asked: Sequence[Any]) -> list[Any]:
    """Names of checks with groups written out; what is no name of a group is passed on.

    Parameters
    ----------
    asked : sequence
        Names, codes, groups, "all", and recipes.

    Returns
    -------
    list
        Every name once.
    """
    checks: list[Any] = []
    for check in asked:
        if isinstance(check, str):
            check = registry.named(check)
        group = isinstance(check, str) and check in ("all", *GROUPS)
        members = names(None if check == "all" else check) if group else [check]
        checks += [member for member in members if not (isinstance(member, str) and member in checks)]
    return checks


def about(name: str, spelling: str) -> About:
    """What the statistics of a verdict have to know about a check or a recipe of one's own.

    Parameters
    ----------
    name : str
    spelling : str
        "own" for recipes that are no check's.

    Returns
    -------
    About
    """
    return About() if spelling == "own" else get(name).about


def get(name: str) -> Check:
    """The check of that name.

    Parameters
    ----------
    name : str
        Its name or its code.

    Returns
    -------
    Check

    Raises
    ------
    ValueError
        When there is no such check; the message lists the known ones.
    """
    entry = registry[registry.named(name)]
    return Check(entry.name, entry.summary, entry.code, entry.load())


def sample_bags(
    check: str | BagRecipe,
    n_bags: int,
    *,
    training: bool = True,
    recipe: str | None = None,
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
    recipe : {"paper", "notebook", "strict"}, optional
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
    chosen: Task
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
