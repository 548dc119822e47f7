"""Bags of images: folders of patches or slices, or images that are cut into patches, read when they are asked for."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from milfast.csv_files import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from milfast.lazy_bags import LazyBags

#: What counts as an image; other files are passed over.
ENDINGS = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif", ".webp", ".ppm", ".pgm")
#: Channels of what images are read as.
MODES = {"L": 1, "RGB": 3}
#: Modes in which an image has one channel.
GREY = ("1", "L", "I", "F", "LA")


def from_image_folders(
    path: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    positive: str | None = None,
    patch: int | tuple[int, int] | None = None,
    step: int | tuple[int, int] | None = None,
    resize: int | tuple[int, int] | None = None,
    mode: str | None = None,
    flatten: bool = False,
    cache_mb: float = 256.0,
) -> LazyBags:
    """Bags of images in folders, of which only what is asked for is read.

    Without `labels` the folders in `path` are the two classes and what they hold are bags: ``path/CLASS/BAG/1.png``.
    With `labels` the bags lie in `path` itself. A bag is a folder of images; each is an instance, or with `patch` each
    of its patches. With `patch` a single image may stand for the folder: ``path/CLASS/BAG.png``. Only headers are read
    here; pixels are decoded when an instance is asked for.

    Parameters
    ----------
    path : path
    labels : path or mapping, optional
        A CSV file with the columns ``bag`` and ``label``, or a mapping from names of bags to labels. A bag is named by
        its folder, or by its image without the ending. All of them, and no others, must have a label: 0 or 1, or the
        names of two classes.
    positive : str, optional
        The class of positive bags; the last one in alphabetical order otherwise. Of two numbers it is the larger one.
    patch : int or (int, int), optional
        Height and width of the patches that images are cut into, row by row. What is left at the right and below, if
        the size is no multiple, is not used.
    step : int or (int, int), optional
        From a patch to the next, down and across: `patch` by default, so that they do not overlap.
    resize : int or (int, int), optional
        Height and width that each image is brought to first, bilinearly.
    mode : {"L", "RGB"}, optional
        One channel or three; as the images are otherwise, which then must be alike.
    flatten : bool
        Make an instance a row of ``channels * height * width`` numbers, rather than of shape (channels, height, width).
    cache_mb : float
        Megabytes of decoded images to keep, which saves time where a bag is asked for again and again.

    Returns
    -------
    LazyBags
        Its bags, `ImageBag`, are ordered by class and name, numbers within names by their size. Pixels are float32 from
        0 to 1.

    Raises
    ------
    ImportError
        When Pillow is missing: ``pip install 'milfast[image]'``.
    FileNotFoundError
        When there is no such folder or file of labels.
    ValueError
        When there are not two classes, a bag is empty, an image is broken or smaller than a patch, images differ in
        size or channels where they must not, a bag lacks a label or a label its bag, or an option is out of range. A
        broken image whose header is whole is found out, by name, when it is decoded.
    TypeError
        When an option has the wrong type.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> from milfast import datasets
    >>> folder = tempfile.TemporaryDirectory()
    >>> for name in ("benign/a", "benign/b", "malignant/c"):
    ...     file = pathlib.Path(folder.name, name).with_suffix(".png")
    ...     file.parent.mkdir(exist_ok=True)
    ...     Image.new("RGB", (96, 64), (255, 0, 0)).save(file)
    >>> bags = datasets.from_image_folders(folder.name, patch=32)
    >>> len(bags), bags.labels
    (3, array([0, 0, 1]))
    >>> bags[0][[0, 5]].shape
    (2, 3, 32, 32)
    >>> folder.cleanup()
    """
    _require_pillow()
    root = Path(path)
    if not root.is_dir():
        raise FileNotFoundError(f"there is no folder {root}")
    cut, stride, size = _pair(patch, "patch"), _pair(step, "step"), _pair(resize, "resize")
    if stride is not None and cut is None:
        raise ValueError("step is from patch to patch: give patch as well")
    if mode is not None and mode not in MODES:
        raise ValueError(f"mode must be L, RGB or None; got {mode!r}")
    if isinstance(cache_mb, bool) or not isinstance(cache_mb, (int, float)) or not 0 <= cache_mb < float("inf"):
        raise ValueError(f"cache_mb must be a finite number and not negative; got {cache_mb!r}")
    found, values = _classes(root, positive, cut) if labels is None else _labelled(root, labels, positive, cut)
    decoder = Decoder(mode, size, int(cache_mb * 1e6))
    layout = _Layout(cut, stride or cut, size, mode)
    bags = [ImageBag(name, files, layout.counts(name, files), decoder, layout, flatten) for name, files in found]
    # Imported here because the core of milfast does not need it.
    from milfast.lazy_bags import LazyBags

    return LazyBags(bags, labels=values)


class ImageBag:
    """Instances of one bag, decoded when they are asked for.

    Parameters
    ----------
    name : str
        Of its folder or image.
    files : sequence of path
        Its images.
    counts : ndarray of int64, shape (n_files,)
        Instances of each.
    decoder : Decoder
    layout : object
        How images are cut.
    flatten : bool
        Whether an instance is a row.

    Attributes
    ----------
    name : str
    files : tuple of path
    shape : tuple of int
        (bag size, channels, height, width), or (bag size, channels * height * width).
    dtype : numpy.dtype
        float32.
    """

    dtype = np.dtype(np.float32)

    def __init__(
        self,
        name: str,
        files: Sequence[Path],
        counts: NDArray[np.int64],
        decoder: Decoder,
        layout: _Layout,
        flatten: bool,
    ) -> None:
        self.name = name
        self.files = tuple(files)
        self._ends = np.cumsum(counts)
        self._decoder = decoder
        self._layout = layout
        assert layout.instance is not None
        instance = layout.instance
        self.shape = (len(self), *((int(np.prod(instance)),) if flatten else instance))

    def __len__(self) -> int:
        return int(self._ends[-1])

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __getitem__(self, rows: int | slice | Sequence[int] | NDArray[Any]) -> NDArray[np.float32]:
        """Instances by number.

        Parameters
        ----------
        rows : int, slice or array of int
            Negative ones count from the end.

        Returns
        -------
        ndarray of float32
            Of shape ``(len(rows), *shape[1:])``, or ``shape[1:]`` for an integer.

        Raises
        ------
        IndexError
            When there is no such instance.
        ValueError
            When an image cannot be decoded.
        """
        chosen = np.arange(len(self))[rows]
        flat = np.atleast_1d(chosen)
        out = np.empty((len(flat), *(self._layout.instance or ())), dtype=np.float32)
        of_file = np.searchsorted(self._ends, flat, side="right")
        for i in np.unique(of_file):
            here = np.flatnonzero(of_file == i)
            first = int(self._ends[i - 1]) if i else 0
            pixels = self._decoder.decode(self.files[i])
            if self._layout.number(pixels.shape) != int(self._ends[i]) - first:
                raise ValueError(f"{self.files[i]} has changed since the folders were read: read them anew")
            for place in here:
                out[place] = self._layout.cut(pixels, int(flat[place]) - first)
        shaped = out.reshape(len(flat), *self.shape[1:])
        return shaped[0] if np.ndim(chosen) == 0 else shaped

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)

    def __repr__(self) -> str:
        return f"ImageBag({self.name!r}, shape={self.shape}, files={len(self.files)})"


class Decoder:
    """Reads pixels of images and keeps those that were used last.

    Parameters
    ----------
    mode : {"L", "RGB"} or None
        What images are converted to; as they are otherwise.
    size : (int, int) or None
        Height and width that they are brought to.
    limit : int
        Bytes of decoded images to keep.
    """

    def __init__(self, mode: str | None, size: tuple[int, int] | None, limit: int) -> None:
        self.mode = mode
        self.size = size
        self.limit = limit
        self._kept: OrderedDict[Path, NDArray[Any]] = OrderedDict()
        self._bytes = 0
        self._turn = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"mode": self.mode, "size": self.size, "limit": self.limit}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["mode"], state["size"], state["limit"])  # type: ignore[misc]

    def decode(self, file: Path) -> NDArray[Any]:
        """Pixels of an image.

        Parameters
        ----------
        file : path

        Returns
        -------
        ndarray of uint8 or float32, shape (channels, height, width)
            uint8 from 0 to 255, or float32 from 0 to 1 where the image has more than 8 bits.

        Raises
        ------
        ValueError
            When it cannot be read.
        """
        with self._turn:
            if file in self._kept:
                self._kept.move_to_end(file)
                return self._kept[file]
        pixels = self._read(file)
        with self._turn:
            if pixels.nbytes <= self.limit and file not in self._kept:
                self._kept[file] = pixels
                self._bytes += pixels.nbytes
                while self._bytes > self.limit:
                    _, old = self._kept.popitem(last=False)
                    self._bytes -= old.nbytes
        return pixels

    def _read(self, file: Path) -> NDArray[Any]:
        from PIL import Image

        with _explained(file), Image.open(file) as image:
            deep = image.mode.startswith("I") or image.mode == "F"
            if deep:
                # 16 bits: what PIL would cut off at 255 when it converts to 8
                most = 1.0 if image.mode == "F" else 65535.0
                picture = Image.fromarray(np.asarray(image, dtype=np.float32) / np.float32(most))
            else:
                picture = image.convert(self.mode or mode_of(image))
            if self.size is not None:
                picture = picture.resize((self.size[1], self.size[0]), Image.Resampling.BILINEAR)
            pixels = np.asarray(picture)
        if pixels.ndim == 2:
            pixels = pixels[None]
            if self.mode == "RGB":
                pixels = np.repeat(pixels, 3, axis=0)
        else:
            pixels = pixels.transpose(2, 0, 1)
        return np.ascontiguousarray(pixels)


@dataclass
class _Layout:
    """How images are cut into instances, and what the first one showed that all have in common."""

    patch: tuple[int, int] | None
    step: tuple[int, int] | None
    size: tuple[int, int] | None
    mode: str | None
    channels: int | None = None
    like: Path | None = None
    instance: tuple[int, int, int] | None = None

    def counts(self, bag: str, files: Sequence[Path]) -> NDArray[np.int64]:
        """Number of instances of each image of a bag, from their headers."""
        return np.array([self._count(bag, file) for file in files], dtype=np.int64)

    def _count(self, bag: str, file: Path) -> int:
        from PIL import Image

        with _explained(file), Image.open(file) as image:
            height, width = (image.height, image.width) if self.size is None else self.size
            channels = MODES[self.mode or mode_of(image)]
            frames = int(getattr(image, "n_frames", 1))
        if frames > 1:
            raise ValueError(f"{file} holds {frames} frames: save each as an image of its own in a folder for the bag")
        if self.channels is None:
            self.channels, self.like = channels, file
        if channels != self.channels:
            raise ValueError(
                f"{file} has {channels} channels, {self.like} has {self.channels}: say mode='L' or mode='RGB'"
            )
        shape = (channels, height, width) if self.patch is None else (channels, *self.patch)
        if self.patch is not None and (height < self.patch[0] or width < self.patch[1]):
            raise ValueError(
                f"{file} has {height} x {width} pixels, less than a patch of {self.patch[0]} x {self.patch[1]}"
            )
        if self.instance is None:
            self.instance = shape
        if shape != self.instance:
            raise ValueError(
                f"{file} of bag {bag} has {height} x {width} pixels, {self.like} has "
                f"{self.instance[1]} x {self.instance[2]}: bring them to one size by resize=, or cut them by patch="
            )
        rows, columns = self._grid(height, width)
        return rows * columns

    def number(self, shape: tuple[int, ...]) -> int:
        """Instances of decoded pixels; -1 where they cannot be cut into what other images are cut into."""
        channels, height, width = shape
        instance = (channels, height, width) if self.patch is None else (channels, *self.patch)
        if instance != self.instance:
            return -1
        rows, columns = self._grid(height, width)
        return max(rows, 0) * max(columns, 0)

    def _grid(self, height: int, width: int) -> tuple[int, int]:
        if self.patch is None or self.step is None:
            return 1, 1
        return (height - self.patch[0]) // self.step[0] + 1, (width - self.patch[1]) // self.step[1] + 1

    def cut(self, pixels: NDArray[Any], number: int) -> NDArray[np.float32]:
        """One instance of an image."""
        if self.patch is not None and self.step is not None:
            row, column = divmod(number, self._grid(*pixels.shape[1:])[1])
            top, left = row * self.step[0], column * self.step[1]
            pixels = pixels[:, top : top + self.patch[0], left : left + self.patch[1]]
        return pixels.astype(np.float32) / np.float32(255) if pixels.dtype == np.uint8 else pixels


def mode_of(image: Any) -> str:
    """What an image is read as when nothing else is asked for: "L" for one channel, "RGB" for all others.

    Parameters
    ----------
    image : PIL.Image.Image

    Returns
    -------
    str
    """
    return "L" if image.mode in GREY or image.mode.startswith("I;") else "RGB"


class _explained:
    """Say which image it is that cannot be read."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        # Pillow raises whatever its decoder stumbled over
        if isinstance(error, FileNotFoundError):
            raise FileNotFoundError(f"{self.file} is gone since the folders were read") from None
        if error is None:
            return
        from PIL import Image

        if isinstance(error, (OSError, SyntaxError, ValueError, EOFError, IndexError, Image.DecompressionBombError)):
            raise ValueError(f"{self.file} is no image that can be read, or broken: {error}") from None


