"""Real data sets as `milfast.Bags`, read from files on this machine; nothing is downloaded."""

from __future__ import annotations

from milfast.datasets.classic_mil import DataSet, describe, load, names, read_csv

__all__ = ["DataSet", "describe", "load", "names", "read_csv"]
