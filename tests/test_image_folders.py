"""Bags of images: layouts of folders, patches, labels, and what is wrong with files."""

from __future__ import annotations

import pickle
import re
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import milfast as mf
from milfast import datasets

if TYPE_CHECKING:
    from pathlib import Path

Image = pytest.importorskip("PIL.Image")


def picture(file: Path, pixels: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(file)


def noise(height: int, width: int, *channels: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (height, width, *channels), dtype=np.uint8)


@pytest.fixture
def slides(tmp_path: Path) -> Path:
    """Two classes of whole images, as the breast and colon sets have them."""
    for i, name in enumerate(("benign/b1", "benign/b2", "malignant/m1", "malignant/m2", "malignant/m10")):
        picture(tmp_path / f"{name}.png", noise(70, 100, 3, seed=i))
    return tmp_path


def test_patches_are_cut_row_by_row_and_scaled(slides: Path) -> None:
    bags = datasets.from_image_folders(slides, patch=32)
    assert (len(bags), bags.instance_shape) == (5, (3, 32, 32))
    assert_array_equal(bags.sizes, [6] * 5)  # 2 rows of 3 patches; what is left over is not used
    assert_array_equal(bags.labels, [0, 0, 1, 1, 1])
    assert [bag.name for bag in bags][2:] == ["malignant/m1", "malignant/m2", "malignant/m10"]
    pixels = np.asarray(Image.open(slides / "malignant" / "m2.png")).transpose(2, 0, 1)
    for number in range(6):
        row, column = divmod(number, 3)
        expected = pixels[:, 32 * row : 32 * row + 32, 32 * column : 32 * column + 32] / np.float32(255)
        [got] = bags[3][np.array([number])]
        assert got.dtype == np.float32
        assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("height", "width", "patches"), [(768, 896, 672), (512, 512, 256)], ids=["as breast", "as colon"]
)
def test_the_sizes_of_the_sets_that_midam_was_shown_on(tmp_path: Path, height: int, width: int, patches: int) -> None:
    for name in ("0/a", "1/b"):
        picture(tmp_path / f"{name}.png", np.zeros((height, width, 3), dtype=np.uint8))
    assert_array_equal(datasets.from_image_folders(tmp_path, patch=32).sizes, [patches] * 2)


def test_patches_may_overlap_and_need_not_be_square(slides: Path) -> None:
    bags = datasets.from_image_folders(slides, patch=(20, 40), step=(10, 30))
    assert_array_equal(bags.sizes, [6 * 3] * 5)
    pixels = np.asarray(Image.open(slides / "benign" / "b1.png")).transpose(2, 0, 1) / np.float32(255)
    assert_array_equal(bags[0][3 * 2 + 1], pixels[:, 20:40, 30:70])


def test_folders_are_bags_and_slices_come_in_order_of_their_numbers(tmp_path: Path) -> None:
    for kind, patient in (("ill", "p1"), ("well", "p2")):
        for slice_ in range(12):
            picture(tmp_path / kind / patient / f"slice{slice_}.png", np.full((4, 5), 20 * slice_, dtype=np.uint8))
        (tmp_path / kind / patient / "notes.txt").write_text("no image")
        (tmp_path / kind / patient / ".hidden.png").write_text("no image")
    bags = datasets.from_image_folders(tmp_path, positive="ill")
    assert_array_equal(bags.labels, [1, 0])
    assert bags.instance_shape == (1, 4, 5)
    assert_array_equal(np.rint(bags[0][:][:, 0, 0, 0] * 255), 20 * np.arange(12))
    assert_array_equal(bags.gather([13, 2])[:, 0, 0, 0], bags[0][np.array([1, 2])][:, 0, 0, 0])
    flat = datasets.from_image_folders(tmp_path, flatten=True)
    assert flat.instance_shape == (20,)
    assert_array_equal(flat.labels, [0, 1])
    assert_array_equal(flat.to_bags().instances, bags.to_bags().instances)


@pytest.mark.parametrize("patch", [None, 2])
def test_instances_of_several_images_of_a_bag_are_numbered_through(tmp_path: Path, patch: int | None) -> None:
    for name, seed in (("a/x/1.png", 1), ("a/x/2.png", 2), ("b/y/1.png", 3)):
        picture(tmp_path / name, noise(4, 4, seed=seed))
    bag = datasets.from_image_folders(tmp_path, patch=patch)[0]
    rows = np.array([len(bag) - 1, 0, len(bag) - 1])
    assert_array_equal(bag[rows], bag[:][rows])
    assert_array_equal(bag[-1], bag[len(bag) - 1])
    assert_array_equal(np.asarray(bag), bag[:])
    with pytest.raises(IndexError):
        bag[len(bag)]