def _require_pillow() -> None:
    try:
        import PIL  # noqa: F401
    except ImportError:
        raise ImportError("images need Pillow, which is not installed: pip install 'milfast[image]'") from None


def _pair(value: Any, name: str) -> tuple[int, int] | None:
    if value is None:
        return None
    pair = value if isinstance(value, (tuple, list)) else (value, value)
    if len(pair) != 2 or any(isinstance(v, bool) or not isinstance(v, (int, np.integer)) for v in pair):
        raise TypeError(f"{name} must be an integer or a pair of integers, height and width; got {value!r}")
    if min(pair) < 1:
        raise ValueError(f"{name} must be at least 1; got {value!r}")
    return int(pair[0]), int(pair[1])


Found = list[tuple[str, list[Path]]]


def _classes(root: Path, positive: str | None, patch: tuple[int, int] | None) -> tuple[Found, list[int]]:
    folders = [entry for entry in _entries(root) if entry.is_dir()]
    names = [folder.name for folder in folders]
    if len(folders) != 2:
        raise ValueError(
            f"{root} must hold one folder for each of two classes; it holds {', '.join(names) or 'no folder'}. "
            "Where the bags lie in it directly, give their labels"
        )
    if positive is not None and positive not in names:
        raise ValueError(f"positive must be {' or '.join(names)}; got {positive!r}")
    found: Found = []
    values: list[int] = []
    for folder in folders:
        bags = list(_bags(folder, patch))
        if not bags:
            raise ValueError(f"the class {folder.name} holds no bag: {_what_a_bag_is(patch)}")
        found += [(f"{folder.name}/{name}", files) for name, files in bags]
        values += [int(folder.name == (positive or names[-1]))] * len(bags)
    return found, values


