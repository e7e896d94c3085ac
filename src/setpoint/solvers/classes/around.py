"""A batch around its shifts: found on hard counts, held on soft ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.axes.class_data import ClassData
from setpoint.axes.class_search import find
from setpoint.problems import Problem
from setpoint.solvers.classes.held import hold_shifts
from setpoint.solvers.classes.last import ClassLast
from setpoint.solvers.classes.soft import Soft, margin_spread
from setpoint.steps import Step


def look(
    problem: Problem,
    data: ClassData,
    step: Step,
    widening: float,
    share: Any,
    ks: frozenset[int],
) -> ClassLast:
    """Find the shifts, then hold them with a softmax as wide as ``step`` says."""
    found = find(problem, data)
    spread = margin_spread(data, found.edge) if len(data.scores) else 0.0
    width = float(step.width_of(torch.tensor(spread, dtype=torch.float64)))
    width = width * widening ** float(share) or 1.0
    soft = Soft(data, found.edge, width, ks)
    held = hold_shifts(problem, soft, found)
    return ClassLast(problem, data, found, soft, held, float(share))


def as_tensors(last: ClassLast, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The value, the implicit gradient on all rows of a batch, and the shifts.

    The gradient is zero where it is not sound, and for examples that are absent.
    """
    value = last.held.value if np.isfinite(last.held.value) else 0.0
    gradient = np.zeros(scores.shape)
    if last.held.sound:
        gradient[last.data.rows] = last.held.gradient
    made = (
        torch.tensor(value, dtype=torch.float64),
        torch.from_numpy(gradient),
        torch.from_numpy(last.found.shifts),
    )
    on = scores.device
    return made[0].to(on), made[1].to(on), made[2].to(on)
