"""What predictions were made how: models, seeds, folds and clusters, and the figure of every run."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from milfast._core import auc, binary_labels, placements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

Kind: TypeAlias = Literal["scores", "labels"]


@dataclass(frozen=True)
class Design:
    """Predictions of several models for the same items, and how they came about.

    Attributes
    ----------
    names : tuple of str
        The models.
    kind : {"scores", "labels"}
    values : tuple of ndarray, shape (n_seeds, n) each
        Scores of each model, or whether it is right.
    positive : ndarray of bool, shape (n,), or None
        For scores.
    counts : dict
        How many items each label has.
    folds : ndarray of int, shape (1 or n_seeds, n), or None
        The fold in which each item was tested; one row when all seeds share them.
    seeds : tuple of str
        Names of the training runs of each model.
    clusters : ndarray of int, shape (n,), or None
    two_valued : tuple of str
        Models whose scores have two values.
    """

    names: tuple[str, ...]
    kind: Kind
    values: tuple[NDArray[Any], ...]
    positive: NDArray[np.bool_] | None
    counts: dict[Any, int]
    folds: NDArray[np.intp] | None
    seeds: tuple[str, ...]
    clusters: NDArray[np.intp] | None
    two_valued: tuple[str, ...]

    @property
    def measure(self) -> str:
        """What is compared."""
        return "AUC" if self.kind == "scores" else "accuracy"

    @property
    def n(self) -> int:
        """Items."""
        return int(self.values[0].shape[1])

    @property
    def n_seeds(self) -> int:
        """Training runs of each model on each split."""
        return len(self.seeds)

    @property
    def n_folds(self) -> int:
        """Folds of a repeat; 1 when there are none."""
        return 1 if self.folds is None else int(self.folds.max()) + 1

    @property
    def n_clusters(self) -> int | None:
        """Clusters."""
        return None if self.clusters is None else int(self.clusters.max()) + 1

    @property
    def shared_folds(self) -> bool | None:
        """Whether several seeds were tried on the same folds; None without folds or with one seed."""
        return None if self.folds is None or self.n_seeds == 1 else len(self.folds) == 1

    def inside(self, seed: int, fold: int) -> NDArray[np.bool_]:
        """Which items a run was tested on.

        Parameters
        ----------
        seed, fold : int

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        if self.folds is None:
            return np.ones(self.n, dtype=bool)
        found: NDArray[np.bool_] = self.folds[seed if len(self.folds) > 1 else 0] == fold
        return found

    @cached_property
    def runs(self) -> NDArray[np.float64]:
        """The figure of every run, shape (n_models, n_seeds, n_folds); NaN where a class is missing."""
        found = np.full((len(self.names), self.n_seeds, self.n_folds), math.nan)
        for s in range(self.n_seeds):
            for f in range(self.n_folds):
                inside = self.inside(s, f)
                for m, values in enumerate(self.values):
                    if self.positive is None:
                        found[m, s, f] = values[s, inside].mean()
                    else:
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")  # a fold without a class is counted, and said once
                            found[m, s, f] = auc(values[s, inside], self.positive[inside])
        return found

    @cached_property
    def defined(self) -> NDArray[np.bool_]:
        """Runs that have a figure, shape (n_seeds, n_folds); the labels decide, so it is the same for all models."""
        return np.asarray(np.isfinite(self.runs).all(axis=0))

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Mean figure of each model over its runs."""
        if not self.defined.any():
            return np.full(len(self.names), math.nan)
        return np.asarray(self.runs[:, self.defined].mean(axis=1), dtype=np.float64)

    @cached_property
    def influence(self) -> NDArray[np.float64]:
        """What each item adds to the figure of each seed, shape (n_models, n_seeds, n).

        Sums of products over the items are the covariances of the figures, DeLong's for an AUC. For a mean over folds
        each fold adds its part.
        """
        found = np.zeros((len(self.names), self.n_seeds, self.n))
        for s in range(self.n_seeds):
            folds = np.flatnonzero(self.defined[s])
            for f in folds:
                inside = self.inside(s, int(f))
                for m, values in enumerate(self.values):
                    part = self._influence(values[s, inside], None if self.positive is None else self.positive[inside])
                    found[m, s, inside] = part / len(folds)
        return found

    def _influence(self, values: NDArray[Any], positive: NDArray[np.bool_] | None) -> NDArray[np.float64]:
        if positive is None:
            right = values.astype(np.float64)
            return _centred(right)
        of_pos, of_neg = placements(values, positive)
        found = np.empty(len(values))
        found[positive], found[~positive] = _centred(of_pos), _centred(of_neg)
        return found

    def covariance(self) -> NDArray[np.float64]:
        """Covariances of the figures of all runs of all models that the choice of the items causes.

        Returns
        -------
        ndarray of float64, shape (n_models * n_seeds, n_models * n_seeds)
            Model by model. NaN when a class, or the clusters, have fewer than two members.
        """
        parts = self.influence.reshape(-1, self.n)
        if self.clusters is None:
            return parts @ parts.T
        groups = int(self.clusters.max()) + 1
        sums = np.stack([np.bincount(self.clusters, part, groups) for part in parts])
        return np.asarray(sums @ sums.T * (groups / (groups - 1)), dtype=np.float64)


def _centred(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Deviations from the mean, over what makes their squares add up to the variance of the mean."""
    n = len(values)
    if n < 2:
        return np.full(n, math.nan)
    return np.asarray((values - values.mean()) / math.sqrt(n * (n - 1)))


