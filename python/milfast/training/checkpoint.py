"""Training that was stopped goes on where it stopped: what is kept of it in a file."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch

__all__ = ["Checkpoint"]

FORMAT = 1


class Checkpoint:
    """A file with the state of a training after its last whole epoch.

    It holds tensors and plain values only, and reading it runs no code. Each write replaces the file as a whole, so a
    training that is killed leaves the state before.

    Parameters
    ----------
    path : str or os.PathLike
        Read when it exists; its folder must exist.
    training : dict
        Plain values and tensors that determine the training: a checkpoint of another one is refused.

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
        self.training = {name: _digest(value) for name, value in training.items()}

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
            training, state = kept["training"], kept["state"]
        except OSError:
            raise
        except Exception as error:  # whatever the bytes of another file led to
            raise ValueError(f"checkpoint {str(self.path)!r} was not written by milfast: name another file") from error
        if not known:
            raise ValueError(f"checkpoint {str(self.path)!r} was written by another version of milfast: remove it")
        other = [name for name in self.training if training.get(name) != self.training[name]]
        if other:
            raise ValueError(
                f"checkpoint {str(self.path)!r} belongs to another training, with other {' and '.join(other)}: remove "
                "it, or name another file"
            )
        return dict(state)

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


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    if isinstance(value, torch.Tensor):
        digest.update(f"{value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().numpy().data)
    else:
        digest.update(json.dumps(value, sort_keys=True).encode())
    return digest.hexdigest()
