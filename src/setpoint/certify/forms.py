"""What kind of promise a bound is, which decides how it can be proved.

Written out, ``numerator - level * denominator <= 0`` gives every cell (TP, FP, FN, TN) a weight.
Where only two kinds of cells count, the bound is about one unknown share, and a single binomial
test is exact: TP against FN (recall), FP against TN (fpr), accepted against rejected (coverage), TP
against FP (precision), FN against TN (npv). Everything else is bounded through its parts.
"""

from __future__ import annotations

from dataclasses import dataclass

from setpoint.certify.parts import EVERYONE, NEGATIVES, POSITIVES, Part, cells, signs
from setpoint.rates import Bound, Combination, Fold, Quotient, Rate

ACCEPTED, REJECTED = "accepted", "rejected"


@dataclass(frozen=True)
class Share:
    """A share that must be at most (or at least) ``limit``.

    Of the positives, the negatives or everyone: the share that is accepted. Of the accepted or the
    rejected examples: the share that is positive.
    """

    part: Part
    at_most: bool
    limit: float


@dataclass(frozen=True)
class Atom:
    """One inequality out of a bound, and what kind it is."""

    bound: Bound
    source: Bound
    share: Share | None
    caps: bool | None
    """True if accepting more can only break it, False if only mend it, else None."""


def atoms(bound: Bound, prevalence: float | None) -> list[Atom]:
    """The inequalities that must all hold for ``bound`` to hold."""
    found = []
    for part in _split(bound):
        if not any(p.kind != "prior" for p in signs(part.expression, prevalence)):
            raise ValueError(f"`{bound}` does not depend on the threshold: nothing to certify.")
        share = share_of(part, prevalence)
        caps = part.caps
        if share is not None:
            walks = share.part.kind in (ACCEPTED, REJECTED)
            caps = None if walks else share.at_most
        found.append(Atom(part, bound, share, caps))
    return found


def _split(bound: Bound) -> list[Bound]:
    """Bounds on folds and quotients as bounds on what they are made of, where that is the same."""
    e, sense, level = bound.expression, bound.sense, bound.level
    if isinstance(e, Fold) and e.kind == "abs" and sense == "<=":
        return [Bound(e.parts[0], "<=", level), Bound(e.parts[0], ">=", -level)]
    if isinstance(e, Fold) and (e.kind, sense) in (("max", "<="), ("min", ">=")):
        return [b for part in e.parts for b in _split(Bound(part, sense, level))]
    if isinstance(e, Quotient) and e.bottom.is_share:  # at least 0, and 0/0 is no promise
        return [Bound(e.top - level * e.bottom, sense, 0.0)]
    return [bound]


def share_of(bound: Bound, prevalence: float | None) -> Share | None:
    """The single share that a bound is about, if it is about one."""
    rate, sense, level = _lone_rate(bound)
    if rate is None:
        return None
    turn = 1.0 if sense == "<=" else -1.0
    top, below = cells(rate)
    tp, fp, fn, tn = (turn * (a - level * b) for a, b in zip(top, below, strict=True))
    kinds = [(POSITIVES, tp, fn, not (fp or tn)), (NEGATIVES, fp, tn, not (tp or fn))]
    if prevalence is None:
        kinds += [
            (EVERYONE, tp, fn, tp == fp and fn == tn),
            (ACCEPTED, tp, fp, not (fn or tn)),
            (REJECTED, fn, tn, not (tp or fp)),
        ]
    for kind, yes, no, fits in kinds:
        if fits:
            _check_open(bound, yes, no)
            return Share(Part(rate.where, kind), yes > no, no / (no - yes))
    return None


def _lone_rate(bound: Bound) -> tuple[Rate | None, str, float]:
    """``1 - 2 * fpr >= 0.98`` is ``fpr <= 0.01``."""
    e, sense = bound.expression, bound.sense
    if isinstance(e, Rate):
        return e, sense, bound.level
    terms = e.terms if isinstance(e, Combination) else ()
    if isinstance(e, Combination) and len(terms) == 1 and isinstance(rate := terms[0][1], Rate):
        weight = terms[0][0]
        sense = sense if weight > 0 else "<=" if sense == ">=" else ">="
        return rate, sense, (bound.level - e.constant) / weight
    return None, sense, 0.0


def _check_open(bound: Bound, yes: float, no: float) -> None:
    """The bound must be able to hold, and to fail."""
    if max(yes, no) <= 0:
        raise ValueError(f"`{bound}` holds for every threshold: nothing to certify.")
    if min(yes, no) > 0:
        raise ValueError(f"`{bound}` cannot hold for any threshold: nothing to certify.")
