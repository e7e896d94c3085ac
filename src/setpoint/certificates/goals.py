"""Goals that can be certified: bounds, a problem or a sentence, and the inequalities behind them.

A rate weighs each cell (TP, FP, FN, TN) in its numerator and denominator. If there are only two
kinds of cells in it, ``yes`` and ``no``, the rate is a function of one unknown share, and at a
threshold fixed in advance a single binomial test is exact: TP against FN (recall), FP against TN
(fpr), accepted against rejected (coverage), TP against FP (precision), FN against TN (npv), TP
against FP and FN (F1), right against wrong (error). Everything else is bounded through several
shares (:mod:`setpoint.certificates.regions`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from setpoint.certificates.regions import CellKind, signs, two_kinds, value_range
from setpoint.certificates.sample import (
    EVERYONE,
    NEGATIVES,
    POSITIVES,
    CannotPromise,
    Prevalence,
    Subset,
)
from setpoint.problems import (
    PER_GROUP,
    Capacity,
    Problem,
    holds_always,
    parse_capacity,
    read_goal,
    refuse_classes,
    refuse_queries,
)
from setpoint.rates import (
    AmountCost,
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
    alerts,
)

ACCEPTED, REJECTED, MIXED = "accepted", "rejected", "mixed"
_SHARE_KINDS = {
    (("tp",), ("fn",)): POSITIVES,
    (("fp",), ("tn",)): NEGATIVES,
    (("tp", "fp"), ("fn", "tn")): EVERYONE,
    (("tp",), ("fp",)): ACCEPTED,
    (("fn",), ("tn",)): REJECTED,
}


_NO_COUNTS = (
    "counts examples; what is proved for new data is about shares. For k alerts among n examples "
    "write coverage <= k / n; for alerts a day: alerts <= 200 per day on 95 % of days."
)


@dataclass(frozen=True)
class CertificateGoal:
    """Bounds to be proved, and an objective that decides between thresholds that satisfy them."""

    bounds: tuple[Bound, ...]
    objective: Expression | None
    maximize: bool
    per_group: bool | None
    """Whether every group has its own threshold; None: if groups are given and not asked about."""
    text: str

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What its bounds limit, then its objective, if it has one."""
        bounded = (bound.expression for bound in self.bounds)
        return (*bounded, *(() if self.objective is None else (self.objective,)))

    @property
    def rates(self) -> tuple[Rate, ...]:
        """Every rate in it."""
        return tuple(rate for e in self.expressions for rate in e.rates())

    @property
    def wheres(self) -> tuple[Where, ...]:
        """Every slice it asks about, without everyone."""
        return tuple(dict.fromkeys(rate.where for rate in self.rates if rate.where))

    @property
    def columns(self) -> set[str]:
        """The columns that its slices are picked by."""
        return {column for where in self.wheres for column, _ in where}


def as_capacity(goal: object) -> Capacity | None:
    """The capacity that a goal is, or that a sentence describes; None if it is something else."""
    return goal if isinstance(goal, Capacity) else parse_capacity(goal)


_read_goal = lru_cache(64)(read_goal)
"""A monitor asks for its goal with every update."""


def goal_to_certify(goal: Any) -> CertificateGoal:
    """A goal from a bound, several bounds, a problem or a sentence.

    Raises:
        CannotPromise: The goal has no bound, an exact value, or a number of examples.
        TypeError: It is something else.
        ValueError: The sentence cannot be read, or is about classes or queries.
    """
    if isinstance(goal, str):
        goal = _read_goal(goal)
    if isinstance(goal, Problem):
        refuse_queries(goal.query, "A certificate")
        per_group = goal.thresholds == PER_GROUP
        bounds = _bounds(tuple(goal.subject_to))
        found = CertificateGoal(bounds, goal.objective, goal.maximize, per_group, str(goal))
    else:
        several = isinstance(goal, Iterable) and not isinstance(goal, (Expression, Bound))
        bounds = _bounds(tuple(goal) if several else (goal,))
        found = CertificateGoal(bounds, None, True, None, " and ".join(map(str, bounds)))
    for part in (found.objective, *(bound.expression for bound in found.bounds)):
        refuse_classes(part, "A certificate")
        if part is not None and any(isinstance(node, AmountCost) for node in part.nodes()):
            raise CannotPromise(
                f"`{part}` names the column of amounts: certify takes it as amounts=, with "
                "cost(miss=, false_alarm=) in the goal."
            )
    if not found.bounds:
        least = "<= 10" if str(found.objective).startswith("cost") else "<= 0.2"
        level = ">= 0.8" if found.maximize else least
        other = "fpr <= 0.01" if found.maximize else "recall >= 0.9"
        raise CannotPromise(
            f"`{found.text}` has no bound that could be certified. Bound it, as in "
            f"`{found.objective} {level}`, or another rate, as in `... subject to {other}`."
        )
    for rate in found.rates:
        if rate.numerator.one or rate.denominator.one:
            raise CannotPromise(f"`{rate}` {_NO_COUNTS}")
    return found


