"""What is proved of shifts that were chosen on other data.

The shifts are fixed, so whether an example counts in a rate of a class is one binomial trial, and
Clopper and Pearson's limit is exact. A certificate needs every bound proved, so it is wrong with
probability ``1 - confidence`` at most, however many bounds (or classes) there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from setpoint._checks import share as share_between
from setpoint.certify.classes.certificate import NO_CERTIFICATE, ClassCertificate
from setpoint.certify.records import CERTIFIED, NOT_CERTIFIED, Claim
from setpoint.certify.tails import lower, upper
from setpoint.problems import Problem
from setpoint.problems.classes import decide, read_data
from setpoint.problems.classes.matrix import hard_tables
from setpoint.rates import Across, Bound, Expression, Rate, Tables, Target, numeral
from setpoint.rates.slices import quote

EXACT = "an exact value cannot be promised on new data, a bound (<=, >=) can"
OTHER = (
    "only bounds on a rate of one class (or of a set), on error or accuracy, lowest(...) >= and "
    "highest(...) <= are proved for several classes"
)


def certify_shifts(
    scores: Any,
    labels: Any,
    problem: Problem,
    shifts: Any,
    *,
    classes: Sequence[str],
    confidence: float = 0.95,
    groups: Any = None,
) -> ClassCertificate:
    """Prove the bounds of a problem of classes at given shifts, or say why not.

    Args:
        scores: ``[n, K]``, of examples that neither trained the model nor chose the shifts.
        labels: The column of each example's class.
        problem: What was wanted; its bounds are to be proved.
        shifts: What is subtracted from the scores, ``[K]``.
        classes: What the columns are called.
        confidence: Of the certificate.
        groups: For bounds about slices.

    Returns:
        ``certified`` if every bound is proved, ``not certified`` if one is not, ``no certificate``
        if there is none, or one that nobody can prove here.
    """
    tail = 1 - share_between(confidence, "confidence", ends=False)
    data = read_data(problem, scores, labels, None, groups, classes)
    tables = hard_tables(data, data.scores - np.asarray(shifts, np.float64), frozenset())
    claims: list[Claim] = []
    notes: list[str] = []
    proved = True
    for target in problem.subject_to:
        if not (isinstance(target, Bound) and is_provable(target)):
            notes.append(f"`{target}` is not promised: {OTHER if _is_bound(target) else EXACT}.")
            continue
        for claim, holds in _claims(target, tables, data.names, tail):
            claims.append(claim)
            proved &= holds
    if not problem.subject_to:
        notes.append("The goal has no bound, so there is nothing to promise.")
    return ClassCertificate(
        goal=str(problem),
        status=NO_CERTIFICATE if notes else CERTIFIED if proved else NOT_CERTIFIED,
        confidence=float(confidence),
        classes=tuple(map(str, data.names)),
        shifts=tuple(np.asarray(shifts, np.float64).tolist()),
        examples=len(data.scores),
        right=int((decide(data.scores, shifts) == data.labels).sum()),
        claims=tuple(claims),
        notes=tuple(notes),
    )


def is_provable(bound: Bound) -> bool:
    """Whether a bound is one on a share of examples, or on that of every class."""
    expression = bound.expression
    if isinstance(expression, Across):
        worst = {"lowest": ">=", "highest": "<="}.get(expression.kind)
        return bound.sense == worst and _is_plain(expression.inner)
    return _is_plain(expression)


def _is_plain(expression: Expression) -> bool:
    """Whether it counts some examples out of some examples, each once: then it is binomial."""
    if not isinstance(expression, Rate) or not expression.is_share or expression.denominator.one:
        return False
    return {*expression.numerator.weights, *expression.denominator.weights} <= {0.0, 1.0}


def _is_bound(target: Target) -> bool:
    return isinstance(target, Bound)


def _claims(
    bound: Bound, tables: Tables, names: tuple[Any, ...], tail: float
) -> Iterator[tuple[Claim, bool]]:
    """What is proved of each share that a bound is about, and whether that is enough."""
    expression = bound.expression
    for rate in expression.rates():
        table = tables[rate.where]
        if isinstance(expression, Across):
            table, whose = table.classes.each(), [f" of {quote(str(name))}" for name in names]
        else:
            table = table.classes.against_rest(rate.classes) if rate.classes else table
            whose = [""]
        counts, sizes = (np.atleast_1d(x.of(table)) for x in (rate.numerator, rate.denominator))
        for text, count, n in zip(whose, counts, sizes, strict=True):
            yield _claim(Bound(rate, bound.sense, bound.level), text, int(count), int(n), tail)


def _claim(bound: Bound, whose: str, count: int, n: int, tail: float) -> tuple[Claim, bool]:
    side = upper if bound.sense == "<=" else lower
    proved = float(side(count, n, tail))
    holds = proved <= bound.level if bound.sense == "<=" else proved >= bound.level
    text = f"{bound.expression}{whose} {bound.sense} {numeral(bound.level)}"
    return Claim(text, count / n if n else None, proved, f"{count:,} of {n:,}"), holds and n > 0
