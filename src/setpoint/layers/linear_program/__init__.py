"""Linear programs as layers: ``min c'z`` with ``A z <= b`` and ``E z = h``, and their gradients."""

from setpoint.layers.linear_program.api import linear_program
from setpoint.layers.linear_program.errors import (
    InfeasibleProgram,
    ProgramError,
    UnboundedProgram,
)
from setpoint.layers.linear_program.info import ProgramInfo

__all__ = [
    "InfeasibleProgram",
    "ProgramError",
    "ProgramInfo",
    "UnboundedProgram",
    "linear_program",
]