# -------------------------------------------------------------------- reading arguments


def read(
    predictions: Any,
    labels: ArrayLike,
    *,
    kind: str | None,
    folds: Any,
    seeds: Sequence[Any] | None,
    clusters: Any,
    pos_label: Any,
) -> Design:
    """A design from the arguments of `milfast.compare`.

    Parameters
    ----------
    predictions, labels, kind, folds, seeds, clusters, pos_label
        As in `milfast.compare`.

    Returns
    -------
    Design

    Raises
    ------
    ValueError, TypeError
        As `milfast.compare`.
    """
    if not isinstance(predictions, Mapping):
        raise TypeError(
            f"predictions must map the name of each model to its predictions; got {type(predictions).__name__}"
        )
    if not predictions:
        raise ValueError("predictions is empty: give at least one model")
    names = tuple(str(name) for name in predictions)
    if len(set(names)) < len(names):
        raise ValueError(f"predictions must have different names; got {', '.join(names)}")
    truth = _plain_array(labels, "labels")
    if truth.ndim != 1 or len(truth) == 0:
        raise ValueError(f"labels must hold one label an item, shape (n,); got shape {truth.shape}")
    _require_known(truth, "labels")
    n = len(truth)
    arrays = []
    for name, values in zip(names, predictions.values(), strict=True):
        array = _plain_array(values, f"predictions[{name!r}]")
        if array.ndim not in (1, 2) or array.shape[-1] != n:
            more = ""
            if array.ndim == 2 and len(array) == n:
                more = "; for scores of several classes pass the predicted class (argmax), and rows are seeds"
            raise ValueError(
                f"predictions[{name!r}] must have shape ({n},), or (n_seeds, {n}), as there are {n} labels; "
                f"got {array.shape}{more}"
            )
        _require_known(array, f"predictions[{name!r}]")
        arrays.append(np.atleast_2d(array))
    n_seeds = len(arrays[0])
    for name, array in zip(names, arrays, strict=True):
        if len(array) != n_seeds:
            raise ValueError(
                f"predictions[{name!r}] has {len(array)} seeds and predictions[{names[0]!r}] has {n_seeds}: give each "
                "model the same number of training runs"
            )
    used = _kind(kind, arrays, names, truth)
    positive = None
    two_valued: list[str] = []
    if used == "scores":
        positive = binary_labels(labels, pos_label=pos_label)
        for name, array in zip(names, arrays, strict=True):
            if array.dtype.kind not in "biuf":
                raise TypeError(f"predictions[{name!r}] must be numbers for kind='scores'; got dtype {array.dtype}")
            if len(np.unique(array)) == 2:
                two_valued.append(name)
        shown = [scores.astype(np.uint8) if scores.dtype == bool else scores for scores in arrays]
        counts: dict[Any, int] = {"positive": int(positive.sum()), "negative": int((~positive).sum())}
    else:
        shown = []
        known, tally = np.unique(truth, return_counts=True)
        for name, array in zip(names, arrays, strict=True):
            if not np.isin(array, known).any():
                some = f"{array.flat[0].item()!r} and {truth[0].item()!r}"
                raise ValueError(
                    f"predictions[{name!r}] and labels share no value ({some}): both must name classes alike"
                )
            shown.append(array == truth)
        counts = dict(zip(known.tolist(), tally.tolist(), strict=True))
    return Design(
        names=names,
        kind=used,
        values=tuple(shown),
        positive=positive,
        counts=counts,
        folds=None if folds is None else _folds(folds, n, n_seeds),
        seeds=_seeds(seeds, n_seeds),
        clusters=None if clusters is None else _clusters(clusters, n),
        two_valued=tuple(two_valued),
    )


