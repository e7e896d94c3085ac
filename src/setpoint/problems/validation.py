"""Which objectives, targets and thresholds make a problem, and what to say of the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from setpoint._checks import whole
from setpoint.axes.specification import DEFAULT_POINTS, PER_GROUP, Specification
from setpoint.axes.windows import check_room
from setpoint.problems.class_checks import check_classes
from setpoint.rates import Bound, Expression, Range, Target


def listed(given: Target | Iterable[Target]) -> tuple[Target, ...]:
    """One target or several, as a tuple."""
    targets = (given,) if isinstance(given, Target) else given
    if not isinstance(targets, Iterable) or isinstance(targets, (str, bytes)):
        targets = (targets,)
    targets = tuple(targets)
    for target in targets:
        if not isinstance(target, Target):
            hint = "Write a bound (fpr <= 0.01), a setpoint (fpr.at(0.01)) or a range."
            if isinstance(target, bool):
                hint = "`==` compares expressions; to hold a rate at a value write fpr.at(0.01)."
            if isinstance(target, str):
                hint = (
                    f"Write it without quotes, or Problem.parse('minimize … subject to {target}')."
                )
            raise TypeError(f"subject_to takes targets; got {target!r}. {hint}")
    return targets


def specified(
    objective: object, maximize: bool, targets: tuple[Target, ...], thresholds: float | str | None
) -> Specification:
    """The problem with these parts, or an error that says why they do not fit together."""
    check_objective(objective, "maximize" if maximize else "minimize")
    assert isinstance(objective, Expression)
    count = count_thresholds(thresholds, targets)
    check_targets(targets, count)
    check_classes(objective, targets, count)
    return Specification(objective, maximize, targets, count)


def check_objective(objective: object, word: str) -> None:
    """An objective is an expression that contains a rate."""
    if isinstance(objective, Target):
        raise TypeError(f"`{objective}` is a target; it belongs into subject_to, not {word}.")
    if not isinstance(objective, Expression):
        hint = f" For a sentence use Problem.parse('{word} {objective} …')."
        raise TypeError(
            f"{word} takes a rate or a combination of rates; got {objective!r}."
            + (hint if isinstance(objective, str) else "")
        )
    if not any(True for _ in objective.rates()):
        raise ValueError(f"The objective `{objective}` contains no rate: nothing to {word}.")


def count_thresholds(
    given: float | str | None, targets: tuple[Target, ...]
) -> int | Literal["per group"]:
    """The number of thresholds, or one per group; ``given`` must fit the targets."""
    sweeps = any(isinstance(target, Range) for target in targets)
    if given == PER_GROUP and not sweeps:
        return PER_GROUP
    if given is None or (given == "shared" and not sweeps):
        return DEFAULT_POINTS if sweeps else 1
    if isinstance(given, str):
        expected = "a number of bins" if sweeps else '"shared" or "per group"'
        raise ValueError(f"thresholds must be {expected}; got {given!r}.")
    count = whole(given, "thresholds", least=1)
    if count > 1 and not sweeps:
        raise ValueError(
            f"{count} thresholds need a range to spread over: subject_to=recall.over(0.95, 1)."
        )
    return count


def check_query(column: object, already: str | None, kind: str) -> None:
    """A problem is asked of every query once, and of queries alone."""
    if not isinstance(column, str) or not column:
        raise TypeError(f'per() takes the name of a column, as in per("query"); got {column!r}.')
    if already is not None:
        raise ValueError(f"The problem is already per {already}; it cannot also be per {column}.")
    if kind != "plain":
        raise ValueError(
            f"A problem of {kind} cannot also be asked of every query: say it of all examples "
            "with one threshold, then per query."
        )


def refuse_queries(query: str | None, who: str) -> None:
    """For those who know one threshold only, and would silently ignore the queries."""
    if query is not None:
        raise ValueError(
            f"{who} puts one threshold on all scores, and the problem is asked per {query}, with "
            "one for each. Implicit trains it, and problem.evaluate(..., queries=...) judges it."
        )


def check_targets(targets: tuple[Target, ...], thresholds: object) -> None:
    """Targets contain rates, and leave the threshold something to decide."""
    for target in targets:
        if not any(True for _ in target.expression.rates()):
            raise ValueError(f"The target `{target}` contains no rate: nothing to hold.")
    if thresholds == PER_GROUP:
        check_room(targets)
    fixed = [t for t in targets if not isinstance(t, Bound)]
    several = thresholds == PER_GROUP or any(t.expression.is_about_classes for t in targets)
    if fixed and len(targets) > 1 and not several:
        other = targets[1] if targets[0] is fixed[0] else targets[0]
        raise ValueError(
            f"`{fixed[0]}` already fixes the threshold, so nothing is left to decide for `{other}`."
            " Use bounds (<=, >=) for both, or one threshold per group."
        )
