"""The 360 trainings of Steinbach et al. (2022): their figures, and what docs/findings.md says of them."""

from __future__ import annotations

import csv
import json
import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from conftest import ROOT, golden_cases

from milfast.uncertainty import sota, variance_components

if TYPE_CHECKING:
    from pathlib import Path

RECORD = ROOT / "docs" / "results" / "sota-uncertainties.json"
PAGE = ROOT / "docs" / "findings.md"

#: As printed in the paper's workflow and found when its predictions were looked at by other means.
MEANS = {"resnet50": (0.903317, 0.901177), "resnext50": (0.935271, 0.938705), "vit_small": (0.738243, 0.737112)}
DEVIATIONS = {"resnet50": (0.010638, 0.012989), "resnext50": (0.012191, 0.011258), "vit_small": (0.016840, 0.020007)}
EQUATION_1 = {"resnet50": (0.011417, 0.011529), "resnext50": (0.009506, 0.009267), "vit_small": (0.016983, 0.017006)}
RATIOS = {
    "resnet50": (0.932, 1.134, 1.025, 1.319, 1.213, 1.192),
    "resnext50": (1.282, 1.255, 1.190, 1.163, 1.238, 1.199),
    "vit_small": (0.992, 1.348, 1.241, 1.303, 1.203, 1.043),
}


@cache
def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return stored()


