"""Who can be judged on a batch of groups."""

from __future__ import annotations

import torch

from setpoint.rates import Expression, Fold, maximum, minimum
from setpoint.solvers.groups.seats import GroupSeats
from setpoint.thresholds import Sample


def check_groups(batch: Sample) -> None:
    """One output, and everybody in a group that has a threshold."""
    if len(batch.scores) > 1:
        raise ValueError(
            f"One threshold per group takes one score an example; got {len(batch.scores)} outputs."
        )
    everyone, named = batch.columns[0, :, :2].sum(-1), batch.columns[0, :, 2:].sum(-1)
    strangers = torch.nonzero(everyone > named)
    if len(strangers):
        raise ValueError(
            f"Row {int(strangers[0])} belongs to a group that the problem names nowhere. With one "
            "threshold per group, name it in the problem, or leave its rows out."
        )


def judged_among(objective: Expression, seats: GroupSeats) -> Expression:
    """The objective; the worst of groups is the worst of those that can be judged."""
    if not isinstance(objective, Fold) or objective.kind == "abs":
        return objective
    parts = [part for part in objective.parts if seats.solver.cells.defined(part)]
    fold = maximum if objective.kind == "max" else minimum
    return fold(*parts) if parts else objective