@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize(
    ("words", "positive", "expected"),
    [
        (("1", "0", "1"), None, [1, 0, 1]),
        (("well", "ill", "well"), None, [1, 0, 1]),
        (("well", "ill", "well"), "ill", [0, 1, 0]),
        (("True", "False", "True"), None, [1, 0, 1]),
    ],
)
def test_labels_from_a_file_or_a_mapping(
    tmp_path: Path, words: tuple[str, ...], positive: str | None, expected: list[int], as_file: bool
) -> None:
    root = tmp_path / "bags"
    for name in ("p1/1", "p2", "p10"):  # a folder, and two images that are cut
        picture(root / f"{name}.png", noise(8, 8))
    given = dict(zip(("p1", "p2", "p10"), words, strict=True))
    table = tmp_path / "labels.csv"
    table.write_text("bag,label\n" + "".join(f"{bag},{word}\n" for bag, word in reversed(given.items())))
    bags = datasets.from_image_folders(root, labels=table if as_file else given, positive=positive, patch=4)
    assert [bag.name for bag in bags] == ["p1", "p2", "p10"]
    assert_array_equal(bags.labels, expected)


def test_images_are_decoded_once_a_request_and_kept_within_the_limit(
    slides: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from milfast.datasets.image_folders import Decoder

    decoded: list[str] = []
    read = Decoder._read
    monkeypatch.setattr(Decoder, "_read", lambda self, file: decoded.append(file.stem) or read(self, file))
    bags = datasets.from_image_folders(slides, patch=32)
    assert decoded == []  # headers only
    for _ in range(2):
        for bag in bags:
            bag[:]
    assert len(decoded) == 5
    decoded.clear()
    pixels = 70 * 100 * 3
    few = datasets.from_image_folders(slides, patch=32, cache_mb=2 * pixels / 1e6)
    for number in (0, 1, 0, 1, 2, 1, 0):
        few[number][:]
    assert decoded == ["b1", "b2", "m1", "b1"]
    decoded.clear()
    none = datasets.from_image_folders(slides, patch=32, cache_mb=0)
    assert_array_equal(none[0][:], bags[0][:])
    none[0][np.array([0, 5])]
    assert decoded == ["b1", "b1"]


def test_bags_can_be_sent_to_another_process(slides: Path) -> None:
    bags = datasets.from_image_folders(slides, patch=32)
    bags[0][:]
    sent = pickle.dumps(bags[0])
    assert len(sent) < 5000  # no pixels
    assert_array_equal(pickle.loads(sent)[:], bags[0][:])


def test_modes_and_sizes(tmp_path: Path) -> None:
    grey = noise(6, 6)
    picture(tmp_path / "a" / "x" / "1.png", grey)
    picture(tmp_path / "b" / "y" / "1.png", noise(12, 6, 3))
    with pytest.raises(ValueError, match=r"1\.png has 3 channels, .*1\.png has 1: say mode='L' or mode='RGB'"):
        datasets.from_image_folders(tmp_path)
    with pytest.raises(ValueError, match=r"of bag b/y has 12 x 6 pixels, .* has 6 x 6: bring them to one size"):
        datasets.from_image_folders(tmp_path, mode="RGB")
    for mode, channels in (("L", 1), ("RGB", 3)):
        bags = datasets.from_image_folders(tmp_path, mode=mode, resize=(3, 5))
        assert bags.instance_shape == (channels, 3, 5)
        assert bags[1][0].shape == (channels, 3, 5)
        kept = datasets.from_image_folders(tmp_path, mode=mode, patch=6)
        assert_array_equal(kept.sizes, [1, 2])
        assert_array_equal(kept[0][0], np.broadcast_to(grey / np.float32(255), (channels, 6, 6)))


def test_sixteen_bits_are_not_cut_off(tmp_path: Path) -> None:
    deep = np.array([[0, 300], [40000, 65535]], dtype=np.uint16)
    for name in ("a/x/1.png", "b/y/1.tif"):
        picture(tmp_path / name, deep)
    bags = datasets.from_image_folders(tmp_path)
    for bag in bags:
        assert_array_equal(bag[0][0], deep.astype(np.float32) / np.float32(65535))


# ---------------------------------------------------------------- messages


def test_what_is_wrong_with_folders_is_named(tmp_path: Path) -> None:
    read = datasets.from_image_folders
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        read(tmp_path / "absent")
    with pytest.raises(ValueError, match="must hold one folder for each of two classes; it holds no folder"):
        read(tmp_path)
    picture(tmp_path / "a" / "x" / "1.png", noise(4, 4))
    (tmp_path / "b").mkdir()
    with pytest.raises(ValueError, match=r"the class b holds no bag: a bag is a folder of images$"):
        read(tmp_path)
    (tmp_path / "b" / "y").mkdir()
    with pytest.raises(ValueError, match=r"bag .*y is empty: no file in it has an image's ending"):
        read(tmp_path)
    picture(tmp_path / "b" / "z.png", noise(4, 4))
    (tmp_path / "b" / "y").rmdir()
    with pytest.raises(ValueError, match=r"z\.png is an image where a folder for each bag is expected; patch= cuts"):
        read(tmp_path)
    assert len(read(tmp_path, patch=2)) == 2
    with pytest.raises(ValueError, match=r"1\.png has 4 x 4 pixels, less than a patch of 8 x 2"):
        read(tmp_path, patch=(8, 2))
    picture(tmp_path / "b" / "z" / "1.png", noise(4, 4))
    with pytest.raises(ValueError, match="are two bags of one name"):
        read(tmp_path, patch=2)
    (tmp_path / "c").mkdir()
    with pytest.raises(ValueError, match=r"it holds a, b, c\. Where the bags lie in it directly, give their labels"):
        read(tmp_path)


def test_broken_images_are_named(slides: Path) -> None:
    file = slides / "malignant" / "m2.png"
    whole = file.read_bytes()
    file.write_bytes(whole[:2000])  # the header is there
    bags = datasets.from_image_folders(slides, patch=32)
    bags[2][:]
    with pytest.raises(ValueError, match=r"m2\.png is no image that can be read, or broken: "):
        bags[3][np.array([5])]
    file.write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"m2\.png is no image that can be read, or broken: "):
        datasets.from_image_folders(slides, patch=32)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"m2\.png is gone since the folders were read"):
        bags[3][:]


