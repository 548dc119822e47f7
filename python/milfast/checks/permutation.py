"""The order of the instances must not matter: a bag is a set.

Fresh bags are scored again with their instances in another order. Any change of a score beyond rounding breaks the law.
The model is the one that was trained for the presence check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from milfast.bags import Bags

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from milfast.checks.fitted import Fitted

NAME = "permutation"
CODE = "MIL004"
ASSUMPTION = "standard"
LEARNED = "the score of a bag depends on the order of its instances"
TASK = "presence"


def broken(fitted: Fitted) -> dict[str, NDArray[np.bool_]]:
    """Bags whose score changes when their instances are permuted.

    Parameters
    ----------
    fitted : Fitted

    Returns
    -------
    dict of str to ndarray of bool
        For negative and for positive bags.
    """
    bags = fitted.bags
    order = np.lexsort((fitted.generator.random(bags.n_instances), bags.bag_index))
    moved = fitted.changed(fitted.score(Bags._trusted(bags.instances[order], bags.offsets, None, None)))
    return {"negative bags": moved[bags.labels == 0], "positive bags": moved[bags.labels == 1]}
