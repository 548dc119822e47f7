"""Rows of plain values as a table for a terminal, or as Markdown, LaTeX, CSV or JSON."""

from __future__ import annotations

import csv
import io
import itertools
import json
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table

Row: TypeAlias = dict[str, Any]
Format: TypeAlias = Literal["table", "markdown", "latex", "csv", "json"]

FORMATS: tuple[Format, ...] = ("table", "markdown", "latex", "csv", "json")

#: Columns that a narrow terminal can do without, least needed first; the other forms have them all.
EXPENDABLE = (
    "paper_verdict",
    "margin",
    "n_ties",
    "epoch",
    "train_auc",
    "pooled_auc",
    "bags_auc",
    "seed_aucs",
    "trial_sd",
    "size_auc",
    "oracle_auc",
    "worst_auc",
    "n_runs",
    "accuracy_sd_runs",
    "parameters",
    "repeats",
    "folds",
    "needs",
    "group",
    "flags",
    "spurious_share",
    "excess",
    "environments",
    "trial",
    "share_solved",
    "sd",
)

#: Characters that LaTeX would take for its own.
LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",  # a dash in LaTeX's first encoding
    "\\": r"\textbackslash{}",
}

STYLES = {
    "pass": "green",
    "fail": "bold red",
    "inconclusive": "yellow",
    "not-learned": "magenta",
    "impossible": "bold red",
    "diverged": "bold red",
    "void": "magenta",
}


@dataclass(frozen=True)
class Column:
    """A column for people.

    Attributes
    ----------
    title : str
        Its heading.
    key : str
        The value of a row it shows.
    bounds : bool
        Whether to show the row's ``key_low`` and ``key_high`` beside it.
    beside : str
        Another value of the row, which follows in brackets.
    digits : int
        Decimals of a figure.
    """

    title: str
    key: str
    bounds: bool = False
    beside: str = ""
    digits: int = 3

    def text(self, row: Row) -> str:
        """What stands in a cell.

        Parameters
        ----------
        row : dict

        Returns
        -------
        str
        """
        value = row[self.key]
        if self.beside:
            own, other = (Column(self.title, key, digits=self.digits) for key in (self.key, self.beside))
            return f"{own.text(row)} ({other.text(row)})"
        if not isinstance(value, float) and value is not None:
            return str(value)
        if not self.bounds or value is None:
            return _number(value, self.digits)
        low, high = (_number(row[f"{self.key}_{side}"], self.digits) for side in ("low", "high"))
        return f"{_number(value, self.digits)} [{low}, {high}]"


CHECK_COLUMNS = (
    Column("model", "model"),
    Column("check", "check"),
    Column("recipe", "recipe"),
    Column("train AUC", "train_auc"),
    Column("fresh AUC", "fresh_auc", bounds=True),
    Column("shifted AUC", "test_auc", bounds=True),
    Column("worst sort", "worst_auc", bounds=True),
    Column("law broken", "broken", bounds=True),
    Column("oracle", "oracle_auc"),
    Column("size only", "size_auc"),
    Column("verdict", "verdict"),
    Column("paper's rule", "paper_verdict"),
    Column("flags", "flags"),
)

#: Results, and in brackets what a paper printed for them.
PRINTED_COLUMNS = (
    Column("model", "model"),
    Column("check", "check"),
    Column("recipe", "recipe"),
    Column("train acc (paper)", "train_accuracy", beside="printed_train_accuracy"),
    Column("train AUC (paper)", "train_auc", beside="printed_train_auc"),
    Column("fresh AUC", "fresh_auc"),
    Column("test acc (paper)", "test_accuracy", beside="printed_test_accuracy"),
    Column("test AUC (paper)", "test_auc", beside="printed_test_auc"),
    Column("verdict (paper's figures)", "verdict", beside="printed_verdict"),
)

EVALUATION_COLUMNS = (
    Column("model", "model"),
    Column("data", "data"),
    Column("AUC", "auc", bounds=True),
    Column("SD over folds", "fold_sd"),
    Column("folds", "folds"),
    Column("repeats", "repeats"),
)

PROTOCOL_COLUMNS = (
    Column("model", "model"),
    Column("data", "data"),
    Column("protocol", "protocol"),
    Column("AUC", "auc", bounds=True),
    Column("same models, other bags", "bags_auc", bounds=True),
    Column("all bags together", "pooled_auc", bounds=True),
    Column("SD over trials", "trial_sd"),
    Column("means of the seeds", "seed_aucs"),
    Column("training AUC", "train_auc"),
    Column("ties", "n_ties", digits=0),
    Column("epoch", "epoch", digits=0),
    Column("margin", "margin", digits=2),
)

CONSISTENCY_COLUMNS = (
    Column("model", "model"),
    Column("data", "data"),
    Column("accuracy", "accuracy"),
    Column("SD", "accuracy_sd_pairs"),
    Column("SD over runs", "accuracy_sd_runs"),
    Column("majority", "majority"),
    Column("error consistency", "consistency"),
    Column("SD", "consistency_sd"),
    Column("micro", "micro", bounds=True),
    Column("repeats", "repeats"),
    Column("folds", "folds"),
    Column("parameters", "parameters"),
    Column("flags", "flags"),
)