def _plain_array(values: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} cannot be read: {error}") from None
    if array.dtype == object:
        # columns of data frames: plain values in the boxes of Python
        array = np.array(array.ravel().tolist()).reshape(array.shape)
        if array.dtype == object:
            raise TypeError(f"{name} holds values of several kinds, or None: {values!r:.60}")
    return array


def _require_known(array: NDArray[Any], name: str) -> None:
    if array.dtype.kind != "f":
        return
    odd = np.argwhere(np.isnan(array))
    if len(odd):
        place = ", ".join(str(i) for i in odd[0])
        raise ValueError(f"{name}[{place}] is NaN: drop the item for all models or say what it is")


def _kind(kind: str | None, arrays: list[NDArray[Any]], names: tuple[str, ...], truth: NDArray[Any]) -> Kind:
    if kind not in (None, "scores", "labels"):
        raise ValueError(f"kind must be 'scores', 'labels' or None; got {kind!r}")
    known = np.unique(truth)
    if kind is not None:
        return "scores" if kind == "scores" else "labels"
    strange = [(name, array) for name, array in zip(names, arrays, strict=True) if not np.isin(array, known).all()]
    if not strange:
        return "labels"
    if len(known) <= 2 and all(array.dtype.kind in "biuf" for array in arrays):
        return "scores"
    if all(array.dtype.kind in "biuSU" for array in arrays):  # a class may be predicted that no item has
        return "labels"
    name, array = strange[0]
    value = array[~np.isin(array, known)].flat[0].item()
    raise ValueError(
        f"predictions[{name!r}] holds {value!r}, which is no label, and there are {len(known)} classes: pass predicted "
        "classes, or say kind='scores' for two"
    )


def _codes(values: Any, n: int, name: str) -> NDArray[np.intp]:
    array = _plain_array(values, name)
    _require_known(array, name)
    if array.shape != (n,):
        raise ValueError(f"{name} must hold one value an item, shape ({n},); got shape {array.shape}")
    return np.unique(array, return_inverse=True)[1].reshape(n)


def _folds(folds: Any, n: int, n_seeds: int) -> NDArray[np.intp]:
    array = _plain_array(folds, "folds")
    if array.ndim == 2:
        if array.shape != (n_seeds, n):
            raise ValueError(f"folds must have shape ({n},), or ({n_seeds}, {n}) with other splits; got {array.shape}")
        rows = np.stack([_codes(row, n, f"folds[{s}]") for s, row in enumerate(array)])
        if len(set(rows.max(axis=1).tolist())) > 1:
            raise ValueError("folds must be as many for each seed")
        # rows that are all the same are one split
        rows = rows[:1] if (rows == rows[0]).all() else rows
    else:
        rows = _codes(array, n, "folds")[None]
    if rows.max() == 0:
        raise ValueError("folds are all the same: leave them out for one split")
    return rows


def _clusters(clusters: Any, n: int) -> NDArray[np.intp]:
    from milfast.uncertainty.resampling import cluster_codes

    found = cluster_codes(clusters, n)
    assert found is not None
    return found


def _seeds(seeds: Any, n_seeds: int) -> tuple[str, ...]:
    if seeds is None:
        return tuple(str(i + 1) for i in range(n_seeds))
    if isinstance(seeds, str):
        raise TypeError(f"seeds must hold a name for each of {n_seeds} training runs; got the one string {seeds!r}")
    found = tuple(str(seed) for seed in np.atleast_1d(np.asarray(seeds)).tolist())
    if len(found) != n_seeds:
        raise ValueError(
            f"seeds must name the {n_seeds} training runs, the rows of predictions of shape (n_seeds, n); "
            f"got {len(found)}"
        )
    if len(set(found)) < len(found):
        raise ValueError(f"seeds must differ; got {', '.join(found)}")
    return found
