"""Linear unit tests for invariance discovery: does a learner use what holds in all environments, or a shortcut?"""

from milfast.invariance import learners
from milfast.invariance.battery import Battery, Cell, run_battery
from milfast.invariance.learners.adapters import as_learner
from milfast.invariance.learners.base import Learner
from milfast.invariance.problem import Draw, Environment, Problem, stack
from milfast.invariance.problems import make_problem, names
from milfast.invariance.published import Published, published
from milfast.invariance.verdict import RatioInterval, Verdict, judge

__all__ = [
    "Battery",
    "Cell",
    "Draw",
    "Environment",
    "Learner",
    "Problem",
    "Published",
    "RatioInterval",
    "Verdict",
    "as_learner",
    "judge",
    "learners",
    "make_problem",
    "names",
    "published",
    "run_battery",
    "stack",
]