def _bounds(targets: tuple[Any, ...]) -> tuple[Bound, ...]:
    for target in targets:
        if isinstance(target, Range):
            raise CannotPromise(
                f"certify proves bounds at one threshold, and an area (`{target}`) has many: "
                "certify the point to be used, as in `fpr <= 0.01`."
            )
        if isinstance(target, Setpoint) and target.expression == alerts:
            raise CannotPromise(f"`{target}` {_NO_COUNTS}")
        if isinstance(target, Setpoint):
            raise CannotPromise(
                f"certify proves bounds; got `{target}`: an exact value cannot be proved for new "
                "data, a bound (<=, >=) can."
            )
        if not isinstance(target, Bound):
            raise TypeError(
                f"certify proves bounds, a problem's or its own; got `{target}`: bounds look like "
                "fpr <= 0.01."
            )
    return targets


@dataclass(frozen=True)
class Share:
    """The share of ``yes`` among ``yes`` and ``no``, which must be at most (least) ``limit``."""

    subset: Subset
    yes: tuple[str, ...]
    no: tuple[str, ...]
    at_most: bool
    limit: float
    kinds: tuple[CellKind, CellKind]
    scale: tuple[float, float]

    @property
    def risk(self) -> float:
        """The largest share of unwanted outcomes."""
        return self.limit if self.at_most else 1 - self.limit

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
class Inequality:
    """One inequality out of a bound, and what kind it is."""

    bound: Bound
    source: Bound
    """The bound of the goal that it belongs to."""
    share: Share | None
    caps: bool | None
    """True if accepting more can only break it, False if it can only help, else None."""

    @property
    def kind(self) -> str | None:
        """What the share is a share of, if there is one."""
        return None if self.share is None else self.share.subset.kind

    @property
    def side(self) -> str:
        """The words for its direction."""
        return "at most" if self.bound.sense == "<=" else "at least"

    def holds(self, value: float) -> bool:
        """Whether a proved value of the bound's expression proves the bound."""
        level = self.bound.level
        return value <= level if self.bound.sense == "<=" else value >= level

    def displayed(self, value: float) -> float:
        """What a certificate displays of a proved value: never worse than the bound itself.

        Several bounds are proved at fixed thresholds if each passes a test of level ``delta``, and
        what is displayed of ``k`` bounds is proved with ``delta / k`` each. That is right for all
        of them at once with probability ``1 - delta``: if one of the bounds is false, all tests are
        passed with probability at most ``delta``; if none is, only the values can be wrong.
        """
        level = self.bound.level
        return min(value, level) if self.bound.sense == "<=" else max(value, level)


def inequalities(bounds: Iterable[Bound], prevalence: Prevalence) -> list[Inequality]:
    """The inequalities that must all hold for all ``bounds`` to hold.

    Raises:
        CannotPromise: A bound does not depend on the threshold, always holds, or never does.
    """
    found = []
    for source in bounds:
        for bound in _simpler(source):
            if all(s.is_prior for s in signs(bound.expression, prevalence)):
                raise CannotPromise(
                    f"`{source}` does not depend on the threshold: nothing to certify."
                )
            found.append(Inequality(bound, source, share_of(bound, prevalence), bound.caps))
    return found


