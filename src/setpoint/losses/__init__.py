"""Exact losses for metrics of a whole batch, by sorting: a value and its gradient, no solver."""

from typing import TYPE_CHECKING

import setpoint._torch  # noqa: F401 (names the extra if torch is missing)
from setpoint._extras import import_lazily
from setpoint.losses.log_likelihood import cross_entropy, focal

if TYPE_CHECKING:
    from setpoint.losses.auc import auc_loss, partial_auc_loss
    from setpoint.losses.base import (
        MetricLoss,
        Ranked,
        ValueAndGradient,
        attach,
        batch_loss,
        exact_type,
        example_weights,
        from_zero,
        labelled,
    )
    from setpoint.losses.expected_f import expected_f_decisions, expected_f_loss, independent_joint
    from setpoint.losses.multiclass import multiclass_auc_loss
    from setpoint.losses.precision_at_recall import precision_at_recall_loss
    from setpoint.losses.ratios import f_score_loss, jaccard_loss
    from setpoint.losses.structural import structural_loss
    from setpoint.losses.writing import LinearProgram

__all__ = [
    "LinearProgram",
    "MetricLoss",
    "Ranked",
    "ValueAndGradient",
    "attach",
    "auc_loss",
    "batch_loss",
    "cross_entropy",
    "exact_type",
    "example_weights",
    "expected_f_decisions",
    "expected_f_loss",
    "f_score_loss",
    "focal",
    "from_zero",
    "independent_joint",
    "jaccard_loss",
    "labelled",
    "multiclass_auc_loss",
    "partial_auc_loss",
    "precision_at_recall_loss",
    "structural_loss",
]

__getattr__ = import_lazily(__name__)
