"""Bags that are read when they are asked for."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import milfast as mf
from milfast.lazy_bags import LazyBags

if TYPE_CHECKING:
    from pathlib import Path


class Ordered:
    """Takes what HDF5 takes, rows in ascending order without repetition, and tells what was read."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.asked: list[int] = []

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> np.ndarray:
        assert isinstance(rows, np.ndarray)
        assert rows.dtype == np.int64
        assert (np.diff(rows) > 0).all()
        self.asked += rows.tolist()
        return self.values[rows]


def some(shape: tuple[int, ...] = (3,), sizes: tuple[int, ...] = (4, 1, 6)) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=(size, *shape)) for size in sizes]


def test_what_it_knows_of_its_bags() -> None:
    lazy = LazyBags([Ordered(part) for part in some((2, 5))], labels=[-1, 1, -1])
    assert (lazy.n_bags, len(lazy), lazy.n_instances, lazy.n_features) == (3, 3, 11, 10)
    assert lazy.instance_shape == (2, 5)
    np.testing.assert_array_equal(lazy.labels, [0, 1, 0])
    np.testing.assert_array_equal(lazy.offsets, [0, 4, 5, 11])
    np.testing.assert_array_equal(lazy.sizes, [4, 1, 6])
    assert repr(lazy) == "LazyBags(n_bags=3, n_instances=11, instance_shape=(2, 5), positive=1, sizes=1..6)"
    with pytest.raises(ValueError, match="read-only"):
        lazy.offsets[0] = 1


def test_only_what_is_asked_for_is_read_in_any_order() -> None:
    parts = some()
    held = [Ordered(part) for part in parts]
    lazy = LazyBags(held)
    for bag in held:
        bag.asked.clear()
    wanted = [10, 0, 4, 10, 3, 5]
    np.testing.assert_array_equal(lazy.gather(wanted), np.concatenate(parts)[wanted])
    assert [bag.asked for bag in held] == [[0, 3], [0], [0, 5]]
    np.testing.assert_array_equal(lazy.read(2, [5, 0, 5]), parts[2][[5, 0, 5]])
    assert lazy.gather([]).shape == (0, 3)


def test_selections_keep_labels_and_read_nothing() -> None:
    parts = some()
    held = [Ordered(part) for part in parts]
    lazy = LazyBags(held, labels=[0, 1, 1])
    read = [list(bag.asked) for bag in held]
    chosen = lazy[[2, 0]]
    assert isinstance(chosen, LazyBags)
    np.testing.assert_array_equal(chosen.labels, [1, 0])
    np.testing.assert_array_equal(chosen.offsets, [0, 6, 10])
    assert lazy[-1] is held[2]
    assert list(lazy[np.array([False, True, False])]) == [held[1]]
    assert [bag.asked for bag in held] == read
    for wrong in (3, []):
        with pytest.raises(IndexError):
            lazy[wrong]


def test_reading_all_of_it() -> None:
    parts = some((2, 5))
    bags = LazyBags([Ordered(part) for part in parts], labels=[0, 1, 1]).to_bags()
    assert isinstance(bags, mf.Bags)
    np.testing.assert_array_equal(bags.instances, np.concatenate(parts).reshape(11, 10))
    np.testing.assert_array_equal(bags.labels, [0, 1, 1])


def test_files_in_memory_maps(tmp_path: Path) -> None:
    parts = some(sizes=(100, 3))
    for i, part in enumerate(parts):
        np.save(tmp_path / f"{i}.npy", part.astype(np.float32))
    lazy = LazyBags([np.load(tmp_path / f"{i}.npy", mmap_mode="r") for i in range(2)], labels=[0, 1])
    found = lazy.gather([101, 5])
    assert type(found) is np.ndarray
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.concatenate(parts)[[101, 5]], rtol=1e-6)
    again = pickle.loads(pickle.dumps(lazy[[0]]))
    np.testing.assert_array_equal(again.offsets, [0, 100])


@pytest.mark.parametrize(
    ("given", "kept"), [(np.uint8, "float32"), (np.float16, "float32"), (np.int64, "float64"), (bool, "float32")]
)
def test_bytes_and_integers_become_floats(given: Any, kept: str) -> None:
    found = LazyBags([np.ones((3, 2), dtype=given)]).gather([0, 2])
    assert found.dtype == kept
    np.testing.assert_array_equal(found, np.ones((2, 2)))


def test_what_is_no_bag() -> None:
    with pytest.raises(ValueError, match="bags is empty"):
        LazyBags([])
    with pytest.raises(ValueError, match=r"bags\[1\] is empty"):
        LazyBags([np.ones((1, 2)), np.ones((0, 2))])
    with pytest.raises(TypeError, match=r"bags\[0\] is int"):
        LazyBags([3])
    with pytest.raises(ValueError, match=r"bags\[1\] has instances of shape \(3,\), but bags\[0\] of shape \(2,\)"):
        LazyBags([np.ones((1, 2)), np.ones((1, 3))])
    with pytest.raises(ValueError, match="instances must have shape"):
        LazyBags([np.ones(3)])
    with pytest.raises(ValueError, match="labels has 1 entries for 2 bags"):
        LazyBags([np.ones((1, 2))] * 2, labels=[1])
    with pytest.raises(TypeError, match="real numbers"):
        LazyBags([np.ones((1, 2), dtype=complex)]).gather([0])


def test_what_a_bag_returns_is_looked_at() -> None:
    values = np.ones((4, 2))
    values[2, 1] = np.nan
    lazy = LazyBags([np.ones((2, 2)), values])
    lazy.gather([0, 2])
    with pytest.raises(ValueError, match="instance 2 of bag 1 has a value that is not finite"):
        lazy.gather([0, 4])
    with pytest.raises(IndexError, match="rows run from 0 to 5"):
        lazy.gather([6])
    with pytest.raises(IndexError, match="rows of bag 0 run from 0 to 1"):
        lazy.read(0, [2])
    for bag in (-1, 2):
        with pytest.raises(IndexError, match=f"bag {bag} is out of range for 2 bags"):
            lazy.read(bag, [0])
    for rows in ([0.5], [True, False], [[0]], 0):
        for read in (lazy.gather, lambda rows: lazy.read(0, rows)):
            with pytest.raises(TypeError, match="rows must be integers in one dimension"):
                read(rows)
    assert lazy.read(0, []).shape == lazy.gather([]).shape == (0, 2)
    with pytest.raises(TypeError, match=r"bags\[0\] is list, which gives no rows .*: make it a numpy\.ndarray"):
        LazyBags([[[0.0, 1.0]], [[2.0, 3.0]]])

    class Wrong(Ordered):
        def __getitem__(self, rows: Any) -> np.ndarray:
            return self.values[rows][:, :1] if len(rows) > 1 else self.values[rows]

    with pytest.raises(ValueError, match="bag 0 returned shape"):
        LazyBags([Wrong(np.ones((4, 2)))]).gather([0, 1])


def test_torch_is_not_imported() -> None:
    code = "import sys, milfast.lazy_bags; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
