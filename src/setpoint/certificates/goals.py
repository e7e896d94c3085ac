"""What is to be promised: bounds, a problem, or a sentence for either."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from setpoint.certificates.records import CannotPromise
from setpoint.certificates.sample import EVERYONE, NEGATIVES, POSITIVES, Part, cells, signs
from setpoint.problems import PER_GROUP, Problem, refuse_classes, refuse_queries
from setpoint.rates import (
    Bound,
    Combination,
    Counts,
    Expression,
    Fold,
    Quotient,
    Range,
    Rate,
    Setpoint,
    Where,
)

_LEAD = "maximize recall subject to "


@dataclass(frozen=True)
class Goal:
    """Bounds to be proved, and an objective that decides between thresholds that satisfy them."""

    bounds: tuple[Bound, ...]
    objective: Expression | None
    maximize: bool
    per_group: bool | None
    """Whether every group has its own threshold; None: if groups are given and not asked about."""
    text: str

    @property
    def rates(self) -> tuple[Rate, ...]:
        """Every rate in it."""
        expressions = [bound.expression for bound in self.bounds]
        expressions += [] if self.objective is None else [self.objective]
        return tuple(rate for e in expressions for rate in e.rates())

    @property
    def wheres(self) -> tuple[Where, ...]:
        """Every slice it asks about, without everyone."""
        return tuple(dict.fromkeys(rate.where for rate in self.rates if rate.where))


def read_goal(goal: Any) -> Goal:
    """A goal from a bound, several bounds, a problem or a sentence."""
    if isinstance(goal, str):
        goal = _sentence(goal)
    if isinstance(goal, Problem):
        refuse_queries(goal.query, "A certificate")
        per_group = goal.thresholds == PER_GROUP
        targets = tuple(goal.subject_to)
        found = Goal(_bounds(targets), goal.objective, goal.maximize, per_group, str(goal))
    else:
        several = isinstance(goal, Iterable) and not isinstance(goal, (Expression, Bound))
        bounds = _bounds(tuple(goal) if several else (goal,))
        found = Goal(bounds, None, True, None, " and ".join(map(str, bounds)))
    for part in (found.objective, *(bound.expression for bound in found.bounds)):
        refuse_classes(part, "A certificate")
    if not found.bounds:
        raise CannotPromise(
            f"`{found.text}` makes no promise that could be certified. Bound a rate, as in "
            "f_score(1) >= 0.8, or subject the objective to a bound."
        )
    for rate in found.rates:
        if rate.numerator.one or rate.denominator.one:
            raise CannotPromise(
                f"`{rate}` counts heads; a promise on new data is about shares. "
                "For k alerts among n examples write coverage <= k / n."
            )
    return found


def _bounds(targets: tuple[Any, ...]) -> tuple[Bound, ...]:
    for target in targets:
        if isinstance(target, (Setpoint, Range)):
            raise CannotPromise(
                f"certify proves bounds; got `{target}`: an exact value cannot be promised on new "
                "data, a bound (<=, >=) can."
            )
        if not isinstance(target, Bound):
            raise TypeError(
                f"certify proves bounds, a problem's or its own; got `{target}`: bounds look like "
                "fpr <= 0.01."
            )
    return targets


def _sentence(sentence: str) -> Problem | tuple[Any, ...]:
    words = sentence.split(None, 1)
    if words and words[0] in ("minimize", "maximize"):
        return Problem.parse(sentence)
    try:
        return Problem.parse(_LEAD + sentence).subject_to
    except ValueError as refused:
        # what was put in front of the sentence is taken out of the message again
        why, *lines = str(refused).split("\n")
        lines = [
            line.replace(_LEAD, "", 1) if i == 0 else _shift(line) for i, line in enumerate(lines)
        ]
        raise ValueError("\n".join([why, *lines])) from None


def _shift(carets: str) -> str:
    return carets.replace(" " * len(_LEAD), "", 1)


# What kind of promise a bound is, which decides how it can be proved.
#
# A rate counts each cell (TP, FP, FN, TN) above and below the line. If there are only two kinds of
# cells in it, ``yes`` and ``no``, the rate is a function of one unknown share, and at a threshold
# fixed in advance a single binomial test is exact: TP against FN (recall), FP against TN (fpr),
# accepted against rejected (coverage), TP against FP (precision), FN against TN (npv), TP against
# FP and FN (F1), right against wrong (error). Everything else is bounded through its parts.


ACCEPTED, REJECTED, MIXED = "accepted", "rejected", "mixed"
CELLS = ("tp", "fp", "fn", "tn")
Kind = tuple[float, float]
"""What a cell counts above and below the line."""
_PARTS = {
    (("tp",), ("fn",)): POSITIVES,
    (("fp",), ("tn",)): NEGATIVES,
    (("tp", "fp"), ("fn", "tn")): EVERYONE,
    (("tp",), ("fp",)): ACCEPTED,
    (("fn",), ("tn",)): REJECTED,
}


@dataclass(frozen=True)
class Share:
    """The share of ``yes`` among ``yes`` and ``no``, which must be at most (least) ``limit``."""

    part: Part
    yes: tuple[str, ...]
    no: tuple[str, ...]
    at_most: bool
    limit: float
    kinds: tuple[Kind, Kind]
    scale: tuple[float, float]

    def counts(self, table: Counts) -> tuple[int, int]:
        """How many are ``yes``, of how many."""
        yes, no = (sum(int(getattr(table, cell)) for cell in side) for side in (self.yes, self.no))
        return yes, yes + no

    def value(self, share: float) -> float:
        """The value of the bound's expression at a share."""
        (a, b), (c, d) = self.kinds
        weight, constant = self.scale
        below = b * share + d * (1 - share)
        return weight * (a * share + c * (1 - share)) / below + constant if below else float("nan")