def test_a_stack_of_frames_is_no_instance(tmp_path: Path) -> None:
    first, second = (Image.fromarray(noise(4, 4, seed=seed)) for seed in (0, 1))
    for name in ("a/x", "b/y"):
        (tmp_path / name).mkdir(parents=True)
        first.save(tmp_path / name / "stack.tif", save_all=True, append_images=[second])
    with pytest.raises(ValueError, match=r"stack\.tif holds 2 frames: save each as an image of its own"):
        datasets.from_image_folders(tmp_path)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"p1": 0}, "labels gives bag p2 no label"),
        ({"p1": 0, "p2": 1, "p3": 0}, "labels gives a label to p3, and there is no such bag"),
        ({"p1": 0, "p2": 0}, "labels must hold two different labels; it holds 0"),
        ("bag,class\np1,0\n", r"labels\.csv has no column label; its columns are bag, class"),
        ("bag,label\np1,0\np1,1\np2,1\n", r"labels\.csv gives bag p1 two labels, 0 and 1"),
        ("bag,label\np1,1\np2,\n", r"labels\.csv gives bag p2 no label: '' stands for none"),
        ("bag,label\np1,nan\np2,1\n", r"labels\.csv gives bag p1 no label: 'nan' stands for none"),
        ({"p1": 1, "p2": float("nan")}, "labels gives bag p2 no label: 'nan' stands for none"),
        ({"p1": None, "p2": 1}, "labels gives bag p1 no label: 'None' stands for none"),
    ],
)
def test_what_is_wrong_with_labels_is_named(tmp_path: Path, labels: Any, message: str) -> None:
    for name in ("p1", "p2"):
        picture(tmp_path / "bags" / name / "1.png", noise(4, 4))
    if isinstance(labels, str):
        (tmp_path / "labels.csv").write_text(labels)
        labels = tmp_path / "labels.csv"
    with pytest.raises(ValueError, match=message):
        datasets.from_image_folders(tmp_path / "bags", labels=labels)


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        ({"p1": 2, "p2": 10}, None),
        ({"p1": -1, "p2": 1}, None),
        ({"p1": False, "p2": True}, True),
        ({"p1": 0.0, "p2": 1.0}, 1),
        ({"p1": "sick", "p2": "healthy"}, "healthy"),
    ],
)
def test_the_larger_number_is_positive(tmp_path: Path, labels: Any, positive: Any) -> None:
    for name in ("p1", "p2"):
        picture(tmp_path / name / "1.png", noise(4, 4))
    assert_array_equal(datasets.from_image_folders(tmp_path, labels=labels, positive=positive).labels, [0, 1])


