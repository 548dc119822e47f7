"""Data sets of one row a sample: what they are, and how to read them from a CSV file."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class TableSet:
    """Facts about a data set of one row a sample.

    Attributes
    ----------
    name : str
        Name for `load`.
    file : str
        Name of the CSV file; ``file + ".gz"`` serves as well.
    n_samples, n_positive, n_features : int
        Counts; `n_features` as `load` gives them, with a column for each level of a text column.
    sha256 : str
        Checksum of the uncompressed CSV text.
    licence : str
        What is known about the licence of the data.
    source : str
        Work to cite.
    publisher : str
        Where the data come from.
    note : str
        What one has to know to use them.
    """

    name: str
    file: str
    n_samples: int
    n_positive: int
    n_features: int
    sha256: str
    licence: str
    source: str
    publisher: str
    note: str


@dataclass(frozen=True)
class Samples:
    """A table of samples.

    Attributes
    ----------
    X : ndarray of float64, shape (n_samples, n_features)
    y : ndarray, shape (n_samples,)
        Labels: integers where they are, otherwise text.
    names : tuple of str
        Names of the features; of a level of a text column, "column=level".
    groups : ndarray of str or None, shape (n_samples,)
        What stands in the column of groups.
    """

    X: NDArray[np.float64]
    y: NDArray[Any]
    names: tuple[str, ...]
    groups: NDArray[np.str_] | None = None


def read_table(path: str | os.PathLike[str], *, target: str, groups: str | None = None) -> Samples:
    r"""Read samples from a CSV file, plain or gzip.

    Parameters
    ----------
    path : str or os.PathLike
        A header, then one row a sample. A column of numbers is a feature; a column with any other text is one feature
        for each different text in it, 1 where it stands and 0 elsewhere.
    target : str
        Name of the column of labels.
    groups : str, optional
        Name of a column that says which samples belong together.

    Returns
    -------
    Samples

    Raises
    ------
    ValueError
        When the file is no such table; the message names the line and the column.
    OSError
        When the file cannot be opened.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from milfast.datasets import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "table.csv")
    ...     _ = file.write_text("age,sex,ill\n40,f,no\n50,m,yes\n")
    ...     table = read_table(file, target="ill")
    >>> table.names, table.X.tolist(), table.y.tolist()
    (('age', 'sex=f', 'sex=m'), [[40.0, 1.0, 0.0], [50.0, 0.0, 1.0]], ['no', 'yes'])
    """
    path = Path(path)
    return _parse(_content(path), path, target, groups)


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    # the content decides, not the suffix: browsers unpack some downloads and keep the name
    if content.startswith(b"\x1f\x8b"):
        try:
            return gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is a damaged gzip file: {error}") from None
    return content


def _parse(content: bytes, path: Path, target: str, groups: str | None) -> Samples:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: {error}") from None
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        header = [name.strip() for name in next(reader, [])]
        found = [(row, reader.line_num) for row in reader if row]
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}; is a quotation mark left open?") from None
    if not header:
        raise ValueError(f"{path} is empty")
    for place, name in enumerate(header, 1):
        if not name:
            raise ValueError(
                f"{path}, line 1: column {place} has no name; numbers of rows, which pandas writes without one, are no "
                "feature: leave the column out (to_csv(index=False)), or name it"
            )
        if header.count(name) > 1:
            raise ValueError(f"{path}, line 1: two columns are called {name!r}")
    if groups == target:
        raise ValueError(
            f"target and groups are the same column, {target!r}: folds of groups would then hold out classes"
        )
    for wanted in filter(None, (target, groups)):
        if wanted not in header:
            raise ValueError(f"{path} has no column {wanted!r}; it has {', '.join(header)}")
    for row, line in found:
        if len(row) != len(header):
            raise ValueError(f"{path}, line {line}: {len(row)} cells, but the header has {len(header)}")
    if not found:
        raise ValueError(f"{path} has a header but no rows: at least one sample is needed")
    rows, lines = zip(*found, strict=True)
    columns = {
        name: [cell.strip() for cell in cells] for name, cells in zip(header, zip(*rows, strict=True), strict=True)
    }
    for name, cells in columns.items():
        if "" in cells:
            line = lines[cells.index("")]
            raise ValueError(f"{path}, line {line}, column {name!r} is empty: fill it in or leave the row out")
    names: list[str] = []
    features: list[NDArray[np.float64]] = []
    for name, cells in columns.items():
        if name in (target, groups):
            continue
        numbers = _numbers(cells)
        if numbers is None:
            levels, codes = np.unique(np.array(cells), return_inverse=True)
            names += [f"{name}={level}" for level in levels]
            features += [(codes == k).astype(np.float64) for k in range(len(levels))]
            continue
        for odd in np.flatnonzero(~np.isfinite(numbers)):
            raise ValueError(f"{path}, line {lines[odd]}, column {name!r} is {cells[odd]}: features must be finite")
        names.append(name)
        features.append(numbers)
    if not features:
        raise ValueError(f"{path} has no features: the only column is {target!r}")
    labels = _numbers(columns[target])
    for odd in np.flatnonzero(np.isnan(labels)) if labels is not None else ():
        raise ValueError(
            f"{path}, line {lines[odd]}, column {target!r} is {columns[target][odd]}: leave rows without a label out"
        )
    return Samples(
        X=np.ascontiguousarray(np.stack(features, axis=1)),
        y=_labels(columns[target]),
        names=tuple(names),
        groups=None if groups is None else np.array(columns[groups]),
    )


def _numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return None


def _labels(cells: Sequence[str]) -> NDArray[Any]:
    try:
        return np.array([int(cell) for cell in cells], dtype=np.int64)  # float64 would make one of large neighbours
    except (ValueError, OverflowError):
        pass
    numbers = _numbers(cells)
    if numbers is None or not (np.abs(numbers) < 2**53).all():
        return np.array(cells)
    whole = numbers.astype(np.int64)
    return whole if np.array_equal(whole, numbers) else np.array(cells)


def read(data: TableSet, path: Path) -> Samples:
    """Read a published data set and check that it is the right one.

    Parameters
    ----------
    data : TableSet
    path : Path

    Returns
    -------
    Samples

    Raises
    ------
    ValueError
        When the file holds something else.
    """
    content = _content(path)
    found = hashlib.sha256(content).hexdigest()
    if found != data.sha256:
        raise ValueError(
            f"{path} is not the published {data.name}: the sha256 of its CSV text is {found}, expected {data.sha256}. "
            "read_table reads it without this check"
        )
    return _parse(content, path, "target", None)


_UCI = "CC BY 4.0 by the terms of UCI for donated data; not seen stated for this set"
_COPY = (
    "a CSV file with the header of the features and then target, 0 or 1. The repository "
    "stfxecutables/error-consistency holds a copy under tests/datasets"
)

#: Data sets by name.
TABLES = {
    data.name: data
    for data in (
        TableSet(
            name="parkinsons",
            file="parkinsons.csv",
            n_samples=195,
            n_positive=147,
            n_features=22,
            sha256="76694f3b7fc9e6307d478a0b9a62a5a59ed913344ac58292253cc4cdea3d0b31",
            licence=_UCI,
            source=(
                "Little, McSharry, Roberts, Costello and Moroz (2007), Exploiting nonlinear recurrence and fractal "
                "scaling properties for voice disorder detection, BioMedical Engineering OnLine 6:23"
            ),
            publisher=f"UCI Machine Learning Repository, data set 174, Parkinsons; {_COPY}",
            note="195 recordings of 32 persons, 6 or 7 each, whose names are left out: plain folds share persons",
        ),
        TableSet(
            name="spect",
            file="spect.csv",
            n_samples=267,
            n_positive=212,
            n_features=22,
            sha256="dc0d0f54f68c87d2ad5b4b4c7abd1125f3086459e264329d99193eab0de1cfef",
            licence=_UCI,
            source=(
                "Kurgan, Cios, Tadeusiewicz, Ogiela and Goodenday (2001), Knowledge discovery approach to automated "
                "cardiac SPECT diagnosis, Artificial Intelligence in Medicine 23(2), 149-169"
            ),
            publisher=f"UCI Machine Learning Repository, data set 95, SPECT Heart, its two files in turn; {_COPY}",
            note="48 rows repeat the features of another, some with the other label: those errors are unavoidable",
        ),
        TableSet(
            name="transfusion",
            file="transfusion.csv",
            n_samples=748,
            n_positive=178,
            n_features=4,
            sha256="341d913738185155bb4dd36f858210f3966bd545c303446c9a84a11e32ae7530",
            licence="CC BY 4.0 as a catalogue of UCI data states; not checked at UCI",
            source=(
                "Yeh, Yang and Ting (2009), Knowledge discovery on RFM model using Bernoulli sequence, Expert Systems "
                "with Applications 36, 5866-5871"
            ),
            publisher=f"UCI Machine Learning Repository, data set 176, DOI 10.24432/C5GS39; {_COPY}",
            note="246 rows repeat the features of another; Monetary is 250 times Frequency",
        ),
        TableSet(
            name="pima",
            file="diabetes.csv",
            n_samples=768,
            n_positive=268,
            n_features=8,
            sha256="cf3e78e266844890047fd7c093b36580316a434f2654e0cd8fec6409301b77ce",
            licence="CC0 as a copy of it is marked; not checked",
            source=(
                "Smith, Everhart, Dickson, Knowler and Johannes (1988), Using the ADAP learning algorithm to forecast "
                "the onset of diabetes mellitus"
            ),
            publisher=(
                "National Institute of Diabetes and Digestive and Kidney Diseases; withdrawn from UCI, OpenML data "
                f"set 43384 has the same columns; {_COPY}"
            ),
            note="zeros of Glucose, BloodPressure, SkinThickness, Insulin and BMI stand for missing values",
        ),
        TableSet(
            name="diabetes130",
            file="diabetes130.csv",
            n_samples=101766,
            n_positive=11357,
            n_features=54,
            sha256="2d92d744c1fcaa1977ae2bd1e5fa97c657851718696e2eba94c65b62cb44d9a7",
            licence="CC BY 4.0 as the record of OpenML 43903 states",
            source=(
                "Strack, DeShazo, Gennings, Olmo, Ventura, Cios and Clore (2014), Impact of HbA1c measurement on "
                "hospital readmission rates, BioMed Research International, 781670"
            ),
            publisher=(
                "UCI Machine Learning Repository, data set 296, Diabetes 130-US hospitals, recoded by the rules of "
                "OpenML 43903 (three age bands, discharge to home or elsewhere, six specialties, five groups of "
                "diagnoses; without what is known only afterwards); target is readmission within 30 days"
            ),
            note="89 of 100 are not readmitted: a model that always says so has an accuracy of 0.89",
        ),
    )
}
