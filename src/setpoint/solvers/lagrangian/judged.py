"""What scores reach at given thresholds: the true objective, and what targets are missed by."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint.problems import Problem
from setpoint.rates import Bound
from setpoint.solvers.held import tables_of
from setpoint.steps import Hard
from setpoint.thresholds import Reading, read


def measured(
    problem: Problem, scores: Tensor, labels: Tensor, thresholds: Any, weights: Any, groups: Any
) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
    """The true objective, the excess of every target, and the thresholds they were taken at.

    0/0 is the worst there is: an infinite cost, an infinite excess.
    """
    sample = read(problem.slices, scores, labels, weights, groups)
    at = torch.as_tensor(thresholds, dtype=torch.float64).reshape(1, -1).to(sample.scores)
    if len(sample.scores) != 1 or at.shape[1] != len(problem.points):
        raise ValueError(
            f"`{problem}` is judged at {len(problem.points)} threshold(s) of one output; "
            f"got {at.shape[1]} of {len(sample.scores)}."
        )
    reading = Reading(Hard(), at, torch.ones_like(at), sample, sample)
    tables = tables_of(reading.counts()[0], sample.totals, problem.slices)
    values = torch.as_tensor(problem.objective.of(tables)).expand(at.shape)
    worst = float("-inf") if problem.maximize else float("inf")
    excess: list[float] = []
    for i, target in enumerate(problem.points[0]):
        rate = torch.as_tensor(target.expression.of(tables)).expand(at.shape)
        levels = rate.new_tensor([point[i].level for point in problem.points])
        turn = -1.0 if isinstance(target, Bound) and target.sense == ">=" else 1.0
        excess += torch.nan_to_num(turn * (rate - levels), nan=float("inf"))[0].tolist()
    objective = float(torch.where(values.isnan(), worst, values).mean())
    return objective, tuple(excess), tuple(at[0].tolist())
