"""Which objectives, targets and thresholds fit together, and errors that say why others do not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Literal

from setpoint._checks import whole
from setpoint.axes.specification import DEFAULT_POINTS, PER_GROUP, Specification
from setpoint.rates import (
    Across,
    AmountCost,
    Bound,
    ClassArea,
    Cost,
    Counts,
    Expression,
    Range,
    Rate,
    Setpoint,
    Target,
    TopK,
    accuracy,
    error,
)


def specified(
    objective: object, maximize: bool, targets: tuple[Target, ...], thresholds: float | str | None
) -> Specification:
    """The problem with these parts, or an error that says why they do not fit together."""
    check_objective(objective, "maximize" if maximize else "minimize")
    assert isinstance(objective, Expression)
    count = count_thresholds(thresholds, targets)
    check_targets(targets, count)
    _check_classes(objective, targets, count)
    if count == PER_GROUP:
        expressions = (objective, *(target.expression for target in targets))
        refuse_amounts(expressions, "thresholds per group")
    return Specification(objective, maximize, targets, count)


def as_targets(given: Target | Iterable[Target]) -> tuple[Target, ...]:
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


class _Everywhere(defaultdict[Any, Counts]):
    """The same counts on every slice."""

    def __init__(self, table: Counts) -> None:
        super().__init__(lambda: table)


_GOOD, _BAD = Counts(9, 1, 1, 9, 10, 10), Counts(1, 9, 9, 1, 10, 10)


def more_is_better(expression: Expression) -> bool | None:
    """Whether a good classifier has more of it than a bad one; None if that cannot be told.

    Examples:
        >>> from setpoint import coverage, fnr, precision
        >>> more_is_better(precision), more_is_better(fnr), more_is_better(coverage)
        (True, False, None)
    """
    while isinstance(expression, Across):
        expression = expression.inner
    if isinstance(expression, Rate):  # of a class it is as of the positives
        expression = Rate(expression.numerator, expression.denominator)
    if expression.is_about_classes:
        known = isinstance(expression, (Cost, TopK, ClassArea))
        return not isinstance(expression, Cost) if known else None
    good, bad = (expression.of(_Everywhere(table)) for table in (_GOOD, _BAD))
    return None if good == bad else bool(good > bad)


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


def check_targets(targets: tuple[Target, ...], thresholds: object) -> None:
    """Targets contain rates, and leave the threshold something to decide."""
    for target in targets:
        if not any(True for _ in target.expression.rates()):
            raise ValueError(f"The target `{target}` contains no rate: nothing to hold.")
    if thresholds == PER_GROUP:
        _check_equalities(targets)
    fixed = [t for t in targets if not isinstance(t, Bound)]
    several = thresholds == PER_GROUP or any(t.expression.is_about_classes for t in targets)
    if fixed and len(targets) > 1 and not several:
        other = targets[1] if targets[0] is fixed[0] else targets[0]
        raise ValueError(
            f"`{fixed[0]}` already fixes the threshold, so nothing is left to decide for `{other}`."
            " Use bounds (<=, >=) for both, or one threshold per group."
        )


def holds_always(bound: Bound) -> str:
    """That a bound excludes no threshold; often 1 was meant as 1 %."""
    hint = " For 1 % write 0.01." if bound.level == 1 else ""
    return f"`{bound}` holds for every threshold.{hint}"


def check_query(column: object, already: str | None, kind: str) -> None:
    """A problem is asked of every query once, and of queries alone."""
    if not isinstance(column, str) or not column:
        raise TypeError(f'per() takes the name of a column, as in per("query"); got {column!r}.')
    if already is not None:
        raise ValueError(f"The problem is already per {already}; it cannot also be per {column}.")
    if kind != "everyone":
        raise ValueError(
            f"A problem of {kind} cannot also be asked of every query: say it of all examples "
            "with one threshold, then per query."
        )


def check_plain(problem: object, who: str, of_groups: str) -> None:
    """Refuse problems with groups, classes or queries, and name a method that supports them.

    Args:
        problem: What was given.
        who: The function that refuses.
        of_groups: What to do instead with a problem that looks at groups.
    """
    if not isinstance(problem, Specification):
        raise TypeError(f"{who} takes a Problem, such as fnr_at_fpr(0.01); got {problem!r}.")
    refuse_queries(problem.query, who)
    refuse_classes(problem, who)
    if any(problem.slices):
        raise NotImplementedError(
            f"{who} does not take groups, and `{problem}` looks at some. {of_groups}"
        )


def refuse_queries(query: str | None, who: str) -> None:
    """Refuse a problem per query, on behalf of what puts one threshold on all scores."""
    if query is not None:
        raise ValueError(
            f"{who} puts one threshold on all scores, and the problem is asked per {query}, with "
            "one for each. Implicit trains it, and problem.evaluate(..., queries=...) judges it."
        )


def refuse_classes(asked: Any, who: str) -> None:
    """Refuse rates of several classes, on behalf of what decides between two.

    Args:
        asked: A problem, or an expression.
        who: The function or class that refuses.
    """
    targets = getattr(asked, "subject_to", ())
    parts = [getattr(asked, "objective", asked), *(target.expression for target in targets)]
    if any(isinstance(part, Expression) and part.is_about_classes for part in parts):
        raise ValueError(
            f"{who} decides between two classes, and `{asked}` is about several. "
            "Implicit(problem), problem.choose, Classifier and certify_shifts do it."
        )


def _check_equalities(targets: tuple[Target, ...]) -> None:
    """Refuse two exact equalities between groups: one threshold per group cannot hold both."""
    from setpoint.axes.windows import window_of

    exact = [w for w in map(window_of, targets) if w is not None and w.is_exact]
    if len(exact) < 2:
        return
    count = max(len(w.parts) for w in exact)
    raise ValueError(
        f"`{exact[0].target}` and `{exact[1].target}` fix {len(exact) * (count - 1)} differences "
        f"between {count} groups, more than {count} thresholds, one per group, can hold beside an "
        "objective. Leave a tolerance (<= 0.02), or share one threshold and let the weights learn "
        'it: thresholds="shared" with Lagrangian(problem) or RateBarrier(problem, ...).'
    )


def _check_classes(objective: Expression, targets: tuple[Target, ...], thresholds: object) -> None:
    """Refuse what one shift per class cannot do; a problem that names no class passes."""
    expressions = (objective, *(target.expression for target in targets))
    if not any(expression.is_about_classes for expression in expressions):
        return
    if thresholds != 1 or any(isinstance(target, Range) for target in targets):
        raise ValueError(
            "A problem of classes has one shift for each class: leave thresholds= out, and instead "
            "of a range use auc_mu or one_vs_all_auc, or hold the rate of a class at one level."
        )
    for expression in expressions:
        for node in expression.nodes():
            _check_node(node)
    areas = [node for e in expressions for node in e.nodes() if isinstance(node, ClassArea)]
    if areas and (targets or objective is not areas[0]):
        raise ValueError(
            f"{areas[0]} is about scores, not about decisions: it is an objective by itself, "
            "without targets and not inside a sum."
        )
    _check_setpoints([t for t in targets if isinstance(t, Setpoint)])


def refuse_amounts(expressions: Iterable[Expression], several: str) -> None:
    """Amounts weigh the rows of one threshold."""
    for expression in expressions:
        for node in expression.nodes():
            if isinstance(node, AmountCost):
                raise ValueError(f"`{node}` goes with one threshold, not with {several}.")


def _check_node(node: Expression) -> None:
    if isinstance(node, Rate) and not node.classes:
        kinds = [(r.numerator, r.denominator) for r in (accuracy, error)]
        if (node.numerator, node.denominator) not in kinds:
            raise ValueError(
                f"With several classes `{node}` must say of which: write it .of(...) a class, or "
                "macro(...), lowest(...) or highest(...) over all. Only accuracy and error are "
                "about everyone."
            )


def _check_setpoints(setpoints: list[Setpoint]) -> None:
    from setpoint.axes.class_search import coverage_target

    seen: dict[object, Setpoint] = {}
    total = 0.0
    for target in setpoints:
        of = tuple(rate.classes for rate in target.expression.rates())
        if any(of) and of in seen:
            raise ValueError(
                f"`{seen[of]}` already fixes the shift, so nothing is left to decide for "
                f"`{target}`. Use bounds (<=, >=) for both."
            )
        seen[of] = target
        found = coverage_target(target)
        total += found[1] if found is not None and not found[2] else 0.0
    if total > 1 + 1e-9:
        raise ValueError(
            f"Every example goes to one class, so coverages add up to 1; these ask for {total:g}."
        )
