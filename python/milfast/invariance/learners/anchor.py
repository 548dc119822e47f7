"""Anchor regression: least squares that weighs errors of environments' means more (Rothenhäusler et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # of a class variable
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from milfast.invariance.learners.base import LinearLearner, rows_of, task_of
from milfast.invariance.learners.parameters import Parameter, not_negative

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from milfast.seeding import RandomState

__all__ = ["AnchorRegression"]

NAME = "anchor-regression"


class AnchorRegression(LinearLearner):
    """Anchor regression whose anchors are the environments.

    Minimises, over weights and intercept [1]_, the mean squared residual about the means of environments plus ``gamma``
    times the mean square of those means: least squares at 1, least squares on the differences between environments as
    gamma grows. In closed form. Labels of a classification are taken for -1 and 1, and the sign of the regression
    decides.

    It guards against environments that shift means. In Example1, and in Example3 over both classes together, all
    features and the target have mean 0 in each environment: there it is least squares for every gamma, but for chance.

    Searched: ``gamma`` 10^U(-1, 4).

    References
    ----------
    .. [1] Rothenhäusler, Meinshausen, Bühlmann & Peters (2021), Anchor regression: heterogeneous data meet causality.

    Examples
    --------
    >>> from milfast.invariance import learners, make_problem, stack
    >>> problem = make_problem("Example2", random_state=0)
    >>> fitted = learners.get("anchor-regression")().fit(*stack(problem.draw(1000).train), gamma=5.0)
    >>> fitted.coef_.shape
    (10,)
    """

    name = NAME
    parameters: ClassVar[Mapping[str, Parameter]] = {"gamma": Parameter(10.0, -1, 4, fault=not_negative)}

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        env: ArrayLike,
        rng: RandomState = None,
        *,
        task: str | None = None,
        **params: Any,
    ) -> Self:
        """Fit to rows of all environments.

        Parameters
        ----------
        X : array_like, shape (n, n_features)
        y : array_like, shape (n,)
        env : array_like of int, shape (n,)
            Environment of each row.
        rng : object
            Not used.
        task : {"regression", "classification"}, optional
            Classification by default where y holds nothing but 0 and 1.
        **params
            ``gamma``.

        Returns
        -------
        AnchorRegression
            The learner itself.

        Raises
        ------
        ValueError
            When shapes do not agree, or a value is out of range or not finite.
        TypeError
            When there is no such parameter.
        """
        gamma = self._checked(params, "task")["gamma"]
        rows, targets, of_row = rows_of(X, y, env)
        self.task_ = task_of(targets, task)
        joined = np.column_stack([rows, targets]).astype(np.float64)
        if self.task_ == "classification":
            joined[:, -1] = 2 * joined[:, -1] - 1
        center = joined.mean(0)
        joined -= center
        number = np.unique(of_row, return_inverse=True)[1].reshape(-1)
        sizes = np.bincount(number)
        means = np.stack([joined[number == e].mean(0) for e in range(len(sizes))])
        # what projection on the environments leaves, and what it takes, which gamma weighs
        within = joined - means[number]
        design = np.concatenate([within, np.sqrt(gamma * sizes)[:, None] * means])
        weights = np.linalg.lstsq(design[:, :-1], design[:, -1], rcond=None)[0]
        self.coef_ = weights
        self.intercept_ = float(center[-1] - center[:-1] @ weights)
        self.diverged_ = not bool(np.isfinite(weights).all())
        return self
