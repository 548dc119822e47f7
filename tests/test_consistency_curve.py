"""The down-sampling study: what is drawn, what is counted, and correlations in moving windows."""

from __future__ import annotations

import json
import math
import sys
import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import pearsonr
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from milfast.consistency import ConsistencyCurve, consistency_curve, cross_validate_consistency
from milfast.consistency import curve as module
from milfast.consistency.rolling import rolling
from milfast.seeding import seed_sequence, seed_value

X, Y = make_classification(120, n_features=5, flip_y=0.2, random_state=0)


def drawn(**options: Any) -> ConsistencyCurve:
    given = {"proportions": 6, "runs": 4, "cv": 3, "random_state": 1} | options
    return consistency_curve(GaussianNB(), X, Y, **given)


def figures(curve: ConsistencyCurve) -> dict[str, Any]:
    return {name: value for name, value in curve.to_dict().items() if name != "seconds"}


# ---------------------------------------------------------------- what is drawn


@given(st.lists(st.integers(2, 30), min_size=1, max_size=5), st.floats(0.05, 1), st.integers(0, 5), st.booleans())
def test_subsets_have_their_size_and_their_share_of_every_class(
    sizes: list[int], proportion: float, seed: int, shuffled: bool
) -> None:
    y = np.repeat(np.arange(len(sizes)), sizes)
    y = np.random.default_rng(seed).permutation(y) if shuffled else y
    size = max(1, math.floor(proportion * len(y)))
    rows = module._draw(size, y, None, True, np.random.SeedSequence(seed))
    assert len(rows) == size
    assert (np.diff(rows) > 0).all()
    assert np.abs(np.bincount(y[rows], minlength=len(sizes)) - np.array(sizes) * size / len(y)).max() < 1
    plain = module._draw(size, y, None, False, np.random.SeedSequence(seed))
    assert len(np.unique(plain)) == len(plain) == size


def test_every_sample_is_as_likely_to_be_drawn() -> None:
    y = np.repeat([0, 1], [30, 10])
    for stratify in (True, False):
        counts = np.zeros(40)
        for i in range(2000):
            counts[module._draw(20, y, None, stratify, np.random.SeedSequence(i))] += 1
        assert np.abs(counts / 2000 - 0.5).max() < 5 * 0.5 / math.sqrt(2000)


def test_groups_are_drawn_whole() -> None:
    groups = np.random.default_rng(0).integers(0, 30, 120)
    for seed in range(20):
        rows = module._draw(70, Y, groups, True, np.random.SeedSequence(seed))
        assert not set(groups[rows]) & set(np.delete(groups, rows))
        assert abs(len(rows) - 70) <= np.bincount(groups).max() / 2 + 0.5
    curve = drawn(groups=groups, proportions=[0.5, 0.8])
    assert np.abs(curve.n_samples - [60, 96]).max() < 6


def test_more_subsets_keep_those_of_fewer() -> None:
    few, many = drawn(proportions=4), drawn(proportions=7)
    kept = np.isin(many.proportions, few.proportions)
    assert kept.sum() == 4
    for name in ("n_samples", "errors", "intersections", "unions"):
        np.testing.assert_array_equal(getattr(many, name)[kept], getattr(few, name))
    assert (np.diff(many.proportions) > 0).all()
    assert ((many.proportions >= 0.5) & (many.proportions <= 0.9)).all()


def test_proportions_fill_their_range_evenly() -> None:
    shares = module._proportions(200, 0.5, 0.9, 3)
    assert np.bincount(((shares - 0.5) / 0.4 * 20).astype(int), minlength=20).tolist() == pytest.approx(
        [10] * 20, abs=2
    )
    assert module._proportions(200, 0.5, 0.9, 4).tolist() != shares.tolist()


def test_proportions_of_ones_own_are_kept_with_their_order_of_seeds() -> None:
    curve = drawn(proportions=[0.9, 0.5, 0.7, 1.0])
    assert curve.proportions.tolist() == [0.5, 0.7, 0.9, 1.0]
    assert curve.n_samples.tolist() == [60, 84, 108, 120]
    np.testing.assert_array_equal(curve.errors[2], drawn(proportions=[0.9]).errors[0])


# ---------------------------------------------------------------- what is counted


