"""A learned OR of ANDs in words: which concepts must be there, how often, and above which score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import expit, logit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ConceptScores", "Rule", "find_rule"]

#: A concept (column of `ConceptScores`), and at least how often it is asked for.
Condition: TypeAlias = tuple[int, int]

# Score above which a concept counts as there unless another one serves better.
EVEN = 0.5
# Cuts to try first: those that so much of the bags predicted positive (negative) lie above (below).
SHARES = (1.0, 0.995, 0.98, 0.9, 0.7, 0.5, 0.3)
# ANDs that are kept while longer ones are made of them.
BEAM = 8
# How many bags rightly met outweigh one met by mistake when an AND is chosen; the next is tried when the rule of the
# one before falls short. Dear mistakes make more and longer ANDs.
PRICES = (1, 4, 16)
# Of more bags than this, so many are searched; cuts are then moved, and the agreement counted, on all of them.
SEARCHED = 2000


@dataclass(frozen=True)
class ConceptScores:
    """How sure a model is of each concept in each bag, and which instances say so.

    Attributes
    ----------
    scores : ndarray of float64, shape (n_bags, n_concepts, max_count)
        Entry ``[i, k, r - 1]``, between 0 and 1, is that of concept k being in bag i at least r times.
    witnesses : ndarray of int64, shape (n_bags, n_concepts, max_count)
        The row of `Bags.instances` with the r-th highest score for the concept, the first where several are as high; -1
        where a bag has fewer than r instances.
    """

    scores: NDArray[np.float64]
    witnesses: NDArray[np.int64]

    @property
    def presence(self) -> NDArray[np.float64]:
        """Score of each concept being there at all, shape (n_bags, n_concepts)."""
        return self.scores[:, :, 0]

    @property
    def witness(self) -> NDArray[np.int64]:
        """The row of `Bags.instances` that shows each concept best, shape (n_bags, n_concepts)."""
        return self.witnesses[:, :, 0]


@dataclass(frozen=True)
class Rule:
    """A plain rule that says what a model predicts, as far as it agrees; ``str(rule)`` is in words.

    Attributes
    ----------
    terms : tuple of tuple of (int, int)
        The ANDs that are joined by OR, each of them pairs (concept, at least how often). Concepts are the columns of
        `ConceptScores`. An empty term is always met; there is one only where the model predicts nothing but positives.
    cuts : dict of (int, int) to float
        A pair is met by a bag whose score of it, ``scores[bag, concept, often - 1]``, lies above this.
    agreement : float
        Share of the bags on which the rule, read as yes or no, says what the model predicts.
    asked : float
        The agreement that was asked for; it may be more than could be had.
    n_bags : int
        Number of these bags.
    """

    terms: tuple[tuple[Condition, ...], ...]
    cuts: dict[Condition, float]
    agreement: float
    asked: float
    n_bags: int

    def holds(self, found: ConceptScores) -> NDArray[np.bool_]:
        """Whether the rule is met, by each bag.

        Parameters
        ----------
        found : ConceptScores
            Of the same model, for any bags.

        Returns
        -------
        ndarray of bool, shape (n_bags,)

        Raises
        ------
        TypeError, ValueError
            When `found` is something else, or has too few concepts or counts.

        Examples
        --------
        >>> scores = np.array([[[0.9], [0.2]], [[0.9], [0.4]]])
        >>> rule = Rule((((0, 1), (1, 1)),), {(0, 1): 0.5, (1, 1): 0.3}, 1.0, 0.99, 2)
        >>> rule.holds(ConceptScores(scores, np.zeros(scores.shape, dtype=int)))
        array([False,  True])
        >>> print(rule)
        positive when concept 0 and concept 1 (above 0.3); agrees with the model on 100.0 % of 2 bags
        """
        if not isinstance(found, ConceptScores):
            raise TypeError(f"found must be what model.concept_scores(bags) returns; got {type(found).__name__}")
        n_bags, n_concepts, max_count = found.scores.shape
        for concept, often in self.cuts:
            if concept >= n_concepts or often > max_count:
                raise ValueError(
                    f"found has {n_concepts} concepts, counted up to {max_count}, but the rule asks for "
                    f"concept {concept} at least {often} times: take concept_scores of the model that the rule is of"
                )
        met = np.zeros(n_bags, dtype=bool)
        for term in self.terms:
            every = np.ones(n_bags, dtype=bool)
            for concept, often in term:
                every &= found.scores[:, concept, often - 1] > self.cuts[concept, often]
            met |= every
        return met

    def __str__(self) -> str:
        said = [" and ".join(map(self._words, term)) for term in self.terms]
        if not said:
            words = "never; "
        elif "" in said:
            words = "always; "
        elif len(said) > 2:
            words = "when\n" + " or\n".join(f"  {words}" for words in said) + ";\n"
        else:
            bracketed = (f"({words})" if len(said) > 1 and " and " in words else words for words in said)
            words = "when " + " or ".join(bracketed) + "; "
        fewer = f", fewer than the {100 * self.asked:g} % asked for" if self.agreement < self.asked else ""
        # rounded down, so that 100.0 % are all
        percent = np.floor(1000 * self.agreement + 1e-9) / 10
        return f"positive {words}agrees with the model on {percent:.1f} % of {self.n_bags} bags{fewer}"

    def _words(self, condition: Condition) -> str:
        concept, often = condition
        cut = self.cuts[condition]
        return (
            f"concept {concept}"
            + (f" at least {often} times" if often > 1 else "")
            + (f" (above {cut!r})" if cut != EVEN else "")
        )


def find_rule(
    scores: NDArray[np.float64],
    predicted: NDArray[np.bool_],
    agreement: float,
    *,
    max_terms: int = 8,
    max_length: int = 4,
) -> Rule:
    """A small monotone OR of ANDs of yes-or-no conditions that says what was predicted.

    ANDs are added one by one, each the best that a beam search finds for the bags that are still without one, until the
    rule agrees as often as it should. Then cuts are moved to where the rule agrees most, and whatever is not needed for
    the agreement is taken away again.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_bags, n_concepts, max_count)
    predicted : ndarray of bool, shape (n_bags,)
    agreement : float
        Share of the bags on which the rule should be right.
    max_terms, max_length : int
        Number of ANDs, and of conditions in each of them, at most.

    Returns
    -------
    Rule

    Examples
    --------
    >>> scores = np.array([[0.9, 0.9, 0.1], [0.9, 0.1, 0.2], [0.2, 0.9, 0.1], [0.1, 0.2, 0.8]])[:, :, None]
    >>> find_rule(scores, np.array([True, False, False, True]), 1.0).terms
    (((2, 1),), ((0, 1), (1, 1)))
    """
    n_bags = len(predicted)
    if not predicted.any():
        return Rule((), {}, 1.0, agreement, n_bags)
    if predicted.all():
        return Rule(((),), {}, 1.0, agreement, n_bags)
    searched = np.arange(n_bags)
    if n_bags > SEARCHED:
        # evenly from both classes, at least one bag of each
        searched = np.argsort(predicted, kind="stable")[np.linspace(0, n_bags - 1, SEARCHED).astype(np.int64)]
    search = _Search(scores[searched], predicted[searched], max_length)
    everywhere = _Terms(scores, predicted)
    best: Rule | None = None
    for price in PRICES:
        everywhere.terms, everywhere.cuts = search.found(agreement, max_terms, price)
        if n_bags > SEARCHED:
            everywhere.move_cuts()
        rule = everywhere.rule(agreement)
        if best is None or rule.agreement > best.agreement:
            best = rule
        if best.agreement >= agreement:
            break
    assert best is not None
    return best


class _Terms:
    """An OR of ANDs of columns of scores, with a cut for each column that it uses."""

    def __init__(self, scores: NDArray[np.float64], predicted: NDArray[np.bool_]) -> None:
        self.max_count = scores.shape[2]
        self.scores = np.ascontiguousarray(scores.reshape(len(scores), -1).T)
        self.predicted = predicted
        self.terms: list[tuple[int, ...]] = []
        self.cuts: dict[int, float] = {}

    def rule(self, agreement: float) -> Rule:
        terms = tuple(tuple(sorted(map(self._condition, term))) for term in self.terms)
        used = sorted({column for term in self.terms for column in term})
        cuts = {self._condition(column): self.cuts[column] for column in used}
        return Rule(terms, cuts, self.agreement(self.terms), agreement, len(self.predicted))

    def _condition(self, column: int) -> Condition:
        return column // self.max_count, column % self.max_count + 1

    def _holds(self, term: tuple[int, ...]) -> NDArray[np.bool_]:
        met = np.ones(len(self.predicted), dtype=bool)
        for column in term:
            met &= self.scores[column] > self.cuts[column]
        return met

    def _any(self, terms: list[tuple[int, ...]]) -> NDArray[np.bool_]:
        met = np.zeros(len(self.predicted), dtype=bool)
        for term in terms:
            met |= self._holds(term)
        return met

    def agreement(self, terms: list[tuple[int, ...]]) -> float:
        return float((self._any(terms) == self.predicted).mean())

    def move_cuts(self) -> None:
        """Each cut in turn to where the rule agrees most: to even if it is as good, else into the widest gap."""
        for _ in range(3):
            before = dict(self.cuts)
            for column in sorted({column for term in self.terms for column in term}):
                self.cuts[column] = self._best_cut(column)
            if self.cuts == before:
                return

    def _best_cut(self, column: int) -> float:
        fixed = self._any([term for term in self.terms if column not in term])
        rest = self._any([tuple(c for c in term if c != column) for term in self.terms if column in term])
        decided = np.flatnonzero(rest & ~fixed)
        if not len(decided):
            return self.cuts[column]
        values, group = np.unique(self.scores[column][decided], return_inverse=True)
        # right[i]: agreeing bags among those decided when values[i:] meet the condition
        weight = np.bincount(group.ravel(), np.where(self.predicted[decided], 1, -1), len(values))
        right = np.append(np.cumsum(weight[::-1])[::-1], 0)
        good = np.flatnonzero(right == right.max())
        ends = np.concatenate(([-np.inf], values, [np.inf]))
        if ((ends[good] <= EVEN) & (ends[good + 1] > EVEN)).any():
            return EVEN
        inner = good[(good > 0) & (good < len(values))]
        if not len(inner):
            # all or none of them: the cut stays if it says so, or goes next to them among all bags
            return self._outer_cut(column, values, all_meet=bool(good[0] == 0))
        widest = inner[int(np.argmax(_logit(values[inner]) - _logit(values[inner - 1])))]
        return _between(values[widest - 1], values[widest])

    def _outer_cut(self, column: int, values: NDArray[np.float64], *, all_meet: bool) -> float:
        cut = self.cuts[column]
        if all_meet and cut >= values[0]:
            below = self.scores[column][self.scores[column] < values[0]]
            return _between(below.max(), values[0]) if len(below) else cut
        if not all_meet and cut < values[-1]:
            above = self.scores[column][self.scores[column] > values[-1]]
            return _between(values[-1], above.min()) if len(above) else cut
        return cut


class _Search(_Terms):
    """The search for ANDs; conditions are columns with the cuts that are tried."""

    def __init__(self, scores: NDArray[np.float64], predicted: NDArray[np.bool_], max_length: int) -> None:
        super().__init__(scores, predicted)
        self.max_length = max_length
        pairs = [(column, cut) for column in range(len(self.scores)) for cut in self._candidates(column)]
        self.columns = np.array([column for column, _ in pairs], dtype=np.int64)
        self.tried = np.array([cut for _, cut in pairs])
        # of floats, to be multiplied: BLAS counts bags (exactly, there are few) faster than anything else
        self.met = (self.scores[self.columns] > self.tried[:, None]).astype(np.float32)

    def found(self, agreement: float, max_terms: int, price: int) -> tuple[list[tuple[int, ...]], dict[int, float]]:
        self.terms, self.cuts = [], {}
        for _ in range(max_terms):
            before, cuts, reached = list(self.terms), dict(self.cuts), self.agreement(self.terms)
            term = self._grow(price)
            if term is None:
                break
            self.terms.append(term)
            self.move_cuts()
            if before and self.agreement(self.terms) <= reached:
                self.terms, self.cuts = before, cuts
                break
            if self.agreement(self.terms) >= agreement:
                break
        self._shorten(min(agreement, self.agreement(self.terms)))
        self.move_cuts()
        return self.terms, self.cuts

    def _candidates(self, column: int) -> list[float]:
        """Cuts worth trying for a column: even, in the widest gap, and with given shares of either class behind it."""
        values = np.unique(self.scores[column])
        if len(values) < 2:
            return []
        logits = _logit(values)
        places = {int(np.argmax(np.diff(logits))) + 1}
        places.add(int(np.searchsorted(values, EVEN, side="right")))
        for label, tail in ((True, -1), (False, 1)):
            ordered = np.sort(self.scores[column][self.predicted == label])[::tail]
            for share in SHARES:
                last = ordered[min(int(np.ceil(share * len(ordered))), len(ordered)) - 1]
                places.add(int(np.searchsorted(values, last, side="right" if tail == 1 else "left")))
        return [_between(values[place - 1], values[place]) for place in sorted(places) if 0 < place < len(values)]

    def _grow(self, price: int) -> tuple[int, ...] | None:
        """The AND that gains most on the bags without one; its new cuts are noted."""
        left = ~self._any(self.terms)
        positive, negative = left & self.predicted, left & ~self.predicted
        n_positive, n_negative = max(int(positive.sum()), 1), max(int(negative.sum()), 1)
        # a column that has a cut keeps it, wherever it was moved to
        cut = list(self.cuts)
        tried = np.append(self.tried, [self.cuts[column] for column in cut])
        columns = np.append(self.columns, np.array(cut, dtype=np.int64))
        met = np.concatenate((self.met, (self.scores[cut] > tried[len(self.tried) :, None]).astype(np.float32)))
        usable = np.append(~np.isin(self.columns, cut), np.ones(len(cut), dtype=bool))
        concepts = columns // self.max_count
        beam: list[tuple[int, ...]] = [()]
        best: tuple[float, tuple[int, ...]] = (0.0 if self.terms else -np.inf, ())
        for _ in range(self.max_length):
            meets = np.stack([met[list(chosen)].all(axis=0) for chosen in beam])
            asked = np.concatenate((meets & positive, meets & negative)).astype(np.float32)
            hits, misses = np.split(met @ asked.T, 2, axis=1)
            value = hits / n_positive - misses / n_negative
            allowed = np.repeat(usable[:, None], len(beam), axis=1) & (hits > 0)
            for place, chosen in enumerate(beam):
                # what is there twice is there once
                allowed[np.isin(concepts, concepts[list(chosen)]), place] = False
            gain = np.where(allowed, hits - price * misses, -np.inf)
            feature, place = divmod(int(np.argmax(gain)), len(beam))
            if gain[feature, place] > best[0]:
                best = (float(gain[feature, place]), (*beam[place], feature))
            longer: dict[tuple[int, ...], None] = {}
            for flat in np.argsort(-np.where(allowed, value, -np.inf), axis=None, kind="stable")[: 8 * BEAM]:
                feature, place = divmod(int(flat), len(beam))
                if allowed[feature, place] and len(longer) < BEAM:
                    longer[tuple(sorted((*beam[place], feature)))] = None
            beam = list(longer)
            if not beam:
                break
        if not best[1]:
            return None
        for feature in best[1]:
            self.cuts[int(columns[feature])] = float(tried[feature])
        return tuple(int(columns[feature]) for feature in best[1])

    def _shorten(self, enough: float) -> None:
        """Take away what leaves the agreement at `enough`, whole ANDs first; each time what costs least."""
        while True:
            fewer = [[*self.terms[:i], *self.terms[i + 1 :]] for i in range(len(self.terms)) if len(self.terms) > 1]
            shorter = [
                [*self.terms[:i], tuple(c for c in term if c != column), *self.terms[i + 1 :]]
                for i, term in enumerate(self.terms)
                if len(term) > 1
                for column in term
            ]
            for changes in (fewer, shorter):
                reached = [self.agreement(terms) for terms in changes]
                if reached and max(reached) >= enough:
                    self.terms = absorbed(changes[int(np.argmax(reached))])
                    break
            else:
                self.terms = absorbed(self.terms)
                return


def absorbed(terms: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """An OR of ANDs without those that ask for all that another one asks for.

    Parameters
    ----------
    terms : list of tuple of int

    Returns
    -------
    list of tuple of int

    Examples
    --------
    >>> absorbed([(0, 1), (0,), (2, 0), (3, 4), (4, 3)])
    [(0,), (3, 4)]
    """
    different = list({frozenset(term): term for term in reversed(terms)}.values())[::-1]
    return [term for term in different if not any(set(other) < set(term) for other in different)]


def _logit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    # scores of 0 and 1 are those that floats no longer tell from them
    return np.clip(logit(values), -36.0, 37.0)


def _between(low: float, high: float) -> float:
    """The shortest number that parts a lower from a higher score: low <= cut < high."""
    if low <= EVEN < high:
        return EVEN
    middle = float(expit(_logit(np.array([low, high])).mean()))
    for digits in range(1, 18):
        # digits of the distance to the nearer end: 0.003 and 0.9997 have one or two
        cut = float(f"{middle:.{digits}g}") if middle < EVEN else round(middle, digits)
        if low <= cut < high:
            return cut
    return float(low)
