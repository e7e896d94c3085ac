"""Linear programs as layers of a network, and the metric losses written as linear programs."""

import setpoint._torch  # noqa: F401 (names the extra if torch is missing)
from setpoint.programs.diagnostics import ProgramInfo
from setpoint.programs.infeasibility import InfeasibleProgram, ProgramError, UnboundedProgram
from setpoint.programs.layer import linear_program
from setpoint.programs.metric_programs import (
    as_program,
    auc_program,
    expected_f_program,
    f_score_program,
    jaccard_program,
    multiclass_auc_program,
    partial_auc_program,
    precision_at_recall_program,
    structural_program,
)
from setpoint.programs.writing import LinearProgram

__all__ = [
    "InfeasibleProgram",
    "LinearProgram",
    "ProgramError",
    "ProgramInfo",
    "UnboundedProgram",
    "as_program",
    "auc_program",
    "expected_f_program",
    "f_score_program",
    "jaccard_program",
    "linear_program",
    "multiclass_auc_program",
    "partial_auc_program",
    "precision_at_recall_program",
    "structural_program",
]