#: The same, and in brackets what Levman et al. (2023) printed.
PRINTED_CONSISTENCY_COLUMNS = (
    Column("model", "model"),
    Column("data", "data"),
    Column("accuracy (paper)", "accuracy", beside="printed_accuracy"),
    Column("SD (paper)", "accuracy_sd_pairs", beside="printed_accuracy_sd"),
    Column("majority", "majority"),
    Column("error consistency (paper)", "consistency", beside="printed_consistency"),
    Column("SD (paper)", "consistency_sd", beside="printed_consistency_sd"),
    Column("difference", "consistency_difference"),
    Column("repeats", "repeats"),
    Column("parameters", "parameters"),
    Column("flags", "flags"),
)


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def telling(rows: Sequence[Row], columns: Sequence[Column]) -> list[Column]:
    """Columns without those that say nothing in any row.

    Parameters
    ----------
    rows : sequence of dict
    columns : sequence of Column

    Returns
    -------
    list of Column
    """
    return [column for column in columns if not rows or any(row[column.key] not in (None, "") for row in rows)]


def fitting(rows: Sequence[Row], columns: Sequence[Column], width: int) -> list[Column]:
    """As many columns as fit: the least needed ones go first.

    The recipe goes before all others when it is the same in every row, and never when it tells rows apart.

    Parameters
    ----------
    rows : sequence of dict
    columns : sequence of Column
    width : int
        Characters of a line.

    Returns
    -------
    list of Column
    """
    kept = list(columns)

    def needed() -> int:
        return sum(3 + max(len(c.title), *(len(c.text(row)) for row in rows)) for c in kept)

    plain = len({row.get("recipe") for row in rows}) == 1
    for key in ("recipe", *EXPENDABLE) if plain else EXPENDABLE:
        if not rows or needed() <= width:
            break
        kept = [c for c in kept if c.key != key]
    return kept


def rich_table(rows: Sequence[Row], columns: Sequence[Column], *, title: str | None = None) -> Table:
    """A table for a terminal; rows of one model, or of one problem, stand together and verdicts have colours.

    Parameters
    ----------
    rows : sequence of dict
    columns : sequence of Column
    title : str, optional

    Returns
    -------
    rich.table.Table
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for column in columns:
        figures = _holds_figures(rows, column)
        # where the terminal is narrow, bounds go below their estimate and a summary is folded; names are not torn apart
        foldable = column.bounds or column.key in ("summary", "licence")
        table.add_column(column.title, justify="right" if figures else "left", no_wrap=not foldable)
    together = "problem" if all("problem" in row for row in rows) else "model"
    for row, following in itertools.zip_longest(rows, rows[1:]):
        last = following is not None and row.get(together) != following.get(together)
        cells = [Text(column.text(row), style=STYLES.get(column.text(row), "")) for column in columns]
        table.add_row(*cells, end_section=last)
    return table


def markdown(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    """A Markdown table.

    Parameters
    ----------
    rows : sequence of dict
    columns : sequence of Column

    Returns
    -------
    str

    Examples
    --------
    >>> from milfast.report.table import Column, markdown
    >>> print(markdown([{"model": "NSK", "auc": 0.95}], [Column("model", "model"), Column("AUC", "auc")]))
    | model | AUC |
    |---|---|
    | NSK | 0.950 |
    """
    lines = [
        "| " + " | ".join(column.title for column in columns) + " |",
        "|" + "---|" * len(columns),
        # a line would end the row
        *(
            "| " + " | ".join(" ".join(column.text(row).split()).replace("|", "\\|") for column in columns) + " |"
            for row in rows
        ),
    ]
    return "\n".join(lines)


def latex(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    r"""A LaTeX table in the style of booktabs.

    Parameters
    ----------
    rows : sequence of dict
    columns : sequence of Column

    Returns
    -------
    str

    Examples
    --------
    >>> from milfast.report.table import Column, latex
    >>> print(latex([{"model": "a_b", "auc": 0.95}], [Column("model", "model"), Column("AUC", "auc")]))
    \begin{tabular}{lr}
    \toprule
    model & AUC \\
    \midrule
    a\_b & 0.950 \\
    \bottomrule
    \end{tabular}
    """

    def line(cells: Iterable[str]) -> str:
        return row_of_tex("".join(LATEX.get(character, character) for character in " ".join(c.split())) for c in cells)

    kinds = "".join("r" if _holds_figures(rows, column) else "l" for column in columns)
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{kinds}}}",
            r"\toprule",
            line(column.title for column in columns),
            r"\midrule",
            *(line(column.text(row) for column in columns) for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def row_of_tex(cells: Iterable[str]) -> str:
    r"""A row of a LaTeX table.

    Parameters
    ----------
    cells : iterable of str
        Text as LaTeX reads it.

    Returns
    -------
    str

    Examples
    --------
    >>> from milfast.report.table import row_of_tex
    >>> print(row_of_tex(["[a]", "0.9"]))
    {}[a] & 0.9 \\
    """
    row = " & ".join(cells)
    # the end of the row above would take a bracket for a length, and a star for its own
    return ("{}" if row.startswith(("[", "*")) else "") + row + r" \\"


def _holds_figures(rows: Sequence[Row], column: Column) -> bool:
    return all(isinstance(row[column.key], (int, float, NoneType)) for row in rows)


def as_csv(rows: Sequence[Row]) -> str:
    """All values of the rows, full precision, as CSV.

    Parameters
    ----------
    rows : sequence of dict
        With the same keys.

    Returns
    -------
    str

    Examples
    --------
    >>> from milfast.report.table import as_csv
    >>> as_csv([{"model": "NSK", "auc": 0.95}]).splitlines()
    ['model,auc', 'NSK,0.95']
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def as_json(rows: Sequence[Row]) -> str:
    """All values of the rows, full precision, as a JSON list of flat objects.

    Parameters
    ----------
    rows : sequence of dict

    Returns
    -------
    str
    """
    return json.dumps(list(rows), indent=2, allow_nan=False)
