"""A protocol from Python, without a study."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from milfast import evaluation
from milfast.lazy_bags import LazyBags
from milfast.protocol import jobs
from milfast.protocol.results import ProtocolResult, combine
from milfast.protocol.selection import TIES
from milfast.workers import stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from milfast.bags import Bags
    from milfast.seeding import RandomState


def run(
    models: Sequence[Any] | Any,
    data: str | Bags | LazyBags,
    *,
    protocol: str = "zhu2023",
    scale: str = "paper",
    seeds: int | None = None,
    folds: int = 5,
    epochs: int | None = None,
    margins: Sequence[float] | None = None,
    ties: str = "first",
    selection: str = "last",
    inner: int = 3,
    stratified: bool = False,
    standardize: bool = True,
    level: float = 0.95,
    random_state: RandomState = 0,
    n_jobs: int = 1,
    style: str | None = None,
    settings: Mapping[str, Any] | None = None,
    callback: Callable[[int, int, str], object] | None = None,
) -> list[ProtocolResult]:
    """Evaluate models by a protocol.

    ``"zhu2023"`` is the one by which MIDAM was published [1]_. For each seed the bags are permuted, the first ``int(0.9
    n)`` train and choose in five folds, and the others test; the AUC of each fold's model on its validation fold after
    each epoch chooses epoch and margin, and what was chosen is tested. The five models of a seed share one test set of
    a tenth of the bags, so there are as many independent tests as seeds.

    ``"sound"`` tests every bag once a seed: repeated stratified folds, with the last epoch and margin 1, which were
    fixed before anything was seen, or (``selection="inner"``) with what is best on average over inner folds of the
    training bags; the chosen one is trained again on all of these.

    MIDAM-smx, MIDAM-att, CE and AUC-M are trained side by side, all folds and margins of a seed at once. Other models
    are fitted to each training part, with nothing to choose: `LazyBags` are read into memory for them, an image a row.

    Parameters
    ----------
    models : str, class or object, or sequence of them
        As in `milfast.evaluate`; one may stand alone. Where one of the four above is named, NSK and LR are added, which
        are cheap and hard to beat.
    data : str, Bags or LazyBags
        Name of a data set (see `milfast.datasets`) or labelled bags.
    protocol : {"zhu2023", "sound"}
    scale : {"paper", "fast"}
        Three seeds, and 100 epochs with the margins 0.1, 0.5 and 1, or for a first look 20 epochs with margin 1.
    seeds, folds, epochs : int, optional
        Other sizes than the scale's.
    margins : sequence of float, optional
        To choose from.
    ties : {"first", "last", "mean", "final"}
        What is taken when several margins and epochs have the best validation AUC: the earliest epoch, the latest, the
        mean of all, or the last epoch whatever the others reach.
    selection : {"last", "inner"}
        Of ``"sound"``.
    inner : int
        Inner folds.
    stratified : bool
        Of ``"zhu2023"``: draw test set and folds class by class, which the authors' code does not.
    standardize : bool
        Give each feature mean 0 and variance 1 over the training instances of a fold.
    level : float
        Level of the intervals.
    random_state : int, Generator, SeedSequence or None
        Seeds splits and models. All models see the same splits for the same integer.
    n_jobs : int
        Processes that share the seeds; -1 for one per processor.
    style, settings
        As in `milfast.check_model`.
    callback : callable, optional
        Called as ``callback(done, total, model name)`` after each seed of a model.

    Returns
    -------
    list of ProtocolResult
        In the order of the models, added ones last.

    Raises
    ------
    ValueError
        When labels are missing, a part lacks a class, a score is not finite, or an option is out of range.
    FileNotFoundError
        When the data set is not on this machine.

    References
    ----------
    .. [1] Zhu, Wang, Chen, Wu, Sonka & Yang (2023), Provable multi-instance deep AUC maximization with stochastic
    pooling.

    Examples
    --------
    >>> import milfast as mf
    >>> bags = mf.sample_bags("false-frequency", 80, random_state=0)
    >>> [result] = mf.protocol.run(["LR"], bags)
    >>> result.aucs.shape, result.auc.method, result.auc.n
    ((3, 5), 't over seeds', 3)
    """
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}; got {ties!r}")
    if selection == "inner" and protocol == "zhu2023":
        raise ValueError("selection is of the sound protocol: zhu2023 chooses by its folds")
    if not isinstance(models, (list, tuple)):
        models = [models]
    bags = data if isinstance(data, LazyBags) else evaluation.load(data)
    title = data if isinstance(data, str) else "bags"
    chosen, added = jobs.with_baselines(models)
    planned = jobs.plan(
        chosen,
        bags,
        title=title,
        digest=None,
        protocol=protocol,
        scale=scale,
        seeds=seeds,
        folds=folds,
        epochs=epochs,
        margins=margins,
        selection=selection,
        inner=inner,
        stratified=stratified,
        standardize=standardize,
        level=level,
        random_state=random_state,
        style=style,
        settings=settings,
        added=added,
    )
    outcomes: dict[int, dict[str, Any]] = {}
    for index, outcome in stream(partial(jobs.run_numbered, data={title: bags}), enumerate(planned), n_jobs=n_jobs):
        outcomes[index] = outcome
        if callback is not None:
            callback(len(outcomes), len(planned), planned[index].subject.name)
    n = planned[0].seeds if planned else 1
    results = []
    for first in range(0, len(planned), n):  # model by model: two objects may have one description
        part = range(first, first + n)
        results += combine(((jobs.describe(planned[i]), outcomes[i]) for i in part), ties=ties)
    return results
