"""Codes of verdicts and flags; those of checks stand in their files. docs/checks.md has a paragraph for each."""

from __future__ import annotations

VERDICTS = {
    "pass": "MIL100",
    "fail": "MIL101",
    "inconclusive": "MIL102",
    "not-learned": "MIL103",
}

FLAGS = {
    "degraded": "MIL110",
    "below-oracle": "MIL111",
    "size-cue": "MIL112",
    "worst-stratum": "MIL113",
    "outside-claim": "MIL114",
    "presence-failed": "MIL115",
    "memorised": "MIL116",
    "upside-down": "MIL117",
    "one-fit": "MIL118",
    "few-runs": "MIL119",
    "unstable": "MIL120",
    "padding": "MIL121",
}

#: Code of a recipe of one's own, and of a pair of published figures that no ROC curve has.
OWN_RECIPE = "MIL099"
IMPOSSIBLE_PAIR = "MIL201"
