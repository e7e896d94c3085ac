"""``as_program``: a metric loss as the linear program it is the optimal value of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, ParamSpec

from torch import Tensor

from setpoint.losses import (
    LinearProgram,
    MetricLoss,
    auc_loss,
    expected_f_loss,
    f_score_loss,
    jaccard_loss,
    multiclass_auc_loss,
    partial_auc_loss,
    precision_at_recall_loss,
    structural_loss,
)
from setpoint.losses.auc import PartialRocArea, RocArea
from setpoint.losses.expected_f import expected_f_program
from setpoint.losses.multiclass import MulticlassArea
from setpoint.losses.precision_at_recall import AlarmsAtRecall
from setpoint.losses.ratios import JACCARD, RatioBound, f_score_bound
from setpoint.losses.structural import StructuralHinge

Arguments = ParamSpec("Arguments")
_LOSSES: dict[Any, Callable[..., MetricLoss]] = {
    auc_loss: RocArea,
    partial_auc_loss: PartialRocArea,
    multiclass_auc_loss: MulticlassArea,
    f_score_loss: f_score_bound,
    jaccard_loss: partial(RatioBound, ratio=JACCARD),
    precision_at_recall_loss: AlarmsAtRecall,
    structural_loss: StructuralHinge,
}


def as_program(
    loss: Callable[Arguments, Tensor], /, *given: Arguments.args, **options: Arguments.kwargs
) -> LinearProgram:
    """The linear program whose optimal value is ``loss(scores, labels, ...)``.

    Called like the loss itself, with its options. The program has one variable per pair of
    examples (areas) or per example, as in the textbook: it is for adding constraints of one's own
    before handing it to :func:`setpoint.programs.linear_program`, and for checking. To train, call
    the loss: it gives the same value and gradient without a solver. Raises a ValueError if ``loss``
    is none of :mod:`setpoint.losses`.

    Examples:
        >>> import torch
        >>> from setpoint.losses import auc_loss
        >>> from setpoint.programs import as_program
        >>> program = as_program(auc_loss, torch.tensor([2.0, 0.5, 0.0]), torch.tensor([1, 1, 0]))
        >>> program.A.shape, program.b.tolist()      # one variable and row per pair
        (torch.Size([2, 2]), [1.0, -0.5])
        >>> program.value(torch.tensor([0.0, 0.5]).double()).item()      # at its solution
        0.25
    """
    if loss is not expected_f_loss and loss not in _LOSSES:
        known = ", ".join(sorted(f.__name__ for f in (*_LOSSES, expected_f_loss)))
        raise ValueError(f"No program is known for {loss!r}; there is one for {known}.")
    bound = signature(loss).bind(*given, **options)
    bound.apply_defaults()
    if loss is expected_f_loss:
        return expected_f_program(**bound.arguments)
    scores, labels, weights = (bound.arguments.pop(k) for k in ("scores", "labels", "weights"))
    return _LOSSES[loss](**bound.arguments).program(scores, labels, weights)
