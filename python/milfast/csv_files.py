"""CSV files from the command line: cells by column name, and messages that say where a file is wrong."""

from __future__ import annotations

import csv
import gzip
import sys
import warnings
import zlib
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


#: Names of columns that say what rows belong to.
CLUSTERS = ("cluster", "patient", "group")


def read_scores(
    file: str, scores: str | None, labels: str | None, pos_label: str | None
) -> tuple[list[int | float], list[Any]]:
    """Scores and labels of a file.

    Parameters
    ----------
    file : str
        A name, also of a file ending in .gz; ``-`` is standard input.
    scores, labels : str or None
        Names of the columns; None for the usual ones.
    pos_label : str or None
        Labels stay text when one is given, and are numbers otherwise.

    Returns
    -------
    tuple of two lists

    Raises
    ------
    ValueError
        When a column is missing, a cell is not a number, or there are no rows.

    Warns
    -----
    RuntimeWarning
        When there is a column of `CLUSTERS` and several rows belong to one of them.
    """
    with records(file) as (title, header, rows):
        score_at = column(title, header, scores, ("score", "scores", "prediction"), "--scores")
        label_at = column(title, header, labels, ("label", "labels", "target", "y"), "--labels")
        found: tuple[list[int | float], list[Any]] = ([], [])
        names = names_of(title, header)
        cluster_at = next((names.index(name) for name in CLUSTERS if name in names), None)
        clusters: set[str] = set()
        for place, row in rows:
            if len(row) <= max(score_at, label_at):
                raise ValueError(f"{place}: {len(row)} cells where the header has {len(header)}")
            score = number(row[score_at])
            if score is None:
                raise ValueError(f"{place}: {row[score_at]!r} in column {header[score_at]!r} is not a number")
            found[0].append(score)
            if cluster_at is not None and cluster_at < len(row):
                clusters.add(row[cluster_at])
            label = row[label_at].strip()
            if pos_label is not None:
                found[1].append(label)
                continue
            value = number(label)
            if value is None:
                raise ValueError(
                    f"{place}: {label!r} in column {header[label_at]!r} is not 0, 1 or -1: "
                    "say which label is positive with --pos-label"
                )
            found[1].append(value)
    if not found[0]:
        raise ValueError(f"{title} has a header but no rows")
    if 0 < len(clusters) < len(found[0]) and cluster_at not in (None, score_at, label_at):
        warnings.warn(
            f"column {names[cluster_at or 0]!r}: {len(found[0])} rows belong to {len(clusters)}, and the interval "
            "takes each row as independent; auc_interval(clusters=...) in Python and `milfast compare` do not",
            RuntimeWarning,
            stacklevel=2,
        )
    return found


def read_table(file: str) -> list[dict[str, str]]:
    """Rows of a file as they are written.

    Parameters
    ----------
    file : str
        A name, also of a file ending in .gz; ``-`` is standard input.

    Returns
    -------
    list of dict
        From column names to cells; columns without a name at the end of the header are left out.

    Raises
    ------
    ValueError
        When two columns have one name, a row has too many or too few cells, or there are no rows.
    """
    table: list[dict[str, str]] = []
    with records(file) as (title, header, rows):
        names = names_of(title, header)
        # spreadsheets leave commas behind the last column
        while names and not names[-1]:
            names.pop()
        if not names:
            raise ValueError(f"{title} has a header without a name")
        for name in names:
            _require_once(title, names, name)
        for place, row in rows:
            if not len(names) <= len(row) <= len(header):
                raise ValueError(f"{place}: {len(row)} cells where the header has {len(header)}")
            # what stands in columns without a name has no meaning here
            table.append(dict(zip(names, (cell.strip() for cell in row), strict=False)))
    if not table:
        raise ValueError(f"{title} has a header but no rows")
    return table


@contextmanager
def records(file: str) -> Iterator[tuple[str, list[str], Iterator[tuple[str, list[str]]]]]:
    """Open a file for its header and its rows.

    Parameters
    ----------
    file : str

    Yields
    ------
    tuple
        What to call the file, its header, and its rows that are not empty, each with its place for messages.

    Raises
    ------
    ValueError
        When the file is empty, no text, or no CSV.
    """
    with open_text(file) as stream:
        title = "standard input" if file == "-" else file
        rows = _read(title, stream)
        header = next(rows, None)
        if header is None:
            raise ValueError(f"{title} is empty")
        yield title, header[1], ((place, row) for place, row in rows if row)


def _read(title: str, stream: TextIO) -> Iterator[tuple[str, list[str]]]:
    """All rows with their places, and what is wrong with the file in words."""
    reader = None
    try:
        first = stream.readline()
        if not first:
            return
        # a byte order mark, which standard input has still, would stand before the quotes of the first name
        reader = csv.reader(chain([first.removeprefix("\ufeff")], stream))
        for row in reader:
            yield f"{title}, line {reader.line_num}", row
    except UnicodeDecodeError as error:
        raise ValueError(f"{title} is not UTF-8 text ({error.reason}): save it as CSV in UTF-8") from None
    except csv.Error as error:
        line = "" if reader is None else f", line {reader.line_num}"
        raise ValueError(f"{title}{line}: {error}: is a quote left open, or is this no CSV?") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{title} cannot be decompressed: {error}") from None


def number(cell: str) -> int | float | None:
    """The number in a cell; integers stay integers, so that large ones are not rounded.

    Parameters
    ----------
    cell : str

    Returns
    -------
    int, float or None
        None when there is no number.

    Examples
    --------
    >>> from milfast.csv_files import number
    >>> number(" 12"), number("0.5"), number("1_000")
    (12, 0.5, None)
    """
    text = cell.strip()
    if not text.isascii() or "_" in text:  # Python would read 1_000
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def column(file: str, header: Sequence[str], wanted: str | None, usual: Sequence[str], flag: str) -> int:
    """Where a column stands.

    Parameters
    ----------
    file : str
        What to call the file in messages.
    header : sequence of str
    wanted : str or None
        Name of the column; None for the first of `usual` that is there.
    usual : sequence of str
    flag : str
        The option that names the column.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        When it is missing or there are two.
    """
    names = names_of(file, header)
    for name in usual if wanted is None else (wanted,):
        if name in names:
            _require_once(file, names, name)
            return names.index(name)
    missing = " or ".join(usual) if wanted is None else repr(wanted)
    raise ValueError(f"{file} has no column {missing}; it has {', '.join(names)}: name one with {flag}")


def names_of(file: str, header: Sequence[str]) -> list[str]:
    """Names of the columns.

    Parameters
    ----------
    file : str
        What to call the file in messages.
    header : sequence of str

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        When cells are separated by semicolons or tabs.
    """
    names = [name.strip().removeprefix("\ufeff") for name in header]
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        raise ValueError(f"{file}: cells must be separated by commas; the header is {names[0]!r}")
    return names


def _require_once(file: str, names: Sequence[str], name: str) -> None:
    if names.count(name) > 1:
        raise ValueError(f"{file} has {names.count(name)} columns {name!r}: rename all but one")


@contextmanager
def open_text(file: str) -> Iterator[TextIO]:
    """Open a file to read text.

    Parameters
    ----------
    file : str
        A name; ``-`` is standard input, and a file ending in .gz is decompressed.

    Yields
    ------
    TextIO
    """
    if file == "-":
        yield sys.stdin
    elif file.endswith(".gz"):
        with gzip.open(file, "rt", encoding="utf-8-sig", newline="") as stream:
            yield stream
    else:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            yield stream
