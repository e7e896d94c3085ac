"""What is proved of shifts that were chosen on other data.

The shifts are fixed, so every share is binomial, and Clopper and Pearson's limit is exact. A
certificate needs every bound proved, so it is wrong with
probability ``1 - confidence`` at most, however many bounds (or classes) there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from setpoint._checks import share as share_between
from setpoint.certify.classes.certificate import NO_CERTIFICATE, ClassCertificate
from setpoint.certify.classes.counted import Counted, counted, is_provable
from setpoint.certify.records import CERTIFIED, INFEASIBLE, NOT_CERTIFIED, Claim
from setpoint.certify.tails import needed
from setpoint.problems import Problem
from setpoint.problems.classes import decide
from setpoint.problems.inputs import to_numpy
from setpoint.rates import Bound

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
    classes: Sequence[Any],
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
        ``certified`` if every bound is proved, ``not certified`` if one is not, ``infeasible`` if
        there are too few examples for any proof of it, ``no certificate`` if there is no bound, or
        one that nobody can prove here.
    """
    tail = 1 - share_between(confidence, "confidence", ends=False)
    found = counted(problem, scores, labels, shifts, classes=classes, groups=groups)
    shares = [one for each in found.values() for one in each]
    decided, truth = decide(to_numpy(scores, "scores"), shifts), to_numpy(labels, "labels")
    unsaid = unprovable(problem)
    failed = [one for one in shares if not one.holds(one.proved(tail))]
    status = NOT_CERTIFIED if failed else CERTIFIED
    status = INFEASIBLE if any(one.provable(tail) is None for one in failed) else status
    return ClassCertificate(
        goal=str(problem),
        status=NO_CERTIFICATE if unsaid else status,
        confidence=float(confidence),
        classes=tuple(map(str, classes)),
        shifts=tuple(np.asarray(shifts, np.float64).tolist()),
        predicted=tuple(np.bincount(decided, minlength=len(classes)).tolist()),
        right=int((decided == truth.reshape(-1)).sum()),
        claims=tuple(
            Claim(str(one), one.measured, one.proved(tail), f"{one.count:,} of {one.total:,}")
            for one in shares
        ),
        notes=tuple(unsaid) or tuple(_why_not(one, tail) for one in failed),
    )


def unprovable(problem: Problem) -> list[str]:
    """Why some of what is asked for cannot be promised, whatever the data; nothing if it can."""
    if not problem.subject_to:
        return ["The goal has no bound, so there is nothing to promise."]
    return [
        f"`{target}` is not promised: {OTHER if isinstance(target, Bound) else EXACT}."
        for target in problem.subject_to
        if not (isinstance(target, Bound) and is_provable(target))
    ]


def _why_not(one: Counted, tail: float) -> str:
    """What is lacking, in numbers."""
    if one.provable(tail) is None:
        most = one.bound.level if one.bound.sense == "<=" else 1 - one.bound.level
        enough = needed(most, tail)
        why = "no number of examples can" if enough is None else f"it takes {enough:,} at least"
        return f"`{one}` cannot be proved by {one.total:,} examples: {why}"
    side = "at most" if one.bound.sense == "<=" else "at least"
    return f"`{one}` is not proved: {side} {one.proved(tail):.4g} is"
