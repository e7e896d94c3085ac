"""Dynamic barrier: any losses, bounds on some of them or an order of importance among them."""

from typing import TYPE_CHECKING

from setpoint._extras import import_lazily

if TYPE_CHECKING:
    from setpoint.solvers.barrier.barrier import Barrier
    from setpoint.solvers.barrier.constraints import (
        Constraint,
        at_least,
        at_most,
        equal_to,
        together,
    )
    from setpoint.solvers.barrier.kkt import lexicographic_residual
    from setpoint.solvers.barrier.rate_barrier import RateBarrier

__all__ = [
    "Barrier",
    "Constraint",
    "RateBarrier",
    "at_least",
    "at_most",
    "equal_to",
    "lexicographic_residual",
    "together",
]

__getattr__ = import_lazily(__name__)
