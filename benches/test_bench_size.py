"""The size of the wheel: what everybody who installs milfast downloads."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import milfast as mf

#: A wheel is a ZIP file of the package, not packed as tightly as here, and of what there is to say about it: of the
#: 1.5 MB that it may have, 1.47 MB are left.
MOST_BYTES = 1_470_000


def test_wheel_is_small() -> None:
    package = Path(mf.__file__).parent
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, path.relative_to(package.parent))
        sizes = sorted(((info.compress_size, info.filename) for info in archive.infolist()), reverse=True)
    compiled = [name for _, name in sizes if name.startswith("milfast/_core.") and not name.endswith(".pyi")]
    assert len(compiled) == 1, f"one extension module goes into a wheel; there are {compiled}"
    assert len(wheel.getbuffer()) <= MOST_BYTES, (
        f"the package takes {len(wheel.getbuffer()):,} bytes; the largest files are {sizes[:5]}. A release build "
        "strips symbols; generic code that is large and need not be generic is the usual cause"
    )
