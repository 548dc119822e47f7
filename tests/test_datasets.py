"""Data sets: reading the CSV format, its errors, finding files, and the published files when they are here."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from milfast import datasets
from milfast.bags import Bags
from milfast.datasets import classic_mil, tabular

SMALL = "bag_id,label,f1,f2\n1,0,0.5,2\n1,0,-1e-3,3\n2,1,0,1\n"


def write(folder: Path, text: str | bytes, name: str = "bags.csv") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def same(a: Bags, b: Bags) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("instances", "offsets", "labels"))


@pytest.fixture
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where no search folder holds anything."""
    monkeypatch.delenv("MILFAST_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    here = tmp_path / "project" / "work"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    return tmp_path


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> classic_mil.DataSet:
    """A data set small enough to be written by a test."""
    facts = classic_mil.DataSet(
        name="toy",
        file="toy.csv",
        n_bags=2,
        n_positive=1,
        n_instances=3,
        n_features=2,
        sha256=hashlib.sha256(SMALL.encode()).hexdigest(),
        licence="ours",
        source="this test",
        publisher="the test suite",
    )
    monkeypatch.setitem(classic_mil._TABLE, "toy", facts)
    return facts


# ---------------------------------------------------------------- reading


def test_read_small_file(tmp_path: Path) -> None:
    bags = datasets.read_csv(write(tmp_path, SMALL))
    assert bags.instances.dtype == np.float64
    np.testing.assert_array_equal(bags.instances, [[0.5, 2], [-1e-3, 3], [0, 1]])
    np.testing.assert_array_equal(bags.offsets, [0, 2, 3])
    np.testing.assert_array_equal(bags.labels, [0, 1])


@pytest.mark.parametrize(
    "variant",
    [
        SMALL.rstrip("\n"),
        SMALL + "\n\n",
        SMALL.replace("\n", "\r\n"),
        "\ufeff" + SMALL,
        SMALL.replace(",0,0.5", ",-1,0.5").replace(",0,-1e", ",-1,-1e"),
        SMALL.replace("\n1,", "\nmolécule A,").replace("\n2,", "\nmolécule B,"),
        SMALL.replace(",0,0.5", ",0.0, 0.50 "),
        gzip.compress(SMALL.encode()),
    ],
    ids=[
        "no end of line",
        "blank lines at the end",
        "CRLF",
        "byte order mark",
        "labels -1 1",
        "text ids",
        "spaces",
        "gzip",
    ],
)
def test_variants_read_the_same(tmp_path: Path, variant: str | bytes) -> None:
    assert same(datasets.read_csv(write(tmp_path, variant)), datasets.read_csv(write(tmp_path, SMALL, "plain.csv")))


def test_round_trip_keeps_every_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    bags = Bags(rng.normal(size=(40, 7)) * 10.0 ** rng.integers(-300, 300, (40, 1)), [0, 1, 13, 30, 40], [1, 0, 0, 1])
    assert bags.labels is not None
    rows = ["bag_id,label," + ",".join(f"f{i}" for i in range(7))]
    for row, bag in enumerate(bags.bag_index):
        rows.append(f"{bag},{bags.labels[bag]}," + ",".join(repr(float(v)) for v in bags.instances[row]))
    text = "\n".join(rows)
    assert same(datasets.read_csv(write(tmp_path, text)), bags)
    assert same(datasets.read_csv(str(write(tmp_path, gzip.compress(text.encode()), "bags.csv.gz"))), bags)


def test_one_class_is_allowed(tmp_path: Path) -> None:
    assert datasets.read_csv(write(tmp_path, "bag_id,label,f\n1,1,2\n2,1,3\n")).labels.tolist() == [1, 1]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("bag_id,label,f1\n", "has a header but no rows"),
        (
            "bag,label,f1\n1,0,2\n",
            "line 1: the header must be bag_id,label and at least one feature column; it starts 'bag,",
        ),
        ("bag_id,label\n1,0\n", "line 1: the header must be bag_id,label and at least one feature"),
        ("1,0,2\n1,0,3\n", "line 1: the header must be"),
        ("bag_id,label,f1,f2\n1,0,1,2\n1,0,1\n", "line 3: 3 cells, but the header has 4"),
        ("bag_id,label,f1\n1,0,1,2\n", "line 2: 4 cells, but the header has 3"),
        ("bag_id,label,f1\n1,0,1\n\n2,1,1\n", "line 3: 1 cells, but the header has 3"),
        ("bag_id,label,f1,f2\n1,0,1,2\n2,1,1,high\n", r"line 3, column 4 \(f2\) holds 'high', not a number"),
        ("bag_id,label,f1,f2\n1,0,1,\n", r"line 2, column 4 \(f2\) holds '', not a number"),
        ("bag_id,label,f1\n1,0,1\n2,1,\n", r"line 3, column 3 \(f1\) holds '', not a number"),
        ("bag_id,label,f1\n1,0,1\n2,1, \n3,1,1\n", r"line 3, column 3 \(f1\) holds ' ', not a number"),
        ("bag_id,label,f1\n1,0,1_000\n", r"line 2, column 3 \(f1\) holds '1_000', not a number"),
        ("bag_id,label,f1,f2\n1,0,1,2\n1,0,NaN,3\n", r"line 3, column 3 \(f1\) is nan: features must be finite"),
        ("bag_id,label,f1\n1,0,1\n2,1,-inf\n", r"line 3, column 3 \(f1\) is -inf"),
        ("bag_id,label,f1\n1,0,1\n2,2,1\n", "line 3: label is '2', it must be 0 or 1, or -1 or 1"),
        ("bag_id,label,f1\n1,0,1\n2,yes,1\n", "line 3: label is 'yes'"),
        ("bag_id,label,f1\n1,nan,1\n", "line 2: label is 'nan'"),
        ("bag_id,label,f1\n1,,1\n", "line 2: label is ''"),
        (
            "bag_id,label,f1\n1,0,1\n2,1,1\n3,-1,1\n",
            "line 4: label is '-1', but '0' on line 2: labels must be two-valued",
        ),
        ("bag_id,label,f1\na,0,1\na,0,1\na,1,1\n", "line 4: bag 'a' has label 1, but 0 on line 2: a bag has one label"),
        ("bag_id,label,f1\na,0,1\nb,1,1\na,0,1\n", "line 4: bag 'a' comes back, it began on line 2: the rows of a bag"),
        ("bag_id,label,f1\n,0,1\n", "line 2: bag_id is empty"),
        (b"\x1f\x8b broken", "is a damaged gzip file"),
        (gzip.compress(SMALL.encode())[:-12], "is a damaged gzip file"),
        (b"bag_id,label,f1\n\xff,0,1\n", "is not UTF-8 text"),
    ],
)
def test_errors_name_file_and_place(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=message) as caught:
        datasets.read_csv(path)
    assert str(caught.value).startswith(str(path))