@pytest.mark.parametrize("subset", ["shared", "each-run"])
def test_counts_are_those_of_plain_sets(subset: Any) -> None:
    curve = drawn(subset=subset, proportions=[0.6, 0.8], random_state=5)
    for place, size in enumerate((72, 96)):
        sets: list[tuple[set[int], set[int]]] = []
        for run in range(1 if subset == "shared" else 4):
            rows = module._draw(size, Y, None, True, seed_sequence(5, module.SUBSET, place, run))
            found = cross_validate_consistency(
                GaussianNB(),
                X[rows],
                Y[rows],
                cv=3,
                repeats=4 if subset == "shared" else 1,
                random_state=seed_value(5, module.RUNS, place, run),
            )
            sets += [(set(rows.tolist()), set(rows[wrong].tolist())) for wrong in found.error_sets()]
        assert curve.errors[place].tolist() == [len(errors) for _, errors in sets]
        pairs = list(combinations(sets, 2))
        common = [a[0] & b[0] for a, b in pairs]
        both = [len(a[1] & b[1]) for a, b in pairs]
        either = [len((a[1] | b[1]) & known) for (a, b), known in zip(pairs, common, strict=True)]
        assert curve.intersections[place].tolist() == both
        assert curve.unions[place].tolist() == either
        assert curve.consistency[place] == pytest.approx(np.mean(np.array(both) / np.array(either)), rel=1e-14)
        accuracies = [1 - len(errors) / size for _, errors in sets]
        assert curve.accuracy[place] == pytest.approx(np.mean(accuracies), rel=1e-14)
        assert curve.pair_accuracies[place] == pytest.approx([(a + b) / 2 for a, b in combinations(accuracies, 2)])
        assert curve.accuracies[place] == pytest.approx(accuracies)
    assert np.unique(curve.n_samples).tolist() == [72, 96]
    if subset == "each-run":
        assert (curve.unions < curve.errors.max()).any()


