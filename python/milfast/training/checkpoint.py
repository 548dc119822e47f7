"""Training that was stopped goes on where it stopped: what is kept of it in a file."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import math
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import torch

__all__ = ["Checkpoint", "digest_of", "plain"]

FORMAT = 2


class Checkpoint:
    """A file with the state of a training after its last whole epoch.

    It holds tensors and plain values only, and reading it runs no code. Each write replaces the file as a whole, so a
    training that is killed leaves the state before.

    Parameters
    ----------
    path : str or os.PathLike
        Read when it exists; its folder must exist.
    training : dict
        Values and tensors that determine the training: a checkpoint of another one is refused, and the message names
        the entries that differ.

    Raises
    ------
    ValueError
        When the folder does not exist, or `path` is a folder.
    """

    def __init__(self, path: str | os.PathLike[str], training: dict[str, Any]) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise ValueError(f"checkpoint {str(path)!r} is a folder: name a file in it")
        if not self.path.parent.is_dir():
            raise ValueError(f"checkpoint {str(path)!r} is in a folder that does not exist: make it first")
        self.training = {name: digest_of(value) for name, value in training.items()}

    def read(self) -> dict[str, Any] | None:
        """State that was kept.

        Returns
        -------
        dict or None
            As it was given to `write`, tensors on the CPU; None when there is no file yet.

        Raises
        ------
        ValueError
            When the file is no checkpoint, or one of another training; the message says what differs.
        """
        if not self.path.exists():
            return None
        try:
            kept = torch.load(self.path, map_location="cpu", weights_only=True)
            known = kept["format"] == FORMAT
            training, state = dict(kept["training"]), dict(kept["state"])
        except OSError:
            raise
        except Exception as error:  # whatever the bytes of another file led to
            raise ValueError(f"checkpoint {str(self.path)!r} was not written by milfast: name another file") from error
        if not known:
            raise ValueError(f"checkpoint {str(self.path)!r} was written by another version of milfast: remove it")
        other = [name for name in {**self.training, **training} if training.get(name) != self.training.get(name)]
        if other:
            raise ValueError(
                f"checkpoint {str(self.path)!r} belongs to another training, with other {' and '.join(other)}: remove "
                "it, or name another file"
            )
        return state

    def write(self, state: dict[str, Any]) -> None:
        """Keep a state in place of the one before.

        Parameters
        ----------
        state : dict
            Tensors and plain values.
        """
        beside = self.path.with_name(f"{self.path.name}.{uuid4().hex}.part")
        try:
            torch.save({"format": FORMAT, "training": self.training, "state": state}, beside)
            os.replace(beside, self.path)
        finally:
            beside.unlink(missing_ok=True)


def digest_of(value: Any) -> str:
    """SHA-256 of a value.

    Parameters
    ----------
    value : object
        Dtype and shape of a tensor count; anything else is taken as `plain` has it.

    Returns
    -------
    str

    Examples
    --------
    >>> digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    True
    >>> digest_of(torch.zeros(2)) == digest_of(torch.zeros(1, 2))
    False
    """
    digest = hashlib.sha256()
    if isinstance(value, torch.Tensor):
        digest.update(f"{value.dtype} {tuple(value.shape)}".encode())
        # as bytes: numpy does not know all dtypes of torch
        digest.update(value.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().data)
    else:
        digest.update(json.dumps(plain(value), sort_keys=True).encode())
    return digest.hexdigest()


def plain(value: object) -> Any:
    """A value of JSON in place of a parameter: equal where parameters mean the same, and the same in each process.

    Parameters
    ----------
    value : object

    Returns
    -------
    object
        Whole floats are integers. What is no plain value is the qualified name of it, where it is a class or function,
        or of its class; arrays, tensors and what was made by `functools.partial` are told by what they hold.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.float64(2.0), "b": (1, None), "c": torch.nn.Linear, "d": torch.nn.ReLU()})
    {'a': 2, 'b': [1, None], 'c': 'torch.nn.modules.linear.Linear', 'd': 'torch.nn.modules.activation.ReLU'}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value if math.isfinite(value) else repr(value)
    if isinstance(value, dict):
        return {str(name): plain(held) for name, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(held) for held in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(held) for held in value), key=repr)
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, torch.Tensor):
        return digest_of(value)
    if isinstance(value, functools.partial):
        return [plain(value.func), plain(value.args), plain(value.keywords)]
    kind = value if inspect.isroutine(value) or isinstance(value, type) else type(value)
    return f"{kind.__module__}.{kind.__qualname__}"
