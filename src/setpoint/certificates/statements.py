"""From what was found to what a certificate says: points, claims, estimates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scipy.special import ndtri

from setpoint._checks import plural
from setpoint.certificates.evidence import Place
from setpoint.certificates.goals import Atom, Goal
from setpoint.certificates.groups import Split
from setpoint.certificates.records import CERTIFIED, INFEASIBLE, Claim, Estimate, Point
from setpoint.certificates.regions import Places, interval
from setpoint.certificates.sample import (
    EVERYONE,
    NEGATIVES,
    POSITIVES,
    PRIOR,
    Part,
    Sample,
    have,
    signs,
)
from setpoint.certificates.search import Found
from setpoint.rates import Bound, Expression, Fold, Value, Where, fpr, recall


def points(
    by_group: Split | None, places: Mapping[Where, Place], sample: Sample
) -> Iterator[Point]:
    """The threshold of everyone, or of each group, with its counts."""
    groups: list[tuple[Value | None, Where]] = [(None, ())]
    if by_group is not None:
        groups = [(value, by_group.where(value)) for value in by_group.goals]
    for value, where in groups:
        everyone, positives = Part(where, EVERYONE), Part(where, POSITIVES)
        place = places.get(where)
        threshold = None if place is None else place.threshold(sample)
        labelled = sample.labels is not None
        accepted = [
            0 if threshold is None else int(sample.over(part, threshold))
            for part in ((everyone, positives) if labelled else (everyone,))
        ]
        yield Point(
            group=value,
            threshold=threshold,
            examples=sample.size(everyone),
            positives=sample.size(positives) if labelled else None,
            alerts=accepted[0],
            true_alerts=accepted[1] if labelled else None,
        )


def claims(
    found: Found, sample: Sample, places: Mapping[Where, Place], prevalence: float | None
) -> Iterator[Claim]:
    """For each bound what was measured and what is proved."""
    sources: dict[Bound, list[Atom]] = {}
    for atom in found.proved:
        sources.setdefault(atom.source, []).append(atom)
    for source, own in sources.items():
        if found.status != CERTIFIED:
            yield Claim(str(source), None, None, "")
            continue
        counts = "; ".join(dict.fromkeys(note for a in own if (note := found.proved[a][1])))
        value = measured(source.expression, sample, lookup(places), prevalence)
        yield Claim(str(source), value, _proved(source, own, found), counts)


def _proved(source: Bound, own: list[Atom], found: Found) -> float:
    """What is proved of the bound itself, from what is proved of its inequalities."""
    values = [value for atom in own if (value := found.proved[atom][0]) is not None]
    e = source.expression
    if isinstance(e, Fold) and e.kind == "abs" and len(values) == 2:
        return max(abs(value) for value in values)
    same = all(
        atom.bound.level == source.level and atom.bound.sense == source.sense for atom in own
    )
    if not same or not values:  # an inequality of another form, such as one with a quotient
        return source.level
    return max(values) if source.sense == "<=" else min(values)


def estimates(
    goal: Goal,
    found: Found,
    by_group: Split | None,
    sample: Sample,
    places: Mapping[Where, Place],
    delta: float,
    prevalence: float | None,
) -> Iterator[Estimate]:
    """The objective at the threshold (or in each group), with its interval."""
    if found.status != CERTIFIED:
        return
    goals = [goal] if by_group is None else list(by_group.goals.values())
    wheres: list[Where] = [()] if by_group is None else list(places)
    for each, where in zip(goals, wheres, strict=True):
        expression = each.objective
        if expression is None:
            expression = _other(each, where, prevalence)
        if not _countable(expression, sample, prevalence):
            continue
        at = lookup(places)
        value = measured(expression, sample, at, prevalence)
        if value is not None:
            low, high = interval(expression, sample, at, delta, prevalence)
            if np.isfinite([low, high]).all():
                yield Estimate(str(expression), value, low, high)


def lookup(places: Mapping[Where, Place]) -> Places:
    """The place of a slice: its own, or that of everyone."""
    return lambda where: places[where] if where in places else places[()]


def measured(
    expression: Expression, sample: Sample, places: Places, prevalence: float | None
) -> float | None:
    """The value of an expression on the sample; None for 0/0."""
    if sample.labels is None:
        (part,) = signs(expression, prevalence)
        accepted = sample.over(part, places(()).threshold(sample))
        return float(accepted / sample.size(part))
    wheres = {rate.where for rate in expression.rates()}
    tables = {w: sample.table(w, places(w).threshold(sample), prevalence) for w in wheres}
    with np.errstate(all="ignore"):
        value = float(expression.of(tables))
    return value if np.isfinite(value) else None


def _other(goal: Goal, where: Where, prevalence: float | None) -> Expression:
    """What a reader asks next: what it costs in the other class."""
    kinds = {p.kind for bound in goal.bounds for p in signs(bound.expression, prevalence)}
    rate = fpr if kinds == {POSITIVES} else recall
    return rate.on(**dict(where)) if where else rate


def _countable(expression: Expression, sample: Sample, prevalence: float | None) -> bool:
    """Whether there are examples of every kind that the expression counts."""
    if sample.labels is None:
        return False
    parts = signs(expression, prevalence)
    kinds = (POSITIVES, NEGATIVES, EVERYONE)
    return all(sample.size(part) for part in parts if part.kind in kinds)


# The sentences of a certificate: what it assumes, and what would change the verdict.


ROOMY = 0.8
"""The share of an allowed rate that a large sample should let one use."""


def assumptions(
    found: Found, sample: Sample, candidates: int, prevalence: float | None, mean: bool
) -> Iterator[str]:
    """What must be true for the promise to hold."""
    n = plural(len(sample.scores), "row")
    yield f"The {n} are independent draws from what the threshold will meet: no copies, no drift."
    if candidates == 1:
        yield "The model was neither trained nor chosen on these rows."
    else:
        yield (
            f"The model is one of {candidates} that were fixed before these rows were looked at; "
            "choosing among them is accounted for."
        )
    needs_mix = any(
        part.kind in (PRIOR, EVERYONE)
        for atom in found.proved
        for part in signs(atom.bound.expression, prevalence)
    )
    if prevalence is not None:
        yield f"The share of positives will be {prevalence:.4g}; within a class scores stay so."
    elif needs_mix:
        yield "The share of positives will be as in these rows."
    else:
        yield "The share of positives may change; scores within a class may not."
    yield f"Decisions are score > threshold, with scores in {sample.dtype}."
    if mean:
        yield "The rate holds on average over samples like this: about every other one exceeds it."


def advice(found: Found, sample: Sample, delta: float, mean: bool) -> Iterator[str]:
    """What would change the verdict."""
    if found.status == INFEASIBLE:
        yield "More examples of the kind that is missing, a looser bound, or a lower confidence."
        return
    if found.status != CERTIFIED:
        yield "More data, a looser bound, a lower confidence, or a better model."
        return
    for atom in found.proved:
        if atom.kind in (POSITIVES, NEGATIVES, EVERYONE) and not mean:
            yield from _room(atom, sample, delta)


def _room(atom: Atom, sample: Sample, delta: float) -> Iterator[str]:
    """How much data would let most of the allowed rate be used."""
    share = atom.share
    assert share is not None
    risk = share.limit if share.at_most else 1 - share.limit
    enough = float(ndtri(1 - delta)) ** 2 * (1 - risk) / risk / (1 - ROOMY) ** 2
    count = float(f"{enough:.2g}")
    if sample.size(share.part) < enough:
        share_used = f"{100 * ROOMY:.0f} % of what `{atom.source}` allows"
        yield f"About {have(count, share.part)} would let {share_used} be used."


def remarks(points: tuple[Point, ...]) -> Iterator[str]:
    """What a reader should notice about the thresholds."""
    for point in points:
        of = "" if point.group is None else f" of group {point.group!r}"
        if point.threshold is not None and point.alerts == 0:
            yield (
                f"The threshold accepts none of the rows{of}: too few examples, or too many equal "
                "scores at the top."
            )
        if point.threshold is not None and point.alerts == point.examples:
            yield f"The threshold accepts all of the rows{of}."
