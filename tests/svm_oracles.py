"""What the SVMs should find, by plain matrices and other people's solvers, for several files of tests."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from conftest import golden_path
from scipy.optimize import LinearConstraint, minimize

import milfast as mf
from milfast import Bags

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

NAMES = mf.models.names("svm")
#: Models of bags and models of instances; sMIL lies between: its scores are made of instances.
OF_BAGS = ("NSK", "STK")
OF_WHOLES = (*OF_BAGS, "sMIL")
ALTERNATING = ("mi-SVM", "MI-SVM", "MICA", "MissSVM", "stMIL")


def small(seed: int = 0, n: int = 30, dtype: str = "float64") -> Bags:
    return mf.sample_bags("presence", n, recipe="strict", n_features=3, random_state=seed, dtype=dtype)


def few(seed: int, n_bags: int = 8) -> Bags:
    """Bags of at most four instances; the positive ones hold one that lies further up."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_bags) % 2
    bags = [rng.normal(size=(rng.integers(1, 5), 2)) for _ in labels]
    for bag, label in zip(bags, labels, strict=True):
        bag[0] += 1.5 * label
    return Bags.from_list(bags, labels)


def rbf(x: Vector, y: Vector, gamma: float) -> Vector:
    return np.asarray(np.exp(-gamma * ((x[:, None] - y) ** 2).sum(axis=2)))


# ---------------------------------------------------------------- golden values


@cache
def reference(case: str) -> dict[str, Any]:
    values: dict[str, dict[str, Any]] = json.loads(golden_path("svm/reference.json").read_text())["values"]
    return values[case]


def golden_bags(number: int) -> Bags:
    with np.load(golden_path(f"svm/alg{number}_n30.npz")) as data:
        return Bags(data["X"], data["offsets"], data["y"])


# ---------------------------------------------------------------- objectives, written out


def hinge(values: Vector) -> Vector:
    return np.maximum(0, 1 - values)


def square(model: Any, gamma: float) -> float:
    """w'w of a fitted model of instances with a Gaussian kernel."""
    return float(model.dual_coef_ @ rbf(model.support_vectors_, model.support_vectors_, gamma) @ model.dual_coef_)


def instance_sums(model: Any, bags: Bags, gamma: float) -> Vector:
    """w'phi(x) of all instances, without the intercept."""
    return np.asarray(rbf(bags.instances, model.support_vectors_, gamma) @ model.dual_coef_)


def lengths(bags: Bags, normalize: str | None, gamma: float) -> Vector:
    if normalize is None:
        return np.ones(len(bags))
    if normalize == "average":
        return bags.sizes.astype(np.float64)
    return np.array([np.sqrt(rbf(bag, bag, gamma).sum()) for bag in bags])


def bag_matrix(name: str, bags: Bags, normalize: str | None, gamma: float) -> Vector:
    """The kernel between bags of NSK and STK."""
    if name == "STK":
        extremes = np.array([[*bag.min(axis=0), *bag.max(axis=0)] for bag in bags])
        return rbf(extremes, extremes, gamma)
    size = lengths(bags, normalize, gamma)
    return np.array([[rbf(a, b, gamma).sum() for b in bags] for a in bags]) / np.outer(size, size)