def close(ours: Any, theirs: Any) -> bool:
    """Whether two plain values agree, floats up to what another order of adding makes of them."""
    if isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(close(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    if isinstance(theirs, float) and isinstance(ours, float):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)
    return bool(ours == theirs)


def test_accuracies_are_those_of_the_workflow_to_the_last_digits(mil_data: Path) -> None:
    trainings = sota.load(mil_data)
    ours = sota.accuracies(trainings)
    with (mil_data / "uncertainty" / "imagenette2_last_metrics.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == ours.size == 360
    for row in rows:
        at = trainings.archs.index(row["arch"]), trainings.seeds.index(int(row["seed"])), int(row["fold"])
        assert ours[at] == pytest.approx(float(row["val_accuracy"]), abs=2e-16)
    figure = sota.figure_5(trainings)
    for name, which in (("_and_seeds", "all"), ("_for_seed_42", "seed_42")):
        path = mil_data / "uncertainty" / f"imagenette2_last_meanstd_across_folds{name}.csv"
        with path.open(newline="") as stream:
            for row in csv.DictReader(stream):
                point = figure[row["arch"]][which]
                assert point["mean"] == pytest.approx(float(row["val_accuracy_mean"]), rel=1e-14)
                assert point["sd"] == pytest.approx(float(row["val_accuracy_std"]), rel=1e-12)


def test_equation_1_is_golden() -> None:
    for case in golden_cases("seed_eq1"):
        given, expected = case["inputs"], case["expected"]
        for z, key in ((1, "z1"), (1.96, "z1_96"), (2, "z2")):
            assert sota.equation_1(given["acc"], given["n_holdout"], z) == pytest.approx(expected[key], rel=case["tol"])


def test_figures_1_and_5_have_the_known_numbers(found: dict[str, Any]) -> None:
    for arch, figure in found["figure_5"].items():
        for at, which in enumerate(("seed_42", "all")):
            point = figure[which]
            assert round(point["mean"], 6) == MEANS[arch][at]
            assert round(point["sd"], 6) == DEVIATIONS[arch][at]
            assert round(point["equation_1"], 6) == EQUATION_1[arch][at]
        assert tuple(round(ratio, 3) for ratio in figure["seed_ratios"]) == RATIOS[arch]
        assert [round(bound, 3) for bound in figure["ratio_by_chance"]] == [0.685, 1.315]
        assert found["figure_1"][arch]["mean"] == figure["seed_42"]["mean"]
        assert found["figure_1"][arch]["sd"] == figure["seed_42"]["sd"]


def test_figure_2_has_the_known_numbers(found: dict[str, Any]) -> None:
    points = found["figure_2"]
    assert [point["msa"] for point in points] == [0, 1, 2, 3, 4, 4, 5, 5, 5]
    assert [round(100 * point["accuracy"], 4) for point in points] == [
        82.4825, 83.4486, 83.6542, 83.7687, 83.5175, 84.0164, 83.1869, 83.3879, 83.7967,
    ]  # fmt: skip
    assert [round(points[0][f"{end}_2"], 5) for end in ("low", "high")] == [0.81722, 0.83243]
    assert [round(points[5][f"{end}_2"], 5) for end in ("low", "high")] == [0.83283, 0.84749]
    assert [point["overlaps"] for point in points[1:]] == [True, True, True, True, False, True, True, True]
    assert [round(point["p_value"], 4 if point["p_value"] < 0.01 else 3) for point in points[1:]] == [
        0.069, 0.027, 0.015, 0.051, 0.0037, 0.187, 0.089, 0.013,
    ]  # fmt: skip
    assert points[0]["high_2"] < points[5]["low_2"]
    a, b = points[0]["accuracy"], points[5]["accuracy"]
    assert a + sota.equation_1(a, sota.CIFAR_100, 1.96) < b - sota.equation_1(b, sota.CIFAR_100, 1.96)


def test_figure_4_has_the_known_numbers(found: dict[str, Any]) -> None:
    one = [round(row["seed_42"]["p_value"], 2) for row in found["figure_4"].values()]
    assert one == [0.34, 0.34, 0.06]
    assert [float(f"{row['all']['p_value']:.0e}") for row in found["figure_4"].values()] == [5e-5, 6e-4, 6e-3]
    assert [(row["lowest_fold"], round(row["lowest_fold_mean"], 4)) for row in found["figure_4"].values()] == [
        (4, 0.8654), (4, 0.9097), (4, 0.6878),
    ]  # fmt: skip
    for row in found["figure_4"].values():
        assert 0.93 < row["seed_42"]["correlation"] < row["all"]["correlation"] < 0.99


def test_the_paired_comparison_has_the_known_numbers(found: dict[str, Any]) -> None:
    pair = found["paired"]
    whole = pair["mcnemar"]
    assert (whole["details"]["first_only"], whole["details"]["second_only"]) == (696, 268)
    assert whole["p_value"] == pytest.approx(1.6965194e-44, rel=1e-7)
    assert [round(whole["difference"][name], 4) for name in ("estimate", "low", "high")] == [0.0320, 0.0274, 0.0365]
    assert (round(pair["paired_se"], 5), round(pair["unpaired_se"], 5)) == (0.00230, 0.00332)
    assert (pair["folds_below_0.05"], pair["folds_disjoint_1_sigma"]) == (18, 18)
    assert pair["corrected_t"]["statistic"] == pytest.approx(10.435274844867726, rel=1e-12)
    assert pair["corrected_t"]["p_value"] == pytest.approx(2.6380467815e-09, rel=1e-9)
    assert round(pair["naive_t"]["statistic"], 2) == 14.95
    assert pair["same_fold_any_seeds"]["probability"]["estimate"] == 1.0
    assert round(pair["any_fold_any_seeds"]["probability"]["estimate"], 3) == 0.983
    assert sorted(round(r, 2) for r in pair["correlation_of_folds"].values()) == [0.75, 0.82, 0.84]
    for name in ("both", "first_only", "second_only", "neither"):
        assert sum(fold[name] for fold in pair["folds"]) == whole["details"][name]


def test_the_variances_have_the_known_numbers(found: dict[str, Any]) -> None:
    parts = found["variance"]
    assert [[round(100 * share, 1) for share in part["shares"]] for part in parts.values()] == [
        [0.6, 83.6, 15.8], [2.4, 78.3, 19.3], [0.0, 69.3, 30.7],
    ]  # fmt: skip
    assert [round(part["p_seed"], 3) for part in parts.values()] == [0.126, 0.006, 0.491]
    assert all(part["p_fold"] < 1e-19 for part in parts.values())
    assert [round(part["se"], 5) for part in parts.values()] == [0.00278, 0.00243, 0.00392]
    assert [round(part["naive_se"], 5) for part in parts.values()] == [0.00119, 0.00103, 0.00183]
    assert [round(part["binomial_se"], 5) for part in parts.values()] == [0.00258, 0.00207, 0.00380]
    for part in parts.values():
        _, low, high = part["sd_of_dealt_folds"]
        assert low < part["sd_of_folds"] < high
    assert parts["resnet50"]["sd_of_dealt_folds"] == pytest.approx([0.0102, 0.0072, 0.0134], abs=2.5e-4)
    assert [round(gain, 4) for gain in found["checkpoints"].values()] == [0.0051, 0.0042, 0.0070]
    alike = found["seeds_alike"].values()
    assert [round(row["jaccard"], 3) for row in alike] == [0.624, 0.564, 0.621]
    assert [round(row["mean_errors"], 1) for row in alike] == [1323.7, 821.0, 3521.2]
    assert [row["pairs_below_0.05"] for row in alike] == [0, 5, 1]


def test_the_counts_of_the_record_give_its_other_numbers(found: dict[str, Any]) -> None:
    assert sum(found["fold_sizes"]) == sum(found["class_sizes"]) == 13394
    for arch, counts in found["right"].items():
        runs = np.array(counts) / found["fold_sizes"]
        assert runs[0].mean() == pytest.approx(found["figure_5"][arch]["seed_42"]["mean"], rel=1e-14)
        assert runs.std(ddof=1) == pytest.approx(found["figure_5"][arch]["all"]["sd"], rel=1e-12)
        assert variance_components(runs).se == pytest.approx(found["variance"][arch]["se"], rel=1e-9)


# ---------------------------------------------------------------- the page and the command


def test_the_table_of_the_page_is_the_record(found: dict[str, Any]) -> None:
    rows = re.findall(
        r"^\| (\w+) \| (seed 42|all 120) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    expected = []
    for arch, figure in found["figure_5"].items():
        for which, title in (("seed_42", "seed 42"), ("all", "all 120")):
            p = figure[which]
            cells = f"{p['mean']:.6f} | {p['sd']:.6f} | {p['equation_1']:.6f} | {p['ratio']:.3f}"
            expected.append((arch, title, cells))
    assert rows == expected


def test_every_quotation_of_the_page_has_its_place_and_every_example_its_output() -> None:
    text = PAGE.read_text(encoding="utf-8")
    quoted = re.findall(r"(?:^> .*\n)+", text, flags=re.MULTILINE)
    assert len(quoted) == 3
    assert all(re.search(r"\(section \d", quotation) for quotation in quoted)


def test_one_command_writes_the_figures_and_the_record_again(
    mil_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    assert sota.main([str(tmp_path / "new"), "--data", str(mil_data)]) == 0
    written = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert written == [*(f"sota-figure-{n}.svg" for n in range(1, 6)), "sota-uncertainties.json"]
    out = capsys.readouterr().out
    assert "resnext50     seed 42  0.935271  0.012191  0.009506    1.282" in out
    ours = json.loads((tmp_path / "new" / "sota-uncertainties.json").read_text())
    assert list(ours) == list(stored())
    for name, part in stored().items():
        assert close(ours[name], part), name


def test_absent_data_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"sota_predictions\.npz is not in .*MILFAST_DATA"):
        sota.load(tmp_path)


def test_the_command_says_what_is_missing_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        sota.main([str(tmp_path / "new"), "--data", str(tmp_path)])
    assert stop.value.code == 2
    assert "error: sota_predictions.npz is not in" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
