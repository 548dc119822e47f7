"""The size of the wheel: what everybody who installs milfast downloads."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import io
import zipfile
from pathlib import Path

import pytest

import milfast as mf

pytest.importorskip("zopfli", reason="what packs the wheel, zopflipy, is absent")

MOST_BYTES = 1_500_000


def files() -> list[tuple[str, bytes]]:
    """Names and contents of the files of a wheel of the package as it is installed."""
    package = Path(mf.__file__).parent
    found = [
        (path.relative_to(package.parent).as_posix(), path.read_bytes())
        for path in sorted(package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]
    # the metadata of an editable installation, but for what pip writes and the list of files
    own = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_build.json", "uv_cache.json"}
    found += [
        (entry.as_posix(), Path(entry.locate()).read_bytes())
        for entry in importlib.metadata.files("milfast") or []
        if entry.parts[0].endswith(".dist-info") and entry.name not in own
    ]
    digests = [base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() for _, data in found]
    lines = [f"{name},sha256={digest},{len(data)}\n" for (name, data), digest in zip(found, digests, strict=True)]
    return [*found, (f"milfast-{mf.__version__}.dist-info/RECORD", "".join(lines).encode())]


def test_wheel_is_small() -> None:
    from benches.wheel import pack

    loose, wheel = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(loose, "w") as archive:
        for name, data in files():
            archive.writestr(name, data)
    pack(loose, wheel)
    with zipfile.ZipFile(wheel) as archive:
        sizes = sorted(((info.compress_size, info.filename) for info in archive.infolist()), reverse=True)
    compiled = [name for _, name in sizes if name.startswith("milfast/_core.") and not name.endswith(".pyi")]
    assert len(compiled) == 1, f"one extension module goes into a wheel; there are {compiled}"
    assert len(wheel.getbuffer()) <= MOST_BYTES, (
        f"a wheel takes {len(wheel.getbuffer()):,} bytes; the largest files are {sizes[:5]}. A release build strips "
        "symbols; generic code that is large and need not be generic is the usual cause"
    )
