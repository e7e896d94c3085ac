"""Hypothesis strategies for everything the language can say, built by public constructors only.

``expressions()``, ``targets()`` and ``problems()`` give anything: odd coefficients, hostile names,
nested folds. With ``tame=True`` coefficients are short decimals and slices are those of two groups,
so that values can be compared on data.

The makers below are plain functions of a random generator. In the ordinary run hypothesis hands
them a seeded one, which is 50 times faster than its own; with SETPOINT_EXAMPLES=20 there are 20
times as many examples, new ones each time, and hypothesis chooses and shrinks every number.
"""

from __future__ import annotations

import os
import struct
from functools import partial
from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.rates import (
    CATALOGUE,
    ONE,
    Bound,
    Combination,
    Counts,
    Fold,
    Quotient,
    Range,
    Setpoint,
    lift,
)

FACTOR = int(os.environ.get("SETPOINT_EXAMPLES", "1"))


def examples(count: int) -> settings:
    """Run so many examples, the same ones every time (but see SETPOINT_EXAMPLES above)."""
    return settings(
        max_examples=count * FACTOR,
        derandomize=FACTOR == 1,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def made(make, **options):
    """The strategy of a maker."""
    return st.randoms(use_true_random=FACTOR == 1).map(partial(make, **options))


# ---- numbers and names ---------------------------------------------------------------------------
ODD = [
    1e-300,
    1e300,
    5e-324,
    -1e-300,
    1e16,
    2**53 + 2.0,
    1 / 3,
    0.1,
    0.29,
    1e-05,
    123456.789,
    1e308,
]
TAME = [-2, -1, -0.5, 0.25, 0.5, 0.7, 1, 1.5, 2, 3]
ODD_SHARES = [0, 1, 0.01, 0.29, 0.95, 1e-300, 5e-324, 1 / 3, 1 - 2**-53]
TAME_SHARES = [0, 0.01, 0.1, 0.25, 0.29, 1 / 3, 0.5, 0.7, 0.9, 1]
COLUMNS = [
    *("group", "site", "a b", 'a"b', "", "self", "on", "and", "TP", "fpr", "1st", "été", "группа"),
    *("x\ny", "back\\slash", "日本", "a=b & c", "\u202ecba", "\x00", "a\u2028b", "&", "]", "where"),
]
VALUES = [
    *("a", "b", 'say "hi"', "", "\\", "日本", "subject to fpr <= 1", "\n", "True", "\u200b", "😀"),
    *(0, 1, -7, 10**30, True, False, 0.5, -2.25, 1e-300, 1e22, 3.0),
]
LETTERS = "ab1 \"'\\\n\t&=/(%é日😀\u2028\u0301"


def number(r: Random, tame: bool = False) -> float:
    if tame:
        return r.choice(TAME)
    kind = r.randrange(4)
    if kind == 0:
        return r.choice(ODD)
    if kind == 1:
        return r.randrange(-1000, 1000)
    if kind == 2:
        return round(r.uniform(-10, 10), r.randrange(4))
    (any_bits,) = struct.unpack("d", r.getrandbits(64).to_bytes(8, "little"))
    return any_bits if abs(any_bits) < float("inf") else -1.5


def share(r: Random, tame: bool = False) -> float:
    if tame or r.random() < 0.5:
        return r.choice(TAME_SHARES if tame else ODD_SHARES)
    return r.random()


def text(r: Random) -> str:
    return "".join(r.choice(LETTERS) for _ in range(r.randrange(5)))


def where(r: Random, tame: bool = False) -> dict:
    if tame:
        return {"group": r.choice("ab")}
    columns = [r.choice(COLUMNS) if r.random() < 0.7 else text(r) for _ in range(r.randrange(1, 3))]
    return {
        column: (r.choice(VALUES), text(r), number(r))[min(r.randrange(4), 2)] for column in columns
    }


# ---- rates and what arithmetic makes of them -----------------------------------------------------
KNOWN = [e for e in CATALOGUE.values() if isinstance(e, sp.Rate)]
BINARY = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a / b,
    lambda a, b: abs(a - b),
    sp.maximum,
    sp.minimum,
    lambda a, b: Fold("max", (a, b, a)),
    Quotient,
    lambda a, b: Combination(((0.3, a), (-1, b)), 0.5),
]
WITH_NUMBER = [
    lambda a, x: x * a,
    lambda a, x: a / x,
    lambda a, x: a + x,
    lambda a, x: x - a,
    lambda a, x: x / a,
    lambda a, x: sp.minimum(x, a, 0.25),
]


def count(r: Random, tame: bool = False):
    """A weighted sum of counts; the weights of tame ones are not negative."""
    units = r.sample([sp.TP, sp.FP, sp.FN, sp.TN, ONE], r.randrange(1, 5))
    weight = lambda: r.choice([1, 1, 2]) if tame else r.choice([1, -1, number(r)])  # noqa: E731
    return sum((weight() * unit for unit in units[1:]), units[0])


