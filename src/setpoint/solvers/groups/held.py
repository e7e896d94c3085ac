"""The objective at the held thresholds of all groups, and its gradient.

Active bounds give equations ``E(scores, thresholds) = level``. With as many of them as thresholds,
the implicit function theorem solves one small linear system. With fewer, the thresholds also hold
combinations of their groups' coverages, those that the equations leave open: of all multipliers
that make the objective stationary, the ones with the least weight on coverages (each squared, over
the share of its group). So nothing depends on the order of groups, shifting the scores of one
group changes nothing, and one group alone is the plain criterion.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.rates import Expression, Tables
from setpoint.solvers.groups.seats import GroupSeats
from setpoint.solvers.held import gradient_of, tables_of
from setpoint.steps import Step
from setpoint.thresholds import Reading, Sample


@dataclass(frozen=True)
class GroupHeld:
    """What holding gives: a value, its gradient ``[1, n]``, and multipliers."""

    value: Tensor
    gradient: Tensor
    soft: Tensor
    tables: Tables
    multipliers: Tensor  # of the equations
    rests: Tensor  # of the groups' coverages


class GroupCounts:
    """Soft counts of every group around its own threshold, and how slices and rates follow."""

    def __init__(self, seats: GroupSeats, step: Step, whole: Sample, own: Sample) -> None:
        cells = seats.solver.cells
        self.slices = cells.slices
        self.inside = torch.as_tensor(cells.inside, dtype=whole.scores.dtype)
        self.inside = self.inside.to(whole.scores.device)
        self.place = [c for i in seats.present for c in (2 * i + 2, 2 * i + 3)]
        self.own_width = seats.width[self._cell_of(own)]
        apart = self._apart(whole, seats)
        mine = apart if own is whole else self._apart(own, seats)
        zero = torch.zeros_like(whole.scores[:, :1])
        self.reading = Reading(step, zero, zero + 1, apart, mine)
        counts, slopes = self.reading.counts()
        self.counts: Tensor = counts.reshape(-1, 2)
        self.slopes: Tensor = slopes.reshape(-1, 2) / seats.width[:, None]
        self.totals = apart.totals.reshape(-1, 2)

    def _cell_of(self, sample: Sample) -> Tensor:
        weights: Tensor = sample.columns[0][:, self.place]
        return (weights[:, ::2] + weights[:, 1::2]).argmax(-1)

    def _apart(self, sample: Sample, seats: GroupSeats) -> Sample:
        """Every score from its own threshold on, in its own width."""
        g = self._cell_of(sample)
        scores = (sample.scores.detach() - seats.marginal[g]) / seats.width[g]
        return Sample(scores, sample.columns[..., self.place])

    def _in_slices(self, values: Tensor) -> Tensor:
        return (self.inside @ values).reshape(1, 1, -1)

    def tables(self) -> Tables:
        """The soft counts of every slice."""
        return tables_of(self._in_slices(self.counts), self._in_slices(self.totals)[0], self.slices)

    def by_count(self, expression: Expression) -> Tensor:
        """How an expression changes with the accepted of every group, ``[g, 2]``."""
        counts, totals = self._in_slices(self.counts), self._in_slices(self.totals)[0]
        changed = gradient_of(expression, counts, totals, self.slices).reshape(-1, 2)
        empty = (self.inside.sum(-1) == 0)[:, None]
        return self.inside.T @ torch.where(empty, 0.0, changed)

    def by_threshold(self, by_count: Tensor) -> Tensor:
        """The same by the thresholds, ``[g]``."""
        return (by_count * self.slopes).sum(-1)

    def pull(self, by_count: Tensor) -> Tensor:
        """The gradient on the batch's scores, ``[1, n]``."""
        pulled: Tensor = self.reading.pull(by_count.reshape(1, 1, -1))
        return pulled / self.own_width


def hold_groups(
    objective: Expression, sign: float, seats: GroupSeats, counts: GroupCounts
) -> GroupHeld:
    """The objective, to be minimized, with every threshold held."""
    tables = counts.tables()
    soft = torch.as_tensor(objective.of(tables)).reshape(())
    goal = sign * counts.by_count(objective)
    equations = [counts.by_count(e) for e in seats.equations]
    sizes = counts.totals.sum(-1, keepdim=True)
    coverages = (1 / sizes).expand(-1, 2)
    moves = torch.stack([counts.by_threshold(e) for e in (coverages, goal, *equations)])
    multipliers, rests = balance(moves[1], moves[2:], moves[0], sizes[:, 0] / sizes.sum())
    total = goal + rests[:, None] * coverages
    for multiplier, equation in zip(multipliers, equations, strict=True):
        total = total + multiplier * equation
    return GroupHeld(sign * soft, counts.pull(total), soft, tables, multipliers, rests)


def balance(
    goal: Tensor, equations: Tensor, coverages: Tensor, shares: Tensor
) -> tuple[Tensor, Tensor]:
    """Multipliers of equations ``[e]`` and of coverages ``[g]`` that make all stationary.

    ``goal + multipliers @ equations + rests * coverages = 0`` for derivatives by the thresholds,
    with the least sum of ``rests^2 / shares``.
    """
    scale = 1 / (coverages * shares.sqrt())
    target, rows = goal * scale, equations * scale
    lengths = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    rows = rows / torch.where(lengths > 0, lengths, 1.0)
    solved = torch.linalg.pinv(rows.T, rtol=1e-9) @ -target if len(rows) else target[:0]
    multipliers = solved / torch.where(lengths > 0, lengths, torch.inf)[:, 0]
    rests = -(goal + multipliers @ equations) / coverages
    return multipliers, rests