def test_the_number_of_processes_does_not_matter() -> None:
    estimator = LogisticRegression(solver="saga", max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # five iterations are too few
        one, two = (
            consistency_curve(estimator, X, Y, proportions=4, runs=2, cv=2, random_state=0, n_jobs=n) for n in (1, 2)
        )
    assert figures(one) == figures(two)


def test_warnings_of_the_model_are_told_once() -> None:
    with pytest.warns(UserWarning, match="failed to converge") as caught:
        consistency_curve(
            LogisticRegression(solver="lbfgs", max_iter=1), X, Y, proportions=3, runs=2, cv=2, random_state=0
        )
    assert len(caught) == 1


def test_labels_may_be_strings_and_data_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    words = np.where(Y == 1, "sick", "fit")  # in the same order
    frame = pandas.DataFrame(X, columns=list("abcde"))
    other = consistency_curve(GaussianNB(), frame, words, proportions=6, runs=4, cv=3, random_state=1)
    assert figures(other) == figures(drawn())


def test_a_constant_classifier_is_flagged() -> None:
    with pytest.warns(UserWarning, match="for every sample"):
        curve = consistency_curve(DummyClassifier(), X, Y, proportions=3, runs=2, cv=2, random_state=0)
    assert curve.constant.all()
    assert curve.consistency.tolist() == [1.0] * 3
    assert "AEC of 1 means nothing" in curve.summary()
    assert math.isnan(curve.correlations()["pairs"]["accuracy, consistency"])


def test_subsets_without_errors_have_no_consistency() -> None:
    y = np.repeat([0, 1], 40)
    curve = consistency_curve(
        GaussianNB(),
        y[:, np.newaxis] + np.linspace(0, 0.1, 80)[:, np.newaxis],
        y,
        proportions=3,
        runs=3,
        cv=2,
        random_state=0,
    )
    assert curve.accuracy.tolist() == [1.0] * 3
    assert np.isnan(curve.consistency).all()
    assert curve.table()["n_undefined"].tolist() == [3] * 3
    assert np.isnan(curve.lowess().consistency).all()
    assert curve.lowess().to_dict()["consistency"] == [None] * 3
    assert "AEC undefined" in repr(curve)


# ---------------------------------------------------------------- tables and texts


def test_tables_are_data_frames_where_pandas_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    curve = drawn()
    table, pairs = curve.table(), curve.pairs()
    assert isinstance(table, pandas.DataFrame)
    assert len(pairs) == 6 * 6
    of = pairs.groupby("proportion")
    np.testing.assert_allclose(of["consistency"].mean(), table["consistency"])
    np.testing.assert_allclose(of["accuracy"].mean(), table["accuracy"])
    np.testing.assert_allclose(of["consistency"].std(), table["consistency_sd"])
    np.testing.assert_allclose(curve.accuracies.std(axis=1, ddof=1), table["accuracy_sd"])
    for row in pairs.itertuples():
        place = int(np.searchsorted(curve.proportions, row.proportion))
        runs = curve.accuracies[place]
        assert row.accuracy == pytest.approx((runs[row.first] + runs[row.second]) / 2)
    monkeypatch.setitem(sys.modules, "pandas", None)
    bare = curve.table()
    assert isinstance(bare, dict)
    assert {name: column.tolist() for name, column in bare.items()} == {n: table[n].tolist() for n in table.columns}


def test_runs_of_groups_of_their_own_differ_in_size() -> None:
    groups = np.random.default_rng(0).choice(25, size=120, p=[0.28, *[0.03] * 24])
    curve = drawn(subset="each-run", groups=groups, proportions=[0.5, 0.8])
    for i, size in enumerate((60, 96)):
        plain = []
        for run in range(4):
            rows = module._draw(size, Y, groups, True, seed_sequence(1, module.SUBSET, i, run))
            own = cross_validate_consistency(
                GaussianNB(),
                X[rows],
                Y[rows],
                cv=3,
                repeats=1,
                groups=groups[rows],
                random_state=seed_value(1, module.RUNS, i, run),
            )
            plain.append((len(rows), own.accuracy))
        sizes, accuracies = np.array(plain).T
        assert len(set(sizes)) > 1
        assert curve.run_samples[i].tolist() == sizes.tolist()
        assert curve.n_samples[i] == round(sizes.mean())
        np.testing.assert_allclose(curve.accuracies[i], accuracies, rtol=1e-15)
        assert curve.accuracy[i] == pytest.approx(accuracies.mean(), rel=1e-15)
        of_pairs = [(a + b) / 2 for a, b in combinations(accuracies, 2)]
        np.testing.assert_allclose(curve.pair_accuracies[i], of_pairs, rtol=1e-15)
    assert ConsistencyCurve.from_dict(curve.to_dict()).to_dict() == curve.to_dict()


def test_a_curve_survives_json() -> None:
    curve = drawn()
    older = {name: value for name, value in curve.to_dict().items() if name != "run_samples"}
    assert ConsistencyCurve.from_dict(older).to_dict() == curve.to_dict()
    again = ConsistencyCurve.from_dict(json.loads(json.dumps(curve.to_dict(), allow_nan=False)))
    assert again.to_dict() == curve.to_dict()
    np.testing.assert_array_equal(again.pair_consistencies, curve.pair_consistencies)
    assert repr(again) == repr(curve)
    assert "6 subsets" in curve.summary()
    assert curve._repr_html_().startswith("<span>GaussianNB on 6 subsets")


def test_correlations_are_pearsons() -> None:
    curve = drawn()
    found = curve.correlations()
    table, pairs = curve.table(), curve.pairs()
    for of, points in (("means", table), ("pairs", pairs)):
        for pair, r in found[of].items():
            assert r == pytest.approx(pearsonr(*(points[name] for name in pair.split(", "))).statistic, rel=1e-12)


def test_progress_is_told() -> None:
    told: list[tuple[int, int, str]] = []
    drawn(callback=lambda *what: told.append(what))
    assert [(done, total) for done, total, _ in told] == [(i, 6) for i in range(1, 7)]
    assert told[0][2].endswith("of 120 samples")
    windows: list[tuple[int, int]] = []
    drawn().rolling_correlation([3, 4], n_boot=10, random_state=0, callback=lambda *what: windows.append(what))
    assert windows == [(4, 7), (7, 7)]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"runs": 1}, ValueError, "runs must be an integer of at least 2; got 1"),
        ({"subset": "own"}, ValueError, "subset must be one of shared, each-run; got 'own'"),
        ({"proportions": 0}, ValueError, "proportions must be an integer of at least 1; got 0"),
        ({"proportions": 2.5}, ValueError, "proportions must be an integer"),
        ({"proportions": [0.5, 1.5]}, ValueError, r"proportions\[1\] is 1.5"),
        ({"proportions": [math.nan]}, ValueError, r"proportions\[0\] is nan"),
        ({"proportions": []}, ValueError, "proportions must be a number, or have shape"),
        ({"proportions": ["half"]}, TypeError, "proportions cannot be read as numbers"),
        ({"low": 0.9, "high": 0.5}, ValueError, "low and high must be in ascending order"),
        ({"proportions": [0.04]}, ValueError, "the smallest subset would have 4 of 120 samples, too few for cv=3"),
        ({"cv": 40}, ValueError, "the smallest subset would have"),
        ({"cv": 1}, ValueError, "cv must be at least 2"),
        ({"random_state": -1}, ValueError, "random_state must not be negative"),
        ({"groups": [1, 2]}, ValueError, "groups"),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(
    options: dict[str, Any], error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "stream", lambda *_, **__: pytest.fail("work was done"))
    with pytest.raises(error, match=message):
        drawn(**options)


