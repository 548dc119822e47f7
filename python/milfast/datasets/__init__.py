"""Real data sets, read from files on this machine; nothing is downloaded.

Samples are bags (`milfast.Bags`), or rows of a table (features and labels).
"""

from __future__ import annotations

from milfast.datasets.catalogue import describe, load, names
from milfast.datasets.classic_mil import DataSet, read_csv
from milfast.datasets.image_folders import ImageBag, from_image_folders
from milfast.datasets.tabular import Samples, TableSet, read_table

__all__ = [
    "DataSet",
    "ImageBag",
    "Samples",
    "TableSet",
    "describe",
    "from_image_folders",
    "load",
    "names",
    "read_csv",
    "read_table",
]
