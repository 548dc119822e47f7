"""All data sets by name, whatever their samples are: bags, or rows of a table."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from milfast.datasets import classic_mil, tabular

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from milfast.bags import Bags
    from milfast.datasets.classic_mil import DataSet
    from milfast.datasets.tabular import TableSet

TableName: TypeAlias = Literal["parkinsons", "spect", "transfusion", "pima", "diabetes130"]
BagName: TypeAlias = Literal["musk1", "musk2", "elephant", "fox", "tiger"]


def names(kind: Literal["bags", "table"] | None = None) -> list[str]:
    """Names of the data sets that `load` knows.

    Parameters
    ----------
    kind : {"bags", "table"}, optional
        Only those whose samples are bags, or only those that are a table of one row a sample.

    Returns
    -------
    list of str

    Raises
    ------
    ValueError
        When there is no such kind.

    Examples
    --------
    >>> from milfast import datasets
    >>> datasets.names()[:3]
    ['musk1', 'musk2', 'elephant']
    >>> datasets.names("table")
    ['parkinsons', 'spect', 'transfusion', 'pima', 'diabetes130']
    """
    if kind not in (None, "bags", "table"):
        raise ValueError(f'kind must be "bags", "table" or None; got {kind!r}')
    bags = [] if kind == "table" else classic_mil.names()
    return bags + ([] if kind == "bags" else list(tabular.TABLES))


def describe(name: str) -> DataSet | TableSet:
    """Facts about a data set: counts, licence, citation, publisher. Needs no file.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    DataSet or TableSet
        Of bags, or of a table of one row a sample.

    Raises
    ------
    ValueError
        When there is no such data set; the message names the nearest ones.

    Examples
    --------
    >>> from milfast import datasets
    >>> musk = datasets.describe("musk1")
    >>> musk.n_bags, musk.n_positive, musk.n_features
    (92, 47, 166)
    >>> datasets.describe("pima").n_samples
    768
    """
    if name in tabular.TABLES:
        return tabular.TABLES[name]
    if name in classic_mil.names():
        return classic_mil.describe(name)
    near = difflib.get_close_matches(name, names(), n=2, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise ValueError(f"there is no data set {name!r}: {hint}known are {', '.join(names())}")


@overload
def load(name: TableName) -> tuple[NDArray[np.float64], NDArray[Any]]: ...
@overload
def load(name: BagName) -> Bags: ...
@overload
def load(name: str) -> Any: ...
def load(name: str) -> Any:
    """Read a data set from this machine and check that it is the right one.

    Searched are the folders in the environment variable ``MILFAST_DATA`` (separated like ``PATH``), the user's cache
    folder (``milfast`` in ``XDG_CACHE_HOME`` or ``~/.cache``), and ``../shared/data``; in each the file, then that in
    the subfolder ``mil`` (bags) or ``ec`` (tables), as ``.csv`` or ``.csv.gz``. Nothing is downloaded.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    Bags or tuple of ndarray
        Bags with float64 features and labels in {0, 1}; of a table (X, y), float64 features of shape
        (n_samples, n_features) and int64 labels in {0, 1}. Features are as published, not standardised; a column of
        text has become a column of 0 and 1 for each of its levels.

    Raises
    ------
    ValueError
        When there is no such data set, or the file holds other data than the published ones.
    FileNotFoundError
        When no folder holds the file; the message lists the folders, the format and the publisher.

    Examples
    --------
    >>> from milfast import datasets
    >>> datasets.load("musk1")  # doctest: +SKIP
    Bags(n_bags=92, n_instances=476, n_features=166, dtype=float64, positive=47, sizes=2..40)
    >>> X, y = datasets.load("parkinsons")  # doctest: +SKIP
    >>> X.shape, y.sum()  # doctest: +SKIP
    ((195, 22), np.int64(147))
    """
    data = describe(name)
    if isinstance(data, classic_mil.DataSet):
        return classic_mil.load(name)
    path = classic_mil.find(
        data, folder="ec", form="a CSV file, plain or gzip, with a header and one row a sample, the label last"
    )
    samples = tabular.read(data, path)
    return samples.X, samples.y
