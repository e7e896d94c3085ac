"""Linear programs as layers of a network, and the metric losses written as linear programs."""

import setpoint._torch  # noqa: F401 (names the extra if torch is missing)
from setpoint.losses import LinearProgram
from setpoint.programs.diagnostics import ProgramInfo
from setpoint.programs.infeasibility import InfeasibleProgram, ProgramError, UnboundedProgram
from setpoint.programs.layer import linear_program
from setpoint.programs.metric_programs import as_program
from setpoint.programs.unrolled import Unrolled

__all__ = [
    "InfeasibleProgram",
    "LinearProgram",
    "ProgramError",
    "ProgramInfo",
    "UnboundedProgram",
    "Unrolled",
    "as_program",
    "linear_program",
]
