"""Wrong answers as bits: of several classes, two models can be wrong about a sample in different ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.consistency.bits import blocks

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, eq=False)
class WrongAnswers:
    """Which model gives which wrong answer to which sample.

    Attributes
    ----------
    packed : ndarray of uint8, shape (n_sets, bytes)
        A bit for each wrong answer that any model gives.
    samples : ndarray of intp, shape (n_answers,)
        The sample that each answer is given to.
    counts : ndarray of uint32, shape (n_answers,)
        How many models give it.
    """

    packed: NDArray[np.uint8]
    samples: NDArray[np.intp]
    counts: NDArray[np.uint32]

    @property
    def n_answers(self) -> int:
        """Number of different wrong answers to all samples."""
        return len(self.samples)


def wrong_answers(predictions: ArrayLike, packed: NDArray[np.uint8], n_samples: int) -> WrongAnswers:
    """The wrong answers among predictions of models with known errors."""
    given: NDArray[Any] = np.asarray(predictions)
    shape = (len(packed), n_samples)
    if given.shape != shape:
        raise ValueError(f"predictions must have the shape of error_sets, {shape}; got {given.shape}")
    if given.dtype.kind == "O":
        given = given.astype(str)  # mixed types have no order
    if given.dtype.kind == "f" and np.isnan(given).any():
        i, j = np.argwhere(np.isnan(given))[0]
        raise ValueError(f"predictions[{i}, {j}] is NaN: a model must answer every sample")
    classes, codes = np.unique(given, return_inverse=True)
    codes = codes.reshape(shape)
    errors = np.empty(shape, bool)
    for rows, block in blocks(packed, n_samples):
        errors[rows] = block
    _require_one_label(given, codes, errors)
    bits, samples = [], []
    for code in range(len(classes)):
        wrong = errors & (codes == code)
        [answered] = np.nonzero(wrong.any(axis=0))
        bits.append(wrong[:, answered])
        samples.append(answered)
    answers = np.concatenate([np.zeros((len(packed), 0), bool), *bits], axis=1)
    return WrongAnswers(
        np.packbits(answers, axis=1),
        np.concatenate([np.zeros(0, np.intp), *samples]),
        answers.sum(axis=0, dtype=np.uint32),
    )


def _require_one_label(given: NDArray[Any], codes: NDArray[Any], errors: NDArray[np.bool_]) -> None:
    """Right answers to a sample are all the same, and no wrong one is."""
    if not errors.size:
        return
    first = np.argmin(errors, axis=0)  # a model that is right, if any is
    label = np.where(errors.all(axis=0), -1, np.take_along_axis(codes, first[None], axis=0)[0])
    odd = (label >= 0) & ((codes == label) == errors)
    if odd.any():
        i, s = np.argwhere(odd)[0]
        says = "is an error but equals" if errors[i, s] else "is no error but differs from"
        raise ValueError(
            f"predictions[{i}, {s}] is {given[i, s]!r}: it {says} predictions[{first[s]}, {s}], which is right: "
            "error_sets must be predictions != labels"
        )
