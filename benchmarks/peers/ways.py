"""Two more ways to treat an inequality, beside ``Implicit``'s "choose, then hold what was chosen".

Both are :class:`setpoint.Implicit` with another rule for where the threshold sits; main loss, mix,
width and gradient are the same, so that nothing but the rule is compared.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.common.axes import WithAxis
from setpoint import Problem
from setpoint.axes import Everyone, PlainOutcome, Sample, SoftCounts, tables_of
from setpoint.axes.everyone import soft_counts
from setpoint.axes.scan import Placement, holds, place
from setpoint.rates import Array, Bound
from setpoint.solvers.compiled import ExampleColumns
from setpoint.steps import Step

FIRST, NEXT, ZOOMS = 65, 33, 3
ACTIVE = 1e-3
"""A soft gap nearer to zero than this: the bound stops the threshold."""


class SoftInnerAxis(Everyone):
    """The threshold for everyone is the best one in soft counts."""

    def hold(
        self,
        whole: Sample,
        own: Sample,
        step: Step,
        widening: float,
        placed: Placement | None = None,
    ) -> PlainOutcome:
        """Move the threshold to the soft optimum, and hold it there."""
        with np.errstate(all="ignore"):
            found = self.choose(whole) if placed is None else placed
            counts = soft_counts(whole, own, found.marginal, step, widening)
            at, active = self.soft_optimum(counts)
            moved = replace(found, marginal=at, holding=active)
            return self.held(replace(counts, at=at, _kernels=[]), moved, fresh=placed is None)

    def soft_optimum(self, counts: SoftCounts) -> tuple[Array, list[Array]]:
        """The best threshold ``[c, 1]``, and whether each target stops it, by ever finer grids."""
        scores, width = counts.whole.scores, counts.width[:, :1]
        low, high = scores.min(-1, keepdims=True) - width, scores.max(-1, keepdims=True) + width
        for count in (FIRST, *[NEXT] * ZOOMS):
            grid = low + (high - low) * np.linspace(0, 1, count)
            cost, gaps = self._at(grid, counts)
            worst = np.maximum.reduce([cost * 0, *gaps])
            least = worst.min(-1, keepdims=True)
            best = np.where(worst <= least + 1e-12, cost, np.inf).argmin(-1)[:, None]
            at = np.take_along_axis(grid, best, -1)
            low = np.take_along_axis(grid, np.maximum(best - 1, 0), -1)
            high = np.take_along_axis(grid, np.minimum(best + 1, count - 1), -1)
        return at, [np.take_along_axis(gap, best, -1) >= -ACTIVE for gap in gaps]

    def _at(self, grid: Array, counts: SoftCounts) -> tuple[Array, list[Array]]:
        """The objective, to be minimized, and the gap of every target at a grid of thresholds."""
        width = np.broadcast_to(counts.width[:, :1], grid.shape)
        accepted, _ = replace(counts, at=grid, width=width, _kernels=[]).counts()
        tables = tables_of(accepted, counts.whole.totals, self.slices)
        gaps = [
            target.gap(target.expression.of(tables), target.levels[0]) for target in self.targets
        ]
        return self.sign * self.problem.objective.of(tables), gaps


class SoftInner(WithAxis):
    """The threshold is the best one in soft counts: ``min over t of f(s, t), g(s, t) <= 0``.

    Where the bound is slack the soft objective is stationary in ``t`` and the multiplier is zero by
    itself; where it is active the threshold is held by it (the envelope theorem in both cases).
    """

    axis_type = SoftInnerAxis

    def __init__(self, problem: Problem, **options: Any) -> None:
        super().__init__(problem, **options)
        _check(problem)


class SlackAxis(Everyone):
    """One threshold for everyone that holds a bound as an equality, its level moved by a slack.

    Attributes:
        levels: The level of each output.
    """

    levels: tuple[float, ...] = ()

    def choose(self, sample: Sample) -> Placement:
        """The threshold of every output at its own level."""
        (target,) = self.targets
        every = place(sample.cuts, self.problem, [replace(target, levels=self.levels)])
        return Placement(
            _diagonal(every.threshold),
            _diagonal(every.marginal),
            [_diagonal(held) for held in every.holding],
        )


def _diagonal(of_outputs_and_levels: Array) -> Array:
    """Of ``[c, c]``, every output at every level, each output at its own: ``[c, 1]``."""
    return np.diagonal(of_outputs_and_levels)[:, None].copy()


class SlackVariables(WithAxis):
    """``g(s, t) + slack = 0`` with ``slack >= 0`` trained like a weight (ICO, section 6.1).

    The threshold holds the bound's rate at its level moved by the slack; moving the slack moves the
    objective by the multiplier, so it descends that and is projected. One slack for each output.
    """

    axis_type = SlackAxis
    axis: SlackAxis
    slack: Tensor
    _flexible = ("thresholds", "slack")

    def __init__(self, problem: Problem, *, rate: float = 0.01, **options: Any) -> None:
        super().__init__(problem, **options)
        self.bound = _check(problem)
        self.rate = rate
        objective = {"maximize" if problem.maximize else "minimize": problem.objective}
        held = Problem(**objective, subject_to=self.bound.expression.at(self.bound.level))
        self.axis.targets = holds(held)
        self.register_buffer("slack", torch.zeros(1, dtype=torch.float64))

    def value_and_gradient(
        self, scores: Tensor, labels: Any, learns: bool, columns: ExampleColumns
    ) -> tuple[Tensor, Tensor]:
        """As :class:`setpoint.Implicit`; a step moves the slack, too."""
        outputs = scores.shape[1] if scores.ndim == 2 else 1
        if len(self.slack) != outputs:
            self.slack = self.slack.new_zeros(outputs)
        level, lower = self.bound.level, self.bound.sense == "<="
        self.axis.levels = tuple((level + (-1 if lower else 1) * self.slack).tolist())
        found = super().value_and_gradient(scores, labels, learns, columns)
        if learns and self.training:
            moved = self.slack - self.rate * torch.nan_to_num(self.by_slack())
            self.slack = moved.clamp(0.0, level if lower else 1 - level)
        return found

    def by_slack(self) -> Tensor:
        """How the objective of the last batch changes with each slack, ``[c]``."""
        outcome = self.outcome
        assert isinstance(outcome, PlainOutcome)
        assert outcome.held is not None
        multiplier = torch.from_numpy(outcome.held.multipliers[:, 0, 0])
        return multiplier if self.bound.sense == "<=" else -multiplier


def _check(problem: Problem) -> Bound:
    """The one bound these ways are written for."""
    (*rest, bound) = problem.subject_to or (None,)
    if rest or not isinstance(bound, Bound) or len(problem.points) != 1:
        raise ValueError(f"This way takes one bound and one threshold; got `{problem}`.")
    return bound