def _labelled(
    root: Path, labels: str | os.PathLike[str] | Mapping[str, Any], positive: str | None, patch: tuple[int, int] | None
) -> tuple[Found, list[int]]:
    if isinstance(labels, Mapping):
        title, given = "labels", {str(name): str(value) for name, value in labels.items()}
    else:
        title = os.fspath(labels)
        rows = read_table(title)
        for column in ("bag", "label"):
            if column not in rows[0]:
                raise ValueError(f"{title} has no column {column}; its columns are {', '.join(rows[0])}")
        given = {}
        for row in rows:
            if given.setdefault(row["bag"], row["label"]) != row["label"]:
                raise ValueError(f"{title} gives bag {row['bag']} two labels, {given[row['bag']]} and {row['label']}")
    found = list(_bags(root, patch))
    if not found:
        raise ValueError(f"{root} holds no bag: {_what_a_bag_is(patch)}")
    names = [name for name, _ in found]
    for name in names:
        if name not in given:
            raise ValueError(f"{title} gives bag {name} no label")
    for name in given:
        if name not in names:
            raise ValueError(f"{title} gives a label to {name}, and there is no such bag in {root}")
        if given[name].strip().lower() in ("", "nan", "none", "na", "<na>"):
            raise ValueError(f"{title} gives bag {name} no label: {given[name]!r} stands for none")
    values = [_plain(given[name]) for name in names]
    kinds = sorted(set(values), key=_by_number)
    if len(kinds) != 2:
        raise ValueError(f"{title} must hold two different labels; it holds {', '.join(kinds)}")
    wanted = kinds[-1] if positive is None else _plain(str(positive))
    if wanted not in kinds:
        raise ValueError(f"positive must be {' or '.join(kinds)}; got {positive!r}")
    return found, [int(value == wanted) for value in values]


