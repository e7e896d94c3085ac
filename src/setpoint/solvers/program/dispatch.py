"""From a loss to the linear program it solves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec

from torch import Tensor

from setpoint.solvers.program import written
from setpoint.solvers.program.auc import auc_loss, partial_auc_loss
from setpoint.solvers.program.classes import multiclass_auc_loss
from setpoint.solvers.program.expected import expected_f_loss
from setpoint.solvers.program.linear import LinearProgram
from setpoint.solvers.program.precision import precision_at_recall_loss
from setpoint.solvers.program.ratios import f_score_loss, jaccard_loss
from setpoint.solvers.program.structural import structural_loss

Arguments = ParamSpec("Arguments")
WRITTEN: dict[Callable[..., Tensor], Callable[..., LinearProgram]] = {
    auc_loss: written.auc_program,
    partial_auc_loss: written.partial_auc_program,
    multiclass_auc_loss: written.multiclass_auc_program,
    f_score_loss: written.f_score_program,
    jaccard_loss: written.jaccard_program,
    precision_at_recall_loss: written.precision_at_recall_program,
    structural_loss: written.structural_program,
    expected_f_loss: written.expected_f_program,
}


def as_program(
    loss: Callable[Arguments, Tensor], /, *given: Arguments.args, **options: Arguments.kwargs
) -> LinearProgram:
    """The linear program whose optimal value is ``loss(scores, labels, ...)``.

    Called like the loss itself, with its options. The program has a variable for each pair of
    examples (areas) or for each example: it is for adding constraints of one's own, and for
    checking; to train, call the loss.

    Example:
        >>> import torch
        >>> from setpoint import as_program, auc_loss
        >>> program = as_program(auc_loss, torch.tensor([2.0, 0.5, 0.0]), torch.tensor([1, 1, 0]))
        >>> program.A.shape, program.b.tolist()      # a variable and a row for each of two pairs
        (torch.Size([2, 2]), [1.0, -0.5])
        >>> program.value(torch.tensor([0.0, 0.5]).double()).item()      # at its solution
        0.25
    """
    write: Any = WRITTEN.get(loss)
    if write is None:
        known = ", ".join(sorted(f.__name__ for f in WRITTEN))
        raise ValueError(f"No program is known for {loss!r}; there is one for {known}.")
    program: LinearProgram = write(*given, **options)
    return program
