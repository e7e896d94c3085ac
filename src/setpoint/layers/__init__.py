"""Layers that know functions and matrices, not rates: a root, a linear program, their gradients."""

from setpoint.layers.hold import hold, through_threshold
from setpoint.layers.linear_program import (
    InfeasibleProgram,
    ProgramError,
    ProgramInfo,
    UnboundedProgram,
    linear_program,
)

__all__ = [
    "InfeasibleProgram",
    "ProgramError",
    "ProgramInfo",
    "UnboundedProgram",
    "hold",
    "linear_program",
    "through_threshold",
]