@pytest.mark.parametrize("patch", [None, 8])
def test_an_image_that_changed_after_its_header_was_read(tmp_path: Path, patch: int | None) -> None:
    for name in ("a/x", "b/y"):
        picture(tmp_path / name / "1.png", noise(16, 16))
    for height, width, *channels in ((8, 8), (32, 32), (4, 4), (16, 16, 3)):
        bags = datasets.from_image_folders(tmp_path, patch=patch)
        picture(tmp_path / "a" / "x" / "1.png", noise(height, width, *channels))
        with pytest.raises(ValueError, match=r"1\.png has changed since the folders were read"):
            bags.read(0, [0])
        picture(tmp_path / "a" / "x" / "1.png", noise(16, 16))
        assert bags.read(1, [0]).shape[0] == 1


def test_an_image_that_says_it_is_huge(slides: Path) -> None:
    header = bytearray((slides / "benign" / "b1.png").read_bytes())
    header[16:24] = (60_000).to_bytes(4, "big") * 2
    header[29:33] = zlib.crc32(header[12:29]).to_bytes(4, "big")
    (slides / "benign" / "b1.png").write_bytes(header)
    with pytest.raises(ValueError, match=r"b1\.png is no image that can be read, or broken: .*exceeds limit"):
        datasets.from_image_folders(slides, patch=32)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"patch": 0}, ValueError, "patch must be at least 1; got 0"),
        ({"patch": 2.0}, TypeError, "patch must be an integer or a pair of integers, height and width; got 2.0"),
        ({"patch": (1, 2, 3)}, TypeError, r"patch must be an integer or a pair"),
        ({"resize": True}, TypeError, "resize must be an integer"),
        ({"step": 3}, ValueError, "step is from patch to patch: give patch as well"),
        ({"mode": "CMYK"}, ValueError, "mode must be L, RGB or None; got 'CMYK'"),
        ({"cache_mb": -1}, ValueError, "cache_mb must be a finite number and not negative; got -1"),
        ({"positive": "x", "patch": 4}, ValueError, "positive must be benign or malignant; got 'x'"),
    ],
)
def test_wrong_options_are_named(slides: Path, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message) if "pair" not in message else message):
        datasets.from_image_folders(slides, **options)


# ---------------------------------------------------------------- to the models


@pytest.fixture
def lit(tmp_path: Path) -> Path:
    """Dark images, and images with one bright patch of six."""
    rng = np.random.default_rng(0)
    for i in range(30):
        pixels = rng.integers(0, 80, (16, 24, 3), dtype=np.uint8)
        if i % 2:
            pixels[8:16, 8:16] += 150
        picture(tmp_path / ("dark", "lit")[i % 2] / f"{i}.png", pixels)
    return tmp_path


@pytest.mark.parametrize("flatten", [True, False])
def test_images_go_through_a_protocol(lit: Path, flatten: bool) -> None:
    torch = pytest.importorskip("torch")
    kind = mf.models.get("MIDAM-smx")

    class Brightness(torch.nn.Module):  # type: ignore[misc,name-defined]
        """Features of an image: those of a convolution, averaged."""

        def __init__(self, _channels: Any = None) -> None:
            super().__init__()
            self.filters = torch.nn.Conv2d(3, 4, 3)

        def forward(self, images: Any) -> Any:
            return torch.tanh(self.filters(images)).mean(dim=(2, 3))

    model = kind() if flatten else kind(module=Brightness)
    bags = datasets.from_image_folders(lit, patch=8, flatten=flatten)
    results = mf.protocol.run([model], bags, protocol="sound", folds=3, seeds=1, epochs=30)
    assert [result.model for result in results] == ["MIDAM-smx", "NSK", "LR"]
    assert {result.model: result.auc.estimate > 0.9 for result in results} == dict.fromkeys(
        ("MIDAM-smx", "NSK", "LR"), True
    )
