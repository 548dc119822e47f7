"""`milfast compare`: files joined by item, and what comes out."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import milfast as mf
from milfast import cli
from milfast.prediction_files import read_predictions

RNG = np.random.default_rng(0)
LABELS = np.arange(120) % 2
SCORES = {name: (2 - k) * LABELS + RNG.normal(size=120) for k, name in enumerate(("ours", "theirs", "third"))}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path


def write(name: str, rows: list[dict[str, Any]]) -> str:
    with open(name, "w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return name


def rows_of(model: str, order: Any = range(120), **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"x{i}", "label": LABELS[i], "score": SCORES[model][i], **{n: v[i] for n, v in more.items()}}
        for i in order
    ]


def two(**more: Any) -> list[str]:
    return [write("ours.csv", rows_of("ours", **more)), write("theirs.csv", rows_of("theirs", **more))]


def result_of(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[dict[str, Any]]:
    assert cli.main(["compare", *arguments, "--format", "json"]) == status
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return rows


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["compare", *arguments]) == 2
    return capsys.readouterr().err


# ---------------------------------------------------------------- joining


def test_rows_are_joined_by_id_whatever_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    write("ours.csv", rows_of("ours"))
    write("theirs.csv", rows_of("theirs", np.random.default_rng(1).permutation(120)))
    rows = result_of(capsys, "ours.csv", "theirs.csv")
    assert rows == mf.compare({n: SCORES[n] for n in ("ours", "theirs")}, LABELS).table()


def test_without_ids_rows_are_taken_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ours", "theirs"):
        write(f"{name}.csv", [{"y": row["label"], "prediction": row["score"]} for row in rows_of(name)])
    rows = result_of(capsys, "ours.csv", "theirs.csv")
    assert rows == mf.compare({n: SCORES[n] for n in ("ours", "theirs")}, LABELS).table()
    write("theirs.csv", [{"y": row["label"], "prediction": row["score"]} for row in rows_of("theirs")[1:]])
    assert "theirs.csv, line 2: label '1' where ours.csv, line 2 has '0'" in refused(capsys, "ours.csv", "theirs.csv")
    write("theirs.csv", [{"y": row["label"], "prediction": row["score"]} for row in rows_of("theirs")[:-1]])
    assert "theirs.csv has 119 rows and ours.csv has 120" in refused(capsys, "ours.csv", "theirs.csv")


def test_one_file_may_hold_several_models(capsys: pytest.CaptureFixture[str]) -> None:
    table = [{"id": i, "label": LABELS[i], **{n: v[i] for n, v in SCORES.items()}} for i in range(120)]
    rows = result_of(capsys, write("all.csv", table))
    assert rows == mf.compare(SCORES, LABELS).table()
    some = result_of(capsys, "all.csv", "--scores", "third", "ours")
    assert [row["what"] for row in some] == ["third", "ours", "third - ours"]


def test_seeds_folds_and_clusters_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    noise = {name: rng.normal(size=(2, 120)) for name in ("ours", "theirs")}
    for name in noise:
        table = [
            {"seed": s, "id": i, "fold": i // 2 % 5, "label": LABELS[i], "score": SCORES[name][i] + noise[name][k, i]}
            for k, s in enumerate((42, 7))
            for i in rng.permutation(120)
        ]
        write(f"{name}.csv", table)
    rows = result_of(capsys, "ours.csv", "theirs.csv")
    expected = mf.compare(
        {n: SCORES[n] + noise[n] for n in noise}, LABELS, folds=np.arange(120) // 2 % 5, seeds=(42, 7)
    )
    for row, other in zip(rows, expected.table(), strict=True):
        for name, value in other.items():
            assert row[name] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value)
    files = two(patient=np.arange(120) // 6)
    clustered = mf.compare(
        {n: SCORES[n] for n in ("ours", "theirs")}, LABELS, clusters=np.arange(120) // 6, n_boot=500, random_state=4
    )
    assert result_of(capsys, *files, "--resamples", "500", "--seed", "4") == clustered.table()


def test_labels_and_words(capsys: pytest.CaptureFixture[str]) -> None:
    words = np.array(["well", "ill"])
    for k, name in enumerate(("ours", "theirs")):
        guessed = np.where(np.arange(120) % (9 - 3 * k) == 0, 1 - LABELS, LABELS)
        write(f"{name}.csv", [{"label": words[LABELS[i]], "prediction": words[guessed[i]]} for i in range(120)])
    rows = result_of(capsys, "ours.csv", "theirs.csv")
    assert rows[2]["method"] == "mid-p McNemar"
    files = two(diagnosis=words[LABELS])
    with_words = result_of(capsys, *files, "--labels", "diagnosis", "--pos-label", "ill")
    assert with_words == mf.compare({n: SCORES[n] for n in ("ours", "theirs")}, LABELS).table()


def test_large_whole_numbers_keep_their_digits() -> None:
    big = 2**53
    table = [{"label": i % 2, "a": big + i, "b": big + 4 - i} for i in range(4)]
    read = read_predictions([write("big.csv", table)], columns={}, text_labels=False)
    assert read.predictions["a"][0].tolist() == [big, big + 1, big + 2, big + 3]


# ---------------------------------------------------------------- output


def test_the_table_the_warnings_and_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", *two()]) == 0
    out, err = capsys.readouterr()
    assert "ours - theirs" in out
    assert "DeLong" in out
    assert "milfast: warning: one training run a model" in err
    few = [{"label": int(i == 0), "a": i, "b": -i} for i in range(5)]
    assert cli.main(["compare", write("few.csv", few)]) == 1
    assert "undefined" in capsys.readouterr().out


def test_any_undefined_test_shows_in_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    files = [write("ours.csv", rows_of("ours")), write("copy.csv", rows_of("ours"))]
    assert cli.main(["compare", *files]) == 0  # p = 1
    # equal scores have no standard error, so nothing says that they are equal up to a margin
    assert cli.main(["compare", *files, "--margin", "0.1"]) == 1
    assert "undefined" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "csv", "json"])
def test_every_form_has_every_row(capsys: pytest.CaptureFixture[str], form: str) -> None:
    assert cli.main(["compare", *two(), "--format", form, "--margin", "0.3"]) == 0
    out = capsys.readouterr().out
    for word in ("ours", "theirs", "DeLong"):
        assert word in out
    if form == "csv":
        assert [row["what"] for row in csv.DictReader(io.StringIO(out))] == ["ours", "theirs", "ours - theirs"]
    if form == "latex":
        assert out.startswith(r"\begin{tabular}")


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "json"])
def test_cards_are_those_of_the_library(capsys: pytest.CaptureFixture[str], form: Any) -> None:
    assert cli.main(["compare", *two(), "--card", form, "--selected-on-test"]) == 0
    expected = mf.compare({n: SCORES[n] for n in ("ours", "theirs")}, LABELS, selected_on_test=True).card(form)
    assert capsys.readouterr().out == expected + "\n"


def test_a_picture_is_written(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    pytest.importorskip("matplotlib")
    assert cli.main(["compare", *two(), "--plot", "difference.svg"]) == 0
    assert (folder / "difference.svg").read_text().startswith("<?xml")


# ---------------------------------------------------------------- wrong use


def test_different_items_are_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    write("ours.csv", rows_of("ours"))
    write("theirs.csv", rows_of("theirs", range(3, 120)))
    assert "theirs.csv lacks items 'x0', 'x1', 'x2'" in refused(capsys, "ours.csv", "theirs.csv")
    assert "ours.csv has items 'x0', 'x1', 'x2' besides" in refused(capsys, "theirs.csv", "ours.csv")
    wrong = rows_of("theirs")
    wrong[4]["label"] = 1
    write("theirs.csv", wrong)
    assert "label '1' where ours.csv, line 6 has '0' for item 'x4'" in refused(capsys, "ours.csv", "theirs.csv")
    write("theirs.csv", rows_of("theirs") + rows_of("theirs")[:1])
    assert "line 122: item 'x0' comes twice; a column seed" in refused(capsys, "ours.csv", "theirs.csv")
    assert "where 'id' is what several items belong to" in refused(capsys, "ours.csv", "theirs.csv")
    write("both.csv", [row | {"model": name} for name in ("a", "b") for row in rows_of("ours")])
    assert "not below each other" in refused(capsys, "both.csv")
    (Path("both.csv")).write_text(Path("both.csv").read_text().replace(",", ";"))
    assert "separated by commas" in refused(capsys, "ours.csv", "both.csv")


def test_what_cannot_be_compared_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = two()
    assert "needs two models and there is 'ours' alone" in refused(capsys, ours)
    assert "given twice" in refused(capsys, ours, ours)
    assert "has no column 'points'" in refused(capsys, ours, theirs, "--scores", "points")
    for twice in (("score", "score"), ("score", "label"), ("id",)):
        assert "is named twice" in refused(capsys, ours, theirs, "--scores", *twice)
    assert "no column 'group'" in refused(capsys, ours, theirs, "--clusters", "group")
    assert "nowhere.csv" in refused(capsys, ours, "nowhere.csv")
    write("bare.csv", [{k: v for k, v in row.items() if k != "id"} for row in rows_of("theirs")])
    assert "ours.csv has a column of ids and bare.csv has none" in refused(capsys, ours, "bare.csv")
    write("seeded.csv", rows_of("theirs", seed=np.full(120, 3)))
    assert "seeded.csv has the seeds '3' and ours.csv has ''" in refused(capsys, ours, "seeded.csv")
    hole = rows_of("theirs")
    hole[7]["score"] = ""
    assert "line 9: the cell in column 'score' is empty" in refused(capsys, ours, write("hole.csv", hole))
    hole[7]["score"] = "nan"
    assert "NaN" in refused(capsys, ours, write("hole.csv", hole))
    assert "margin" in refused(capsys, ours, theirs, "--margin", "-1")
    Path("short.csv").write_text("id,label,score\nx0,1\n")
    assert "short.csv, line 2: 2 cells where the header has 3" in refused(capsys, ours, "short.csv")
    folded = rows_of("theirs", fold=np.arange(120) % 5)
    other = rows_of("ours", fold=np.arange(120) // 24)
    assert "for item 'x1'" in refused(capsys, write("a.csv", folded), write("b.csv", other))


@pytest.mark.parametrize("column", ["id", "label", "fold", "seed", "cluster", "ours"])
def test_an_empty_cell_is_no_value_of_its_own(capsys: pytest.CaptureFixture[str], column: str) -> None:
    rows = [
        {"id": i, "label": LABELS[i], "ours": i, "theirs": -i, "fold": i % 4, "seed": 1, "cluster": i // 4}
        for i in range(120)
    ]
    rows[5] |= {column: " "}
    said = refused(capsys, write("all.csv", rows))
    assert f"all.csv, line 7: the cell in column {column!r} is empty" in said


def test_labels_are_the_same_however_a_number_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = two()
    expected = result_of(capsys, ours, theirs)
    write(theirs, [row | {"label": f"{row['label']}.0"} for row in rows_of("theirs")])
    assert result_of(capsys, ours, theirs) == expected


def test_classes_some_of_which_are_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    truth, ours, theirs = "12x" * 20, "12" * 30, "1x2" * 20
    rows = [{"label": t, "ours": a, "theirs": b} for t, a, b in zip(truth, ours, theirs, strict=True)]
    found = result_of(capsys, write("all.csv", rows))
    right = [sum(map(str.__eq__, truth, said)) / 60 for said in (ours, theirs)]
    assert [row["estimate"] for row in found[:2]] == right
    # a class that no label has, beside numbers
    rows = [{"label": i % 2, "ours": "01?"[i % 3], "theirs": f"{i // 2 % 2}.0"} for i in range(60)]
    found = result_of(capsys, write("all.csv", rows))
    assert [row["estimate"] for row in found[:2]] == [20 / 60, 30 / 60]
    # scores with a word among them are no classes
    rows = [{"label": i % 2, "ours": "high" if i == 7 else i / 60, "theirs": i} for i in range(60)]
    assert "all.csv: the prediction 'high' for item '8' is not a number" in refused(capsys, write("all.csv", rows))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id;label;score\n1;0;0.5\n", "other.csv: cells must be separated by commas"),
        (b"id,label,score\n1,0,0.5\n2,1,\xe9\n", "other.csv is not UTF-8 text"),
        (b"id,label,score\n1,0," + b"9" * 140_000, "other.csv, line 2: field larger than field limit"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    capsys: pytest.CaptureFixture[str], folder: Path, content: bytes, message: str
) -> None:
    ours, _ = two()
    (folder / "other.csv").write_bytes(content)
    assert message in refused(capsys, ours, "other.csv")


def test_half_a_gzip_file_and_none_are_refused_by_name(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    ours, theirs = two()
    packed = gzip.compress(Path(theirs).read_bytes())
    (folder / "half.csv.gz").write_bytes(packed[: len(packed) // 2])
    assert "half.csv.gz cannot be decompressed" in refused(capsys, ours, "half.csv.gz")
    (folder / "none.csv.gz").write_bytes(b"id,label\n")
    assert "none.csv.gz cannot be decompressed" in refused(capsys, ours, "none.csv.gz")


def test_standard_input_may_begin_with_a_mark_before_a_quote(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = two()
    expected = result_of(capsys, ours, theirs)
    text = Path(theirs).read_text().replace("id,label", '"id","label"', 1)
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeff" + text))
    found = result_of(capsys, ours, "-")
    assert [row["estimate"] for row in found] == [row["estimate"] for row in expected]


def test_a_file_is_the_same_by_another_path(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    ours, _ = two()
    assert "given twice" in refused(capsys, ours, str(folder / ours))


def test_two_models_of_one_name_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row | {"other": i} for i, row in enumerate(rows_of("ours"))]
    files = [write("x.csv", rows), write("x:score.csv", rows_of("theirs"))]
    said = refused(capsys, *files, "--scores", "score", "other")
    assert "x:score.csv and x.csv both have a model called 'x:score'" in said
