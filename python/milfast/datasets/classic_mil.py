"""The classic multiple-instance data sets: what they are, and how to read them from a CSV file."""

from __future__ import annotations

import difflib
import gzip
import hashlib
import math
import os
import zlib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from milfast.bags import Bags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from milfast.datasets.tabular import TableSet


@dataclass(frozen=True)
class DataSet:
    """Facts about a data set.

    Attributes
    ----------
    name : str
        Name for `load`.
    file : str
        Name of the CSV file; ``file + ".gz"`` serves as well.
    n_bags, n_positive, n_instances, n_features : int
        Counts; `n_positive` counts bags.
    sha256 : str
        Checksum of the uncompressed CSV text.
    licence : str
        What is known about the licence of the data.
    source : str
        Work to cite.
    publisher : str
        Where the data come from.
    """

    name: str
    file: str
    n_bags: int
    n_positive: int
    n_instances: int
    n_features: int
    sha256: str
    licence: str
    source: str
    publisher: str


def names() -> list[str]:
    """Names of the data sets that `load` knows.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from milfast.datasets import classic_mil
    >>> classic_mil.names()[:3]
    ['musk1', 'musk2', 'elephant']
    """
    return list(_TABLE)


def describe(name: str) -> DataSet:
    """Facts about a data set: counts, licence, citation, publisher. Needs no file.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    DataSet

    Raises
    ------
    ValueError
        When there is no such data set; the message names the nearest ones.

    Examples
    --------
    >>> from milfast.datasets import classic_mil
    >>> musk = classic_mil.describe("musk1")
    >>> musk.n_bags, musk.n_positive, musk.n_features
    (92, 47, 166)
    """
    try:
        return _TABLE[name]
    except KeyError:
        near = difflib.get_close_matches(name, names(), n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ValueError(f"there is no data set {name!r}: {hint}known are {', '.join(names())}") from None


def load(name: str) -> Bags:
    """Read a data set from this machine and check that it is the right one.

    Searched are the folders in the environment variable ``MILFAST_DATA`` (separated like ``PATH``), the user's cache
    folder (``milfast`` in ``XDG_CACHE_HOME`` or ``~/.cache``), and ``../shared/data``; in each the file, then
    ``mil/<file>``, as ``.csv`` or ``.csv.gz``. Nothing is downloaded.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    Bags
        float64 features as published, not standardised; labels in {0, 1}.

    Raises
    ------
    ValueError
        When there is no such data set, or the file holds other data than the published ones.
    FileNotFoundError
        When no folder holds the file; the message lists the folders, the format and the publisher.

    Examples
    --------
    >>> from milfast import datasets
    >>> datasets.load("musk1")  # doctest: +SKIP
    Bags(n_bags=92, n_instances=476, n_features=166, dtype=float64, positive=47, sizes=2..40)
    """
    data = describe(name)
    path = find(
        data,
        folder="mil",
        form="a CSV file, plain or gzip, with the header bag_id,label,f1,...,fd, one row an instance, the rows of a "
        "bag contiguous",
    )
    content = _content(path)
    found = hashlib.sha256(content).hexdigest()
    if found != data.sha256:
        raise ValueError(
            f"{path} is not the published {name}: the sha256 of its CSV text is {found}, expected {data.sha256}. "
            "read_csv reads it without this check"
        )
    bags = _parse(content, path)
    if bags.n_bags != data.n_bags:
        raise ValueError(f"{path} holds {bags.n_bags} bags, {name} has {data.n_bags}")
    return bags


def read_csv(path: str | os.PathLike[str]) -> Bags:
    r"""Read bags from a CSV file, plain or gzip.

    Parameters
    ----------
    path : str or os.PathLike
        The first line is a header ``bag_id,label,f1,...,fd``; the feature names are free. Then one row an instance:
        any text as bag identifier, the label of the bag (0 and 1, or -1 and 1, the same on every row of the bag), and
        d finite numbers. The rows of a bag are neighbours.

    Returns
    -------
    Bags
        float64 features, bags in the order of the file.

    Raises
    ------
    ValueError
        When the file breaks a rule above; the message gives its name, the line and, for a cell, the column.
    OSError
        When the file cannot be opened.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from milfast import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "bags.csv")
    ...     _ = file.write_text("bag_id,label,f1,f2\na,1,0.5,2\na,1,1.5,3\nb,0,0,1\n")
    ...     bags = datasets.read_csv(file)
    >>> bags
    Bags(n_bags=2, n_instances=3, n_features=2, dtype=float64, positive=1, sizes=1..2)
    """
    return _parse(_content(Path(path)), Path(path))


# -------------------------------------------------------------------- finding files


def _folders() -> list[Path]:
    given = os.environ.get("MILFAST_DATA", "").split(os.pathsep)
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return [Path(folder).expanduser() for folder in (*filter(None, given), f"{cache}/milfast", "../shared/data")]


def find(data: DataSet | TableSet, *, folder: str, form: str) -> Path:
    """The file of a data set.

    Parameters
    ----------
    data : DataSet or TableSet
    folder : str
        Subfolder in which it may be.
    form : str
        What the file holds, for the message.

    Returns
    -------
    Path

    Raises
    ------
    FileNotFoundError
        When no folder holds it.
    """
    folders = _folders()
    for place in folders:
        for inside in (place, place / folder):
            for file in (data.file, f"{data.file}.gz"):
                if (inside / file).is_file():
                    return inside / file
    raise FileNotFoundError(
        f"{data.name} is not on this machine. Searched for {data.file} and {data.file}.gz, also in a subfolder "
        f"{folder}, in: {', '.join(str(place.absolute()) for place in folders)}. Set MILFAST_DATA to the folder that "
        f"holds it. Format: {form}. Published by: {data.publisher}. Licence: {data.licence}"
    )


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    # The content decides, not the suffix: browsers unpack some downloads and keep the name.
    if content.startswith(b"\x1f\x8b"):
        try:
            return gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is a damaged gzip file: {error}") from None
    return content


# -------------------------------------------------------------------- reading CSV


def _parse(content: bytes, path: Path) -> Bags:
    try:
        # Bytes split at line ends only; str.splitlines would also split at form feeds and the like.
        lines = [line.decode("utf-8-sig") for line in content.rstrip().splitlines()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from None
    if not lines:
        raise ValueError(f"{path} is empty")
    header = lines.pop(0).split(",")
    if [cell.strip() for cell in header[:2]] != ["bag_id", "label"] or len(header) < 3:
        start = ",".join(header[:4])[:80]
        raise ValueError(
            f"{path}, line 1: the header must be bag_id,label and at least one feature column; it starts {start!r}"
        )
    if not lines:
        raise ValueError(f"{path} has a header but no rows: at least one bag is needed")
    for number, line in enumerate(lines, 2):
        if line.count(",") != len(header) - 1:
            raise ValueError(f"{path}, line {number}: {line.count(',') + 1} cells, but the header has {len(header)}")
    ids, labels, cells = zip(*(line.split(",", 2) for line in lines), strict=True)
    del lines
    starts = _bag_starts(ids, path)
    targets = _bag_labels(labels, ids, starts, path)
    return Bags(_features(cells, header, path), [*starts, len(ids)], targets)


def _bag_starts(ids: tuple[str, ...], path: Path) -> list[int]:
    """First row of each bag, after checking that no bag comes back."""
    starts = [0, *(row for row, (before, here) in enumerate(pairwise(ids), 1) if here != before)]
    first: dict[str, int] = {}
    for row in starts:
        if not ids[row].strip():
            raise ValueError(f"{path}, line {row + 2}: bag_id is empty")
        if ids[row] in first:
            raise ValueError(
                f"{path}, line {row + 2}: bag {ids[row]!r} comes back, it began on line {first[ids[row]] + 2}: the "
                "rows of a bag must be neighbours"
            )
        first[ids[row]] = row
    return starts


def _bag_labels(labels: tuple[str, ...], ids: tuple[str, ...], starts: list[int], path: Path) -> list[int]:
    """Label of each bag, after checking every row."""
    number: dict[str, int] = {}
    for text in dict.fromkeys(labels):
        value = _label(text)
        if value is None:
            line = labels.index(text) + 2
            raise ValueError(f"{path}, line {line}: label is {text!r}, it must be 0 or 1, or -1 or 1")
        number[text] = value
    values = [number[text] for text in labels]
    if -1 in values and 0 in values:
        early, late = sorted((values.index(-1), values.index(0)))
        raise ValueError(
            f"{path}, line {late + 2}: label is {labels[late]!r}, but {labels[early]!r} on line {early + 2}: labels "
            "must be two-valued, 0 and 1 or -1 and 1"
        )
    targets = []
    for begin, end in pairwise([*starts, len(values)]):
        for row in range(begin, end):
            if values[row] != values[begin]:
                raise ValueError(
                    f"{path}, line {row + 2}: bag {ids[row]!r} has label {labels[row]}, but {labels[begin]} on line "
                    f"{begin + 2}: a bag has one label"
                )
        targets.append(values[begin])
    return targets


def _label(text: str) -> int | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value in (-1, 0, 1) else None


def _features(cells: tuple[str, ...], header: list[str], path: Path) -> NDArray[np.float64]:
    try:
        if not all(line.strip() for line in cells):
            raise ValueError("a lone feature is empty, and loadtxt would skip its row")
        x = np.loadtxt(cells, delimiter=",", comments=None, ndmin=2)
    except ValueError as error:
        # numpy counts rows and columns of what it was given; people look for lines of the file.
        for row, column, cell in _each_cell(cells):
            if not _is_number(cell):
                raise ValueError(f"{_place(path, header, row, column)} holds {cell!r}, not a number") from None
        raise ValueError(f"{path} cannot be read: {error}") from None
    odd = np.argwhere(~np.isfinite(x))
    if len(odd):
        row, column = (int(i) for i in odd[0])
        raise ValueError(
            f"{_place(path, header, row, column)} is {x[row, column]}: features must be finite, impute or drop it first"
        )
    return x


def _each_cell(cells: tuple[str, ...]) -> Iterator[tuple[int, int, str]]:
    for row, line in enumerate(cells):
        for column, cell in enumerate(line.split(",")):
            yield row, column, cell


def _is_number(cell: str) -> bool:
    try:
        return not math.isnan(float(cell)) and "_" not in cell
    except ValueError:
        return False


def _place(path: Path, header: list[str], row: int, column: int) -> str:
    return f"{path}, line {row + 2}, column {column + 3} ({header[column + 2].strip()})"


# -------------------------------------------------------------------- the table

_NO_LICENCE = "none found for the data"
_MUSK = (
    "Dietterich, Lathrop and Lozano-Perez (1997), Solving the multiple instance problem with axis-parallel rectangles, "
    "Artificial Intelligence 89"
)
_ANDREWS = "Andrews, Tsochantaridis and Hofmann (2003), Support vector machines for multiple-instance learning, NIPS 15"
_ANDREWS_ARCHIVE = (
    "the first author, http://www.cs.columbia.edu/~andrews/mil/data/MIL-Data-2002-Musk-Corel-Trec9-MATLAB.tgz, "
    "file {}_100x100_matlab.mat"
)
_MIL_PACKAGE = (
    "multipleinstancelearning.com; also inside the Python distribution mil 1.0.5 as mil/data/datasets/csv/{}.csv"
)
_MIDATASETS = "miproblems.org; also in the GitHub repository komartom/MIDatasets.jl as data/{}.jld"
_MUTAGENESIS = (
    "Srinivasan, Muggleton, King and Sternberg (1994), Mutagenesis: ILP experiments in a non-determinate biological "
    "domain"
)

_TABLE = {
    data.name: data
    for data in (
        DataSet(
            name="musk1",
            file="musk1.csv",
            n_bags=92,
            n_positive=47,
            n_instances=476,
            n_features=166,
            sha256="ed029e9ae125b287b0cdcac8517906c1496ed0c19da56236b8dbb750551d67ef",
            licence="CC BY 4.0 by the terms of UCI for donated data; not seen stated for this set",
            source=_MUSK,
            publisher="UCI Machine Learning Repository, data set 74, Musk (Version 1), DOI 10.24432/C5ZK5B",
        ),
        DataSet(
            name="musk2",
            file="musk2.csv",
            n_bags=102,
            n_positive=39,
            n_instances=6598,
            n_features=166,
            sha256="bde49f756caa858e15da0bf5d032eccfae3d416dc18c00367fddda68e2420f36",
            licence="CC BY 4.0 as two catalogues of UCI data state; not checked at UCI",
            source=_MUSK,
            publisher="UCI Machine Learning Repository, data set 75, Musk (Version 2), DOI 10.24432/C51608",
        ),
        DataSet(
            name="elephant",
            file="elephant.csv",
            n_bags=200,
            n_positive=100,
            n_instances=1391,
            n_features=230,
            sha256="c8e0493ec3b7e6925eb15b96af2057c91040403377c38c7ef8d6f2cbc56c8000",
            licence=_NO_LICENCE,
            source=_ANDREWS,
            publisher=_ANDREWS_ARCHIVE.format("elephant"),
        ),
        DataSet(
            name="fox",
            file="fox.csv",
            n_bags=200,
            n_positive=100,
            n_instances=1320,
            n_features=230,
            sha256="11585ba20d2ae790931150fa56481ce467c6a45841f86f677713e7d4484c6ecc",
            licence=_NO_LICENCE,
            source=_ANDREWS,
            publisher=_ANDREWS_ARCHIVE.format("fox"),
        ),
        DataSet(
            name="tiger",
            file="tiger.csv",
            n_bags=200,
            n_positive=100,
            n_instances=1220,
            n_features=230,
            sha256="4597af5dd4ebcdddfa21032f299784ecee9fead5361e049098db8b7c6779e8b0",
            licence=_NO_LICENCE,
            source=_ANDREWS,
            publisher=_ANDREWS_ARCHIVE.format("tiger"),
        ),
        DataSet(
            name="ucsb_breast_cancer",
            file="ucsb_breast_cancer.csv",
            n_bags=58,
            n_positive=26,
            n_instances=2002,
            n_features=708,
            sha256="ca8fb3313a850eb33d89d09e85211097d2c40eb3782109cb50a73cc765478767",
            licence=_NO_LICENCE,
            source="Kandemir, Zhang and Hamprecht (2014), features; Drelie Gelasca et al. (2008), 58 tissue images",
            publisher=_MIL_PACKAGE.format("ucsb_breast_cancer"),
        ),
        DataSet(
            name="web_recommendation_1",
            file="web_recommendation_1.csv",
            n_bags=75,
            n_positive=21,
            n_instances=2212,
            n_features=5863,
            sha256="73a5a1a9c0846d06537bde068626880083fee086c598086540680edd6a8f7bd7",
            licence=_NO_LICENCE,
            source="Zhou, Jiang and Li (2005), Multi-instance learning based web mining, Applied Intelligence 22",
            publisher=_MIL_PACKAGE.format("web_recommendation_1"),
        ),
        DataSet(
            name="newsgroups2",
            file="newsgroups2.csv",
            n_bags=100,
            n_positive=50,
            n_instances=3094,
            n_features=200,
            sha256="2b452abbfacffc2d4ddb2c1b0748d801a348f67c7419a36c1243d87ef5a7a719",
            licence=_NO_LICENCE,
            source="Zhou, Sun and Li (2009), Multi-instance learning by treating instances as non-i.i.d. samples, ICML",
            publisher=_MIDATASETS.format("Newsgroups2"),
        ),
        DataSet(
            name="corel_dogs",
            file="corel_dogs.csv",
            n_bags=2000,
            n_positive=100,
            n_instances=7947,
            n_features=9,
            sha256="abfbe7d1fffe92bafcd3401e7822c775a810ada7820a3307145f130741c384b2",
            licence=_NO_LICENCE,
            source="Chen, Bi and Wang (2006), MILES: multiple-instance learning via embedded instance selection, TPAMI",
            publisher=_MIL_PACKAGE.format("corel_dogs"),
        ),
        DataSet(
            name="protein",
            file="protein.csv",
            n_bags=193,
            n_positive=25,
            n_instances=26_611,
            n_features=9,
            sha256="2c1434400946f41127c50bd950e896ce32ae7b8e2af1a1c9f68a327f08a013d3",
            licence=_NO_LICENCE,
            source="Wang et al. (2004), identification of thioredoxin-fold (TrX) proteins",
            publisher=_MIL_PACKAGE.format("protein"),
        ),
        DataSet(
            name="birds_brown_creeper",
            file="birds_brown_creeper.csv",
            n_bags=548,
            n_positive=197,
            n_instances=10_232,
            n_features=38,
            sha256="f9559ad3dee5486ceab19a5eaad134b9708d1864a1e49474960d966ce7185e4f",
            licence=_NO_LICENCE,
            source="Briggs et al. (2012), bird song recordings; positive: Brown Creeper",
            publisher=_MIL_PACKAGE.format("birds_brown_creeper"),
        ),
        DataSet(
            name="mutagenesis1",
            file="mutagenesis1.csv",
            n_bags=188,
            n_positive=125,
            n_instances=10_486,
            n_features=7,
            sha256="16f705745fed2f77724149d8db19ce35961cf39d7cd6508b5271f9be7ed52342",
            licence=_NO_LICENCE,
            source=_MUTAGENESIS,
            publisher=_MIDATASETS.format("Mutagenesis1"),
        ),
        DataSet(
            name="mutagenesis2",
            file="mutagenesis2.csv",
            n_bags=42,
            n_positive=13,
            n_instances=2132,
            n_features=7,
            sha256="a01f1420bc6992ed581c12b56eca9152b04124312e44939535a9fa8d89225a2b",
            licence=_NO_LICENCE,
            source=_MUTAGENESIS,
            publisher=_MIDATASETS.format("Mutagenesis2"),
        ),
    )
}