def test_a_rare_class_is_refused_with_a_way_out() -> None:
    y = np.repeat([0, 1], [114, 6])
    with pytest.raises(ValueError, match="class 1 has 6 of 120 samples, which leaves fewer than cv=4 in a subset of"):
        consistency_curve(GaussianNB(), X, y, cv=4, random_state=0)
    with pytest.raises(TypeError, match="instance"):
        consistency_curve(GaussianNB, X, Y)


# ---------------------------------------------------------------- smooth lines and moving windows


def test_smooth_lines_are_those_of_lowess() -> None:
    from milfast.consistency import lowess

    curve = drawn(proportions=12)
    smooth = curve.lowess(frac=0.5, it=2)
    np.testing.assert_array_equal(smooth.accuracy, lowess(curve.proportions, curve.accuracy, frac=0.5, it=2))
    np.testing.assert_array_equal(smooth.consistency, lowess(curve.proportions, curve.consistency, frac=0.5, it=2))


def by_hand(points: Any, window: int, n_boot: int, step: int, level: float, seed: int) -> Any:
    """Resample by resample: points are repeated as often as they are drawn."""
    weights = np.random.default_rng(seed).multinomial(window, np.full(window, 1 / window), size=n_boot)
    n = len(points[0])
    found = []
    for start in range(0, n - window + 1, step):
        inside = np.arange(start, start + window)
        row = [points[0][inside].mean()]
        for values in points[1:]:
            rs = []
            for resample in [np.ones(window, dtype=int), *weights]:
                rows = np.repeat(inside, resample[inside % window])
                x, y = points[0][rows], values[rows]
                rs.append(math.nan if np.ptp(x) == 0 or np.ptp(y) == 0 else np.corrcoef(x, y)[0, 1])
            known = np.array(rs[1:])[np.isfinite(rs[1:])]
            ends = np.quantile(known, [(1 - level) / 2, (1 + level) / 2]) if len(known) else [math.nan] * 2
            mean = known.mean() if len(known) else math.nan
            row += [rs[0], mean, *ends, n_boot - len(known)]
        found.append(row)
    return np.array(found).T


@given(st.integers(0, 10_000), st.integers(3, 12), st.integers(0, 25), st.integers(1, 3), st.integers(1, 12))
def test_windows_are_those_made_by_hand(seed: int, window: int, more: int, step: int, kinds: int) -> None:
    rng = np.random.default_rng(seed)
    n = window + more
    points = [np.sort(rng.integers(0, 3 * kinds, n) / 8), rng.integers(0, kinds, n) / 3, rng.random(n)]
    found = rolling(
        *points,
        of="means",
        window=window,
        n_boot=9,
        step=step,
        level=0.8,
        generator=np.random.default_rng(seed),
    )
    expected = by_hand(points, window, 9, step, 0.8, seed)
    np.testing.assert_allclose(found.proportion, expected[0], rtol=1e-12)
    for band, rows in ((found.accuracy, expected[1:6]), (found.consistency, expected[6:])):
        for name, row in zip(("r", "mean", "low", "high", "n_undefined"), rows, strict=True):
            np.testing.assert_allclose(getattr(band, name), row, rtol=1e-7, atol=1e-7, err_msg=name)


