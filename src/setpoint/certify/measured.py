"""Intervals of rates at a threshold that was fixed before these data: of shares, F scores, gaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

import numpy as np

from setpoint.certify.parts import EVERYONE, NEGATIVES, POSITIVES, Part, cells, signs
from setpoint.certify.places import Evidence
from setpoint.certify.ranges import largest
from setpoint.certify.tails import lower, upper
from setpoint.rates import Counts, Expression, Rate, Where

NAMES = ("tp", "fp", "fn", "tn")


def interval_at(
    expression: Expression, tables: Mapping[Where, Counts], tail: float
) -> tuple[float, float] | None:
    """Bounds from below and above, each wrong with probability at most ``tail``; None for 0/0.

    A rate with two kinds of cells is a function of one share (F1 of TP against FP and FN), and its
    interval is that of Clopper and Pearson; anything else is bounded through its parts.

    >>> from setpoint.rates import f_score
    >>> low, high = interval_at(f_score(1), {(): Counts(80, 20, 10, 890, 90, 910)}, 0.05)
    >>> round(low, 3), round(high, 3)
    (0.787, 0.887)
    """
    if any(rate.numerator.one or rate.denominator.one for rate in expression.rates()):
        return None  # it counts heads, which has no share to be sure of
    if isinstance(expression, Rate):
        found = _of_one_share(expression, tables[expression.where], tail)
        if found is not None:
            return found
    parts = list(signs(expression, None))
    known = {part: _seen(part, tables[part.where]) for part in parts}
    if not all(seen.n for seen in known.values()):
        return None
    apart = not any(a.overlaps(b) for i, a in enumerate(parts) for b in parts[:i])
    high = largest(expression, known, tail, None, apart)
    low = 0.0 - largest(-expression, known, tail, None, apart)  # never -0.0
    return (low, high) if np.isfinite([low, high]).all() else None


def _of_one_share(rate: Rate, table: Counts, tail: float) -> tuple[float, float] | None:
    """The interval of a rate whose cells are of two kinds; None if there are more."""
    kinds: dict[tuple[float, float], int] = {}
    for name, above, below in zip(NAMES, *cells(rate), strict=True):
        if above or below:
            kinds[(above, below)] = kinds.get((above, below), 0) + int(getattr(table, name))
    if len(kinds) != 2:
        return None
    ((a, b), yes), ((c, d), no) = kinds.items()
    if yes + no == 0:
        return None
    low, high = (float(end(yes, yes + no, tail)) for end in (lower, upper))
    under = b * low + d * (1 - low), b * high + d * (1 - high)
    if not all(under):
        return None
    ends = (a * low + c * (1 - low)) / under[0], (a * high + c * (1 - high)) / under[1]
    return min(ends), max(ends)


def _seen(part: Part, table: Counts) -> Evidence:
    tp, fp, positives, negatives = (
        int(n) for n in (table.tp, table.fp, table.positives, table.negatives)
    )
    count, n = {
        POSITIVES: (tp, positives),
        NEGATIVES: (fp, negatives),
        EVERYONE: (tp + fp, positives + negatives),
    }.get(part.kind, (positives, positives + negatives))
    return Evidence(count, count, n, 1)


def is_plain_share(expression: Expression) -> TypeGuard[Rate]:
    """Whether it counts some examples out of some examples, each once: then it is binomial."""
    if not isinstance(expression, Rate) or not expression.is_share or expression.denominator.one:
        return False
    return {*expression.numerator.weights, *expression.denominator.weights} <= {0.0, 1.0}
