"""What is to be promised: bounds, a problem, or a sentence for either."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from setpoint.certify.records import CannotPromise
from setpoint.problems import PER_GROUP, Problem, refuse_classes, refuse_queries
from setpoint.rates import Bound, Expression, Range, Rate, Setpoint, Where

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
