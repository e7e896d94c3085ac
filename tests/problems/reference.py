"""The best threshold by trying them all: the contracts of the design, word for word and slowly.

Decisions are ``score > t``; equal scores are never split; counts compare as integers (exact
arithmetic on the decimals that were written); 0/0 is the worst value of an objective and never
satisfies a bound; a setpoint is the attainable rate nearest to its level, the one that accepts
fewer on a tie; then the best objective; then the lowest score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import exact

from setpoint.rates import Bound

TINY = Fraction(1, 10**9)
"""Values closer than this, in units of their coefficients, are the same: so the library says."""


@dataclass(frozen=True)
class Best:
    """Who is accepted, what the objective is there, and whether the bounds hold."""

    accepted: frozenset[int]
    objective: float
    feasible: bool


def cuts(scores, weights):
    """Every set of examples that some threshold accepts, from none to all; weight 0 is absent."""
    present = [i for i, w in enumerate(weights) if w > 0]
    levels = sorted({scores[i] for i in present}, reverse=True)
    found = [frozenset()]
    found += [frozenset(i for i in present if scores[i] >= level) for level in levels]
    return found


def tables(accepted, labels, weights, groups, slices):
    """Exact counts (tp, fp, fn, tn) in every slice."""
    found = {}
    for where in slices:
        inside = [all(groups[column][i] == v for column, v in where) for i in range(len(labels))]
        counts = [Fraction(0)] * 4
        for i, y in enumerate(labels):
            if inside[i]:
                counts[(0 if i in accepted else 2) + (0 if y else 1)] += Fraction(weights[i])
        found[where] = tuple(counts)
    return found


def gap(target, value):
    """By how much a target is missed; 0/0 misses it by more than anything."""
    if value != value:
        return math.inf
    excess = value - exact.decimal(target.level)
    if not isinstance(target, Bound):
        excess = abs(excess)
    elif target.sense == ">=":
        excess = -excess
    return excess if excess > tiny(target.expression) else 0


def tiny(expression):
    return TINY * Fraction(expression.scale)


def best(problem, targets, scores, labels, weights, groups):
    """The best of all cuts for one threshold."""
    ways = []
    for accepted in cuts(scores, weights):
        counts = tables(accepted, labels, weights, groups, problem.slices)
        cost = exact.value(problem.objective, counts)
        values = [exact.value(target.expression, counts) for target in targets]
        missed = sum(gap(t, v) for t, v in zip(targets, values, strict=True))
        ways.append((accepted, cost, values, missed))
    least = min(missed for *_, missed in ways)
    nearest = [
        way for way in ways if way[3] <= least + min([tiny(t.expression) for t in targets] or [0])
    ]
    for i, target in enumerate(targets):
        if not isinstance(target, Bound):
            level = nearest[0][2][i]  # of those equally near, the rate that accepts fewer
            same = [w for w in nearest if abs(w[2][i] - level) <= tiny(target.expression)]
            nearest = same or nearest[:1]  # 0/0 everywhere
    worst = math.inf
    sign = -1 if problem.maximize else 1
    costs = [worst if w[1] != w[1] else sign * w[1] for w in nearest]
    lowest = min(costs)
    good = [w for w, c in zip(nearest, costs, strict=True) if c <= lowest + tiny(problem.objective)]
    accepted, objective, values, missed = good[-1]
    bounded = [
        gap(t, v) if isinstance(t, Bound) or v != v else 0
        for t, v in zip(targets, values, strict=True)
    ]
    return Best(accepted, float(objective), not any(bounded))
