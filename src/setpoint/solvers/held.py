"""The objective of a problem at held thresholds, and its gradient: the heart of :class:`Implicit`.

Soft counts around the thresholds give the value of every rate. The algebra of rates says how the
objective and the held rate change with each count, the step says how the counts change with
thresholds and scores; the implicit function theorem puts the two together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint.axes.arrays import quiet
from setpoint.axes.scan import Hold
from setpoint.layers import through_threshold
from setpoint.problems import Problem
from setpoint.rates import Array, Counts, Expression, Tables, Where, coverage
from setpoint.solvers.schedule import Seat
from setpoint.steps import SlopeOf
from setpoint.thresholds import Reading, alike, array_of, library_of


@dataclass(frozen=True)
class Held:
    """What holding gives: ``value`` [c], ``gradient`` [c, n], the rest ``[c, m]`` or by count.

    ``sound`` [c]: the value is finite, and no class is missing.
    """

    value: Array
    gradient: Array
    soft: Array
    slope: Array
    multiplier: Array
    gap_by_count: Array
    sound: Array

    def motion(self, reading: Reading) -> Array:
        """How the thresholds move with the scores, summed over them, ``[c, n]``."""
        flat = self.slope == 0
        pace = torch.where(flat, 0.0, -1 / torch.where(flat, 1.0, self.slope))
        return reading.pull(pace[..., None] * self.gap_by_count)


def hold_thresholds(
    problem: Problem,
    targets: list[Hold],
    slices: tuple[Where, ...],
    reading: Reading,
    seat: Seat,
    *,
    flatness: float = 0.0,
    slope_floor: float = 0.0,
) -> Held:
    """The objective at ``seat``, to be minimized, and its gradient on the scores."""
    counts, slopes = reading.counts()
    columns = _Columns(counts, reading.whole.totals, slices)
    sign = -1.0 if problem.maximize else 1.0
    floor = slope_floor / columns.array(reading.width) if slope_floor else None
    with quiet(columns.xp):
        tables = columns.tables()
        soft = problem.objective.of(tables)
        gap_by_count = _anchor(columns, tables, targets, seat)
        by_count = columns.gradient(problem.objective, tables) * (sign / counts.shape[1])
        total, *rest = through_threshold(by_count, gap_by_count, array_of(slopes), floor)
        value = soft.sum(-1) * (sign / soft.shape[-1])
        sound = columns.xp.isfinite(value) & (columns.totals[:, 0] > 0).all(-1)
    found = (value, soft, *rest, gap_by_count, sound, total)
    value, soft, slope, multiplier, gaps, sound, by_count = (alike(x, counts) for x in found)
    gradient = reading.pull(by_count)
    if flatness:
        gradient = gradient + flatness * _flatness_gradient(reading, gaps, slope)
    return Held(value, gradient, soft, slope, multiplier, gaps, sound)


def _anchor(columns: _Columns, tables: Tables, targets: list[Hold], seat: Seat) -> Array:
    """The gradient of what each threshold is held by: the target that stops it, or the coverage."""
    if len(targets) == 1 and targets[0].sorts:
        return columns.gradient(targets[0].expression, tables)
    holding = [columns.array(held) for held in seat.holding]
    if columns.xp is np and len(targets) == 1 and holding[0].all():  # the usual case
        return columns.gradient(targets[0].expression, tables)
    anchor = columns.gradient(coverage, tables)
    for target, held in zip(targets, holding, strict=True):
        if target.caps is not None:
            own = columns.gradient(target.expression, tables)
            anchor = columns.xp.where(held[..., None], own, anchor)
    return anchor


def _flatness_gradient(reading: Reading, gap_by_count: Tensor, slope: Tensor) -> Array:
    """The gradient of ``sum (width * d gap / d threshold)^2`` (section 3.4).

    Counted with the slope of the step instead of the step, counts are what this square is made of;
    it moves with the scores directly and through the thresholds.
    """
    bend = replace(reading, step=SlopeOf(reading.step), _kernels=[])
    densities, slopes = bend.counts()
    k = reading.whole.columns.shape[-1]
    signs = torch.ones_like(densities)
    signs[..., :k] = -1  # accepted examples leave as the threshold rises, rejected ones come
    root = (signs * gap_by_count * densities).sum(-1, keepdim=True)
    by_density = 2 * root * signs * gap_by_count
    flat = slope == 0
    pace = -(by_density * slopes).sum(-1) / torch.where(flat, 1.0, slope)
    by_count = torch.where(flat, 0.0, pace)[..., None] * gap_by_count
    return bend.pull(by_density) + reading.pull(by_count)


def tables_of(counts: Tensor, totals: Tensor, slices: tuple[Where, ...]) -> Tables:
    """The counts of :meth:`Reading.counts` by slice, as tensors."""
    return _Columns(counts, totals, slices, torch).tables()


def gradient_of(
    expression: Expression, counts: Tensor, totals: Tensor, slices: tuple[Where, ...]
) -> Tensor:
    """How an expression changes with each of these counts, ``[c, m, k]``."""
    columns = _Columns(counts, totals, slices, torch)
    changed: Tensor = columns.gradient(expression, columns.tables())
    return changed


class _Columns:
    """The columns of :meth:`Reading.counts` as tables of counts and back, in numpy or torch."""

    def __init__(
        self, counts: Array, totals: Array, slices: tuple[Where, ...], xp: Any = None
    ) -> None:
        self.xp: Any = xp or library_of(counts)
        self.counts, self.totals = self.array(counts), self.array(totals)[:, None]
        self.slices = slices

    def array(self, values: Array) -> Array:
        """The same numbers for ``xp``."""
        return array_of(values) if self.xp is np else values

    @property
    def folded(self) -> bool:
        """Whether rejected examples have no columns: they are what is not accepted."""
        return bool(self.counts.shape[-1] == 2 * len(self.slices))

    def tables(self) -> Tables:
        """The soft counts of every slice, ``[c, m]`` each."""
        yes, all_ = self.counts, self.totals
        no = all_ - yes if self.folded else yes[..., 2 * len(self.slices) :]
        return {
            where: Counts(*(part[..., i + j] for part in (yes, no, all_) for j in (0, 1)))
            for i, where in zip(range(0, 2 * len(self.slices), 2), self.slices, strict=True)
        }

    def gradient(self, expression: Expression, tables: Tables) -> Array:
        """How an expression changes with each column, ``[c, m, k]``."""
        total = self.xp.zeros_like(self.counts)
        for (where, i), slope in expression.gradient(tables).items():
            column = 2 * self.slices.index(where) + i % 2
            if i < 2:
                total[..., column] += slope
            elif self.folded:
                total[..., column] -= slope
            else:
                total[..., column + 2 * len(self.slices)] += slope
        return total
