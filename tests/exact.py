"""The value of expressions in exact arithmetic, written for the tests and without the library's.

Coefficients and levels are read as the decimals a person wrote: 0.29 is 29/100.
"""

from __future__ import annotations

import math
from fractions import Fraction

from setpoint.rates import Combination, Fold, Quotient, Rate

NAN, INF = math.nan, math.inf


def decimal(x) -> Fraction:
    """The number that was written, not the float nearest to it."""
    return Fraction(repr(float(x)))


def value(expression, tables):
    """The value on ``tables``: for each slice (tp, fp, fn, tn); NaN for 0/0, else a fraction."""
    match expression:
        case Rate(numerator, denominator, where):
            table = (*tables[where], 1)
            return ratio(weigh(numerator, table), weigh(denominator, table))
        case Combination(terms, constant):
            total = decimal(constant)
            for weight, term in terms:
                total += decimal(weight) * value(term, tables)
            return total
        case Quotient(top, bottom):
            return ratio(value(top, tables), value(bottom, tables))
        case Fold(kind, parts):
            values = [value(part, tables) for part in parts]
            if any(v != v for v in values):
                return NAN
            return {"abs": lambda v: abs(v[0]), "max": max, "min": min}[kind](values)
    raise AssertionError(expression)


def weigh(count, table):
    return sum(decimal(w) * Fraction(x) for w, x in zip(count.weights, table, strict=True))


def ratio(top, bottom):
    if bottom != 0 or bottom != bottom:
        return top / bottom
    return NAN if top == 0 or top != top else INF if top > 0 else -INF