def test_long_curves_keep_their_digits() -> None:
    """Sums are brought forward over thousands of windows; the last ones must be as good as the first."""
    rng = np.random.default_rng(0)
    points = [np.sort(rng.uniform(0.5, 0.9, 4000)), rng.normal(0.8, 0.01, 4000), rng.normal(0.9, 0.02, 4000)]
    found = rolling(*points, of="pairs", window=40, n_boot=20, step=1, level=0.9, generator=np.random.default_rng(3))
    last = [values[-300:] for values in points]
    rolled = np.roll(np.random.default_rng(3).multinomial(40, np.full(40, 1 / 40), size=20), -(3700 % 40), axis=1)
    for start in (0, 260):
        inside = slice(start, start + 40)
        for band, values in ((found.accuracy, last[1]), (found.consistency, last[2])):
            rs = []
            for resample in rolled:
                rows = np.repeat(np.arange(start, start + 40), resample[np.arange(start, start + 40) % 40])
                rs.append(np.corrcoef(last[0][rows], values[rows])[0, 1])
            assert band.r[3700 + start] == pytest.approx(np.corrcoef(last[0][inside], values[inside])[0, 1], abs=1e-9)
            assert band.mean[3700 + start] == pytest.approx(np.mean(rs), abs=1e-9)


def test_bands_are_those_of_independent_resamples() -> None:
    rng = np.random.default_rng(7)
    points = [np.sort(rng.random(60)), rng.random(60), rng.random(60)]
    found = rolling(*points, of="means", window=30, n_boot=4000, step=15, level=0.9, generator=rng)
    for i, start in enumerate((0, 15, 30)):
        draws = rng.integers(start, start + 30, (4000, 30))
        rs = np.array([np.corrcoef(points[0][rows], points[1][rows])[0, 1] for rows in draws])
        assert found.accuracy.mean[i] == pytest.approx(rs.mean(), abs=5 * rs.std() * math.sqrt(2 / 4000))
        for end, share in ((found.accuracy.low[i], 0.05), (found.accuracy.high[i], 0.95)):
            # what share of the independent resamples lies below the end
            assert (rs < end).mean() == pytest.approx(share, abs=5 * math.sqrt(2 * share * (1 - share) / 4000))


def test_quantities_that_do_not_vary_have_no_correlation() -> None:
    proportion = np.linspace(0.5, 0.9, 30)
    constant = np.full(30, 1 / 3)
    found = rolling(
        proportion,
        constant,
        proportion**2,
        of="means",
        window=10,
        n_boot=50,
        step=1,
        level=0.95,
        generator=np.random.default_rng(0),
    )
    assert np.isnan(found.accuracy.r).all()
    assert (found.accuracy.n_undefined == 50).all()
    assert (found.consistency.r > 0.99).all()
    assert found.accuracy.to_dict()["r"] == [None] * 21
    assert np.isnan(found.lowess().accuracy.mean).all()
    assert "undefined" in repr(found)
    assert "undefined everywhere" in repr(found.accuracy)


def test_windows_of_a_curve() -> None:
    curve = drawn(proportions=12)
    pairs = curve.rolling_correlation(20, of="pairs", n_boot=30, step=5, random_state=2)
    assert [(r.window, r.of, len(r.proportion)) for r in pairs] == [(20, "pairs", 11)]
    again = curve.rolling_correlation([8, 20], of="pairs", n_boot=30, step=5, random_state=2)[1]
    assert again.to_dict() == pairs[0].to_dict()
    assert curve.rolling_correlation(20, of="pairs", n_boot=30, step=5, random_state=3)[0].to_dict() != again.to_dict()
    assert [r.window for r in curve.rolling_correlation([3, 12], n_boot=5, random_state=0)] == [3, 12]
    whole = curve.rolling_correlation(12, n_boot=5, random_state=0)[0]
    assert whole.accuracy.r[0] == pytest.approx(curve.correlations()["means"]["proportion, accuracy"], rel=1e-12)
    assert "windows of 12 means" in whole.summary()
    json.dumps(whole.to_dict(), allow_nan=False)
    smooth = pairs[0].lowess()
    assert np.ptp(np.diff(smooth.accuracy.mean)) < np.ptp(np.diff(pairs[0].accuracy.mean))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"of": "runs"}, "of must be one of means, pairs; got 'runs'"),
        ({"windows": 7}, "windows must not exceed the number of means, 6; got 7"),
        ({}, "windows must not exceed the number of means, 6; got 10"),
        ({"windows": 2}, "windows must be an integer of at least 3; got 2"),
        ({"windows": [3, 4.5]}, "windows must be an integer"),
        ({"windows": 4, "n_boot": 0}, "n_boot must be"),
        ({"windows": 4, "step": True}, "step must be"),
        ({"windows": 4, "level": 1}, "level must lie strictly between 0 and 1"),
    ],
)
def test_wrong_windows_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        drawn().rolling_correlation(**arguments)
