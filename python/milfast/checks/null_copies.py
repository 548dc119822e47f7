"""Copies of instances that mean nothing must not matter: how often the null class occurs is no evidence.

Every instance of a fresh bag that shows no concept is repeated until it is there five times. A bag that changes sides,
from recognised as positive to not recognised or back, breaks the law. The model is the one that was trained for the
presence check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from milfast.checks.fitted import insert

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.checks.fitted import Fitted

NAME = "null-copies"
CODE = "MIL005"
ASSUMPTION = "standard"
LEARNED = "how often instances occur that mean nothing"
TASK = "presence"

#: Copies added of each instance.
COPIES = 4


def broken(fitted: Fitted) -> dict[str, NDArray[np.bool_]]:
    """Bags that change sides when their instances without a concept are copied.

    Parameters
    ----------
    fitted : Fitted

    Returns
    -------
    dict of str to ndarray of bool
        For negative and for positive bags that hold such instances.
    """
    bags = fitted.bags
    assert bags.kinds is not None
    null = np.flatnonzero(np.array([c.concept is None for c in fitted.recipe.components])[bags.kinds])
    copied = np.repeat(null, COPIES)
    owners = bags.bag_index[copied]
    scores = fitted.score(insert(bags, bags.instances[copied], owners, fitted.generator))
    changed = (scores > fitted.cut) != (fitted.scores > fitted.cut)
    concerned = np.bincount(owners, minlength=len(bags)) > 0
    return {
        "negative bags": changed[concerned & (bags.labels == 0)],
        "positive bags": changed[concerned & (bags.labels == 1)],
    }
