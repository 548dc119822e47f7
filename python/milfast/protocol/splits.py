"""Which bags train, choose and test in each fold of a protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from milfast.seeding import seed_sequence, seed_value

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Branches of the root seed, so that no two draws share a stream.
PERMUTATION, FOLDS, INNER = 0, 1, 2


@dataclass(frozen=True)
class Split:
    """Numbers of the bags of one fold.

    Attributes
    ----------
    train, validation, test : ndarray of int64
        `validation` is empty where nothing is chosen.
    """

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]


def held_out(
    labels: NDArray[np.int64], *, seed: int, number: int, folds: int, stratified: bool, share: float = 0.9
) -> list[Split]:
    """One test set for all folds, and folds of the rest to choose by: the protocol of Zhu et al. (2023).

    Bags are permuted; the first ``int(share * n)`` are for training and the others for testing. The former are cut into
    `folds` parts in their new order, the first ones a bag longer where they cannot be equal, and each part chooses what
    the others have trained.

    Parameters
    ----------
    labels : ndarray of int64, shape (n_bags,)
        0 or 1.
    seed : int
        Root seed.
    number : int
        Which of the protocol's seeds, from 0.
    folds : int
    stratified : bool
        Draw the test set and deal the folds class by class, which the authors' code does not.
    share : float
        Of the bags that are not for testing.

    Returns
    -------
    list of Split

    Raises
    ------
    ValueError
        When a test set, a fold or what trains lacks a class, or classes are too small to be shared out.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.protocol.splits import held_out
    >>> splits = held_out(np.arange(30) % 2, seed=0, number=0, folds=5, stratified=True)
    >>> [(len(s.train), len(s.validation), len(s.test)) for s in splits]
    [(21, 6, 3), (21, 6, 3), (22, 5, 3), (22, 5, 3), (22, 5, 3)]
    """
    n = len(labels)
    n_train = int(share * n)
    order = np.random.Generator(np.random.PCG64(seed_sequence(seed, PERMUTATION, number))).permutation(n)
    if stratified:
        from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

        smaller = int(np.bincount(labels, minlength=2).min())
        few = (
            f"the smaller class has {smaller} bags, too few to be in a test set of {n - n_train} bags and in {folds} "
            "folds of the others"
        )
        if n - n_train < 2 or smaller < 2:
            raise ValueError(few)
        draw = seed_value(seed, PERMUTATION, number) % 2**32
        [(rest, test)] = StratifiedShuffleSplit(1, test_size=n - n_train, random_state=draw).split(labels, labels)
        if len(np.unique(labels[test])) < 2 or np.bincount(labels[rest], minlength=2).min() < folds:
            raise ValueError(few)
        dealt = StratifiedKFold(folds, shuffle=True, random_state=seed_value(seed, FOLDS, number) % 2**32)
        parts = [rest[part] for _, part in dealt.split(labels[rest], labels[rest])]
    else:
        rest, test = order[:n_train], order[n_train:]
        parts = np.array_split(rest, folds)
    splits = [
        Split(np.concatenate([part for other, part in enumerate(parts) if other != fold]), parts[fold], test)
        for fold in range(folds)
    ]
    for fold, split in enumerate(splits):
        for part, bags in (
            ("the test set", split.test),
            (f"fold {fold + 1}", split.validation),
            ("training", split.train),
        ):
            if len(np.unique(labels[bags])) < 2:
                raise ValueError(
                    f"{part} of seed {number + 1} has {len(bags)} bags, all of one class: there is no AUC. Draw class "
                    "by class (stratified=True, on the command line --stratified) or take another random state"
                )
    return splits


def dealt(labels: NDArray[np.int64], *, seed: int, number: int, folds: int, inner: int) -> list[list[Split]]:
    """Stratified folds of all bags, each tested once, and inner folds of what trains.

    Parameters
    ----------
    labels : ndarray of int64, shape (n_bags,)
        0 or 1.
    seed : int
        Root seed.
    number : int
        Which repeat, from 0.
    folds : int
    inner : int
        Folds of the training bags to choose by; 0 to choose nothing.

    Returns
    -------
    list of list of Split
        For each fold the inner splits, whose `test` is the fold, and last the split that trains on all that is not
        tested.

    Raises
    ------
    ValueError
        When a class has too few bags.

    Examples
    --------
    >>> import numpy as np
    >>> from milfast.protocol.splits import dealt
    >>> outer = dealt(np.arange(30) % 2, seed=0, number=0, folds=5, inner=3)
    >>> [(len(s.train), len(s.validation), len(s.test)) for s in outer[0]]
    [(16, 8, 6), (16, 8, 6), (16, 8, 6), (24, 0, 6)]
    """
    from sklearn.model_selection import StratifiedKFold

    smallest = int(np.bincount(labels, minlength=2).min())
    least = smallest - -(-smallest // folds)  # of the smaller class, where a fold takes most of it
    if smallest < folds or least < max(inner, 1):
        raise ValueError(
            f"the smaller class has {smallest} bags, too few for {folds} folds"
            + (f" of {inner} inner ones" * bool(inner))
        )
    outer = StratifiedKFold(folds, shuffle=True, random_state=seed_value(seed, FOLDS, number) % 2**32)
    found = []
    for fold, (train, test) in enumerate(outer.split(labels, labels)):
        splits = []
        if inner:
            choosing = StratifiedKFold(inner, shuffle=True, random_state=seed_value(seed, INNER, number, fold) % 2**32)
            splits = [
                Split(train[fitted], train[validated], test)
                for fitted, validated in choosing.split(labels[train], labels[train])
            ]
        found.append([*splits, Split(train, train[:0], test)])
    return found
