"""What thresholds have to hold, in the form in which scores are scanned for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from setpoint.problems.problem import Problem
from setpoint.rates import Array, Bound, Combination, Expression, Quotient, Rate, Setpoint

TOLERANCE = 1e-9
"""Rates closer than this are the same count: 0.29 of 100 is 29, whatever floats make of it."""


@dataclass(frozen=True)
class Hold:
    """One target for each threshold: ``expression sense level``."""

    expression: Expression
    sense: str
    caps: bool | None
    levels: tuple[float, ...]
    tolerance: float = TOLERANCE
    direction: int = 1
    """What accepting more examples does: 1 raises, -1 lowers; known where it is asked for."""
    sorts: bool = False
    """Whether bisection finds the best cut; see :func:`setpoint.problems.scan.place`."""
    stretches: bool = False
    """Whether the cuts that keep it are a stretch from one end: :mod:`problems.stretch`."""

    def gap(self, value: Array, levels: Array) -> Array:
        """By how much ``value`` misses the target; positive if it does."""
        excess = value - levels
        return abs(excess) if self.sense == "at" else excess if self.sense == "<=" else -excess


def holds(problem: Problem) -> list[Hold]:
    """What the thresholds of ``problem`` have to hold, all thresholds of a range together."""
    held = []
    for i, target in enumerate(problem.points[0]):
        levels = tuple(targets[i].level for targets in problem.points)
        hold, alone = hold_of(target), len(problem.points[0]) == 1
        sorts = hold.sense == "at" and alone and _sorts(problem, target.expression)
        single = alone and len(levels) == 1 and isinstance(target.expression, Rate)
        stretches = single and hold.sense != "at" and hold.caps is not None
        held.append(replace(hold, levels=levels, sorts=sorts, stretches=stretches))
    return held


def hold_of(target: Bound | Setpoint) -> Hold:
    """One target of one threshold."""
    sense = target.sense if isinstance(target, Bound) else "at"
    e = target.expression
    return Hold(e, sense, target.caps, (target.level,), tolerance(e), e.direction or 1)


def tolerance(expression: Expression) -> float:
    """How close two values of an expression are if they come from the same counts."""
    size = TOLERANCE * expression.scale
    return size if 0 < size < float("inf") else TOLERANCE


def _sorts(problem: Problem, held: Expression) -> bool:
    """Whether one of two cuts is the best, so that a setpoint needs no scan of all cuts.

    The held rate must go one way along the sorted scores. Then the cuts at the attainable rate
    nearest to the level follow each other: a single one if every example moves the rate, else a
    stretch along which only the other class comes in, and an objective that moves evenly with it
    is best at one end of the stretch.
    """
    if not isinstance(held, Rate) or not held.direction or held.where:
        return False
    tp, fp, fn, tn = held.numerator.slopes
    by_positives, by_negatives = tp - fn, fp - tn
    return by_positives == by_negatives or (
        0 in (by_positives, by_negatives) and _moves_evenly(problem.objective)
    )


def _moves_evenly(objective: Expression) -> bool:
    """Whether the value keeps rising, keeps falling or stays, as one class comes in."""
    if any(rate.where for rate in objective.rates()):
        return False
    if isinstance(objective, Rate):
        weights = objective.denominator.weights  # without a change of sign: no pole
        return objective.is_steady or min(weights) >= 0 or max(weights) <= 0
    if isinstance(objective, Quotient):
        return objective.bottom.direction == 0 and _moves_evenly(objective.top)
    return isinstance(objective, Combination) and all(
        isinstance(term, Rate) and term.is_steady for term in objective.children
    )
