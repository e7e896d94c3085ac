"""Which problems of classes make sense, and what to say of the others."""

from __future__ import annotations

from typing import Any

from setpoint.axes.class_search import covered
from setpoint.rates import (
    ClassArea,
    Expression,
    Range,
    Rate,
    Setpoint,
    Target,
    accuracy,
    error,
)

TOLERANCE = 1e-9


def check_classes(objective: Expression, targets: tuple[Target, ...], thresholds: object) -> None:
    """Refuse what shifts of classes cannot do; a problem that names no class passes."""
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
        found = covered(target)
        total += found[1] if found is not None and not found[2] else 0.0
    if total > 1 + TOLERANCE:
        raise ValueError(
            f"Every example goes to one class, so coverages add up to 1; these ask for {total:g}."
        )


def refuse_classes(asked: Any, who: str) -> None:
    """For what knows only two classes: say so, and what to do instead.

    Args:
        asked: A problem, or an expression.
        who: Who refuses.
    """
    targets = getattr(asked, "subject_to", ())
    parts = [getattr(asked, "objective", asked), *(target.expression for target in targets)]
    if any(isinstance(part, Expression) and part.is_about_classes for part in parts):
        raise ValueError(
            f"{who} decides between two classes, and `{asked}` is about several. "
            "Implicit(problem), problem.choose and Classifier do it."
        )