def refuse_trivial(goal: CertificateGoal, prevalence: Prevalence = None) -> None:
    """CannotPromise for a goal that accepting nobody, or everybody, keeps as well as can be.

    Its bounds hold there whatever the share of positives (a gap is closed), and the objective, if
    there is one, cannot be better anywhere.
    """
    every = inequalities(goal.bounds, prevalence)
    expressions = [each.bound.expression for each in every]
    expressions += [] if goal.objective is None else [goal.objective]
    subsets = [subset for e in expressions for subset in signs(e, prevalence)]
    anywhere = (np.zeros(1), np.ones(1))
    for end, who in zip(anywhere, ("nobody", "everybody"), strict=True):
        box = {s: anywhere if s.is_prior else (end, end) for s in subsets}
        with np.errstate(all="ignore"):
            ranges = [value_range(e, box, prevalence) for e in expressions]
            best = value_range(expressions[-1], dict.fromkeys(subsets, anywhere), prevalence)
        held = (
            each.holds(float(high[0] if each.bound.sense == "<=" else low[0]))
            for each, (low, high) in zip(every, ranges, strict=False)
        )
        (low, high), (least, most) = ranges[-1], best
        ideal = goal.objective is None or (low >= most if goal.maximize else high <= least)
        if all(held) and ideal:
            alone = goal.objective is None
            raise CannotPromise(
                f"`{goal.text}` holds where {who} is accepted{'' if alone else ', and best there'}."
                f" Add a bound, such as fpr <= 0.1, or {'an' if alone else 'another'} objective, "
                "as in 'minimize error subject to ...'."
            )


def count_bounds(family: Iterable[Inequality]) -> int:
    """How many bounds of a goal the inequalities belong to; each has one displayed value.

    Two inequalities of a gap count once: only the one on the side of the true gap can be wrong.
    """
    return len({each.source for each in family})


def _simpler(bound: Bound) -> list[Bound]:
    """Bounds on folds and quotients as bounds on what they are made of, where that is the same."""
    e, sense, level = bound.expression, bound.sense, bound.level
    if isinstance(e, Fold) and e.kind == "abs" and sense == "<=":
        return [Bound(e.parts[0], "<=", level), Bound(e.parts[0], ">=", -level)]
    if isinstance(e, Fold) and (e.kind, sense) in (("max", "<="), ("min", ">=")):
        return [b for part in e.parts for b in _simpler(Bound(part, sense, level))]
    if isinstance(e, Quotient) and e.bottom.is_share:  # at least 0, and 0/0 satisfies no bound
        return _simpler(Bound(e.top - level * e.bottom, sense, 0.0))
    if isinstance(e, Combination):
        for weight, term in e.terms:
            worst = "max" if (weight > 0) == (sense == "<=") else "min"
            if isinstance(term, Fold) and term.kind == worst:
                every = [e - weight * term + weight * part for part in term.parts]
                parts = [b for part in every for b in _simpler(Bound(part, sense, level))]
                return [b for b in parts if not _is_idle(b)]
    return [bound]


def _is_idle(bound: Bound) -> bool:
    """Whether a bound compares a group with itself: ``0.2 coverage >= 0``, or no rate at all."""
    rate, weight, constant = _lone_rate(bound)
    if rate is None:
        return not any(True for _ in bound.expression.rates())
    rises = (weight > 0) == (bound.sense == ">=")
    return rate.is_share and rises and constant == 0 == bound.level


def share_of(bound: Bound, prevalence: Prevalence) -> Share | None:
    """The single share that a bound is about, if it is about one."""
    rate, weight, constant = _lone_rate(bound)
    kinds = None if rate is None else two_kinds(rate)
    if rate is None or kinds is None:
        return None
    (first, yes), (second, no) = ((kind, tuple(cells)) for kind, cells in kinds.items())
    kind = _SHARE_KINDS.get((yes, no), MIXED)
    if prevalence is not None and kind not in (POSITIVES, NEGATIVES):
        return None  # the classes come in other numbers than here
    level = (bound.level - constant) / weight
    turn = 1.0 if (bound.sense == "<=") == (weight > 0) else -1.0
    a, b = (turn * (above - level * below) for above, below in (first, second))
    if max(a, b) <= 0:
        raise CannotPromise(f"{holds_always(bound)} There is nothing to certify.")
    if min(a, b) > 0:
        raise CannotPromise(f"`{bound}` cannot hold for any threshold: nothing to certify.")
    subset = Subset(rate.where, kind)
    return Share(subset, yes, no, a > b, b / (b - a), (first, second), (weight, constant))


def _lone_rate(bound: Bound) -> tuple[Rate | None, float, float]:
    """``1 - 2 * fpr`` is about fpr, with the weight -2 and the constant 1."""
    e = bound.expression
    if isinstance(e, Rate):
        return e, 1.0, 0.0
    terms = e.terms if isinstance(e, Combination) else ()
    if isinstance(e, Combination) and len(terms) == 1 and isinstance(rate := terms[0][1], Rate):
        return rate, terms[0][0], e.constant
    return None, 1.0, 0.0
