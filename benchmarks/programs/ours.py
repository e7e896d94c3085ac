"""Our ways to the same loss: in closed form, or its program through the layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from setpoint.losses import auc_loss, f_score_loss
from setpoint.programs import as_program, linear_program

LOSSES: dict[str, tuple[Callable[..., Tensor], dict[str, Any]]] = {
    "auc": (auc_loss, {}),
    "f1": (f_score_loss, {"threshold": 0.0, "lift": False}),  # the program alone
}


def build(metric: str, labels: Tensor) -> Callable[[Tensor], Tensor]:
    """The exact loss, without a program."""
    loss, options = LOSSES[metric]
    return lambda scores: loss(scores, labels, **options)


def build_layer(
    metric: str, labels: Tensor, dense: bool = False, **options: Any
) -> Callable[[Tensor], Tensor]:
    """Writing the program and solving it both count as forward."""
    written, fixed = LOSSES[metric]

    def loss(scores: Tensor) -> Tensor:
        program = as_program(written, scores, labels, **fixed)
        c, A, b, E, h, nonnegative = program[:6]
        if dense:
            A, E = A.to_dense(), None if E is None else E.to_dense()
        found, _ = linear_program(c, A, b, E, h, nonnegative, **options)
        return found + program.offset if options.get("value_only") else program.value(found)

    return loss
