"""What people see on a terminal: tables that fit, notes below them, a bar while they wait."""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from milfast.report import table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

#: Characters of a line where the output is no terminal.
WIDE = 150


def console(stream: TextIO) -> Console:
    """A console that prints to a stream, as wide as its terminal.

    Parameters
    ----------
    stream : text stream

    Returns
    -------
    rich.console.Console
    """
    from rich.console import Console

    # COLUMNS counts also where the output is no terminal
    width = None if stream.isatty() else shutil.get_terminal_size((WIDE, 0)).columns
    return Console(file=stream, width=width, soft_wrap=False)


def show(rows: Sequence[dict[str, Any]], columns: Sequence[table.Column], form: table.Format) -> Sequence[table.Column]:
    """Print rows.

    Parameters
    ----------
    rows : sequence of dict
    columns : sequence of Column
    form : {"table", "markdown", "latex", "csv", "json"}

    Returns
    -------
    sequence of Column
        Those that were shown.
    """
    columns = table.telling(rows, columns)
    if form == "table" and not rows:
        print("nothing to show")
    elif form == "table":
        paper = console(sys.stdout)
        fitting = table.fitting(rows, columns, paper.width)
        with paper.capture() as captured:
            paper.print(table.rich_table(rows, fitting))
        print("\n".join(line.rstrip() for line in captured.get().strip("\n").splitlines()))
        left_out = [column.title for column in columns if column not in fitting]
        if left_out:
            say(f"left out for the width: {', '.join(left_out)}; --format markdown has every column")
        return fitting
    elif form == "markdown":
        print(table.markdown(rows, columns))
    elif form == "latex":
        print(table.latex(rows, columns))
    elif form == "csv":
        print(table.as_csv(rows))
    else:
        print(table.as_json(rows))
    return columns


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[..., None]]:
    """A bar with the time left on standard error, where that is a terminal.

    Parameters
    ----------
    what : str
        What is being done.
    total : int
        Number of steps.

    Yields
    ------
    callable
        ``advance(text, total=None)`` after each step, with what was done; the total may be corrected on the way.
    """
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console(sys.stderr),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(what, total=total)

        def advance(text: str, total: int | None = None) -> None:
            bar.update(task, advance=1, total=total, description=escape(f"{what}: {text}"))

        yield advance


def say(text: str) -> None:
    """Print a note that stands back behind the figures.

    Parameters
    ----------
    text : str
    """
    console(sys.stdout).print(text, style="dim", highlight=False, markup=False)
