"""Models compared by the tests that their predictions allow."""

from __future__ import annotations

import html
import math
import warnings
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from milfast.seeding import root_seed, seed_value
from milfast.uncertainty.areas import Ranking, Resampler
from milfast.uncertainty.aucs import compare_auc, compare_aucs
from milfast.uncertainty.classification import accuracy_interval
from milfast.uncertainty.comparison import Comparison, _plain, adjust, show_p
from milfast.uncertainty.cross_validation import Improvement, corrected_ttest, probability_of_improvement
from milfast.uncertainty.design import Design, read
from milfast.uncertainty.doubts import Doubt, doubts
from milfast.uncertainty.intervals import (
    Interval,
    _expit,
    _require_level,
    _wilson,
    auc_interval,
    mean_interval,
)
from milfast.uncertainty.margins import TOST_NOTE, read_margins, require_tost_level, tost_title
from milfast.uncertainty.paired import cochran_q, equivalence, mcnemar
from milfast.uncertainty.resampling import bounds_of_replicates, require_draws
from milfast.uncertainty.tails import (
    log_two_sided_normal,
    log_two_sided_t,
    log_upper_chi2,
    log_upper_f,
    log_upper_normal,
    log_upper_t,
    t_quantile,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from milfast.bags import Bags
    from milfast.seeding import RandomState
    from milfast.uncertainty.variance import VarianceComponents

CROSSED = "t on items and seeds"


@dataclass(frozen=True, repr=False)
class ComparedModels:
    """What `milfast.compare` found: figures, differences, tests, and what the design leaves open.

    Attributes
    ----------
    measure : str
        ``"AUC"`` or ``"accuracy"``.
    names : tuple of str
        The models.
    estimates : tuple of Interval
        The figure of each model: the mean over its runs where there are several.
    pairs : tuple of Comparison
        Each pair of models, by the test that the design asks for. Three or more models have Holm's correction.
    improvements : tuple of Improvement
        For each pair, how often a run of the one with the higher mean beats a run of the other; empty with one run a
        model.
    others : tuple of tuple of Comparison
        For each pair, further tests; they answer another question, which their notes say.
    equivalences : tuple of Comparison
        For each pair, where a margin was given, whether it is as good as equal.
    joint : Comparison or None
        All models in one test, when there are three or more.
    variances : tuple of VarianceComponents
        For each model, what seeds and folds add to the spread; empty without both.
    warnings : tuple of Doubt
        Where the design does not support a claim.
    design : dict
        Sizes and options: what `card` says of them.
    runs : ndarray, shape (n_models, n_seeds, n_folds)
        The figure of every run; NaN where a class was missing.

    Examples
    --------
    >>> import milfast as mf
    >>> labels = [0, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1]
    >>> ours = [0.6, 0.4, 1.1, 0.0, 0.5, 0.1, 0.6, -0.5, 1.4, 0.0, -0.3, 0.0]
    >>> theirs = [0.2, 0.2, 0.7, 1.0, 1.1, -1.8, -0.9, -0.4, 0.8, 0.2, 0.0, 2.0]
    >>> mf.compare({"ours": ours, "theirs": theirs}, labels)
    ComparedModels(AUC: ours 0.79, theirs 0.49; ours - theirs: 0.30 [-0.23, 0.83], p = 0.26; 4 warnings)
    """

    measure: str
    names: tuple[str, ...]
    estimates: tuple[Interval, ...]
    pairs: tuple[Comparison, ...]
    improvements: tuple[Improvement, ...]
    others: tuple[tuple[Comparison, ...], ...]
    equivalences: tuple[Comparison, ...]
    joint: Comparison | None
    variances: tuple[VarianceComponents, ...]
    warnings: tuple[Doubt, ...]
    design: dict[str, Any]
    runs: NDArray[np.float64] = field(compare=False)

    def __repr__(self) -> str:
        figures = ", ".join(
            f"{name} {interval._rounded()[0]}" for name, interval in zip(self.names, self.estimates, strict=True)
        )
        parts = [f"{self.measure}: {figures}"]
        if len(self.pairs) == 1:
            [pair] = self.pairs
            assert pair.difference is not None
            estimate, low, high = pair.difference._rounded()
            parts.append(f"{' - '.join(pair.names)}: {estimate} [{low}, {high}], {show_p(pair.log_p)}")
        elif self.joint is not None:
            parts.append(f"all alike: {show_p(self.joint.log_p)}")
        n = len(self.warnings)
        parts.append(f"{n or 'no'} warning{'' if n == 1 else 's'}")
        return f"ComparedModels({'; '.join(parts)})"

    def _repr_html_(self) -> str:
        from milfast.uncertainty.cards import shown_rows

        columns, rows = shown_rows(self)
        head = "".join(f"<th>{html.escape(title)}</th>" for title in columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        notes = "".join(f"<br><small>{html.escape(doubt.text)}</small>" for doubt in self.warnings)
        return f"<table><tr>{head}</tr>{body}</table>{notes}"

    def table(self) -> list[dict[str, Any]]:
        """A row for each model, each pair and, with three models or more, all of them; at full precision.

        Returns
        -------
        list of dict
            With the same keys; None where a figure does not belong to a row or is undefined.

        Examples
        --------
        >>> import milfast as mf
        >>> result = mf.compare({"ours": [1, 0, 1, 1], "theirs": [1, 0, 0, 1]}, [1, 0, 1, 0])
        >>> [(row["what"], row["estimate"], row["p_value"]) for row in result.table()]
        [('ours', 0.75, None), ('theirs', 0.5, None), ('ours - theirs', 0.25, 0.5)]
        """
        rows = [
            _row(name, "model", interval, interval.method)
            for name, interval in zip(self.names, self.estimates, strict=True)
        ]
        for i, pair in enumerate(self.pairs):
            row = _row(" - ".join(pair.names), "pair", pair.difference, pair.method, pair)
            if self.improvements:
                better = self.improvements[i].probability
                found = better.estimate, better.low, better.high
                if self.improvements[i].names != pair.names:
                    found = 1 - better.estimate, 1 - better.high, 1 - better.low
                row |= dict(zip(("p_better", "p_better_low", "p_better_high"), found, strict=True))
            if self.equivalences:
                row["p_equivalent"] = self.equivalences[i].p_value
            rows.append(row)
        if self.joint is not None:
            rows.append(_row(f"all {len(self.names)}", "all", None, self.joint.method, self.joint))
        return [{name: _plain(value) for name, value in row.items()} for row in rows]

    def summary(self) -> str:
        """What was found, in sentences for people: figures, differences, and warnings.

        Returns
        -------
        str

        Examples
        --------
        >>> import milfast as mf
        >>> right = [1] * 40 + [0] * 40
        >>> ours, theirs = [0] * 3 + right[3:], [1 - label for label in right[:12]] + right[12:]
        >>> print(mf.compare({"ours": ours, "theirs": theirs}, right).summary())
        accuracy of 2 models on 80 items
        ours: 0.96, 95 % interval 0.90 to 0.99 (wilson, 80 items)
        theirs: 0.85, 95 % interval 0.76 to 0.91 (wilson, 80 items)
        accuracy: ours 0.96, theirs 0.85; difference 0.11, 95 % interval 0.06 to 0.20 (score); p = 0.0020 (mid-p McNemar, 80 paired items)
        warning: only 9 of 80 items tell ours and theirs apart: the test rests on those
        warning: the intervals of ours and theirs overlap, and yet their paired difference excludes 0: overlap is no test
        warning: one training run a model: the tests are about these trained models, not about the way they were trained
        """  # noqa: E501
        lines = [f"{self.measure} of {len(self.names)} model{'' if len(self.names) == 1 else 's'} on {self._sizes()}"]
        lines += [f"{name}: {interval.summary()}" for name, interval in zip(self.names, self.estimates, strict=True)]
        if self.joint is not None:
            lines.append(f"all alike: {show_p(self.joint.log_p)} ({self.joint.method})")
        for i, pair in enumerate(self.pairs):
            lines.append(pair._sentence())
            lines += [f"  {note}" for note in pair.notes]
            if self.improvements:
                lines += [f"  {line}" for line in self.improvements[i].summary().splitlines()]
            for other in self.others[i]:
                lines.append(f"  also {other._sentence()}")
            if self.equivalences:
                lines.append(f"  {self.equivalences[i]._sentence()}")
        for name, variance in zip(self.names, self.variances, strict=False):
            lines.append(f"variance of {name}: {_shares(variance)}")
        return "\n".join([*lines, *(f"warning: {doubt.text}" for doubt in self.warnings)])

    def _sizes(self) -> str:
        d = self.design
        said = [f"{d['n_items']} items"]
        if d["n_clusters"] is not None:
            said[0] += f" in {d['n_clusters']} clusters"
        if d["n_folds"] is not None:
            said.append(f"{d['n_folds']} folds")
        if d["n_seeds"] > 1:
            said.append(f"{d['n_seeds']} seeds")
        return ", ".join(said)

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON.

        Returns
        -------
        dict
            An undefined number is None here, because JSON has no NaN.
        """
        return {
            "measure": self.measure,
            "names": list(self.names),
            "estimates": [interval.to_dict() for interval in self.estimates],
            "pairs": [pair.to_dict() for pair in self.pairs],
            "improvements": [improvement.to_dict() for improvement in self.improvements],
            "others": [[other.to_dict() for other in others] for others in self.others],
            "equivalences": [found.to_dict() for found in self.equivalences],
            "joint": None if self.joint is None else self.joint.to_dict(),
            "variances": [variance.to_dict() for variance in self.variances],
            "warnings": [{"code": doubt.code, "text": doubt.text} for doubt in self.warnings],
            "design": dict(self.design),
            "runs": _plain(self.runs.tolist()),
        }

    def card(self, format: Literal["text", "markdown", "latex", "json"] = "text") -> str:  # noqa: A002
        """The reporting card: all that a reader needs to judge the figures, ready for a paper.

        No figure has more digits than its standard error supports, but in the JSON form.

        Parameters
        ----------
        format : {"text", "markdown", "latex", "json"}
            LaTeX needs the package booktabs.

        Returns
        -------
        str

        Raises
        ------
        ValueError
            When the format is unknown.
        """
        from milfast.uncertainty.cards import card

        return card(self, format)


def _row(
    what: str, kind: str, interval: Interval | None, method: str, test: Comparison | None = None
) -> dict[str, Any]:
    return {
        "what": what,
        "kind": kind,
        "estimate": None if interval is None else interval.estimate,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "level": None if interval is None else interval.level,
        "method": method,
        "p_value": None if test is None else test.p_value,
        "log_p": None if test is None else test.log_p,
        "p_adjusted": None if test is None else test.p_adjusted,
        "p_better": None,
        "p_better_low": None,
        "p_better_high": None,
        "p_equivalent": None,
    }


def _shares(variance: VarianceComponents) -> str:
    from milfast.uncertainty.cards import shares

    return shares(variance)


def compare(
    predictions: Mapping[str, ArrayLike],
    labels: ArrayLike,
    *,
    kind: Literal["scores", "labels"] | None = None,
    folds: ArrayLike | None = None,
    seeds: Sequence[Any] | None = None,
    clusters: ArrayLike | Bags | None = None,
    level: float = 0.95,
    margin: float | tuple[float, float] | None = None,
    selected_on_test: bool = False,
    pos_label: Any = None,
    n_boot: int = 2000,
    random_state: RandomState = 0,
) -> ComparedModels:
    """Compare models on the same items, by the tests that the predictions allow.

    ===============================  ========================  ==================================================
    given                            a model's interval        test of a pair
    ===============================  ========================  ==================================================
    scores                           logit DeLong              paired DeLong; all models by DeLong's chi-squared
    labels                           Wilson                    mid-p McNemar; all models by Cochran's Q
    several seeds                    items and seeds, crossed  Student's t on the mean difference, whose variance
                                                               is that of the items plus that of the seeds
    folds                            corrected resampled t     corrected resampled t (Nadeau and Bengio 2003), on
                                                               the mean over seeds where seeds share the folds
    clusters                         from the variance         DeLong or McNemar with the variance between clusters;
                                     between clusters          beside it a cluster bootstrap of the paired difference
    ===============================  ========================  ==================================================

    Runs are also compared one by one, P(A > B); seeds and folds together have their variance components. The paired
    difference always has its interval; three models or more have Holm's correction.

    Parameters
    ----------
    predictions : mapping of str to array_like, shape (n,) or (n_seeds, n)
        For each model its scores or predicted labels of the same items, a row for each training run. With `folds`, what
        the model trained on the other folds said of each item.
    labels : array_like, shape (n,)
        The true labels. For scores {0, 1}, bool or {-1, 1}; anything else two-valued needs `pos_label`.
    kind : {"scores", "labels"}, optional
        What predictions are. By default labels, when they all occur in `labels`, and scores otherwise.
    folds : array_like, shape (n,) or (n_seeds, n), optional
        The fold of a cross-validation in which each item was tested; with two dimensions each seed has its own splits.
    seeds : sequence, optional
        Names of the training runs, the rows of predictions of two dimensions.
    clusters : array_like, shape (n,), or Bags, optional
        What each item belongs to, such as its patient, when items of one are alike.
    level : float
        Nominal coverage of all intervals.
    margin : float or (float, float), optional
        The largest difference that would not matter: adds tests of equivalence.
    selected_on_test : bool
        Whether checkpoints or parameters were chosen on the items that are tested here; adds the warning due.
    pos_label : scalar, optional
        The label of the positive class, for scores.
    n_boot : int
        Resamples of the cluster bootstrap.
    random_state : int, Generator, SeedSequence or None
        Of the cluster bootstrap.

    Returns
    -------
    ComparedModels
        With ``table()``, ``summary()``, ``to_dict()`` and ``card()``. For an AUC over folds the mean of the AUCs of the
        folds is compared, as scores of different fits need not be comparable. Folds without a class are left out, for
        all models, and counted. Where all folds, or seeds, of a model agree, Wilson's bounds take the place of its
        interval, with as many trials as the rarer class has items, or as there are clusters.

    Raises
    ------
    ValueError
        When shapes do not fit, something is NaN, predictions and labels share no value, or an option is out of range.
    TypeError
        When an argument cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> import milfast as mf
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(400) % 2
    >>> ours, theirs = (np.where(rng.random(400) < right, labels, 1 - labels) for right in (0.95, 0.85))
    >>> result = mf.compare({"ours": ours, "theirs": theirs}, labels)
    >>> result.pairs[0]
    Comparison(ours - theirs: 0.07 [0.03, 0.12], p = 0.00076, method='mid-p McNemar', n=400)
    >>> [doubt.code for doubt in result.warnings]
    ['one-seed']
    """
    _require_level(level)
    margins = None
    if margin is not None:
        require_tost_level(level)
        margins = read_margins(margin)
    draws = require_draws(n_boot, level) if clusters is not None else 0
    design = read(predictions, labels, kind=kind, folds=folds, seeds=seeds, clusters=clusters, pos_label=pos_label)
    work = _Comparer(design, float(level), draws, root_seed(random_state))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimates = tuple(work.estimate(m) for m in range(len(design.names)))
        chosen = list(combinations(range(len(design.names)), 2))
        pairs = tuple(work.pair(a, b) for a, b in chosen)
        others = tuple(tuple(work.others(a, b)) for a, b in chosen)
        improvements = tuple(work.improvement(a, b) for a, b in chosen) if work.several_runs else ()
        equivalences = (
            ()
            if margins is None
            else tuple(work.equivalence(a, b, pair, margins) for (a, b), pair in zip(chosen, pairs, strict=True))
        )
        joint = work.joint() if len(design.names) > 2 else None
        variances = work.variances()
    if len(pairs) > 1:
        pairs = adjust(pairs)
        equivalences = adjust(equivalences)
    messages = [str(warning.message) for warning in caught if issubclass(warning.category, RuntimeWarning)]
    found = doubts(
        design,
        estimates=estimates,
        pairs=pairs,
        has_margin=margin is not None,
        selected_on_test=selected_on_test,
        messages=messages,
    )
    return ComparedModels(
        measure=design.measure,
        names=design.names,
        estimates=estimates,
        pairs=pairs,
        improvements=improvements,
        others=others,
        equivalences=equivalences,
        joint=joint,
        variances=variances,
        warnings=found,
        design=work.described(margins, selected_on_test),
        runs=design.runs,
    )


class _Comparer:
    """Does the tests of one design."""

    def __init__(self, design: Design, level: float, draws: int, seed: int) -> None:
        self.design = design
        self.level = level
        self.draws = draws
        self.seed = seed
        self.folded = design.folds is not None
        self.clustered = design.clusters is not None
        self._crossed: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None = None
        self._replicates: list[NDArray[np.float64]] | None = None

    @property
    def several_runs(self) -> bool:
        """Whether there are two runs of a model with a figure."""
        return bool(self.design.defined.sum() > 1)

    # ---------------------------------------------------------------- the figure of one model

    def estimate(self, m: int) -> Interval:
        """Interval of a model's figure."""
        design = self.design
        if self.folded:
            return self._fold_interval(m)
        if design.n_seeds > 1:
            return self._crossed_interval(m)
        values = design.values[m][0]
        if design.positive is not None:
            return auc_interval(values, design.positive, level=self.level, clusters=design.clusters)
        return accuracy_interval(values, np.ones(design.n, dtype=bool), level=self.level, clusters=design.clusters)

    def _fold_interval(self, m: int) -> Interval:
        values = self._of_folds(m)
        if len(values) == 0:
            return Interval(math.nan, math.nan, math.nan, self.level, "undefined (no fold)", 0, unit="runs")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one fold: said among the doubts
            found = mean_interval(values, level=self.level, test_train_ratio=self._ratio, bounds=(0.0, 1.0))
        if len(values) > 1 and np.ptp(values) <= 8 * np.finfo(np.float64).eps:
            low, high = self._cautious(found.estimate)
            return replace(found, low=low, high=high, method="wilson (all folds alike)")
        return found

    def _cautious(self, mean: float) -> tuple[float, float]:
        """Bounds where nothing varies: Wilson's, with as many trials as the rarer class has items, or clusters."""
        counts = self.design.counts
        units = self.design.n if self.design.positive is None else min(counts.values())
        if self.clustered:
            units = self._units()
        return _wilson(mean * units, units, self.level) if units else (math.nan, math.nan)

    def _class_sizes(self) -> dict[str, int]:
        counts = self.design.counts
        return {} if self.design.positive is None else {"n_pos": counts["positive"], "n_neg": counts["negative"]}

    @property
    def _ratio(self) -> float:
        return 1 / (self.design.n_folds - 1)

    def _of_folds(self, m: int) -> NDArray[np.float64]:
        """Figures whose spread tells of the fit: of every run, or the mean over seeds where these share the folds."""
        runs, defined = self.design.runs[m], self.design.defined
        if self.design.shared_folds is False:
            return np.asarray(runs[defined])
        return np.asarray(runs[:, defined[0]].mean(axis=0))

    def _crossed_interval(self, m: int) -> Interval:
        design = self.design
        mean = float(design.means[m])
        variance, df = self._contrast({m: 1.0})
        sizes: dict[str, Any] = self._class_sizes() | self._cluster_sizes()
        if not variance > 0 or mean in (0.0, 1.0):
            bounds, method = (math.nan, math.nan), "undefined"
            if not math.isnan(variance):
                bounds, method = self._cautious(mean), "wilson (all seeds alike)"
            return Interval(mean, *bounds, self.level, method, design.n, **sizes)
        half = t_quantile(df, self.level) * math.sqrt(variance) / (mean * (1 - mean))
        centre = math.log(mean / (1 - mean))
        return Interval(
            mean, _expit(centre - half), _expit(centre + half), self.level, "logit, items and seeds", design.n, **sizes
        )

    def _cluster_sizes(self) -> dict[str, int]:
        n = self.design.n_clusters
        return {} if n is None else {"n_clusters": n}

    # ---------------------------------------------------------------- two models

    def pair(self, a: int, b: int) -> Comparison:
        """The test that the design asks for."""
        if self.folded:
            return self._folds(a, b)
        if self.design.n_seeds > 1:
            return self._items_and_seeds(a, b)
        return self._items(a, b)

    def others(self, a: int, b: int) -> list[Comparison]:
        """Further tests."""
        if self.folded and self.design.n_seeds == 1:
            found = self._cluster_bootstrap(a, b) if self.clustered else self._items(a, b)
            note = "about the models of these folds, not about the way they were trained"
        elif self.folded:
            found = self._items_and_seeds(a, b)
            note = "about the training sets of these folds"
        elif self.clustered and self.design.n_seeds > 1:
            found = self._cluster_bootstrap(a, b)
            note = "about the models of these seeds, not about the way they were trained"
        elif self.clustered:
            found = self._cluster_bootstrap(a, b)
            note = "from resampled clusters, which errs more often than the test above where there are few"
        else:
            return []
        return [replace(found, notes=(*found.notes, note))]

    def _folds(self, a: int, b: int) -> Comparison:
        first, second = self._of_folds(a), self._of_folds(b)
        names = self._names(a, b)
        if len(first) < 2:
            text = f"{len(first)} of {self.design.defined.size} runs have both classes: no test over folds"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
            return self._undefined(a, b, "undefined (too few folds)", text)
        found = corrected_ttest(
            first,
            second,
            test_train_ratio=self._ratio,
            level=self.level,
            measure=self.design.measure,
            names=names,
        )
        if self.design.shared_folds:
            found = replace(
                found,
                notes=(*found.notes, f"on the mean over {self.design.n_seeds} seeds in each fold, which they share"),
            )
        return found

    def _items(self, a: int, b: int) -> Comparison:
        """One run of each, or one a fold: only the items are drawn, or whole clusters of them."""
        design, names = self.design, self._names(a, b)
        first, second = design.values[a][0], design.values[b][0]
        if design.positive is None:
            return mcnemar(first, second, level=self.level, names=names, clusters=design.clusters)
        if not self.folded:
            return compare_auc(first, second, design.positive, level=self.level, names=names, clusters=design.clusters)
        return self._wald(a, b, "DeLong within folds")

    def _items_and_seeds(self, a: int, b: int) -> Comparison:
        return self._wald(a, b, CROSSED)

    def _wald(self, a: int, b: int, method: str) -> Comparison:
        """A contrast of means over its standard error."""
        design = self.design
        variance, df = self._contrast({a: 1.0, b: -1.0})
        gap = float(design.means[a] - design.means[b])
        if math.isnan(variance):
            return self._undefined(a, b, "undefined", "too few items of a class, or too few clusters")
        if variance <= 0:
            if gap == 0:
                return self._result(a, b, (0.0, 0.0), 0.0, 0.0, (), f"{method} (variance 0)", ("the models are alike",))
            return self._undefined(a, b, "undefined", "the models differ but nothing shows any spread")
        se = math.sqrt(variance)
        plain = math.isinf(df)
        half = t_quantile(df, self.level) * se
        log_p = log_two_sided_normal(gap / se) if plain else log_two_sided_t(gap / se, df)
        return self._result(
            a, b, (max(-1.0, gap - half), min(1.0, gap + half)), log_p, gap / se, () if plain else (df,), method, (), se
        )

    def _cluster_bootstrap(self, a: int, b: int) -> Comparison:
        design = self.design
        units = self._units()
        if units < 2:
            return self._undefined(a, b, "undefined", "all items of a class lie in one cluster")
        gap = float(design.means[a] - design.means[b])
        replicates = self._resampled()[a] - self._resampled()[b]
        interval = self._bootstrap(gap, replicates, (-1.0, 1.0))
        defined = replicates[np.isfinite(replicates)]
        if len(defined) and np.ptp(defined) < 1e-12 < abs(gap):
            return self._undefined(
                a, b, "undefined", "the models differ alike in all clusters: nothing shows any spread"
            )
        # half of the ties on each side, and the sample itself counted, so that it never is 0
        below = np.count_nonzero(defined < 0) + np.count_nonzero(defined == 0) / 2
        p = min(1.0, 2 * (min(below, len(defined) - below) + 1) / (len(defined) + 1)) if len(defined) else math.nan
        notes: tuple[str, ...] = ()
        if min(below, len(defined) - below) == 0:
            notes = (f"no smaller p-value can come out of {len(defined)} resamples",)
        if p < 2.0 ** (1 - units):
            # so often all clusters favour one model by chance, which resamples of so few do not know
            p, notes = 2.0 ** (1 - units), (f"no smaller p-value can come out of {units} clusters",)
        return replace(
            self._result(
                a, b, (interval.low, interval.high), math.log(p) if p > 0 else math.nan, gap, (), interval.method, notes
            ),
            difference=interval,
        )

    def _bootstrap(self, estimate: float, replicates: NDArray[np.float64], limits: tuple[float, float]) -> Interval:
        defined = replicates[np.isfinite(replicates)]
        if len(defined) == 0 or math.isnan(estimate):
            low = high = math.nan
        else:
            low, high, _ = bounds_of_replicates(estimate, defined, level=self.level, method="percentile")
            low, high = max(low, limits[0]), min(high, limits[1])
        sizes: dict[str, Any] = self._class_sizes() | self._cluster_sizes()
        return Interval(
            estimate,
            low,
            high,
            self.level,
            "cluster bootstrap",
            self.design.n,
            n_boot=len(replicates),
            n_undefined=len(replicates) - len(defined),
            seed=self.seed,
            **sizes,
        )

    def _undefined(self, a: int, b: int, method: str, why: str) -> Comparison:
        return self._result(a, b, (math.nan, math.nan), math.nan, math.nan, (), method, (why,))

    def _result(
        self,
        a: int,
        b: int,
        bounds: tuple[float, float],
        log_p: float,
        statistic: float,
        df: tuple[float, ...],
        method: str,
        notes: tuple[str, ...],
        se: float | None = None,
    ) -> Comparison:
        design = self.design
        means = float(design.means[a]), float(design.means[b])
        sizes: dict[str, Any] = self._class_sizes() | self._cluster_sizes()
        return Comparison(
            names=self._names(a, b),
            estimates=means,
            difference=Interval(means[0] - means[1], *bounds, self.level, method, design.n, **sizes),
            log_p=log_p,
            statistic=statistic,
            df=df,
            method=method,
            n=design.n,
            measure=design.measure,
            notes=notes,
            details=sizes | {"n_seeds": design.n_seeds} | ({} if se is None else {"se": se}),
        )

    def _names(self, a: int, b: int) -> tuple[str, str]:
        return self.design.names[a], self.design.names[b]

    def improvement(self, a: int, b: int) -> Improvement:
        """How often a run of the one with the higher mean beats a run of the other."""
        runs, defined = self.design.runs, self.design.defined
        if self.design.means[b] > self.design.means[a]:
            a, b = b, a
        names = self._names(a, b)
        if not self.folded:
            found = probability_of_improvement(
                runs[a, :, 0], runs[b, :, 0], paired=False, level=self.level, names=names
            )
            return replace(found, notes=(*found.notes, "each seed of one against each of the other"))
        if self.design.shared_folds is False:
            return probability_of_improvement(runs[a][defined], runs[b][defined], level=self.level, names=names)
        kept = defined[0]
        found = probability_of_improvement(runs[a][:, kept], runs[b][:, kept], level=self.level, names=names)
        return replace(
            found, notes=(*found.notes, "the bounds take folds as independent, though they share training items")
        )

    def equivalence(self, a: int, b: int, pair: Comparison, margins: tuple[float, float]) -> Comparison:
        """Whether the two are equal up to a margin, by the standard error of their test."""
        low, high = margins
        design = self.design
        if "McNemar" in pair.method:
            first, second = design.values[a][0], design.values[b][0]
            return equivalence(first, second, margins, level=self.level, names=pair.names, clusters=design.clusters)
        assert pair.difference is not None
        gap = pair.difference.estimate
        inner = 2 * self.level - 1
        if pair.method == "cluster bootstrap":
            replicates = self._resampled()[a] - self._resampled()[b]
            defined = replicates[np.isfinite(replicates)]
            if math.isnan(pair.log_p) or len(defined) == 0:
                return replace(pair, method="equivalence undefined", log_p=math.nan)
            outside = max(np.count_nonzero(defined <= low), np.count_nonzero(defined >= high))
            log_p = math.log(min(1.0, (outside + 1) / (len(defined) + 1)))
            bounds = bounds_of_replicates(gap, defined, level=inner, method="percentile")[:2]
            statistic = math.nan
        else:
            df = pair.df[0] if pair.df else math.inf
            # not from the bounds, which may have been cut to [-1, 1]
            se = pair.details.get("se", math.nan)
            if not se > 0:
                return replace(
                    pair, method="equivalence undefined", log_p=math.nan, notes=("there is no spread",), pairs=()
                )
            statistic = min((gap - low) / se, (high - gap) / se)
            log_p = log_upper_normal(statistic) if math.isinf(df) else log_upper_t(statistic, df)
            half = t_quantile(df, inner) * se
            bounds = max(-1.0, gap - half), min(1.0, gap + half)
        return replace(
            pair,
            difference=replace(pair.difference, low=bounds[0], high=bounds[1], level=inner),
            log_p=log_p,
            statistic=statistic,
            method=tost_title(low, high),
            notes=(TOST_NOTE,),
        )

    # ---------------------------------------------------------------- all models

    def joint(self) -> Comparison:
        """All models in one test."""
        design = self.design
        if not self.clustered and design.n_seeds == 1 and design.positive is None:
            return cochran_q(np.stack([v[0] for v in design.values]), level=self.level, names=design.names)
        if design.positive is not None and design.n_seeds == 1 and not self.folded:
            scores = dict(zip(design.names, (v[0] for v in design.values), strict=True))
            return compare_aucs(scores, design.positive, level=self.level, clusters=design.clusters)
        covariance, of_seeds, _ = self._parts()
        whole = covariance + np.diag(of_seeds)
        k = len(design.names)
        contrasts = np.hstack([np.eye(k - 1), -np.ones((k - 1, 1))])
        gaps, spread = contrasts @ design.means, contrasts @ whole @ contrasts.T
        rank, statistic, log_p = 0, math.nan, math.nan
        df: tuple[float, ...] = ()
        notes = ["about the training sets of these folds"] if self.folded else []
        if np.isfinite(spread).all() and np.isfinite(gaps).all():
            values, vectors = np.linalg.eigh(spread)
            kept = values > 1e-9 * max(values[-1], 1e-300)
            along = vectors.T @ gaps
            rank = int(kept.sum())
            if np.any(np.abs(along[~kept]) > 1e-9):
                rank = 0
                notes.append("a combination of the figures differs but nothing shows any spread of it")
            statistic = float(np.sum(along[kept] ** 2 / values[kept])) if rank else math.nan
            free = [self._contrast({i: 1.0, j: -1.0})[1] for i, j in combinations(range(k), 2)]
            below = sum(1 / df for df in free)
            if rank and below == 0:
                df, log_p = (float(rank),), log_upper_chi2(statistic, rank)
            elif rank:  # the harmonic mean of the degrees of freedom of the pairs, by which it errs a little seldom
                df = float(rank), len(free) / below
                statistic /= rank
                log_p = log_upper_f(statistic, *df)
        parts = ["items" if not self.clustered else "clusters", *(["seeds"] if design.n_seeds > 1 else [])]
        kind = "F" if len(df) > 1 else "chi-squared"
        return Comparison(
            names=design.names,
            estimates=tuple(float(mean) for mean in design.means),
            difference=None,
            log_p=log_p,
            statistic=statistic,
            df=df,
            method=f"Wald {kind}, {' and '.join(parts)}" if df else "undefined",
            n=design.n,
            measure=design.measure,
            notes=tuple(notes),
        )

    def variances(self) -> tuple[VarianceComponents, ...]:
        """What seeds and folds add, where there are several of both and every run has a figure."""
        design = self.design
        if design.n_seeds < 2 or not design.shared_folds or not design.defined.all():
            return ()
        from milfast.uncertainty.variance import variance_components

        return tuple(variance_components(table) for table in design.runs)

    # ---------------------------------------------------------------- where figures vary

    def _parts(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Covariance of the means by items; variance of each mean by seeds; and that as it was observed, for the df.

        A seed's figure varies by its own fit and by what its fit makes of these items. The second part is in the
        covariance of the items already, and is taken off.
        """
        if self._crossed is None:
            design = self.design
            k, s = len(design.names), design.n_seeds
            table = design.covariance().reshape(k, s, k, s)
            covariance = table.mean(axis=(1, 3))
            of_seeds, observed = np.zeros(k), np.zeros(k)
            if s > 1:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a seed without any fold
                    figures = np.nanmean(design.runs, axis=2)
                for m in range(k):
                    own = table[m, :, m, :]
                    mean_of_own = np.trace(own) / s
                    by_items = mean_of_own - (own.sum() - np.trace(own)) / (s * (s - 1))
                    observed[m] = np.var(figures[m], ddof=1) / s
                    of_seeds[m] = max(0.0, observed[m] - by_items / s)
            self._crossed = covariance, of_seeds, observed
        return self._crossed

    def _contrast(self, weights: dict[int, float]) -> tuple[float, float]:
        """Variance of a contrast of means, and its degrees of freedom by Satterthwaite's rule."""
        covariance, of_seeds, observed = self._parts()
        vector = np.zeros(len(covariance))
        for m, weight in weights.items():
            vector[m] = weight
        by_items = float(vector @ covariance @ vector)
        total = by_items + float(vector**2 @ of_seeds)
        if not self.clustered and self.design.n_seeds == 1:
            return total, math.inf
        if total <= 0:
            return total, math.inf
        units = self._units()
        if units < 2:
            return math.nan, math.nan
        below = by_items**2 / (units - 1)
        if self.design.n_seeds > 1:
            below += float(vector**4 @ observed**2) / (self.design.n_seeds - 1)
        return total, total**2 / below if below > 0 else math.inf

    def _units(self) -> int:
        """Items, or the clusters that hold a positive, or a negative, whichever are fewer."""
        design = self.design
        if design.clusters is None:
            return design.n
        if design.positive is None:
            return len(np.unique(design.clusters))
        return min(len(np.unique(design.clusters[design.positive == kind])) for kind in (True, False))

    def _resampled(self) -> list[NDArray[np.float64]]:
        """Figures of each model in the same resamples of the clusters."""
        if self._replicates is None:
            design = self.design
            stratum = None
            if design.folds is not None and len(design.folds) == 1 and _nested(design):
                stratum = design.folds[0]
            resampler = Resampler(design.n, stratum, design.clusters)
            seed = seed_value(self.seed, 0)
            self._replicates = [
                resampler.replicates(self._figure(m, resampler.unit), self.draws, seed)
                for m in range(len(design.names))
            ]
        return self._replicates

    def _figure(self, m: int, unit: NDArray[np.intp]) -> Any:
        """The figure of a model, the mean over its runs, for rows that say how often each unit was drawn."""
        design = self.design
        places = [
            (s, np.flatnonzero(design.inside(s, f)))
            for s in range(design.n_seeds)
            for f in range(design.n_folds)
            if design.defined[s, f]
        ]
        if design.positive is None:
            n_units = int(unit.max()) + 1
            right = [np.bincount(unit[i], design.values[m][s, i], n_units) for s, i in places]
            sizes = [np.bincount(unit[i], minlength=n_units) for _, i in places]

            def rate(times: NDArray[np.int64]) -> NDArray[np.float64]:
                with np.errstate(invalid="ignore"):
                    rates = [times @ r / (times @ size) for r, size in zip(right, sizes, strict=True)]
                return np.asarray(np.mean(rates, axis=0))

            return rate
        positive = design.positive
        rankings = [Ranking.of(design.values[m][s], positive, among=i).by(unit) for s, i in places]

        def area(times: NDArray[np.int64]) -> NDArray[np.float64]:
            return np.asarray(np.mean([ranking.areas(times) for ranking in rankings], axis=0))

        return area

    def described(self, margins: tuple[float, float] | None, selected_on_test: bool) -> dict[str, Any]:
        """Sizes and options."""
        from milfast import __version__

        design = self.design
        undefined = int(design.defined.size - design.defined.sum())
        resamples = 0
        if self._replicates is not None:
            resamples = int(max(np.count_nonzero(~np.isfinite(values)) for values in self._replicates))
        return {
            "kind": design.kind,
            "level": self.level,
            "n_items": design.n,
            "n_pos": design.counts["positive"] if design.positive is not None else None,
            "n_neg": design.counts["negative"] if design.positive is not None else None,
            "n_classes": len(design.counts),
            "n_folds": None if design.folds is None else design.n_folds,
            "n_seeds": design.n_seeds,
            "seeds": list(design.seeds),
            "shared_folds": design.shared_folds,
            "n_clusters": design.n_clusters,
            "paired": True,
            "correction": "Holm" if len(design.names) > 2 else None,
            "n_runs": int(design.defined.size),
            "n_undefined_runs": undefined,
            "n_boot": self.draws if self._replicates is not None else None,
            "n_undefined_resamples": resamples if self._replicates is not None else None,
            "bootstrap_seed": self.seed if self._replicates is not None else None,
            "margin": None if margins is None else [side if math.isfinite(side) else None for side in margins],
            "selected_on_test": bool(selected_on_test),
            "milfast": __version__,
        }


def _nested(design: Design) -> bool:
    """Whether every cluster lies in one fold."""
    assert design.folds is not None
    assert design.clusters is not None
    return all(len(np.unique(np.stack([design.clusters, row]), axis=1).T) == design.n_clusters for row in design.folds)
