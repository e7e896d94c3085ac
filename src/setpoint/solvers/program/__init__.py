"""Metrics as linear programs, solved by sorting: losses, and the programs themselves."""

from setpoint.solvers.program.auc import auc_loss, partial_auc_loss
from setpoint.solvers.program.classes import multiclass_auc_loss
from setpoint.solvers.program.criterion import Program
from setpoint.solvers.program.dispatch import as_program
from setpoint.solvers.program.expected import (
    expected_f_decisions,
    expected_f_loss,
    independent_joint,
)
from setpoint.solvers.program.linear import LinearProgram
from setpoint.solvers.program.precision import precision_at_recall_loss
from setpoint.solvers.program.ratios import f_score_loss, jaccard_loss
from setpoint.solvers.program.structural import structural_loss

__all__ = [
    "LinearProgram",
    "Program",
    "as_program",
    "auc_loss",
    "expected_f_decisions",
    "expected_f_loss",
    "f_score_loss",
    "independent_joint",
    "jaccard_loss",
    "multiclass_auc_loss",
    "partial_auc_loss",
    "precision_at_recall_loss",
    "structural_loss",
]
