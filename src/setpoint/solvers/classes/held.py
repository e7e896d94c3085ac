"""The objective at held shifts, and its gradient through all of them.

Every class holds something: a target of its own, if one stops its shift, or else its share of the
predictions among the classes that have none. With the shifts adding up to zero these are K - 1
equations for K - 1 unknowns; their Jacobian says how the shifts follow the scores, and one linear
system for the multipliers puts it into the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import quiet
from setpoint.axes.class_search import Found
from setpoint.problems import Problem
from setpoint.rates import MATRIX, Gradient
from setpoint.solvers.classes.soft import Soft, joined

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeldClasses:
    """What holding gives: a number to minimize, its gradient ``[n, K]``, and what it took."""

    value: float
    gradient: Floats
    soft: float
    multipliers: Floats
    flat: bool

    @property
    def sound(self) -> bool:
        """Whether all is finite."""
        return bool(np.isfinite(self.value) and np.isfinite(self.gradient).all())


@dataclass(frozen=True)
class _Anchors:
    """What is held: ``own`` gradients by class, and the shares of the ``free`` classes."""

    own: dict[int, Gradient]
    free: NDArray[np.int64]

    def jacobian(self, soft: Soft) -> Floats:
        """One row for each thing held, one column for each shift."""
        rows = [-soft.pull(gradient).sum(0) for gradient in self.own.values()]
        kept = self._kept(soft)
        if len(kept):
            slopes, coverages = soft.coverage_slopes(), soft.coverages()
            whole = coverages[self.free].sum()
            together = slopes[self.free].sum(0)
            rows += [(slopes[i] - coverages[i] / whole * together) / whole for i in kept]
        return np.array(rows)

    def total(self, soft: Soft, multipliers: Floats) -> Gradient:
        """The sum of what is held, each with its multiplier, by count."""
        count = len(self.own)
        own = zip(multipliers[:count], self.own.values(), strict=True)
        kept, coverages = self._kept(soft), soft.coverages()
        by_class = np.zeros(len(coverages))
        if len(kept):
            whole, rest = coverages[self.free].sum(), multipliers[count:]
            by_class[kept] = rest / whole
            by_class[self.free] -= rest @ coverages[kept] / whole**2
        weight = soft.data.inside[()].sum()
        entries = np.tile(by_class / weight, (len(by_class), 1))
        return joined(*own, (1.0, {((), MATRIX): entries}))

    def _kept(self, soft: Soft) -> NDArray[np.int64]:
        """All free classes but the most frequent: their shares add up to one."""
        if len(self.free) < 2:
            return self.free[:0]
        return np.delete(self.free, int(np.argmax(soft.coverages()[self.free])))


def hold_shifts(problem: Problem, soft: Soft, found: Found) -> HeldClasses:
    """The objective at the shifts of ``soft``, to be minimized, and its gradient."""
    sign = -1.0 if problem.maximize else 1.0
    with quiet(np):
        tables = soft.tables()
        value = float(problem.objective.of(tables))
        by_count = joined((sign, problem.objective.gradient(tables)))
        own = {i: rate.gradient(tables) for i, rate in found.anchors.items()}
        own = {i: gradient for i, gradient in own.items() if _is_finite(gradient)}
        columns = soft.p.shape[1]
        anchors = _Anchors(own, np.array([i for i in range(columns) if i not in own], int))
        multipliers, flat = _multipliers(soft, anchors, by_count)
        total = joined((1.0, by_count), (1.0, anchors.total(soft, multipliers)))
        gradient = soft.pull(total)
    return HeldClasses(sign * value, gradient, value, multipliers, flat)


def _multipliers(soft: Soft, anchors: _Anchors, by_count: Gradient) -> tuple[Floats, bool]:
    """What makes the objective stand still as the shifts move, and whether it cannot be told."""
    jacobian = anchors.jacobian(soft)
    pull = -soft.pull(by_count).sum(0)
    if not len(jacobian) or not (np.isfinite(jacobian).all() and np.isfinite(pull).all()):
        return np.zeros(len(jacobian)), not np.isfinite(pull).all()
    ground = int(np.argmax(soft.coverages()))  # shifts are known up to a common constant
    matrix, right = np.delete(jacobian, ground, axis=1).T, -np.delete(pull, ground)
    scale = np.abs(matrix).max(0)
    if (scale == 0).any():
        return np.linalg.lstsq(matrix, right, rcond=None)[0], True
    try:
        if matrix.shape[0] == matrix.shape[1]:
            return np.linalg.solve(matrix / scale, right) / scale, False
    except np.linalg.LinAlgError:
        pass
    return np.linalg.lstsq(matrix / scale, right, rcond=None)[0] / scale, True


def _is_finite(gradient: Gradient) -> bool:
    return all(np.isfinite(slope).all() for slope in gradient.values())