def test_absent_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        datasets.read_csv(tmp_path / "absent.csv")


# ---------------------------------------------------------------- the table and the search


def test_facts_of_bags_are_complete() -> None:
    assert len(datasets.names("bags")) == 13
    for name in datasets.names("bags"):
        data = datasets.describe(name)
        assert data.name == name
        assert data.file == f"{name}.csv"
        assert 0 < data.n_positive < data.n_bags < data.n_instances
        assert len(data.sha256) == 64
        assert data.licence
        assert data.source
        assert data.publisher
        assert "{}" not in data.publisher


def test_facts_of_tables_are_complete() -> None:
    assert datasets.names("table") == ["parkinsons", "spect", "transfusion", "pima", "diabetes130"]
    assert datasets.names() == datasets.names("bags") + datasets.names("table")
    for name in datasets.names("table"):
        data = datasets.describe(name)
        assert isinstance(data, datasets.TableSet)
        assert data.name == name
        assert 0 < data.n_positive < data.n_samples
        assert 0 < data.n_features < data.n_samples
        assert len(data.sha256) == 64
        assert data.licence
        assert data.source
        assert data.publisher
        assert data.note
    with pytest.raises(ValueError, match='kind must be "bags", "table" or None'):
        datasets.names("rows")  # type: ignore[arg-type]


def test_no_two_data_sets_are_the_same() -> None:
    assert len({datasets.describe(name).sha256 for name in datasets.names()}) == 18


def test_facts_are_read_only() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        datasets.describe("musk1").n_bags = 1  # type: ignore[misc]


@pytest.mark.parametrize("call", [datasets.describe, datasets.load])
def test_unknown_name(call: object) -> None:
    with pytest.raises(
        ValueError, match=r"there is no data set 'musk3': did you mean musk\d or musk\d\? known are musk1"
    ):
        call("musk3")  # type: ignore[operator]
    with pytest.raises(ValueError, match="there is no data set 'zzz': known are musk1"):
        call("zzz")  # type: ignore[operator]