def rate(r: Random, tame: bool = False, sliced: bool = True):
    """A rate of the catalogue, an F score or a rate of one's own, perhaps on a slice."""
    found, kind = r.choice(KNOWN), r.randrange(4)
    if kind == 0:
        found = sp.f_score(r.choice([0.5, 1, 2]) if tame else 10 ** r.uniform(-200, 99))
    elif kind == 1:
        found = attempt(sp.Rate, count(r, tame), count(r, tame), otherwise=sp.precision)
    if not sliced or r.random() < 0.6:
        return found
    pairs = where(r, tame)
    if kind == 1:
        return sp.Rate(found.numerator, found.denominator, tuple(pairs.items()))
    return found.on(**pairs)


def expression(r: Random, tame: bool = False, size: int = 3, sliced: bool = True):
    """Anything made of rates, by operator or by constructor."""
    kind = r.randrange(6) if size else 0
    if kind < 2:
        return rate(r, tame, sliced) if r.random() < 0.9 else r.choice([lift, sp.balanced_error])
    one = expression(r, tame, size - 1, sliced)
    if kind == 2:
        return attempt(r.choice(WITH_NUMBER), one, number(r, tame), otherwise=one)
    if kind == 3:
        return attempt(lambda: one.on(**where(r, tame)), otherwise=one) if sliced else abs(one)
    return attempt(r.choice(BINARY), one, expression(r, tame, size - 1, sliced), otherwise=one)


# ---- targets and problems ------------------------------------------------------------------------
def level(r: Random, held, tame: bool = False) -> float:
    """A level that an expression can be asked for."""
    return share(r, tame) if held.is_share or r.random() < 0.5 else number(r, tame)


def bound(r: Random, tame: bool = False, size: int = 2):
    held, sense = expression(r, tame, size), r.choice(["<=", ">="])
    at = level(r, held, tame)
    if r.random() < 0.5:
        return Bound(held, sense, at)
    return held <= at if sense == "<=" else held >= at


def setpoint(r: Random, tame: bool = False, size: int = 2):
    held = expression(r, tame, size)
    at = level(r, held, tame)
    at = 0.5 if at in (0, 1) else at
    return held.at(at) if r.random() < 0.5 else Setpoint(held, at)


def swept(r: Random, tame: bool = False):
    held = expression(r, tame, 1)
    held = held if held.direction else sp.fpr
    ends = sorted([level(r, held, tame), level(r, held, tame)])
    make = r.choice([held.over, partial(Range, held)])
    return attempt(make, *ends, otherwise=sp.fpr.over(0, 0.05))


def problem(
    r: Random,
    tame: bool = False,
    size: int = 3,
    kinds: tuple[str, ...] = ("free", "bounds", "setpoint", "range", "group"),
) -> sp.Problem:
    """Every kind of problem there is."""
    objective, kind = expression(r, tame, size), r.choice(kinds)
    targets, thresholds = (), r.choice([None, "shared", 1])
    if kind == "range":
        targets, thresholds = swept(r, tame), r.choice([None, *range(1, 13)])
    elif kind == "setpoint":
        targets = setpoint(r, tame)
    elif kind == "bounds":
        targets = [bound(r, tame) for _ in range(r.randrange(1, 4))]
    elif kind == "group":
        targets = [r.choice([bound, setpoint])(r, tame) for _ in range(r.randrange(3))]
        thresholds = "per group"
    if isinstance(targets, list) and len(targets) == 1:
        targets = targets[0]
    word = r.choice(["minimize", "maximize"])
    make = lambda e, t: sp.Problem(**{word: e}, subject_to=t, thresholds=thresholds)  # noqa: E731
    simple = make(sp.fnr, () if kind != "range" else sp.fpr.over(0, 1))
    return attempt(make, objective, targets, otherwise=simple)


def attempt(make, *parts, otherwise):
    """What ``make`` makes; where it refuses (an overflow, a zero), something simpler."""
    try:
        return make(*parts)
    except (ValueError, TypeError, ZeroDivisionError):
        return otherwise


rates = partial(made, rate)
expressions = partial(made, expression)
bounds = partial(made, bound)
setpoints = partial(made, setpoint)
ranges = partial(made, swept)
problems = partial(made, problem)


# ---- data ----------------------------------------------------------------------------------------
GROUPS = ((), (("group", "a"),), (("group", "b"),))


def table(r: Random, whole: bool = True) -> dict:
    """A table of counts for everyone and for each of the two groups."""
    one = (lambda: float(r.randrange(6))) if whole else (lambda: r.randrange(32, 1300) / 64)
    found = {}
    for group in GROUPS:
        tp, fp, fn, tn = (one() for _ in range(4))
        found[group] = Counts(tp, fp, fn, tn, tp + fn, fp + tn)
    return found


tables = partial(made, table)
