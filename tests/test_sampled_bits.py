"""Sampled bags keep their bits: results that were recorded rest on the bags of their seeds.

A change of the sampler that moves one of these digests makes recorded results irreproducible.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest

import milfast as mf
from milfast.checks import SPELLINGS, BagRecipe, Component, Draw

CHECKS = ("false-frequency", "presence", "threshold-poison")


def mixture() -> BagRecipe:
    """Every way to choose, sums of ranges, draws that may not take place, weights, means of any direction."""
    kinds = (
        Component("background", 0.25),
        Component("first", 2.0, 0.5, concept="one"),
        Component("second", (0.5, -1.5, 3.0, 1e-3, 7.0), 2.0, concept="two"),
        Component("third", -1.0, 9.0, concept="two"),
        Component("rest", 4.0, 1e-4),
    )
    return BagRecipe(
        name="mixture",
        components=kinds,
        negative=(
            Draw(("background", "rest"), ((1, 3), (0, 2)), choice="instance", weights=(3.0, 1.0)),
            Draw(("first", "rest"), (0, 1), choice="balanced"),
            Draw("background", 2, probability=0.3),
        ),
        positive=(
            Draw(("second", "third"), (1, 2), choice="balanced", weights=(1.0, 2.0)),
            Draw(("first", "rest", "background"), (1, 3), choice="each"),
            Draw(("rest", "third"), (0, 40), choice="bag", probability=0.5),
        ),
        n_features=5,
    )


#: What is sampled, by name: the check or recipe, the number of bags, options.
SAMPLES: dict[str, tuple[Any, int, dict[str, Any]]] = {
    **{
        f"{check} {spelling} {'train' if training else 'test'}": (
            check,
            70,
            {"recipe": spelling, "training": training, "random_state": 3},
        )
        for check in CHECKS
        for spelling in SPELLINGS
        for training in (True, False)
    },
    **{
        f"presence of {n} features": ("presence", 60, {"n_features": n, "random_state": 10**20 + n})
        for n in (1, 3, 31, 64, 130)
    },
    "no bag is positive": ("presence", 50, {"positive_fraction": 0.0, "random_state": 5}),
    "bags filled up": ("threshold-poison", 20, {"pad_to": 1100, "random_state": 6}),  # beyond what is drawn at once
    "means along a direction": ("false-frequency", 40, {"direction": [3.0, 4.0] + 14 * [0.0], "random_state": 7}),
    "mixture": (mixture(), 300, {"random_state": 8}),
    "mixture of more bags than a task has": (mixture(), 5000, {"random_state": 9}),
    "one bag": (mixture(), 1, {"random_state": 10}),
    "many bags": ("presence", 6000, {"random_state": 0}),
}

#: First 16 hexadecimal digits of the SHA-256 of instances (float32, then float64), offsets, labels and kinds.
DIGESTS = {
    "false-frequency paper train": ("1e51990e00d50172", "2f120167c26679f3"),
    "false-frequency paper test": ("494020a948517aaf", "530252b2ed13f440"),
    "false-frequency notebook train": ("680ae80ef9010aae", "2d2a0ebc6dc547cc"),
    "false-frequency notebook test": ("185bbdb4a447e4ff", "e6cd093f018f8914"),
    "false-frequency strict train": ("69bffb29719ccd8a", "b603d51a2cd6e011"),
    "false-frequency strict test": ("315e2de2f698df43", "bcf4d6198e859c9d"),
    "presence paper train": ("0d9e2e7c3d737107", "a2fe839f6a32d701"),
    "presence paper test": ("ad0ad489a1209cc1", "337d2d460f8d5fdc"),
    "presence notebook train": ("8c6bcd92c77cdefd", "710164e2417fc9c4"),
    "presence notebook test": ("06a21aa559e4f45a", "93c5bb0fb5ebee8d"),
    "presence strict train": ("c8690ade3c3c3307", "205935777c6aecd2"),
    "presence strict test": ("fe721f53b45dd802", "ce5d5439d741bba9"),
    "threshold-poison paper train": ("19547026205894e8", "3eeb420a44a64858"),
    "threshold-poison paper test": ("6fa510410d7ef4f9", "ac5e2096eeb08dda"),
    "threshold-poison notebook train": ("64282f4a625a6432", "09f919008b1855d7"),
    "threshold-poison notebook test": ("35bdea280fc5624b", "15089fb24fd0d836"),
    "threshold-poison strict train": ("7411ffba0293fa7c", "f93cef480b04d14b"),
    "threshold-poison strict test": ("9064398b5672506c", "56f0e91f4c1237b7"),
    "presence of 1 features": ("38d6e05d79a4ccd4", "a790adc8a66f915c"),
    "presence of 3 features": ("1a643da7cf20a3ec", "1c3d94e395c2b127"),
    "presence of 31 features": ("813ec4729694999a", "c66d2b143ae349e2"),
    "presence of 64 features": ("6d9a7e39c19bb83a", "f4c44c5ebe1098a0"),
    "presence of 130 features": ("3b7d293087319301", "98381c15338d6c9d"),
    "no bag is positive": ("19e1f16654190068", "96f547943b3c58b2"),
    "bags filled up": ("be3aa93456eec23e", "ef60452e81c56d2b"),
    "means along a direction": ("43a85cd258f0daaf", "39187adab31b4bc2"),
    "mixture": ("2c7cd1511f1eb869", "10ce009a3fab155e"),
    "mixture of more bags than a task has": ("2a5d96e7ab50e5d3", "2a77c0e4fb95cb8d"),
    "one bag": ("74c02a5f4c0f3d28", "17cce0850eec5d67"),
    "many bags": ("3f2d78b85fa98623", "9187f85cdcbfbd8c"),
}


def digest(bags: mf.Bags) -> str:
    found = hashlib.sha256()
    for array, dtype in (
        (bags.instances, f"<f{bags.instances.itemsize}"),
        (bags.offsets, "<i8"),
        (bags.labels, "<i8"),
        (bags.kinds, "<i2"),
    ):
        found.update(np.ascontiguousarray(array, dtype=dtype).tobytes())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("name", SAMPLES)
def test_bags_have_the_bits_they_always_had(name: str) -> None:
    check, n_bags, options = SAMPLES[name]
    found = tuple(digest(mf.sample_bags(check, n_bags, dtype=dtype, **options)) for dtype in ("float32", "float64"))
    assert found == DIGESTS[name]
