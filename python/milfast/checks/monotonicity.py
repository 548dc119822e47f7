"""One more instance must not turn a positive bag negative, whatever the instance is.

A fresh instance of each kind, one at a time, is added to the positive bags that the model recognises. A bag that is no
longer recognised breaks the law. The model is the one that was trained for the presence check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from milfast.checks.fitted import insert

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.checks.fitted import Fitted

NAME = "monotonicity"
CODE = "MIL006"
ASSUMPTION = "standard"
LEARNED = "an instance can count against a bag"
TASK = "presence"


def broken(fitted: Fitted) -> dict[str, NDArray[np.bool_]]:
    """Recognised positive bags that are no longer recognised with one more instance.

    Parameters
    ----------
    fitted : Fitted

    Returns
    -------
    dict of str to ndarray of bool
        For each kind of instance that was added.
    """
    members = np.flatnonzero((fitted.bags.labels == 1) & (fitted.scores > fitted.cut))
    if not len(members):
        return {}
    recognised = fitted.bags[members]
    owners = np.arange(len(recognised))
    flags = {}
    for code, kind in enumerate(fitted.recipe.kinds):
        added = insert(recognised, fitted.draw(code, len(recognised)), owners, fitted.generator)
        flags[f"one more {kind}"] = fitted.score(added) <= fitted.cut
    return flags
