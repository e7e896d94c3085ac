"""Parts of the data: whose share of accepted examples is unknown, and how rates are made of them.

At a threshold a slice of the data has three unknown shares: of its positives that are accepted, of
its negatives that are accepted, and of positives among everyone (the prior). Every rate is a
quotient of sums of these, so that it moves one way with each of them (though not always known
which), and a sum of rates is bounded once the shares are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from setpoint.rates import Combination, Expression, Rate, Where

POSITIVES, NEGATIVES, EVERYONE, PRIOR = "positives", "negatives", "everyone", "prior"
Cells = tuple[float, float, float, float]


class Part(NamedTuple):
    """The positives, the negatives, everyone, or the share of positives, in a slice."""

    where: Where
    kind: str

    def overlaps(self, other: Part) -> bool:
        """Whether what is known of one may depend on the other.

        Given the labels, the scores of a class say nothing about the share of positives.
        """
        kinds = {self.kind, other.kind}
        if kinds == {POSITIVES, NEGATIVES} or (PRIOR in kinds and kinds & {POSITIVES, NEGATIVES}):
            return False
        mine, theirs = dict(self.where), dict(other.where)
        return all(theirs.get(column, value) == value for column, value in mine.items())


def signs(expression: Expression, prevalence: float | None) -> dict[Part, int | None]:
    """The parts an expression depends on: 1 if it rises with the share, -1 falls, None: either."""
    found: dict[Part, int | None] = {}
    for weight, term in _terms(expression):
        for rate in term.rates():
            for part, slope in rate_signs(rate, prevalence).items():
                sign = None if slope is None or term is not rate else slope * weight
                if sign == 0:
                    continue
                found[part] = sign if found.get(part, sign) == sign else None
    return found


def rate_signs(rate: Rate, prevalence: float | None) -> dict[Part, int | None]:
    """The same for one rate; 0 where a share does not matter."""
    top, below = cells(rate)
    if prevalence is None and all(c[0] == c[1] and c[2] == c[3] for c in (top, below)):
        # acceptance is all that counts
        return {Part(rate.where, EVERYONE): _sign([top[0] * below[2] - top[2] * below[0]])}
    tp, fp, fn, tn = range(4)
    by_positives = _sign(_minors(top, below, tp, fn, (fp, tn)))
    by_negatives = _sign(_minors(top, below, fp, tn, (tp, fn)))
    found = {
        Part(rate.where, POSITIVES): by_positives,
        Part(rate.where, NEGATIVES): by_negatives,
    }
    if prevalence is None:
        pairs = [(i, j) for i in (tp, fn) for j in (fp, tn)]
        found[Part(rate.where, PRIOR)] = _sign(
            top[i] * below[j] - top[j] * below[i] for i, j in pairs
        )
    return {part: sign for part, sign in found.items() if sign != 0}


def cells(rate: Rate) -> tuple[Cells, Cells]:
    """The weights of TP, FP, FN and TN above and below the line."""
    top, below = rate.numerator.weights[:4], rate.denominator.weights[:4]
    return top, below


def _minors(top: Cells, below: Cells, yes: int, no: int, others: tuple[int, int]) -> list[float]:
    """Whose common sign is that of the derivative by the accepted share of a class.

    With numerator ``a0 + a x`` and denominator ``b0 + b x`` it is the sign of ``a b0 - a0 b``, and
    ``a0``, ``b0`` are averages of the weights listed here.
    """
    a, b = top[yes] - top[no], below[yes] - below[no]
    return [a * below[i] - top[i] * b for i in (no, *others)]


def _sign(values: Iterable[float]) -> int | None:
    """The sign that all values have, zeros aside; None if they differ."""
    found = {(v > 0) - (v < 0) for v in values} - {0}
    return None if len(found) > 1 else found.pop() if found else 0


def _terms(expression: Expression) -> list[tuple[int, Expression]]:
    if not isinstance(expression, Combination):
        return [(1, expression)]
    return [(1 if weight > 0 else -1, term) for weight, term in expression.terms]
