"""One more way to treat an inequality, beside ``Implicit``'s "choose, then hold what was chosen".

It is :class:`setpoint.Implicit` with another rule for where the threshold sits; main loss, mix,
width and gradient are the same, so that nothing but the rule is compared.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.common.axes import WithAxis
from setpoint import Problem
from setpoint.axes import Everyone, PlainOutcome, SoftCounts, tables_of
from setpoint.axes.everyone import soft_counts
from setpoint.rates import Array, Bound

FIRST, NEXT, ZOOMS = 65, 33, 3
ACTIVE = 1e-3
"""A soft gap nearer to zero than this: the bound stops the threshold."""


class SoftInnerAxis(Everyone):
    """The threshold for everyone is the best one in soft counts."""

    def hold(self, whole, own, step, widening, placed=None) -> PlainOutcome:
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


def _check(problem: Problem) -> Bound:
    """The one bound these ways are written for."""
    (*rest, bound) = problem.subject_to or (None,)
    if rest or not isinstance(bound, Bound) or len(problem.points) != 1:
        raise ValueError(f"This way takes one bound and one threshold; got `{problem}`.")
    return bound
