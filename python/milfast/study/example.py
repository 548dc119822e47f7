"""The smallest job there is, for documentation."""

from typing import Any


def square(spec: dict[str, Any]) -> dict[str, Any]:
    """Square of ``spec["n"]``.

    Parameters
    ----------
    spec : dict

    Returns
    -------
    dict
    """
    return {"square": spec["n"] ** 2}