@pytest.mark.parametrize("place", ["toy.csv", "toy.csv.gz", "mil/toy.csv", "mil/toy.csv.gz"])
@pytest.mark.parametrize("folder", ["given", "second", "cache/milfast", "project/shared/data"])
@pytest.mark.usefixtures("toy")
def test_search_places(no_data: Path, monkeypatch: pytest.MonkeyPatch, folder: str, place: str) -> None:
    monkeypatch.setenv("MILFAST_DATA", os.pathsep.join([str(no_data / "given"), "", str(no_data / "second")]))
    write(no_data / folder, gzip.compress(SMALL.encode()) if place.endswith(".gz") else SMALL, place)
    bags = datasets.load("toy")
    assert (bags.n_bags, bags.n_instances) == (2, 3)


@pytest.mark.usefixtures("toy")
def test_given_folder_comes_first(no_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(no_data / "cache" / "milfast", "other", "toy.csv")
    write(no_data / "given", SMALL, "toy.csv")
    monkeypatch.setenv("MILFAST_DATA", str(no_data / "given"))
    assert len(datasets.load("toy")) == 2


@pytest.mark.usefixtures("toy")
def test_cache_without_xdg_is_in_the_home_folder(no_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(no_data))
    monkeypatch.setenv("USERPROFILE", str(no_data))
    write(no_data / ".cache" / "milfast", SMALL, "toy.csv")
    assert len(datasets.load("toy")) == 2


def test_not_found_says_what_to_do(no_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILFAST_DATA", str(no_data / "given"))
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("musk1")
    message = str(caught.value)
    for part in (
        "musk1 is not on this machine",
        "musk1.csv and musk1.csv.gz",
        str(no_data / "given"),
        str(no_data / "cache" / "milfast"),
        str(Path("shared") / "data"),
        "Set MILFAST_DATA",
        "bag_id,label,f1,...,fd",
        "UCI Machine Learning Repository",
    ):
        assert part in message


@pytest.mark.usefixtures("toy")
def test_other_content_is_refused(no_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILFAST_DATA", str(no_data))
    path = write(no_data, SMALL.replace("0.5", "0.6"), "toy.csv")
    with pytest.raises(ValueError, match="is not the published toy: the sha256") as caught:
        datasets.load("toy")
    assert str(caught.value).startswith(str(path))
    assert len(datasets.read_csv(path)) == 2


def test_wrong_number_of_bags_is_refused(
    no_data: Path, monkeypatch: pytest.MonkeyPatch, toy: classic_mil.DataSet
) -> None:
    monkeypatch.setenv("MILFAST_DATA", str(no_data))
    monkeypatch.setitem(classic_mil._TABLE, "toy", dataclasses.replace(toy, n_bags=3))
    write(no_data, SMALL, "toy.csv")
    with pytest.raises(ValueError, match="holds 2 bags, toy has 3"):
        datasets.load("toy")


# ---------------------------------------------------------------- the published files


@pytest.mark.parametrize("name", datasets.names("table"))
@pytest.mark.usefixtures("mil_data")
def test_published_table(name: str) -> None:
    data = datasets.describe(name)
    assert isinstance(data, datasets.TableSet)
    try:
        X, y = datasets.load(name)
    except FileNotFoundError:
        pytest.skip(f"{data.file} is absent: set MILFAST_DATA to the folder that holds it")
    assert X.shape == (data.n_samples, data.n_features)
    assert (X.dtype, y.dtype) == (np.float64, np.int64)
    assert np.bincount(y).tolist() == [data.n_samples - data.n_positive, data.n_positive]
    assert np.isfinite(X).all()


@pytest.mark.parametrize("name", datasets.names("bags"))
@pytest.mark.usefixtures("mil_data")
def test_published_file(name: str) -> None:
    data = datasets.describe(name)
    assert isinstance(data, datasets.DataSet)
    try:
        bags = datasets.load(name)
    except FileNotFoundError:
        pytest.skip(f"{data.file} is absent: set MILFAST_DATA to the folder that holds it")
    assert bags.labels is not None
    counts = (bags.n_bags, int(bags.labels.sum()), bags.n_instances, bags.n_features)
    assert counts == (data.n_bags, data.n_positive, data.n_instances, data.n_features)


# ---------------------------------------------------------------- tables of one row a sample

TABLE = "age,sex,ill\n40,f,0\n50.5,m,1\n60,f,0\n"


def test_numbers_stay_numbers_and_each_word_becomes_a_column(tmp_path: Path) -> None:
    for text in (TABLE, TABLE.replace("\n", "\r\n"), "\ufeff" + TABLE, TABLE + "\n\n", TABLE.replace(",", " , ")):
        table = datasets.read_table(write(tmp_path, text), target="ill")
        assert table.names == ("age", "sex=f", "sex=m")
        assert table.X.tolist() == [[40, 1, 0], [50.5, 0, 1], [60, 1, 0]]
        assert table.y.tolist() == [0, 1, 0]
        assert table.y.dtype == np.int64
        assert table.X.flags.c_contiguous
    packed = write(tmp_path, gzip.compress(TABLE.encode()))
    assert np.array_equal(datasets.read_table(packed, target="ill").X, table.X)


@pytest.mark.parametrize(
    ("labels", "read"),
    [
        (["9007199254740992", "9007199254740993"], [9007199254740992, 9007199254740993]),
        (["1e300", "1"], ["1e300", "1"]),
        (["99999999999999999999", "1"], ["99999999999999999999", "1"]),
        (["inf", "1"], ["inf", "1"]),
        (["1.0", "-2"], [1, -2]),
    ],
)
def test_different_labels_stay_different(tmp_path: Path, labels: list[str], read: list[Any]) -> None:
    table = datasets.read_table(write(tmp_path, "a,y\n" + "".join(f"1,{label}\n" for label in labels)), target="y")
    assert table.y.tolist() == read


def test_any_column_may_hold_the_labels_or_the_groups(tmp_path: Path) -> None:
    path = write(tmp_path, TABLE)
    table = datasets.read_table(path, target="sex", groups="ill")
    assert table.y.tolist() == ["f", "m", "f"]
    assert table.names == ("age",)
    assert table.groups is not None
    assert table.groups.tolist() == ["0", "1", "0"]
    assert datasets.read_table(path, target="age").y.tolist() == ["40", "50.5", "60"]
    quoted = write(tmp_path, 'a,"b, c",y\n1,"x, z",n\n2,"w",p\n')
    assert datasets.read_table(quoted, target="y").names == ("a", "b, c=w", "b, c=x, z")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,y\n", "has a header but no rows"),
        ("a,a,y\n1,2,0\n", "line 1: two columns are called 'a'"),
        (",a,y\n0,3,0\n1,4,1\n", "line 1: column 1 has no name; numbers of rows"),
        ("a,y,\n3,0,\n4,1,\n", "line 1: column 3 has no name"),
        ("a,z\n1,0\n", "has no column 'y'; it has a, z"),
        ("a,y\n1,0\n1,0,3\n", "line 3: 3 cells, but the header has 2"),
        ("a,y\n1,0\n\n ,1\n", "line 4, column 'a' is empty"),
        ("a,y\n1,0\n2,\n", "line 3, column 'y' is empty"),
        ("a,y\n1,0\ninf,1\n", "line 3, column 'a' is inf"),
        ("a,y\n1,0\nnan,1\n", "line 3, column 'a' is nan"),
        ("y\n1\n0\n", "no features"),
        ("a,y\n1,0\n2,nan\n3,1\n", "line 3, column 'y' is nan: leave rows without a label out"),
        ("a,y\n1,0\n" + "x" * 140_000 + ",1\n", r"line 3: field larger than field limit .* left open\?"),
        ("a;b;y\n1;2;0\n", "has no column 'y'; it has a;b;y"),
        (b"a,y\n\xff,1\n", "not UTF-8"),
        (b"\x1f\x8bno", "damaged gzip"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        datasets.read_table(write(tmp_path, text), target="y")


def test_labels_are_no_groups(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="target and groups are the same column, 'y'"):
        datasets.read_table(write(tmp_path, "a,y\n1,0\n2,1\n"), target="y", groups="y")


@pytest.mark.parametrize("place", ["toy.csv", "toy.csv.gz", "ec/toy.csv", "ec/toy.csv.gz"])
def test_a_table_is_found_and_verified(no_data: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    facts = dataclasses.replace(
        tabular.TABLES["pima"],
        name="toy",
        file="toy.csv",
        sha256=hashlib.sha256(SMALL_TABLE.encode()).hexdigest(),
    )
    monkeypatch.setitem(tabular.TABLES, "toy", facts)
    with pytest.raises(FileNotFoundError, match=r"toy is not on this machine.*subfolder ec.*Set MILFAST_DATA"):
        datasets.load("toy")
    monkeypatch.setenv("MILFAST_DATA", str(no_data))
    content = SMALL_TABLE.encode()
    path = write(no_data, gzip.compress(content) if place.endswith("gz") else content, place)
    X, y = datasets.load("toy")
    assert (X.tolist(), y.tolist()) == ([[1.0], [2.0]], [0, 1])
    path.write_bytes(content + b"3,1\n")
    with pytest.raises(ValueError, match="is not the published toy"):
        datasets.load("toy")


SMALL_TABLE = "a,target\n1,0\n2,1\n"
