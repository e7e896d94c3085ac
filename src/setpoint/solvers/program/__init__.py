"""Metrics as linear programs, solved by sorting: losses, and the programs themselves."""

from setpoint.solvers.program.auc import auc_loss, partial_auc_loss
from setpoint.solvers.program.classes import multiclass_auc_loss
from setpoint.solvers.program.dispatch import as_program
from setpoint.solvers.program.linear import LinearProgram
from setpoint.solvers.program.precision import precision_at_recall_loss
from setpoint.solvers.program.ratios import f_score_loss, jaccard_loss

__all__ = [
    "LinearProgram",
    "as_program",
    "auc_loss",
    "f_score_loss",
    "jaccard_loss",
    "multiclass_auc_loss",
    "partial_auc_loss",
    "precision_at_recall_loss",
]
