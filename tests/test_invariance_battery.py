"""Batteries: what is run, what is chosen, what comes out, and how it stands beside published figures."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import record_invariance as record
from conftest import ROOT

from milfast.invariance import Learner, as_learner, jobs, published, run_battery
from milfast.invariance import battery as batteries
from milfast.invariance.battery import combine
from milfast.study import Study

if TYPE_CHECKING:
    from pathlib import Path

SMALL: dict[str, Any] = {"n_trials": 3, "n_steps": 800}


def specification(learner: str, replicate: int, **changes: Any) -> dict[str, Any]:
    return {
        "model": learner,
        "name": learner,
        "source": None,
        "data": "Example1",
        "d_inv": 5,
        "d_spu": 5,
        "n_env": 3,
        "mode": "strict",
        "engine": "population",
        "n": None,
        "n_trials": 2,
        "n_steps": 100,
        "rng": "native",
        "test_shuffle": "invariant",
        "seed": 0,
        "replicate": replicate,
    } | changes


def outcome(validation: Any, exact: Any, *, diverged: Any = (False, False), test: Any = None) -> dict[str, Any]:
    """Of two trials in three environments."""
    return {
        "trials": [{"lr": 0.1}, {"lr": 0.2}],
        "validation": [[value] * 3 for value in validation],
        "exact": None if exact is None else [[value] * 3 for value in exact],
        "test": None if test is None else [[value] * 3 for value in test],
        "share": [[0.25] * 3, [0.75] * 3],
        "diverged": list(diverged),
        "steps": [100, 100],
        "optimum": [1.0, 1.0, 1.0],
        "shortcut": [5.0, 5.0, 5.0],
        "seconds": 1.0,
    }


def test_strict_mode_chooses_in_each_replicate_and_paper_mode_for_all() -> None:
    validation = [(1.0, 2.0), (5.0, 1.0), (1.0, 2.0)]  # the first is chosen twice; the second has the smaller mean
    pairs = [
        (specification("IRMv1", r), outcome(v, (10.0 + r, 20.0 + r), test=(11.0 + r, 21.0 + r)))
        for r, v in enumerate(validation)
    ]
    [cell] = combine(pairs).cells
    assert cell.choices.tolist() == [0, 1, 0]
    assert cell.risks[:, 0].tolist() == [10.0, 21.0, 12.0]
    assert (cell.selection, cell.risk) == ("per_replicate", "exact")
    assert [p["lr"] for p in cell.parameters] == [0.1, 0.2, 0.1]
    assert cell.share.tolist() == [0.25, 0.75, 0.25]
    paper = [(given | {"mode": "paper", "engine": "samples"}, gave) for given, gave in pairs]
    [cell] = combine(paper).cells
    assert cell.choices.tolist() == [1, 1, 1]
    assert cell.risks[:, 0].tolist() == [21.0, 22.0, 23.0]
    assert (cell.selection, cell.risk) == ("pooled", "sampled")
    [cell] = combine(pairs, selection="pooled").cells
    assert cell.choices.tolist() == [1, 1, 1]


def test_the_first_of_equal_trials_is_chosen_and_a_diverged_one_never() -> None:
    [cell] = combine([(specification("ERM", 0), outcome((2.0, 2.0), (1.0, 3.0)))]).cells
    assert cell.choices.tolist() == [0]
    for selection in batteries.SELECTIONS:
        pair = specification("ERM", 0), outcome((None, 2.0), (None, 3.0), diverged=(True, False))
        [cell] = combine([pair, (specification("ERM", 1), outcome((1.0, 2.0), (1.0, 3.0)))], selection=selection).cells
        assert cell.choices.tolist() == ([1, 0] if selection == "per_replicate" else [1, 1])
        assert not cell.diverged.any()


def test_the_spread_is_that_of_environments() -> None:
    risks = np.array([[0.0, 10.0], [2.0, 6.0], [4.0, 2.0]])  # the mean over environments spreads less
    pairs = []
    for r, line in enumerate(risks.tolist()):
        gave = outcome((1.0, 2.0), (0.0, 0.0)) | {"exact": [line, line], "optimum": [1.0, 1.0], "share": [[0, 0]] * 2}
        pairs.append((specification("ERM", r, n_env=2), gave))
    [cell] = combine(pairs).cells
    assert cell.mean == risks.mean() == 4.0
    assert cell.sd == pytest.approx((math.sqrt(8 / 3) + math.sqrt(32 / 3)) / 2)
    assert cell.environments.tolist() == [2.0, 6.0]
    assert cell.excess == np.median(risks - 1.0)


def arena(learner_risks: dict[str, list[float]], **changes: Any) -> batteries.Battery:
    return combine(
        (specification(name, r, **changes), outcome((1.0, 2.0), (risk, 99.0)))
        for name, risks in learner_risks.items()
        for r, risk in enumerate(risks)
    )


RNG = np.random.default_rng(0)
ERM = (3.0 + RNG.uniform(0, 1, 50)).tolist()


def test_verdicts_compare_with_erm_and_the_oracle_of_the_same_replicate() -> None:
    solved = [1.0 + 0.05 * (e - 1.0) for e in ERM]
    found = arena({"ERM": ERM, "Mine": solved, "Oracle": [1.0] * 50})
    assert [cell.verdict.outcome for cell in found.cells if cell.verdict] == ["fail", "pass", "pass"]
    mine = found.cell("Mine", "Example1")
    assert mine.verdict is not None
    assert mine.verdict.ratio.estimate == pytest.approx(0.05)
    assert mine.stands
    assert found.passes("Mine")
    assert not found.passes("ERM")
    # a replicate that lacks ERM or the oracle is left out of the verdict, not of the error
    found = arena({"ERM": ERM[:30], "Mine": solved, "Oracle": [1.0] * 40})
    mine = found.cell("Mine", "Example1")
    assert mine.verdict is not None
    assert mine.verdict.n_replicates == 30
    assert len(mine.replicates) == 50


def test_without_companions_there_is_no_verdict() -> None:
    found = arena({"Mine": ERM, "Oracle": [1.0] * 50})
    assert all(cell.verdict is None for cell in found.cells)
    with pytest.raises(ValueError, match="Mine has no verdict"):
        found.passes("Mine")
    assert arena({"ERM": ERM, "Oracle": [1.0] * 50}, mode="paper").cells[0].verdict is None


def test_claims_of_a_table_are_corrected_for_their_number() -> None:
    """45 of 50 is a pass by itself (p = 0.048), and not one of two claims."""
    near = [1.0 if r < 45 else e for r, e in enumerate(ERM)]
    found = arena({"ERM": ERM, "Mine": near, "Oracle": [1.0] * 50})
    assert found.cell("Mine", "Example1").stands
    found = arena({"ERM": ERM, "Mine": near, "Other": ERM, "Oracle": [1.0] * 50})
    mine = found.cell("Mine", "Example1")
    assert mine.verdict is not None
    assert mine.verdict.outcome == "pass"
    assert not mine.stands
    assert mine.log_p_pass == pytest.approx(mine.verdict.log_p_pass + math.log(2))
    assert math.isnan(found.cell("ERM", "Example1").log_p_pass)


def test_companions_have_seen_as_many_rows() -> None:
    """Studies of two numbers of rows in one file: each learner stands beside the ERM of its own number."""
    pairs = []
    for n, gap in ((200, 1.0), (400, 3.0)):
        settings: dict[str, Any] = {"engine": "samples", "n": n}
        for r in range(5):
            pairs.append((specification("ERM", r, **settings), outcome((1.0, 2.0), (1.0 + gap,) * 2)))
            pairs.append((specification("Mine", r, **settings), outcome((1.0, 2.0), (1.5, 1.5))))
            pairs.append((specification("Oracle", r, **settings), outcome((1.0, 2.0), (1.0, 1.0))))
    ratios = [cell.verdict.ratio.estimate for cell in combine(pairs).cells if cell.learner == "Mine" and cell.verdict]
    assert ratios == pytest.approx([0.5, 1 / 6])
    assert [cell.n for cell in combine(pairs).cells] == [200] * 3 + [400] * 3
    # rows of another number are no companion; the distribution is
    few = [pair for pair in pairs if pair[0]["name"] == "Mine" or pair[0]["n"] == 200]
    assert [cell.verdict is None for cell in combine(few).cells] == [False, False, False, True]
    whole = [
        (specification(name, r), outcome((1.0, 2.0), (risk, risk)))
        for r in range(5)
        for name, risk in (("ERM", 2.0), ("Oracle", 1.0))
    ]
    mine = combine([*few, *whole]).cells[3]
    assert mine.n == 400
    assert mine.verdict is not None
    assert mine.verdict.ratio.estimate == pytest.approx(0.5)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_learner_may_diverge_in_any_replicate(lost: int) -> None:
    """Then it has neither exact errors nor errors of rows there, and the exact ones of the other replicates stand."""
    nothing = outcome((None, None), None, test=(None, None), diverged=(True, True))
    fine = outcome((1.0, 2.0), (1.5, 9.0), test=(1.6, 9.0))
    cell = combine([(specification("Mine", r), nothing if r == lost else fine) for r in range(3)]).cells[0]
    assert cell.risk == "exact"
    expected = np.full((3, 3), 1.5)
    expected[lost] = np.nan
    np.testing.assert_array_equal(cell.risks, expected)
    assert cell.diverged.tolist() == [r == lost for r in range(3)]


@pytest.mark.parametrize("exact", [None, (None, 3.0)])
def test_errors_are_of_one_kind_in_all_replicates(exact: Any) -> None:
    """A learner whose chosen trial is not linear in one replicate has errors of rows in all of them."""
    linear = outcome((1.0, 2.0), (1.5, 9.0), test=(1.6, 9.0))
    bent = outcome((1.0, 2.0), exact, test=(1.7, 9.0))
    cell = combine([(specification("Mine", r), bent if r == 1 else linear) for r in range(3)]).cells[0]
    assert cell.risk == "sampled"
    assert cell.risks.mean(axis=1).tolist() == pytest.approx([1.6, 1.7, 1.6])


def test_a_diverged_learner_fails_as_such() -> None:
    pairs = [(specification("ERM", r), outcome((1.0, 2.0), (e, e))) for r, e in enumerate(ERM)]
    pairs += [(specification("Oracle", r), outcome((1.0, 2.0), (1.0, 1.0))) for r in range(50)]
    lost = outcome((None, None), (None, None), diverged=(True, True))
    pairs += [(specification("Mine", r), lost if r < 20 else outcome((1.0, 2.0), (1.0, 1.0))) for r in range(50)]
    cell = combine(pairs).cell("Mine", "Example1")
    assert cell.verdict is not None
    assert (cell.verdict.outcome, cell.verdict.successes) == ("diverged", 30)
    assert cell.to_dict()["mean"] is None
    json.dumps(combine(pairs).to_dict(), allow_nan=False)


def test_cells_are_found_and_shown() -> None:
    found = arena({"ERM": ERM, "Oracle": [1.0] * 50})
    with pytest.raises(KeyError, match="0 cells of IGA on Example1"):
        found.cell("IGA", "Example1")
    assert repr(found).startswith("Battery(2 cells\n  Cell(ERM on Example1: ")
    assert "<table>" in found._repr_html_()
    assert "published 13.3629 ± 1.4867" in found.summary()
    rows = found.rows()
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert rows[0]["published_mean"] == 13.3629
    assert found.to_dict()["cells"][0]["risks"][0] == [ERM[0]] * 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "loose"}, "mode must be one of strict, paper; got 'loose'"),
        ({"engine": "gpu"}, "engine must be one of auto, samples, population; got 'gpu'"),
        ({"selection": "best"}, "selection must be one of per_replicate, pooled; got 'best'"),
        ({"n_trials": 0}, "n_trials must be an integer of at least 1; got 0"),
        ({"n_replicates": 1}, "n_replicates must be an integer of at least 2; got 1"),
        ({"n_steps": 1.5}, "n_steps must be an integer of at least 1; got 1.5"),
        ({"problems": "Example4"}, "there is no problem 'Example4'"),
        ({"problems": []}, "problems must name one at least of Example1"),
        ({"n_env": 0}, "n_env must be an integer of at least 1; got 0"),
        ({"d_spu": [5, -1]}, "d_spu must be an integer of at least 0; got -1"),
        ({"rng": "cuda"}, "rng must be one of native, torch; got 'cuda'"),
        ({"learners": "IRMv2"}, "there is no learner 'IRMv2'"),
        ({"learners": []}, "learners must name one at least"),
        (
            {"engine": "population", "problems": "Example2", "test_shuffle": "2021", "d_spu": 2},
            "Example2 with d_spu=2 and test_shuffle='2021' has no distribution",
        ),
        ({"learners": ["tests.nothing:Mine"]}, "there is no module tests.nothing"),
    ],
)
def test_what_cannot_be_run_is_named_before_anything_is(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run_battery(**({"learners": "ERM"} | change))


@pytest.mark.parametrize("problems", [None, 3, {"Example1"}])
def test_problems_are_names(problems: Any) -> None:
    with pytest.raises(TypeError, match="problems must be a name or a list of names"):
        run_battery("ERM", problems=problems)


def test_the_bits_do_not_depend_on_processes() -> None:
    one = run_battery("AND-mask", problems=["Example1", "Example1s"], n_replicates=3, **SMALL)
    two = run_battery("AND-mask", problems=["Example1", "Example1s"], n_replicates=3, n_jobs=2, **SMALL)
    assert [cell.learner for cell in one.cells] == 2 * ["ERM", "AND-mask", "Oracle"]
    for left, right in zip(one.cells, two.cells, strict=True):
        assert left.risks.tobytes() == right.risks.tobytes()
        assert left.choices.tolist() == right.choices.tolist()


def test_replicates_are_problems_starts_and_trials_of_their_own() -> None:
    found = run_battery("IRMv1", problems="Example1", n_replicates=3, n_trials=4, n_steps=50)
    cell = found.cell("IRMv1", "Example1")
    assert len({tuple(line) for line in cell.risks.tolist()}) == 3
    todo, _ = plan("IRMv1", n_replicates=2, n_trials=3)
    mine = [job for job in todo if job.subject.name == "IRMv1"]
    first, second = (job.trials() for job in mine)
    assert first[0] == second[0]  # the default
    assert first[1:] != second[1:]
    assert not np.array_equal(mine[0].starts(10), mine[1].starts(10))
    assert mine[0].problem_seed != mine[1].problem_seed


def plan(learners: Any, **changes: Any) -> tuple[list[jobs.Job], tuple[str, ...]]:
    settings: dict[str, Any] = {
        "problems": "Example1",
        "mode": "strict",
        "engine": "auto",
        "n_trials": 20,
        "n_replicates": 50,
        "n_steps": 10_000,
        "n": 10_000,
        "d_inv": 5,
        "d_spu": 5,
        "n_env": 3,
        "rng": None,
        "test_shuffle": "invariant",
        "selection": None,
        "random_state": 0,
    }
    return batteries.plan(learners, **(settings | changes))


def test_published_trials_and_data_seeds() -> None:
    todo, _ = plan(["IRMv1", "AND-mask"], mode="paper", rng="native")
    assert [job.subject.name for job in todo[:2]] == ["IRMv1", "AND-mask"]
    assert [job.problem_seed for job in todo[::2]] == list(range(50))
    irm, mask = (job.trials() for job in todo[:2])
    assert irm == todo[-2].trials()
    assert irm[0] == {"lr": 1e-3, "weight_decay": 0.0, "penalty_weight": 0.9}
    assert irm[15] == pytest.approx({"lr": 1.613e-4, "weight_decay": 1.599e-5, "penalty_weight": 0.6667}, rel=1e-3)
    assert mask[1]["lr"] == pytest.approx(0.15368, rel=1e-4)
    assert mask[1]["weight_decay"] == pytest.approx(1.964e-5, rel=1e-3)
    assert np.array_equal(todo[0].starts(10), todo[-1].starts(10))


def test_d_spu_0_is_void() -> None:
    found = run_battery("AND-mask", problems="Example1", d_spu=0, n_replicates=5, **SMALL)
    assert {cell.verdict.outcome for cell in found.cells if cell.verdict} == {"void"}


def test_sweeps_have_a_cell_for_each_setting() -> None:
    found = run_battery("ERM", problems="Example1", n_env=[2, 12], d_spu=[1, 2], n_replicates=2, **SMALL)
    assert [(c.learner, c.n_env, c.d_spu) for c in found.cells if c.learner == "ERM"] == [
        ("ERM", n, d) for n in (2, 12) for d in (1, 2)
    ]
    assert found.cell("ERM", "Example1", n_env=12, d_spu=2).risks.shape == (2, 12)
    with pytest.raises(KeyError, match="4 cells"):
        found.cell("ERM", "Example1")


class LeastSquares:
    """Least squares on all rows, by hand."""

    name = "by hand"
    seen: list[Any] = []  # noqa: RUF012  # what every copy was given

    def fit(self, X: Any, y: Any, env: Any, rng: Any = None) -> LeastSquares:
        LeastSquares.seen.append((X.copy(), y.copy(), env.copy()))
        rows = np.column_stack([X, np.ones(len(X))]).astype(np.float64)
        *weights, self.intercept_ = np.linalg.lstsq(rows, y, rcond=None)[0]
        self.coef_ = np.array(weights)
        return self

    def predict(self, X: Any) -> Any:
        return X @ self.coef_ + self.intercept_


def test_a_learner_of_ones_own_has_a_verdict() -> None:
    LeastSquares.seen.clear()
    found = run_battery(LeastSquares(), problems="Example1", n_replicates=4, n=2000, n_trials=3, n_steps=4000)
    mine, erm = found.cell("by hand", "Example1"), found.cell("ERM", "Example1")
    assert (mine.engine, mine.risk) == ("samples", "exact")
    assert (erm.engine, erm.risk) == ("population", "exact")
    assert mine.verdict is not None
    assert mine.verdict.outcome == "fail"
    assert mine.mean == pytest.approx(erm.mean, rel=0.05)
    assert 0 < mine.spurious_share < 1
    assert len(LeastSquares.seen) == 4  # nothing to search: one trial


def test_the_test_split_stays_inside() -> None:
    LeastSquares.seen.clear()
    run_battery(LeastSquares(), problems="Example1", n_replicates=2, n=500, n_trials=1, n_steps=10)
    todo, _ = plan(LeastSquares(), n_replicates=2, n=500, n_trials=1)
    for (X, y, env), job in zip(LeastSquares.seen, [j for j in todo if j.subject.name == "by hand"], strict=True):
        rows = {row.tobytes() for row in X}
        assert env.tolist() == [0] * 500 + [1] * 500 + [2] * 500
        assert len(y) == 1500
        for split in ("validation", "test"):
            assert not any(row.tobytes() in rows for e in job.data.rows(split) for row in e.X)


class Black:
    """A predictor without weights that can be read."""

    def __init__(self, constant: float | None = None) -> None:
        self.constant = constant

    def fit(self, X: Any, y: Any, env: Any) -> None:
        self.rows = np.linalg.lstsq(X.astype(np.float64), y, rcond=None)[0]

    def predict(self, X: Any) -> Any:
        return X @ self.rows if self.constant is None else np.full(len(X), self.constant)


def test_without_weights_errors_are_those_of_test_rows() -> None:
    found = run_battery(Black(), problems="Example1", n_replicates=3, n=5000, n_trials=1, n_steps=4000)
    cell = found.cell("Black", "Example1")
    assert cell.risk == "sampled"
    assert math.isnan(cell.spurious_share)
    assert cell.to_dict()["spurious_share"] is None
    assert cell.mean == pytest.approx(found.cell("ERM", "Example1").mean, rel=0.2)
    assert "sampled" in json.dumps(found.to_dict())


@pytest.mark.parametrize("constant", [0.0, math.nan])
def test_one_value_for_all_rows_is_diverged(constant: float) -> None:
    found = run_battery(Black(constant), problems="Example1", n_replicates=15, n=50, n_trials=1, n_steps=3000)
    cell = found.cell("Black", "Example1")
    assert cell.diverged.all()
    assert cell.verdict is not None
    assert (cell.verdict.outcome, cell.verdict.successes) == ("diverged", 0)


class Broken(Black):
    def fit(self, X: Any, y: Any, env: Any) -> None:
        raise RuntimeError("no luck")


def test_what_a_learner_raises_says_where() -> None:
    with pytest.raises(RuntimeError, match="no luck") as caught:
        run_battery(Broken(), problems="Example1", n_replicates=2, n=50, n_trials=1, n_steps=10)
    assert any("Broken on Example1, replicate 0, trial 0" in note for note in caught.value.__notes__)


def test_a_learner_of_ones_own_has_no_population() -> None:
    with pytest.raises(ValueError, match="by hand is fitted to rows, and engine='population' has none"):
        run_battery(LeastSquares(), engine="population")
    with pytest.raises(ValueError, match="names of their own; by hand comes 2 times"):
        run_battery([LeastSquares(), LeastSquares()])


class Uneven(LeastSquares):
    """Without finite weights on the data of some replicates."""

    name = "uneven"

    def fit(self, X: Any, y: Any, env: Any) -> None:
        super().fit(X, y, env)
        if y[0] > 0:
            self.coef_ = self.coef_ * np.nan


def test_a_learner_that_diverges_on_some_data_is_measured_on_the_rest() -> None:
    found = run_battery(Uneven(), problems="Example1", n_replicates=6, n=100, random_state=1, n_trials=1, n_steps=10)
    cell = found.cell("uneven", "Example1")
    assert 0 < cell.diverged.sum() < 6
    assert np.isnan(cell.risks).all(axis=1).tolist() == cell.diverged.tolist()
    assert cell.risk == "exact"


class Bare(Learner):
    """As little as a learner may have."""

    def default_params(self) -> dict[str, Any]:
        return {}

    def sample_params(self, rng: Any) -> dict[str, Any]:
        return {}

    def fit(self, X: Any, y: Any, env: Any, rng: Any = None, **params: Any) -> Bare:
        self.coef_ = np.full(X.shape[1], 1e200)
        return self


def test_a_learner_without_a_name_has_that_of_its_class() -> None:
    """Without an intercept, too, and with an error beyond all numbers."""
    found = run_battery(Bare, problems="Example1", n_replicates=2, n=50, n_trials=1, n_steps=2)
    assert not np.isfinite(found.cell("Bare", "Example1").risks).any()


class InPlace(LeastSquares):
    """Centres the arrays that it is handed."""

    name = "in place"

    def sample_params(self, rng: Any) -> dict[str, Any]:
        return {}

    def fit(self, X: Any, y: Any, env: Any, rng: Any = None) -> InPlace:
        self.center = X.mean(axis=0), y.mean()
        X -= self.center[0]
        y -= self.center[1]
        self.weights = np.linalg.lstsq(X.astype(np.float64), y, rcond=None)[0]
        env[:] = 0
        return self

    def predict(self, X: Any) -> Any:
        X -= self.center[0]
        return X @ self.weights + self.center[1]


def test_a_learner_may_work_in_place() -> None:
    """Neither its own next trial nor the next learner notices."""
    todo, _ = plan(LeastSquares(), n=50, n_trials=3, n_replicates=2)
    [job, *_] = [job for job in todo if job.subject.name == "by hand"]
    plain, in_place, after = (
        jobs.run_job(replace(job, subject=jobs.Subject.of(learner)))
        for learner in (LeastSquares(), InPlace(), as_learner(LeastSquares(), name="after"))
    )
    for kind in ("validation", "test"):
        assert in_place[kind] == [in_place[kind][0]] * 3
        np.testing.assert_allclose(in_place[kind][0], plain[kind][0], rtol=1e-4)
        assert after[kind] == plain[kind]


def test_what_verdicts_compare_with_is_not_of_ones_own() -> None:
    class Own(LeastSquares):
        name = "ERM"

    with pytest.raises(ValueError, match="a learner of your own is named ERM, as the one that verdicts compare with"):
        run_battery(Own(), problems="Example1", n_replicates=2)
    settings: dict[str, Any] = {"problems": "Example1", "rng": "native", "n": 100, "n_steps": 5, "n_trials": 1}
    assert run_battery(Own(), mode="paper", n_replicates=1, **settings).cells[0].learner == "ERM"
    assert len(run_battery(as_learner(Own(), name="mine"), n_replicates=2, **settings).cells) == 3


def test_learners_are_left_out_where_they_cannot_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(
        ValueError, match=r"LogisticRegression cannot learn any of the problems Example1: .* regression"
    ):
        run_battery(LogisticRegression(), problems="Example1", n_replicates=2)
    todo, notes = plan("ICP", d_spu=(5, 6), n_replicates=2)
    assert {job.d_spu for job in todo if job.subject.name == "ICP"} == {5}
    assert notes == ("11 features are more than ICP can look at: left out",)
    with pytest.raises(ValueError, match="ICP cannot learn any of the problems Example1: 11 features are more"):
        plan("ICP", d_spu=6, n_replicates=2)


def test_without_a_distribution_all_are_trained_on_rows() -> None:
    """Until 2021 the test of Example2 mixed the animals of two rows where d_spu < d_inv."""
    settings: dict[str, Any] = {"problems": "Example2", "n_replicates": 2, "n": 200, **SMALL}
    todo, notes = plan("ERM", d_spu=(2, 5), test_shuffle="2021", **settings)
    assert {(job.d_spu, job.engine) for job in todo} == {(2, "samples"), (5, "population")}
    assert notes[0].startswith("Example2 with d_spu=2: the Oracle of test_shuffle='2021' has no distribution")
    found = run_battery("ERM", d_spu=2, test_shuffle="2021", **settings)
    assert all(cell.verdict is not None for cell in found.cells)


def test_estimators_of_scikit_learn_are_learners() -> None:
    from sklearn.linear_model import LogisticRegression

    found = run_battery(LogisticRegression(), problems="Example3", n_replicates=2, n=301, n_trials=2, n_steps=500)
    cell = found.cell("LogisticRegression", "Example3")
    assert cell.risk == "exact"
    assert 0 < cell.mean < 1


# -------------------------------------------------------------------- studies


def test_a_study_goes_on_and_does_nothing_twice(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    settings: dict[str, Any] = {"problems": "Example1", "n_replicates": 2, "study": path, **SMALL}
    first = run_battery("IRMv1", **settings)
    with Study(path) as study:
        before = {record.id: record.result for record in study.records()}
    assert len(before) == 6
    done: list[str] = []
    second = run_battery(["IRMv1", "AND-mask"], callback=lambda _d, _t, title: done.append(title), **settings)
    assert done == ["AND-mask on Example1"] * 2
    with Study(path) as study:
        assert {record.id: record.result for record in study.records() if record.id in before} == before
    kept = second.cell("IRMv1", "Example1").risks
    assert kept.tobytes() == first.cell("IRMv1", "Example1").risks.tobytes()
    plain = run_battery("IRMv1", problems="Example1", n_replicates=2, **SMALL)
    assert kept.tobytes() == plain.cell("IRMv1", "Example1").risks.tobytes()


def test_a_learner_under_another_name_is_the_same_in_a_study(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"problems": "Example1", "n_replicates": 2, **SMALL}
    plain, kept = (
        run_battery(as_learner("IRMv1", name="mine"), study=study, **settings).cell("mine", "Example1")
        for study in (None, tmp_path / "s.db")
    )
    assert kept.parameters == plain.parameters
    assert kept.risks.tobytes() == plain.risks.tobytes()


def test_an_object_has_no_place_in_a_study(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a study needs a name"):
        run_battery(LeastSquares(), study=tmp_path / "s.db", problems="Example1", n_replicates=2)


def test_a_failed_job_is_told_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_invariance.py").write_text(
        "class Mine:\n    def fit(self, X, y, env):\n        raise ValueError('not today')\n"
        "    def predict(self, X):\n        return X[:, 0]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        RuntimeError, match=r"2 of 6 jobs failed, the first Mine on Example1, replicate 0: ValueError: not today; "
    ):
        run_battery("own_invariance:Mine", study=tmp_path / "s.db", problems="Example1", n_replicates=2, n=50, **SMALL)


def test_a_changed_learner_is_not_run_under_its_old_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "changing_invariance.py"
    text = "class Mine:\n    def fit(self, X, y, env): pass\n    def predict(self, X): return X[:, 0]\n"
    file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    [job, *_] = [j for j in plan("changing_invariance:Mine", n_replicates=2)[0] if j.subject.name == "Mine"]
    given = jobs.describe(job)
    assert given["source"] is not None
    file.write_text(text + "# another\n")
    with pytest.raises(ValueError, match="has changed since the study was begun"):
        jobs.run_specification(given)


# -------------------------------------------------------------------- published figures


def test_published_tables() -> None:
    found = published("ERM", "Example1")
    assert found is not None
    assert (found.mean, found.sd, found.trial, found.decimals) == (13.3629, 1.4867, 4, 4)
    for problem in ("Example1", "Example1s", "Example2", "Example2s", "Example3", "Example3s"):
        for learner in batteries.PAPER:
            cell = published(learner, problem)
            assert cell is not None
            assert cell.environments is not None
            # rounded to four decimals each
            assert np.mean(cell.environments) == pytest.approx(cell.mean, abs=1.5e-4)
            swept = record_of(learner, problem)
            assert swept == pytest.approx((cell.mean, cell.sd), abs=0.0051 if problem[:8] == "Example1" else 1e-9)
            assert (published(learner, problem, d_spu=4) or cell).faulty == problem.startswith("Example2")
            assert published(learner, problem, n_env=11) is None
            assert published(learner, problem, d_inv=4) is None
    assert (published("IB-IRM", "Example2s", n_env=6) or found).mean == 0.45
    assert published("IB-IRM", "Example2s", n_env=5) is None
    assert published("V-REx", "Example1") is None


def record_of(learner: str, problem: str) -> list[float]:
    """The same cell in the sweep over environments, which was published too."""
    path = ROOT / "python" / "milfast" / "invariance" / "published.json"
    cell: list[float] = json.loads(path.read_text(encoding="utf-8"))["n_env"][problem]["3"][learner]
    return cell


def paper_cells(problems: list[str], learners: list[str]) -> list[batteries.Cell]:
    pytest.importorskip("torch")
    return list(run_battery(learners, problems=problems, mode="paper").cells)


#: Trials whose validation errors differ by less than a float32 can hold, so that rounding decides; see
#: docs/reproduction.md.
CLOSE = {("ERM", "Example1s"), ("Oracle", "Example1s")}


def require_published(cells: list[batteries.Cell]) -> None:
    for cell in cells:
        assert cell.published is not None
        mean, sd = cell.mean, cell.sd
        if (cell.learner, cell.problem) in CLOSE and cell.of_published_trial is not None:
            mean, sd, _ = cell.of_published_trial
        else:
            assert cell.choices[0] == cell.published.trial
        # printed to four decimals, and trained in float32 there
        assert mean == pytest.approx(cell.published.mean, abs=1.6e-4), cell
        assert sd == pytest.approx(cell.published.sd, abs=1.6e-4), cell


def test_a_published_cell_comes_out_again() -> None:
    require_published(paper_cells(["Example1"], ["IRMv1"]))


@pytest.mark.slow
def test_all_published_cells_of_example1_come_out_again() -> None:
    require_published(paper_cells(["Example1", "Example1s"], list(batteries.PAPER)))


def test_the_fault_of_2021_comes_out_again() -> None:
    """Published ERM at d_spu = 10 has an error of 0.0129 on Example2; without the fault it takes the shortcut."""
    settings: dict[str, Any] = {
        "problems": "Example2",
        "mode": "paper",
        "rng": "native",
        "d_spu": 10,
        "n_replicates": 1,
        "n_trials": 2,
        "n": 4000,
    }
    right = run_battery("ERM", **settings).cells[0]
    wrong = run_battery("ERM", test_shuffle="2021", **settings).cells[0]
    assert right.mean == pytest.approx(0.433, abs=0.02)
    assert wrong.mean == pytest.approx(0.0129, abs=0.01)
    assert right.to_dict()["published_faulty"] is True
    assert wrong.to_dict()["published_faulty"] is False


# -------------------------------------------------------------------- the record


def test_a_record_holds_what_the_tables_need(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    run_battery("AND-mask", problems=["Example1", "Example1s"], n_replicates=3, study=path, **SMALL)
    run_battery(["ERM", "Oracle"], problems="Example1", n_replicates=2, mode="paper", rng="native", study=path, **SMALL)
    pages = tmp_path / "page.md"
    places = ("default", "environments", "paper-total", "verdicts", "details", "strict-total")
    pages.write_text("".join(f"<!-- invariance: {name} -->\n<!-- end -->\n" for name in places))
    pytest.importorskip("matplotlib")
    arguments = ["--results", str(tmp_path), "--pages", str(pages), "--pictures", str(tmp_path)]
    assert record.main([str(path), *arguments]) == 0
    assert "AND-mask" in (tmp_path / "invariance-verdicts.svg").read_text()
    text = pages.read_text()
    assert "| Example1 | ERM | " in text
    assert "13.3629 ± 1.4867" in text
    assert "| learner | Example1 | Example1s |" in text
    assert "AND-mask" in text
    # filled again from the files alone
    pages.write_text("".join(f"<!-- invariance: {name} -->\n<!-- end -->\n" for name in places))
    assert record.main(["--results", str(tmp_path), "--pages", str(pages)]) == 0
    assert pages.read_text() == text


def test_a_record_may_hold_a_learner_that_diverged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lost_invariance.py").write_text(
        "class Lost:\n    def fit(self, X, y, env): pass\n    def predict(self, X): return X[:, 0] * float('nan')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "s.db"
    settings: dict[str, Any] = {"problems": "Example1", "n": 50, "study": path, "rng": "native", **SMALL}
    run_battery("lost_invariance:Lost", n_replicates=2, **settings)
    run_battery("lost_invariance:Lost", n_replicates=2, mode="paper", n_env=(2, 3), **settings)
    taken = record.collect([path])
    # ERM and the Oracle have three trials, and the learner, which has no search, one
    assert (taken["strict"]["runs"], taken["paper"]["runs"]) == (2 * (3 + 3 + 1), 2 * 2)
    assert record.collect([path, path]) == taken
    assert "| Example1 | Lost | samples | - | 0/2 |" in record.tables(taken["strict"])["details"]
    made = record.tables(taken["paper"])
    assert "| Example1 | Lost | - | - | - |" in made["default"]
    assert "| Example1 | 2 | - |" in made["n_env"]


def test_a_record_of_a_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    todo, _ = plan("ERM", n_replicates=2, n_trials=2, n_steps=10)
    with Study(path) as study:
        study.add(jobs.FUNCTION, [jobs.describe(job) for job in todo])
    with pytest.raises(ValueError, match="4 of 4 jobs are not done"):
        record.collect([path])


@pytest.mark.parametrize("mode", list(record.FILES))
def test_tables_of_the_pages_are_those_of_the_record(mode: str) -> None:
    path = ROOT / "docs" / "results" / record.FILES[mode]
    if not path.exists():
        pytest.skip(f"no record of {mode} mode yet")
    pages = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("invariance.md", "reproduction.md"))
    for name, text in record.tables(json.loads(path.read_text(encoding="utf-8"))).items():
        if f"<!-- invariance: {name} -->" in pages:
            assert f"<!-- invariance: {name} -->\n{text}\n<!-- end -->" in pages


def test_published_and_mask_ends_as_nan_where_ours_does_not() -> None:
    # Trial 1 on data seed 6 of Example3, by the published formulas: in float32 a gradient becomes 0 / 0.
    torch = pytest.importorskip("torch", reason="the published arithmetic is torch's")
    subject = jobs.Subject.of("AND-mask")
    job = jobs.Job(subject, "Example3", 5, 5, 3, "paper", "samples", 10_000, 2, 400, "torch", "invariant", 0, 6)
    trial = job.trials()[1]
    start = torch.from_numpy(job.starts(10)[1].astype(np.float32))
    rows = [
        (torch.from_numpy(np.ascontiguousarray(e.X)), torch.from_numpy(e.y.astype(np.float32)))
        for e in job.data.rows("train")
    ]
    w, b = start[:10].clone(), start[10:].clone()
    for _ in range(job.n_steps):
        gradients = []
        for X, y in rows:
            residual = (torch.sigmoid(X @ w + b) - y) / len(y)
            of_w = residual @ X
            gradients.append(torch.cat([of_w / of_w.norm(), residual.sum()[None]]))
        stacked = torch.stack(gradients)
        step = stacked.mean(0) * (stacked.sign().sum(0).abs() > trial["tau"] * 3)
        w = w - trial["lr"] * step[:10] - trial["lr"] * trial["weight_decay"] * w
        b = b - trial["lr"] * step[10:] - trial["lr"] * trial["weight_decay"] * b
    assert w.isnan().all()
    found = jobs.run_job(job)
    assert not found["diverged"][1]
    assert np.isfinite(found["test"][1]).all()
