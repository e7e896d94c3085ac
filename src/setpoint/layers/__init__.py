"""Layers that know functions and matrices, not rates: a root, a linear program, their gradients."""

from setpoint.layers.hold import hold, through_threshold
from setpoint.layers.linear_program import (
    InfeasibleProgram,
    ProgramError,
    UnboundedProgram,
    linear_program,
)

__all__ = [
    "InfeasibleProgram",
    "ProgramError",
    "UnboundedProgram",
    "hold",
    "linear_program",
    "through_threshold",
]
