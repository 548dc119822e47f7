"""`milfast merge`: several studies in one file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from milfast.cli.arguments import verb

if TYPE_CHECKING:
    import argparse


def add(verbs: Any) -> None:
    """Add the verb to the parser."""
    parser = verb(
        verbs,
        "merge",
        run,
        "put studies together",
        "Jobs that are in several files are counted once.\n\nexample:\n  milfast merge node1.db node2.db --out all.db",
    )
    parser.add_argument("files", nargs="+", metavar="STUDY", help="files made with --out")
    parser.add_argument("--out", required=True, metavar="FILE", help="file to put them into; may be there already")


def run(options: argparse.Namespace) -> int:
    """Do what was asked; the exit status."""
    from milfast.study import Store

    with Store(options.out) as target:
        for file in options.files:
            with Store(file, write=False) as source:
                taken = target.absorb(source)
            print(f"{file}: {taken} results taken", file=sys.stderr)
        counts = target.counts()
    print(f"{options.out}: {counts['done']} done, {counts['failed']} failed, {counts['todo']} to do")
    return 0
