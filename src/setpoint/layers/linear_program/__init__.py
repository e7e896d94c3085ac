"""Linear programs as layers: ``min c'z`` with ``A z <= b`` and ``E z = h``, and their gradients."""

from setpoint.layers.linear_program.api import linear_program
from setpoint.layers.linear_program.errors import (
    InfeasibleProgram,
    ProgramError,
    UnboundedProgram,
)

__all__ = [
    "InfeasibleProgram",
    "ProgramError",
    "UnboundedProgram",
    "linear_program",
]
