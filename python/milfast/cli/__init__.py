"""The command line: check models, evaluate them on data, score a file, list what there is."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import threading
import traceback
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import milfast

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Files of this package, one a verb, in the order of the help.
VERBS = ("check", "evaluate", "invariance", "consistency", "auc", "compare", "audit", "show", "merge", "ls")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        Exit status: 0 for success, 1 when a check did not pass, 2 for wrong use, 130 after Ctrl-C.
    """
    parser = _parser()
    given = sys.argv[1:] if arguments is None else list(arguments)
    if not given:
        parser.print_help()
        return 2
    options = parser.parse_args(given)
    # joblib replaces workers whose memory has grown, and says so; nobody has to do anything about it
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given", category=UserWarning)
    try:
        with _ending_on_sigterm():
            status: int = options.run(options)
            sys.stdout.flush()
    except KeyboardInterrupt:
        file = options.out if getattr(options, "resumes", False) else None
        kept = "" if file is None else f"; what was done is kept in {file}: the same command goes on"
        print(f"milfast: interrupted{kept}", file=sys.stderr)
        return 130
    except _Terminated as end:
        return 128 + int(end.args[0])
    except BrokenPipeError:
        # whoever read the output has gone; without this the interpreter would complain about it at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # rich's way to end, with standard output shut already
            return 1
        # a model's file that ends the program when it is imported must not look like a check that went well
        if options.traceback:
            traceback.print_exc()
        print(f"milfast: error: the model ended the program: sys.exit({stop.code!r})", file=sys.stderr)
        return 2
    except Exception as error:  # a model may raise anything
        if options.traceback:
            raise
        print(f"milfast: error: {_in_one_line(error)}", file=sys.stderr)
        return 2
    return status


def _in_one_line(error: Exception) -> str:
    ours = isinstance(error, (ValueError, TypeError, OSError, ImportError))
    text = str(error) if ours and str(error) else f"{type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return f"{text}{notes}" + ("" if ours else "; --traceback shows where")


class _Terminated(BaseException):
    """SIGTERM has come; no `SystemExit`, which would look as if a model had ended the program."""


@contextmanager
def _ending_on_sigterm() -> Iterator[None]:
    """Let SIGTERM unwind the stack, so that worker processes end with this one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: object) -> None:
        raise _Terminated(number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="milfast",
        description="Tells whether a multiple-instance-learning model, a metric or a claim can be trusted.",
        epilog="`milfast VERB --help` says more, with examples.",
    )
    parser.add_argument("--version", action="version", version=f"milfast {milfast.__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for name in VERBS:
        importlib.import_module(f"milfast.cli.{name}").add(verbs)
    return parser