def objective(name: str, model: Any, bags: Bags, intercept: float | None = None) -> float:
    """What a fitted model should have minimised, from its coefficients alone; without weights of classes.

    Another intercept may be put in.
    """
    b = model.intercept_ if intercept is None else intercept
    gamma, c = model.gamma_, model.C
    assert bags.labels is not None
    if name in OF_BAGS:
        matrix = bag_matrix(name, bags, getattr(model, "normalize", None), gamma)
        values = np.zeros(len(bags))
        values[model.support_] = model.dual_coef_
        slack = c * hinge((2 * bags.labels - 1) * (matrix @ values + b)).sum()
        return float(values @ matrix @ values / 2 + slack)
    scores = instance_sums(model, bags, gamma) + b
    inside = np.repeat(bags.labels == 1, bags.sizes)
    negative = c * hinge(-scores[~inside]).sum()
    parts = [part for part, label in zip(bag_parts(bags, scores), bags.labels, strict=True) if label]
    best = np.array([part.max() for part in parts])
    if name in ("SIL", "sbMIL", "mi-SVM"):
        labels = inside if name == "SIL" else model.instance_labels_
        slack = c * hinge((2 * labels - 1) * scores).sum()
    elif name == "MI-SVM":
        if model.slack == "bag":
            outside = [part for part, label in zip(bag_parts(bags, scores), bags.labels, strict=True) if not label]
            negative = c * hinge(-np.array([part.max() for part in outside])).sum()
        slack = negative + c * hinge(scores[model.witnesses_]).sum()
    elif name == "MICA":
        mixed = [part.sum() for part in bag_parts(bags, model.convex_weights_ * scores)]
        slack = negative + c * hinge(np.array(mixed)[bags.labels == 1]).sum()
    elif name == "MissSVM":
        n = (~inside).sum()
        slack = negative + c * n / len(best) * hinge(best).sum()
        slack += c * n / inside.sum() * hinge(np.abs(scores[inside])).sum()
    else:
        size = lengths(bags[bags.labels == 1], model.normalize, gamma)
        wholes = np.array([(part - b).sum() for part in parts]) / size + b
        margins = 2 / bags.sizes[bags.labels == 1] - 1
        singles = (scores[~inside] - b) / lengths(singletons(bags.instances[~inside]), model.normalize, gamma) + b
        per = [(~inside).sum(), len(parts), inside.sum()] if model.scale_C else [1, 1, 1]
        slack = c / per[0] * hinge(-singles).sum() + c / per[1] * np.maximum(0, margins - wholes).sum()
        if name == "stMIL":
            slack += c / per[2] * hinge(np.abs(scores[inside])).sum()
    return square(model, gamma) / 2 + float(slack)


def bag_parts(bags: Bags, values: NDArray[Any]) -> list[NDArray[Any]]:
    return [values[first:last] for first, last in pairwise(bags.offsets)]


def singletons(instances: Vector) -> Bags:
    return Bags(instances, np.arange(len(instances) + 1))


def intercepts(cost: Callable[[float], float], kinks: Vector) -> tuple[float, float]:
    """The interval in which a convex, piecewise linear cost is least."""
    kinks = np.sort(kinks)
    costs = np.array([cost(float(kink)) for kink in kinks])
    least = kinks[costs <= costs.min() * (1 + 1e-9)]
    return float(least[0]), float(least[-1])


# ---------------------------------------------------------------- the program, by SciPy


def quadratic_program(
    kernel: Vector,
    lower: Vector,
    upper: Vector,
    linear: Vector,
    groups: NDArray[np.int64] | None = None,
    limits: Vector | None = None,
) -> Vector:
    """Minimise 1/2 b'Kb + linear'b with sum(b) = 0 between the bounds; -sum(b) of each group at most its limit."""
    n = len(linear)
    constraints = [LinearConstraint(np.ones((1, n)), 0, 0)]
    if groups is not None and limits is not None and (groups >= 0).any():
        member = (groups == np.arange(len(limits))[:, None]).astype(float)
        held = member.any(axis=1)
        constraints.append(LinearConstraint(member[held], -limits[held], np.inf))
    for ftol in (1e-14, 1e-12, 1e-10):  # it gives up where there is nothing left to gain
        result = minimize(
            lambda b: (0.5 * b @ kernel @ b + linear @ b, kernel @ b + linear),
            np.zeros(n),
            jac=True,
            bounds=list(zip(lower, upper, strict=True)),
            constraints=constraints,
            method="SLSQP",
            options={"ftol": ftol, "maxiter": 2000},
        )
        if result.success:
            return np.clip(result.x, lower, upper)
    result = minimize(
        lambda b: 0.5 * b @ kernel @ b + linear @ b,
        np.zeros(n),
        jac=lambda b: kernel @ b + linear,
        hess=lambda b: kernel,
        bounds=list(zip(lower, upper, strict=True)),
        constraints=constraints,
        method="trust-constr",
        options={"gtol": 1e-11, "xtol": 1e-14, "barrier_tol": 1e-11, "maxiter": 5000},
    )
    return np.clip(result.x, lower, upper)


def multiplier(
    gradient: Vector,
    values: Vector,
    lower: Vector,
    upper: Vector,
    full: NDArray[np.bool_] | None = None,
    near: float = 1e-6,
) -> float:
    """The intercept: minus the gradient where a value is free to move, or the middle of what optimality allows.

    `full` marks values of groups that have nothing left: they may not fall.
    """
    rises = values < upper - near
    falls = values > lower + near
    if full is not None:
        falls &= ~full
    if (rises & falls).any():
        return -float(gradient[rises & falls].mean())
    ends = [-gradient[rises].min(initial=np.inf), -gradient[falls].max(initial=-np.inf)]
    return float(np.mean([end for end in ends if np.isfinite(end)]))
