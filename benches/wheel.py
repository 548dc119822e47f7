"""Packs a wheel as tightly as its format allows: ``python -m benches.wheel dist/milfast-*.whl``.

What unpacks it sees no difference. Zopfli takes seconds to find a shorter way to write the same DEFLATE stream; maturin
has no such level.
"""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import zopfli

if TYPE_CHECKING:
    from typing import BinaryIO


def pack(wheel: Path | BinaryIO, to: Path | BinaryIO) -> None:
    """Write the files of a wheel, in their order and under their names, dates and permissions, to another."""
    with zipfile.ZipFile(wheel) as loose, zopfli.ZipFile(to, "w", block_splitting_max=0) as tight:
        for info in loose.infolist():
            data = loose.read(info)
            info.compress_type = zipfile.ZIP_DEFLATED
            tight.writestr(info, data)
    with zipfile.ZipFile(wheel) as loose, zipfile.ZipFile(to) as tight:
        if [(i.filename, i.CRC) for i in loose.infolist()] != [(i.filename, i.CRC) for i in tight.infolist()]:
            raise RuntimeError(f"{to} does not hold the files of {wheel}")
        if (broken := tight.testzip()) is not None:
            raise RuntimeError(f"{broken} in {to} cannot be read back")


def main() -> None:
    """Pack the wheels of the command line in place."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.wheel", description="Pack wheels as tightly as they allow."
    )
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    for wheel in parser.parse_args().wheels:
        before, packed = wheel.stat().st_size, wheel.with_suffix(".packed")
        pack(wheel, packed)
        packed.replace(wheel)
        print(f"{wheel}: {before:,} bytes before, {wheel.stat().st_size:,} now")


if __name__ == "__main__":
    main()