def _plain(label: str) -> str:
    """True and 1.0 are what a frame or a spreadsheet makes of 1."""
    label = label.strip()
    return {"true": "1", "false": "0"}.get(label.lower(), label.removesuffix(".0"))


def _by_number(label: str) -> tuple[float, str]:
    try:
        return float(label), label
    except ValueError:
        return float("inf"), label


def _what_a_bag_is(patch: tuple[int, int] | None) -> str:
    return "a bag is a folder of images" + ("" if patch is None else ", or an image")


def _bags(folder: Path, patch: tuple[int, int] | None) -> Iterator[tuple[str, list[Path]]]:
    """Names of bags and their images."""
    seen: dict[str, Path] = {}
    for entry in _entries(folder):
        if entry.is_dir():
            name, files = entry.name, [file for file in _entries(entry) if _is_image(file)]
            if not files:
                raise ValueError(f"bag {entry} is empty: no file in it has an image's ending ({', '.join(ENDINGS)})")
        elif _is_image(entry):
            if patch is None:
                raise ValueError(
                    f"{entry} is an image where a folder for each bag is expected; patch= cuts each image into the "
                    "instances of a bag"
                )
            name, files = entry.stem, [entry]
        else:
            continue
        if name in seen:
            raise ValueError(f"{seen[name]} and {entry} are two bags of one name")
        seen[name] = entry
        yield name, files


def _is_image(file: Path) -> bool:
    return file.suffix.lower() in ENDINGS and file.is_file()


def _entries(folder: Path) -> list[Path]:
    """What is in a folder without what is hidden; slice 2 comes before slice 10."""
    return sorted((entry for entry in folder.iterdir() if not entry.name.startswith(".")), key=_natural)


def _natural(path: Path) -> tuple[list[tuple[int, int, str]], str]:
    parts: Iterable[str] = re.findall(r"\d+|\D+", path.name)
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p.casefold()) for p in parts], path.name
