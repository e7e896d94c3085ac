"""Solvers: ways to train for a problem. One paper, one file."""

from setpoint.solvers.barrier import Barrier, RateBarrier, at_least, at_most, equal_to, together
from setpoint.solvers.baselines import cross_entropy, focal
from setpoint.solvers.criterion import BatchCriterion
from setpoint.solvers.global_batch import GlobalBatch
from setpoint.solvers.implicit import Implicit
from setpoint.solvers.lagrangian import Iterate, Iterates, Lagrangian
from setpoint.solvers.last_layer import LastLayer, Penalty, Split
from setpoint.solvers.pairwise import Pairwise
from setpoint.solvers.program import Program
from setpoint.solvers.registry import CLASS_METHODS, METHODS, Method, methods_named
from setpoint.solvers.weighted import CrossEntropy

__all__ = [
    "CLASS_METHODS",
    "METHODS",
    "Barrier",
    "BatchCriterion",
    "CrossEntropy",
    "GlobalBatch",
    "Implicit",
    "Iterate",
    "Iterates",
    "Lagrangian",
    "LastLayer",
    "Method",
    "Pairwise",
    "Penalty",
    "Program",
    "RateBarrier",
    "Split",
    "at_least",
    "at_most",
    "cross_entropy",
    "equal_to",
    "focal",
    "methods_named",
    "together",
]
