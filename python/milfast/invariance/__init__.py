"""Linear unit tests for invariance discovery: does a learner use what holds in all environments, or a shortcut?"""

from milfast.invariance import learners
from milfast.invariance.learners.adapters import as_learner
from milfast.invariance.learners.base import Learner
from milfast.invariance.problem import Draw, Environment, Problem, stack
from milfast.invariance.problems import make_problem, names

__all__ = ["Draw", "Environment", "Learner", "Problem", "as_learner", "learners", "make_problem", "names", "stack"]
