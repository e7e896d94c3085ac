"""What the criterion of classes refuses."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint.problems import Problem
from setpoint.rates import ClassArea
from setpoint.steps import Sigmoid


def refuse(problem: Problem, options: dict[str, Any], rule: str) -> None:
    """Refuse problems without shifts, and options that are about one threshold."""
    if isinstance(problem, Problem) and isinstance(problem.objective, ClassArea):
        raise ValueError(
            f"`{problem}` is about the order of scores: there are no shifts to hold. Train it with "
            "Program(problem)."
        )
    if rule not in ("shift", "weight"):
        raise ValueError(f"rule must be 'shift' or 'weight'; got {rule!r}.")
    usual: dict[str, Any] = {
        "memory": 0,
        "correct_every": 1,
        "correction_batches": 1,
        "follow": None,
    }
    usual |= {"flatness": 0.0, "slope_floor": 0.0}
    wrong = [name for name, value in usual.items() if options.get(name, value) != value]
    step = options.get("step", Sigmoid())
    if not isinstance(step, Sigmoid):
        raise ValueError(f"Classes are decided by a softmax: step is Sigmoid(); got {step}.")
    if wrong:
        raise ValueError(f"Shifts of classes are found on every batch: leave {wrong[0]}= out.")


def logarithm(scores: Tensor) -> Tensor:
    """The logarithm of positive scores: shifting it is weighting them."""
    if not torch.compiler.is_compiling() and not bool((scores > 0).all()):
        lowest = float(scores.detach().min())
        raise ValueError(
            f"rule='weight' multiplies scores, which must be positive; got {lowest:g}. Pass "
            "probabilities, or use rule='shift' for logits."
        )
    return scores.to(torch.promote_types(scores.dtype, torch.float32)).log()
