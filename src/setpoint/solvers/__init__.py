"""Solvers: ways to train for a problem. One paper, one file."""

from typing import TYPE_CHECKING

import setpoint._torch  # noqa: F401 (names the extra if torch is missing)
from setpoint._extras import import_lazily

if TYPE_CHECKING:
    from setpoint.losses.log_likelihood import cross_entropy, focal
    from setpoint.solvers.barrier import Barrier, RateBarrier, at_least, at_most, equal_to, together
    from setpoint.solvers.base import BatchCriterion, GlobalBatch
    from setpoint.solvers.baselines import CrossEntropy
    from setpoint.solvers.hold_layer import hold
    from setpoint.solvers.implicit import Implicit
    from setpoint.solvers.lagrangian import Iterate, Iterates, Lagrangian
    from setpoint.solvers.last_layer import LastLayer, Penalty
    from setpoint.solvers.logit_adjustment import Adjusted
    from setpoint.solvers.pairwise import Pairwise
    from setpoint.solvers.program import Program
    from setpoint.solvers.registry import CLASS_METHODS, METHODS, Method, methods_named
    from setpoint.solvers.slack_variables import SlackVariables
    from setpoint.solvers.split import Split

__all__ = [
    "CLASS_METHODS",
    "METHODS",
    "Adjusted",
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
    "SlackVariables",
    "Split",
    "at_least",
    "at_most",
    "cross_entropy",
    "equal_to",
    "focal",
    "hold",
    "methods_named",
    "together",
]

__getattr__ = import_lazily(__name__)
