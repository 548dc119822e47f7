"""Recorded results of simulations: their files, and the tables of the pages that show them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def to_json(results: Mapping[str, Any]) -> str:
    """Results as text, one cell a line.

    Parameters
    ----------
    results : mapping
        With the key ``cells``, a list of dict; the other values stand in the first line.

    Returns
    -------
    str

    Examples
    --------
    >>> from milfast.report.records import to_json
    >>> print(to_json({"seed": 0, "cells": [{"n": 1}]}), end="")
    {"seed": 0, "cells": [
      {"n": 1}
    ]}
    """
    head = {name: value for name, value in results.items() if name != "cells"}
    lines = ",\n".join(f"  {json.dumps(cell)}" for cell in results["cells"])
    return f'{json.dumps(head)[:-1]}, "cells": [\n{lines}\n]}}\n'


def fill(page: str, kind: str, tables: Mapping[str, str]) -> str:
    r"""A page with its tables renewed: each stands between ``<!-- KIND: NAME -->`` and ``<!-- end -->``.

    Parameters
    ----------
    page : str
    kind : str
    tables : mapping of str to str
        Names and texts.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        When the page has no place for a table.

    Examples
    --------
    >>> from milfast.report.records import fill
    >>> fill("<!-- rates: a -->\nold\n<!-- end -->", "rates", {"a": "new"})
    '<!-- rates: a -->\nnew\n<!-- end -->'
    """
    for name, table in tables.items():
        start = f"<!-- {kind}: {name} -->\n"
        before, found, rest = page.partition(start)
        _, end, after = rest.partition("<!-- end -->")
        if not end:
            raise ValueError(f"the page must have a place {start.strip()} ... <!-- end --> for that table")
        page = f"{before}{found}{table}\n{end}{after}"
    return page
