"""Precision at a recall as a program: a variable for each example, and a free threshold."""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._checks import positive
from setpoint.solvers.program.linear import LinearProgram, Rows, blocks
from setpoint.solvers.program.precision import Objective, checked_objective, checked_recall
from setpoint.solvers.program.written.sides import Sides, sides


def precision_at_recall_program(
    scores: Tensor,
    labels: Tensor,
    *,
    recall: float,
    weights: Tensor | None = None,
    margin: float = 1.0,
    objective: Objective = "precision",
) -> LinearProgram:
    """Alarms and misses around a free threshold; for the precision, times ``t``."""
    margin, recall = positive(margin, "margin"), checked_recall(recall)
    s = sides(scores, labels, weights)
    if checked_objective(objective) == "fpr":
        return _alarms(s, s.high / margin, s.low / margin, recall)
    return _precision(s, s.high / margin, s.low / margin, recall)


def _alarms(s: Sides, u: Tensor, v: Tensor, recall: float) -> LinearProgram:
    """``alarm >= 1 + v - level``, ``miss >= 1 - u + level``, misses within what is allowed."""
    alarm, miss, level = blocks(len(v), len(u), 1)
    rows, one = Rows(len(v) + len(u) + 1), u.new_ones(())
    rows.add(-1 - v, (alarm, -one), (level, -one))
    rows.add(u - 1, (miss, -one), (level, one))
    rows.sum(float((1 - recall) * s.positives), [miss], [s.high_weights])
    rows.at_least_zero(alarm, miss)
    cost = torch.cat([s.low_weights / s.low_weights.sum(), u.new_zeros(len(u) + 1)])
    return LinearProgram(cost, *rows.matrix(), None, None, False)


def _precision(s: Sides, u: Tensor, v: Tensor, recall: float) -> LinearProgram:
    """The same, with ``recall P + alarms`` held at 1 by a variable ``t`` that scales everything."""
    alarm, miss, level, t = blocks(len(v), len(u), 1, 1)
    rows, one = Rows(len(v) + len(u) + 2), u.new_ones(())
    rows.add(torch.zeros_like(v), (t, 1 + v), (level, -one), (alarm, -one))
    rows.add(torch.zeros_like(u), (t, 1 - u), (level, one), (miss, -one))
    rows.sum(0.0, [miss, t], [s.high_weights, (recall - 1) * s.positives])
    rows.at_least_zero(alarm, miss, t)
    held = Rows(rows.columns)
    held.sum(1.0, [alarm, t], [s.low_weights, recall * s.positives])
    cost = torch.cat([s.low_weights, u.new_zeros(len(u) + 2)])
    return LinearProgram(cost, *rows.matrix(), *held.matrix(), False)
