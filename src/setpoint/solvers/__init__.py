"""Solvers: ways to train for a problem. One paper, one file."""

from setpoint.solvers.baselines import cross_entropy, focal
from setpoint.solvers.implicit import Implicit
from setpoint.solvers.program import (
    LinearProgram,
    as_program,
    auc_loss,
    f_score_loss,
    jaccard_loss,
    multiclass_auc_loss,
    partial_auc_loss,
)

__all__ = [
    "Implicit",
    "LinearProgram",
    "as_program",
    "auc_loss",
    "cross_entropy",
    "f_score_loss",
    "focal",
    "jaccard_loss",
    "multiclass_auc_loss",
    "partial_auc_loss",
]
