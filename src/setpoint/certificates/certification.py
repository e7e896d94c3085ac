"""Which settings go together, and what to say of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from setpoint._checks import share, whole
from setpoint.batch import describe
from setpoint.certificates.certificate import Certificate
from setpoint.certificates.duplicates import check_clusters, check_copies, refuse_weights
from setpoint.certificates.evidence import Place
from setpoint.certificates.given import prove_given, rates_between
from setpoint.certificates.goals import Goal, read_goal
from setpoint.certificates.groups import Split, group_values, search_groups, split
from setpoint.certificates.sample import (
    EVERYONE,
    NEGATIVES,
    POSITIVES,
    PRIOR,
    Part,
    Sample,
    have,
    read_sample,
    signs,
    there,
)
from setpoint.certificates.search import search
from setpoint.certificates.statements import advice, assumptions, claims, estimates, points, remarks
from setpoint.problems import Problem
from setpoint.rates import Bound, Where


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


# From scores to a promise: the one function of this room.


def certify(
    scores: Any,
    labels: Any,
    goal: Bound | Problem | str | list[Bound] | tuple[Bound, ...],
    *,
    confidence: float = 0.95,
    candidates: int = 1,
    guarantee: Literal["pac", "mean"] = "pac",
    groups: Any = None,
    thresholds: Any = None,
    prevalence: float | None = None,
    clusters: Any = None,
    weights: Any = None,
) -> Certificate:
    """A threshold that provably keeps a goal on new data.

    The data must not have been used to train the model, nor (see ``candidates``) to choose it.

    Which threshold, if several are proved: with a :class:`Problem` the one its objective likes
    best. With bounds alone, under a cap (``fpr <= 0.01``, ``coverage <= 0.02``, also beside other
    bounds) or for ``precision >= 0.9`` the lowest, which finds most; under floors only
    (``recall >= 0.95``, ``npv >= 0.99``) the highest, which alarms least; for other rates the one
    proved with the most to spare.

    Args:
        scores: One score an example; numpy, torch or a list. Decisions will be
            ``score > threshold`` in their precision.
        labels: 0 or 1 for each. May be None if the goal is about ``coverage`` only.
        goal: A bound (``fpr <= 0.01``), several of them, a problem, or a sentence for either.
        confidence: The promise fails for at most ``1 - confidence`` of all calibration samples.
        candidates: Among how many models this one was chosen by looking at the same data; the
            promise holds for the chosen one.
        guarantee: ``"pac"``: with confidence, for the threshold returned. ``"mean"``: the rate is
            kept on average over calibration samples (conformal risk control).
        groups: A column (or a dict of columns) for goals about slices. With bounds that name no
            slice, every group gets its own threshold, and all promises hold together.
        thresholds: A threshold, or ``{group: threshold}``, chosen on other data: nothing is
            searched for, and the goal is proved there or not. Gaps between groups with a
            threshold each need it, as in ``thresholds=problem.choose(...).thresholds``.
        prevalence: The share of positives to come, if it is not that of the data; for precision,
            F scores, coverage, error and the like.
        clusters: Who each row belongs to (a customer, a patient). Several rows of one cluster are
            refused: they are not independent.
        weights: Refused: weighted counts do not follow the binomial law.

    Returns:
        A certificate: certified, not certified, or infeasible with the sample size needed.

    Example:
        >>> import numpy as np
        >>> from setpoint.rates import fpr
        >>> random = np.random.default_rng(0)
        >>> y = np.repeat([0, 1], [2000, 500])
        >>> s = random.normal(size=2500) + 2.5 * y
        >>> certificate = certify(s, y, fpr <= 0.01)
        >>> certificate.status, round(certificate.threshold, 2)
        ('certified', 2.39)
        >>> certify(s, y, "fpr <= 0.1 %").notes[0]
        '`fpr <= 0.001` needs 2,995 negatives, you have 2,000'
    """
    refuse_weights(weights)
    wanted = read_goal(goal)
    delta = doubt(confidence)
    count = whole(candidates, "candidates", least=1)
    check_settings(wanted, labels, guarantee, count, prevalence)
    split = by_group(wanted, groups, scores, thresholds)
    sample = read_sample(scores, labels, groups, slices(wanted, split))
    check_clusters(clusters, sample.scores)
    check_classes(wanted, sample, prevalence)
    copies = check_copies(sample)
    mean, tail = guarantee == "mean", delta / count
    places: dict[Where, Place]
    if thresholds is not None:
        if mean:
            raise ValueError('thresholds= are tested, not found: use guarantee="pac".')
        found, places = prove_given(wanted, split, sample, thresholds, tail, prevalence)
    elif split is None:
        found = search(wanted, sample, tail, prevalence, mean)
        places = {} if found.place is None else {(): found.place}
    else:
        found, places = search_groups(split, sample, tail, prevalence, mean)
    where = tuple(points(split, places, sample))
    return Certificate(
        goal=wanted.text,
        status=found.status,
        confidence=float(confidence),
        guarantee=guarantee,
        candidates=count,
        prevalence=None if prevalence is None else float(prevalence),
        dtype=sample.dtype,
        column=None if split is None else split.column,
        points=where,
        claims=tuple(claims(found, sample, places, prevalence)),
        objective=(
            *estimates(wanted, found, split, sample, places, tail, prevalence),
            *rates_between(split, sample, places, tail, prevalence),
        ),
        assumptions=tuple(assumptions(found, sample, count, prevalence, mean)),
        notes=(*found.notes, *remarks(where), *copies),
        advice=tuple(advice(found, sample, tail, mean)),
    )