@dataclass(frozen=True)
class Atom:
    """One inequality out of a bound, and what kind it is."""

    bound: Bound
    source: Bound
    share: Share | None
    caps: bool | None
    """True if accepting more can only break it, False if only mend it, else None."""

    @property
    def kind(self) -> str | None:
        """What the share is a share of, if there is one."""
        return None if self.share is None else self.share.part.kind


def atoms(bound: Bound, prevalence: float | None) -> list[Atom]:
    """The inequalities that must all hold for ``bound`` to hold."""
    found = []
    for part in _split(bound):
        if not any(p.kind != "prior" for p in signs(part.expression, prevalence)):
            raise CannotPromise(f"`{bound}` does not depend on the threshold: nothing to certify.")
        share = share_of(part, prevalence)
        found.append(Atom(part, bound, share, part.caps))
    return found


def _split(bound: Bound) -> list[Bound]:
    """Bounds on folds and quotients as bounds on what they are made of, where that is the same."""
    e, sense, level = bound.expression, bound.sense, bound.level
    if isinstance(e, Fold) and e.kind == "abs" and sense == "<=":
        return [Bound(e.parts[0], "<=", level), Bound(e.parts[0], ">=", -level)]
    if isinstance(e, Fold) and (e.kind, sense) in (("max", "<="), ("min", ">=")):
        return [b for part in e.parts for b in _split(Bound(part, sense, level))]
    if isinstance(e, Quotient) and e.bottom.is_share:  # at least 0, and 0/0 is no promise
        return _split(Bound(e.top - level * e.bottom, sense, 0.0))
    if isinstance(e, Combination):
        for weight, term in e.terms:
            worst = "max" if (weight > 0) == (sense == "<=") else "min"
            if isinstance(term, Fold) and term.kind == worst:
                every = [e - weight * term + weight * part for part in term.parts]
                parts = [b for part in every for b in _split(Bound(part, sense, level))]
                return [b for b in parts if not _is_idle(b)]
    return [bound]


def _is_idle(bound: Bound) -> bool:
    """Whether a bound compares a group with itself: ``0.2 coverage >= 0``, or no rate at all."""
    rate, weight, constant = _lone_rate(bound)
    if rate is None:
        return not any(True for _ in bound.expression.rates())
    rises = (weight > 0) == (bound.sense == ">=")
    return rate.is_share and rises and constant == 0 == bound.level


def share_of(bound: Bound, prevalence: float | None) -> Share | None:
    """The single share that a bound is about, if it is about one."""
    rate, weight, constant = _lone_rate(bound)
    if rate is None:
        return None
    members: dict[Kind, list[str]] = {}
    for cell, above, below in zip(CELLS, *cells(rate), strict=True):
        if above or below:
            members.setdefault((above, below), []).append(cell)
    if len(members) != 2:
        return None
    (first, yes), (second, no) = ((kind, tuple(own)) for kind, own in members.items())
    kind = _PARTS.get((yes, no), MIXED)
    if prevalence is not None and kind not in (POSITIVES, NEGATIVES):
        return None  # the classes come in other numbers than here
    level = (bound.level - constant) / weight
    turn = 1.0 if (bound.sense == "<=") == (weight > 0) else -1.0
    a, b = (turn * (above - level * below) for above, below in (first, second))
    _check_open(bound, a, b)
    part = Part(rate.where, kind)
    return Share(part, yes, no, a > b, b / (b - a), (first, second), (weight, constant))


def _lone_rate(bound: Bound) -> tuple[Rate | None, float, float]:
    """``1 - 2 * fpr`` is about fpr, with the weight -2 and the constant 1."""
    e = bound.expression
    if isinstance(e, Rate):
        return e, 1.0, 0.0
    terms = e.terms if isinstance(e, Combination) else ()
    if isinstance(e, Combination) and len(terms) == 1 and isinstance(rate := terms[0][1], Rate):
        return rate, terms[0][0], e.constant
    return None, 1.0, 0.0


def _check_open(bound: Bound, yes: float, no: float) -> None:
    """The bound must be able to hold, and to fail."""
    if max(yes, no) <= 0:
        raise CannotPromise(f"`{bound}` holds for every threshold: nothing to certify.")
    if min(yes, no) > 0:
        raise CannotPromise(f"`{bound}` cannot hold for any threshold: nothing to certify.")
