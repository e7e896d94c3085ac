"""Which settings go together, and what to say of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from setpoint._checks import share
from setpoint.batch import describe
from setpoint.certify.goals import Goal
from setpoint.certify.groups import Split, group_values, split
from setpoint.certify.parts import EVERYONE, NEGATIVES, POSITIVES, PRIOR, Part, signs
from setpoint.certify.samples import Sample, have, there
from setpoint.rates import Where


def doubt(confidence: float) -> float:
    """What a confidence leaves to chance: 0.05 of 0.95, whatever floats make of it."""
    left = round(1 - share(confidence, "confidence", ends=False), 12)
    if left <= 0:
        raise ValueError(f"confidence must leave some doubt, 1e-12 at least; got {confidence!r}.")
    return left


def check_settings(
    goal: Goal, labels: Any, guarantee: object, candidates: int, prevalence: float | None
) -> None:
    """Settings that contradict each other are errors."""
    if guarantee not in ("pac", "mean"):
        raise ValueError(f'guarantee must be "pac" or "mean"; got {guarantee!r}.')
    if guarantee == "mean" and candidates > 1:
        raise ValueError(
            'guarantee="mean" does not survive choosing among several models. Use guarantee="pac", '
            "or certify on rows that took no part in the choice."
        )
    if prevalence is not None:
        share(prevalence, "prevalence", ends=False)
        if labels is None:
            raise ValueError("prevalence= weighs the two classes anew and needs labels.")
        if goal.wheres:
            raise ValueError(
                "prevalence= is that of everyone; slices have their own. Certify each slice by "
                "itself with its prevalence."
            )


def check_classes(goal: Goal, sample: Sample, prevalence: float | None) -> None:
    """Every class that the goal counts must be there."""
    expressions = [bound.expression for bound in goal.bounds]
    expressions += [] if goal.objective is None else [goal.objective]
    parts = [part for e in expressions for part in signs(e, prevalence)]
    kinds = {part.kind for part in parts}
    if kinds <= {EVERYONE}:
        return
    if sample.labels is None:
        raise ValueError(f"`{goal.text}` counts positives and negatives: pass labels.")
    for part in parts:
        needed = (POSITIVES, NEGATIVES) if part.kind == PRIOR else (part.kind,)
        for kind in needed:
            if not sample.size(Part(part.where, kind)):
                found = [sample.size(Part(part.where, k)) for k in (POSITIVES, NEGATIVES)]
                raise ValueError(
                    f"`{goal.text}` counts {have(0, Part(part.where, kind))[2:]}, and there are "
                    f"none: the data have {describe(*found)}{there(part.where)}."
                )


def by_group(goal: Goal, groups: Any, scores: Any, thresholds: Any = None) -> Split | None:
    """The goal of each group, if every group has its own threshold."""
    per_group = goal.per_group
    if per_group is None:
        per_group = groups is not None and not goal.wheres
    if not per_group:
        if groups is not None and not goal.wheres:
            raise ValueError(
                f"`{goal.text}` looks at no group. For one threshold for each group add "
                "thresholds=\"per group\" to the problem ('... with thresholds per group')."
            )
        return None
    if groups is None:
        raise ValueError(f"`{goal.text}` has one threshold for each group: pass groups=.")
    name, column = _column(goal, groups)
    array = np.asarray(column.detach().cpu() if hasattr(column, "detach") else column)
    values = group_values(array.reshape(-1), name)
    return split(goal, name, values, given=thresholds is not None)


def slices(goal: Goal, split_: Split | None) -> tuple[Where, ...]:
    """All slices whose examples are needed."""
    own = () if split_ is None else tuple(split_.where(value) for value in split_.goals)
    return tuple(dict.fromkeys([*own, *goal.wheres]))


def _column(goal: Goal, groups: Any) -> tuple[str, Any]:
    names = {column for where in goal.wheres for column, _ in where}
    if not isinstance(groups, Mapping):
        return (names.pop() if len(names) == 1 else "group"), groups
    if len(groups) != 1:
        raise ValueError(
            "One threshold for each group needs one column; groups has: "
            f"{', '.join(map(str, groups)) or 'none'}."
        )
    ((name, column),) = groups.items()
    return str(name), column
