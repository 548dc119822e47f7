"""What came out of a protocol for one model on one data set."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.protocol.intervals import Placed, auc_over_bags, over_seeds
from milfast.protocol.selection import TIES
from milfast.uncertainty import Interval, auc_interval, mean_interval, proportion_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, repr=False)
class ProtocolResult:
    """AUC of one model on one data set by a protocol.

    Attributes
    ----------
    model, data : str
        Names.
    protocol : {"zhu2023", "sound"}
    auc : Interval
        The figure to quote, the mean AUC of all trials. Under ``"zhu2023"`` with Student's t over the seeds, because
        the folds of a seed share one test set; under ``"sound"`` the corrected resampled t of Nadeau & Bengio (2003),
        because folds share training bags.
    over_bags : Interval
        The same mean for these very models, had other bags been drawn to test them; see
        `milfast.protocol.intervals.auc_over_bags`.
    pooled : Interval or None
        Under ``"sound"``: the AUC of all bags together by their scores, which are averages over the repeats, with
        DeLong's interval on the logit scale. Scores of different fits are compared here, which need not be on one
        scale.
    aucs : ndarray of float64, shape (n_seeds, n_folds)
        Test AUC of each trial.
    train_aucs : ndarray of float64, shape (n_seeds, n_folds)
        AUC of the bags that trained, of what was taken.
    validation_aucs : ndarray of float64, shape (n_seeds, n_folds)
        By which it was taken; NaN where nothing was chosen.
    epochs, margins : ndarray of float64, shape (n_seeds, n_folds)
        What was taken, averages where that is several; NaN for models without.
    n_ties : ndarray of int64, shape (n_seeds, n_folds)
        How many candidates reach the best validation AUC; 1 where nothing was chosen.
    tie_gaps : ndarray of float64, shape (n_seeds, n_folds)
        Largest difference between the test AUCs of those.
    n_candidates : int
        Margins times epochs, of which one is taken in each trial.
    ties : str or None
        The rule; None where nothing was chosen.
    selection : str
        How margin and epoch come about.
    seed : int
        `random_state` with which the result comes out again.
    seconds : float
        Time for fitting and scoring.
    """

    model: str
    data: str
    protocol: str
    auc: Interval
    over_bags: Interval
    pooled: Interval | None
    aucs: NDArray[np.float64]
    train_aucs: NDArray[np.float64]
    validation_aucs: NDArray[np.float64]
    epochs: NDArray[np.float64]
    margins: NDArray[np.float64]
    n_ties: NDArray[np.int64]
    tie_gaps: NDArray[np.float64]
    n_candidates: int
    ties: str | None
    selection: str
    seed: int
    seconds: float

    @property
    def seed_aucs(self) -> NDArray[np.float64]:
        """Mean AUC of each seed, shape (n_seeds,)."""
        return np.asarray(self.aucs.mean(axis=1))

    @property
    def sd(self) -> float:
        """Standard deviation over all trials, as papers print it; NaN for one trial."""
        return float(np.std(self.aucs, ddof=1)) if self.aucs.size > 1 else float("nan")

    def summary(self) -> str:
        """What was found, for people.

        Returns
        -------
        str
        """
        shape = f"{self.aucs.shape[0]} seeds x {self.aucs.shape[1]} folds"
        lines = [
            f"{self.model} on {self.data}, {self.protocol}, {shape}: mean AUC {self.auc.summary()}",
            f"as papers print it: {self.auc.estimate:.3f} ± {self.sd:.3f}; means of the seeds: {self._seeds()}",
            f"these models over other bags: {self.over_bags.summary()}",
        ]
        if self.pooled is not None:
            lines.append(f"all bags together: {self.pooled.summary()}")
        if self.ties is not None:
            lines.append(
                f"of {self.n_candidates} candidates a median of {np.median(self.n_ties):g} reach the best validation "
                f"AUC; taken: {TIES[self.ties]}; test AUCs of such candidates differ by up to {self.tie_gaps.max():.3f}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """One flat row of plain values.

        Returns
        -------
        dict
            An undefined number is None.
        """
        row: dict[str, Any] = {"model": self.model, "data": self.data, "protocol": self.protocol}
        for name, interval in (("auc", self.auc), ("bags_auc", self.over_bags), ("pooled_auc", self.pooled)):
            values = {} if interval is None else interval.to_dict()
            row |= {
                name: values.get("estimate"),
                f"{name}_low": values.get("low"),
                f"{name}_high": values.get("high"),
            }
        return row | {
            "level": self.auc.level,
            "method": self.auc.method,
            "trial_sd": _plain(self.sd),
            "seed_aucs": self._seeds(),
            "train_auc": _plain(self.train_aucs.mean()),
            "least_train_auc": _plain(self.train_aucs.min()),
            "ties": self.ties,
            "n_ties": _plain(np.median(self.n_ties)) if self.ties else None,
            "tie_gap": _plain(self.tie_gaps.max()) if self.ties else None,
            "epoch": _plain(np.median(self.epochs)),
            "margin": _plain(np.median(self.margins)),
            "n_candidates": self.n_candidates,
            "selection": self.selection,
            "seeds": self.aucs.shape[0],
            "folds": self.aucs.shape[1],
            "seed": self.seed,
            "seconds": self.seconds,
        }

    def details(self) -> dict[str, Any]:
        """`to_dict` and the figures of every trial.

        Returns
        -------
        dict
        """
        arrays = ("aucs", "train_aucs", "validation_aucs", "epochs", "margins", "n_ties", "tie_gaps")
        return self.to_dict() | {
            f"trial_{name.removesuffix('s')}": [[_plain(v) for v in row] for row in getattr(self, name)]
            for name in arrays
        }

    def _seeds(self) -> str:
        return " / ".join(f"{auc:.3f}" for auc in self.seed_aucs)

    def __repr__(self) -> str:
        return (
            f"ProtocolResult({self.model} on {self.data} by {self.protocol}: AUC {self.auc.estimate:.3f} "
            f"[{self.auc.low:.3f}, {self.auc.high:.3f}], {self.aucs.shape[0]} x {self.aucs.shape[1]} trials)"
        )

    def _repr_html_(self) -> str:
        return (
            f"<b>{html.escape(self.model)}</b> on {html.escape(self.data)} by {self.protocol}: {self.auc._repr_html_()}"
        )


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and np.isnan(value) else value


def combine(pairs: Iterable[tuple[dict[str, Any], dict[str, Any]]], *, ties: str = "first") -> list[ProtocolResult]:
    """Results from specifications and what they gave.

    Parameters
    ----------
    pairs : iterable of (dict, dict)
    ties : {"first", "last", "mean", "final"}
        Every job knows what each rule takes.

    Returns
    -------
    list of ProtocolResult
        In the order in which their first seeds come. A model without all of its seeds is left out.

    Raises
    ------
    ValueError
        When there is no such rule.
    """
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}; got {ties!r}")
    groups: dict[str, tuple[dict[str, Any], dict[int, dict[str, Any]]]] = {}
    for given, gave in pairs:
        key = str(sorted((name, str(value)) for name, value in given.items() if name != "number"))
        groups.setdefault(key, (given, {}))[1][given["number"]] = gave
    return [
        _result(given, [outcomes[number] for number in range(given["seeds"])], ties)
        for given, outcomes in groups.values()
        if len(outcomes) == given["seeds"]
    ]


def _result(given: dict[str, Any], outcomes: Sequence[dict[str, Any]], ties: str) -> ProtocolResult:
    level = given["level"]
    chosen = "only" not in outcomes[0]["trials"]
    trials = [outcome["trials"][ties if chosen else "only"] for outcome in outcomes]

    def of(name: str, kind: type = float) -> NDArray[Any]:
        return np.array([[np.nan if t[name] is None else t[name] for t in seed] for seed in trials], dtype=kind)

    aucs = of("auc")
    tested = [[_tested(trial) for trial in seed] for seed in trials]
    pooled = None
    if given["protocol"] == "zhu2023":
        # the folds of a seed share its test set: where their models place its bags on average
        sets = [
            Placed(seed[0].bags, seed[0].positive, np.mean([fold.placements for fold in seed], axis=0))
            for seed in tested
        ]
        interval = over_seeds(sets, level=level)
    else:
        sets = [fold for seed in tested for fold in seed]
        interval = mean_interval(
            np.clip(aucs.ravel(), 0.0, 1.0), level=level, test_train_ratio=1 / (aucs.shape[1] - 1), bounds=(0.0, 1.0)
        )
        pooled = _pooled(trials, level)
        if interval.low == interval.high and interval.estimate in (0.0, 1.0):
            n = min(pooled.n_pos or 0, pooled.n_neg or 0)
            bound = proportion_interval(round(interval.estimate) * n, n, level=level)
            interval = Interval(
                interval.estimate, bound.low, bound.high, level, "wilson bound", interval.n, unit="runs"
            )
    return ProtocolResult(
        model=given["name"],
        data=given["data"],
        protocol=given["protocol"],
        auc=interval,
        over_bags=auc_over_bags(sets, level=level),
        pooled=pooled,
        aucs=aucs,
        train_aucs=of("train_auc"),
        validation_aucs=of("validation_auc"),
        epochs=of("epoch"),
        margins=of("margin"),
        n_ties=of("n_ties", np.int64),
        tie_gaps=of("tie_gap"),
        n_candidates=outcomes[0]["n_candidates"],
        ties=ties if chosen else None,
        selection=outcomes[0]["selection"],
        seed=given["seed"],
        seconds=sum(outcome["seconds"] for outcome in outcomes),
    )


def _tested(trial: dict[str, Any]) -> Placed:
    return Placed(
        np.array(trial["test"], dtype=np.int64), np.array(trial["positive"]) == 1, np.array(trial["placements"])
    )


def _pooled(trials: Sequence[Sequence[dict[str, Any]]], level: float) -> Interval:
    """Interval of the AUC of all bags by their mean score over the repeats."""
    n = sum(len(trial["test"]) for trial in trials[0])
    scores, positive = np.zeros(n), np.zeros(n, dtype=bool)
    for seed in trials:
        for trial in seed:
            scores[trial["test"]] += np.array(trial["scores"]) / len(trials)
            positive[trial["test"]] = np.array(trial["positive"]) == 1
    return auc_interval(scores, positive, level=level)
