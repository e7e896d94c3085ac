"""Two more ways to treat an inequality, beside ``Implicit``'s "choose, then hold what was chosen".

Both are :class:`setpoint.Implicit` with another rule for where the threshold sits; main loss, mix,
width and gradient are the same, so that nothing but the rule is compared.
"""

from dataclasses import replace
from typing import Any

import torch
from setpoint.solvers.schedule import Seat
from torch import Tensor

from setpoint import Implicit, Problem
from setpoint.axes.sample import Sample
from setpoint.axes.scan import holds, place
from setpoint.axes.soft_counts import SoftCounts, tables_of
from setpoint.rates import Bound

FIRST, NEXT, ZOOMS = 65, 33, 3
ACTIVE = 1e-3
"""A soft gap nearer to zero than this: the bound stops the threshold."""


class SoftInner(Implicit):
    """The threshold is the best one in soft counts: ``min over t of f(s, t), g(s, t) <= 0``.

    Where the bound is slack the soft objective is stationary in ``t`` and the multiplier is zero by
    itself; where it is active the threshold is held by it (the envelope theorem in both cases).
    """

    def __init__(self, problem: Problem, **options: Any) -> None:
        super().__init__(problem, **options)
        _check(problem)

    def _read(self, batch: Sample, steps: bool, share: Any) -> tuple[SoftCounts, Seat]:
        reading, seat = super()._read(batch.tensors(), steps, share)
        at, active = self.soft_optimum(reading)
        return replace(reading, at=at, _kernels=[]), replace(seat, marginal=at, holding=active)

    def soft_optimum(self, reading: SoftCounts) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The best threshold ``[c, 1]``, and whether each target stops it, by ever finer grids."""
        scores, width = reading.whole.scores, reading.width[:, :1]
        low, high = scores.amin(-1, keepdim=True) - width, scores.amax(-1, keepdim=True) + width
        for count in (FIRST, *[NEXT] * ZOOMS):
            grid = low + (high - low) * torch.linspace(0, 1, count, dtype=low.dtype)
            cost, gaps = self._at(grid, reading)
            worst = torch.stack([cost * 0, *gaps]).amax(0).clamp(min=0)
            least = worst.amin(-1, keepdim=True)
            best = torch.where(worst <= least + 1e-12, cost, torch.inf).argmin(-1, keepdim=True)
            at = grid.gather(-1, best)
            low = grid.gather(-1, (best - 1).clamp(min=0))
            high = grid.gather(-1, (best + 1).clamp(max=count - 1))
        return at, tuple(gap.gather(-1, best) >= -ACTIVE for gap in gaps)

    def _at(self, grid: Tensor, reading: SoftCounts) -> tuple[Tensor, list[Tensor]]:
        """The objective, to be minimized, and the gap of every target at a grid of thresholds."""
        width = reading.width[:, :1].expand_as(grid)
        counts, _ = replace(reading, at=grid, width=width, _kernels=[]).counts()
        tables = tables_of(counts, reading.whole.totals, self._slices)
        cost = self.problem.objective.of(tables)
        gaps = [
            target.gap(target.expression.of(tables), target.levels[0]) for target in self._targets
        ]
        return (-cost if self.problem.maximize else cost), gaps


class SlackVariables(Implicit):
    """``g(s, t) + slack = 0`` with ``slack >= 0`` trained like a weight (ICO, section 6.1).

    The threshold holds the bound's rate at its level moved by the slack; moving the slack moves the
    objective by the multiplier, so it descends that and is projected. One slack for each output.
    """

    slack: Tensor
    _flexible = ("thresholds", "slack")

    def __init__(self, problem: Problem, *, rate: float = 0.01, **options: Any) -> None:
        super().__init__(problem, **options)
        self.bound = _check(problem)
        self.rate = rate
        objective = {"maximize" if problem.maximize else "minimize": problem.objective}
        held = Problem(**objective, subject_to=self.bound.expression.at(self.bound.level))
        self._targets = holds(held)
        self.register_buffer("slack", torch.zeros(1, dtype=torch.float64))

    def _read(self, batch: Sample, steps: bool, share: Any) -> tuple[SoftCounts, Seat]:
        batch = batch.tensors()
        reading, _ = super()._read(batch, steps, share)
        outputs = len(batch.scores)
        if len(self.slack) != outputs:
            self.slack = self.slack.new_zeros(outputs)
        sign = -1 if self.bound.sense == "<=" else 1
        levels = tuple((self.bound.level + sign * self.slack).tolist())
        placed = place(
            batch.cuts(self._slices), self.problem, [replace(self._targets[0], levels=levels)]
        )
        found = Seat.of(
            placed, batch.scores
        )  # [c, c]: every output at every level; its own is the diagonal
        own = [x.diagonal()[:, None] for x in (found.marginal, found.threshold, *found.holding)]
        seat = Seat(own[0], own[1], tuple(own[2:]))
        return replace(reading, at=seat.marginal, _kernels=[]), seat

    def by_slack(self) -> Tensor:
        """How the objective of the last batch changes with each slack, ``[c]``."""
        assert self._last is not None
        multiplier = self._last.held.multiplier[:, 0]
        return multiplier if self.bound.sense == "<=" else -multiplier

    def _remember(self, scores: Tensor, batch: Sample, seat: Seat) -> None:
        super()._remember(scores, batch, seat)
        level = self.bound.level
        room = level if self.bound.sense == "<=" else 1 - level
        moved = self.slack - self.rate * torch.nan_to_num(self.by_slack())
        self.slack = moved.clamp(0.0, room)


def _check(problem: Problem) -> Bound:
    """The one bound these ways are written for."""
    (*rest, bound) = problem.subject_to or (None,)
    if rest or not isinstance(bound, Bound) or len(problem.points) != 1:
        raise ValueError(f"This way takes one bound and one threshold; got `{problem}`.")
    return bound
