"""Thresholds that were chosen on other data: nothing is searched for, everything is tested there.

Each bound is one test at a place fixed in advance, and the certificate needs all of them passed: it
is false with probability ``delta`` at most, however many bounds and groups there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from setpoint._checks import number
from setpoint.certificates.evidence import Place
from setpoint.certificates.fixed_thresholds import holds, proved_at
from setpoint.certificates.goals import Goal, atoms
from setpoint.certificates.groups import Split
from setpoint.certificates.records import CERTIFIED, NOT_CERTIFIED, Estimate
from setpoint.certificates.regions import interval
from setpoint.certificates.sample import Sample, signs
from setpoint.certificates.search import Found, Proved
from setpoint.certificates.statements import lookup, measured
from setpoint.rates import Bound, Quotient, Rate, Where


def prove_given(
    goal: Goal,
    split: Split | None,
    sample: Sample,
    thresholds: Any,
    delta: float,
    prevalence: float | None,
) -> tuple[Found, dict[Where, Place]]:
    """The verdict on a goal at thresholds fixed before these data."""
    places = _places(split, thresholds)
    bounds = list(goal.bounds)
    if split is not None:
        bounds = [bound for each in split.goals.values() for bound in each.bounds]
        bounds += split.between
    every = [atom for bound in bounds for atom in atoms(bound, prevalence)]
    _check_slices(split, every, places, prevalence)
    proved: Proved = {}
    failed: dict[Bound, list[float]] = {}
    for atom in every:
        value = proved_at(atom, sample, lookup(places), delta, prevalence)
        proved[atom] = (value, "")
        if not holds(atom, value):
            failed.setdefault(atom.source, []).append(value)
    if failed:
        notes = tuple(_not_proved(bound, values) for bound, values in failed.items())
        return Found(NOT_CERTIFIED, None, proved, notes), places
    return Found(CERTIFIED, None, proved), places


def _not_proved(bound: Bound, values: list[float]) -> str:
    if isinstance(bound.expression, Quotient):
        return f"`{bound}` is not proved"
    worst = max(map(abs, values)) if bound.sense == "<=" else min(values)
    side = "at most" if bound.sense == "<=" else "at least"
    return f"`{bound}` is not proved: {side} {worst:.4g} is"


def rates_between(
    split: Split | None,
    sample: Sample,
    places: Mapping[Where, Place],
    delta: float,
    prevalence: float | None,
) -> Iterator[Estimate]:
    """The rates of the groups that bounds compare, each with an interval of its own."""
    if split is None or not places:
        return
    rates: dict[Rate, None] = {}
    for bound in split.between:
        rates |= dict.fromkeys(bound.expression.rates())
    for rate in rates:
        value = measured(rate, sample, lookup(places), prevalence)
        low, high = interval(rate, sample, lookup(places), delta, prevalence)
        if value is not None and np.isfinite([low, high]).all():
            yield Estimate(str(rate), value, low, high)


def _places(split: Split | None, thresholds: Any) -> dict[Where, Place]:
    if split is None:
        if isinstance(thresholds, Mapping):
            raise TypeError("There is one threshold for everyone: pass a number.")
        return {(): Place(_score(thresholds))}
    if not isinstance(thresholds, Mapping):
        raise TypeError(f"There is one threshold for each {split.column}: {{group: threshold}}.")
    missing = [value for value in split.goals if value not in thresholds]
    if missing:
        raise ValueError(f"No threshold for {split.column} = {missing[0]!r}: add it.")
    return {split.where(value): Place(_score(thresholds[value])) for value in split.goals}


def _score(threshold: Any) -> float:
    """A threshold as a float; infinities accept all or nobody."""
    if isinstance(threshold, (float, np.floating)) and np.isinf(threshold):
        return float(threshold)
    return number(threshold, "A threshold")


def _check_slices(
    split: Split | None, every: list[Any], places: Mapping[Where, Place], prevalence: float | None
) -> None:
    """With a threshold for each group, bounds are about groups, not about parts of them."""
    if split is None:
        return
    for atom in every:
        for part in signs(atom.bound.expression, prevalence):
            if part.where not in places:
                raise ValueError(
                    f"With one threshold per {split.column}, bounds name values of {split.column} "
                    f"only; got `{atom.source}`."
                )
