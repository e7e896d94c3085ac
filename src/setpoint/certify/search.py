"""One threshold that satisfies all bounds, each proved in the way of its kind.

Bounds that fall together under one argument form a family: all caps, all floors, each walk, all the
rest. Families share ``delta`` equally; a threshold is admissible if every family has proved it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from setpoint.certify.decided import prove_there
from setpoint.certify.families import Families, Found, Proved
from setpoint.certify.forms import Atom, atoms
from setpoint.certify.goals import Goal
from setpoint.certify.limits import Limit, limit
from setpoint.certify.lines import Stretch
from setpoint.certify.pick import choose, merit_of, prefers_low
from setpoint.certify.pilots import Beside, Trial, prove
from setpoint.certify.places import Place
from setpoint.certify.reasons import check_asks, clash, failed
from setpoint.certify.records import CERTIFIED, INFEASIBLE, NOT_CERTIFIED
from setpoint.certify.samples import Sample
from setpoint.certify.walks import Walked, walk


def search(goal: Goal, sample: Sample, delta: float, prevalence: float | None, mean: bool) -> Found:
    """The threshold that the objective likes best among those that are proved."""
    every = [atom for bound in goal.bounds for atom in atoms(bound, prevalence)]
    families = Families.of(every)
    if goal.objective is None and len(families.rest) == len(every):
        check_asks(goal, every, prevalence)
    if mean and (len(families) > 1 or families.walks or families.rest):
        raise ValueError(
            'guarantee="mean" holds for bounds that pull the threshold one way; '
            f'`{goal.text}` does not. Use guarantee="pac".'
        )
    tail = delta / len(families)
    limits = {a: limit(a, sample, tail, prevalence, mean) for a in families.caps + families.floors}
    walked = {atom: walk(atom, sample, tail) for atom in families.walks}
    proved: Proved = {a: (found.proved, found.note) for a, found in limits.items()}
    proved |= {atom: (atom.bound.level, "") for atom in walked}
    missing = [found.note for found in limits.values() if found.place is None]
    missing += [found.note for found in walked.values() if not found.feasible]
    if missing:
        return Found(INFEASIBLE, None, proved, tuple(missing))
    low, high = (_strictest(side, limits, sample) for side in (families.caps, families.floors))
    open_ = _meet(low, high, list(walked.values()), sample)
    if not open_:
        return Found(NOT_CERTIFIED, None, proved, clash(limits, walked, sample))
    if not families.rest:
        place = choose(goal, sample, prevalence, low, high, open_)
        return Found(CERTIFIED, place, proved)
    return _with_rest(families, goal, sample, tail, prevalence, (low, high), open_, proved)


def _with_rest(
    families: Families,
    goal: Goal,
    sample: Sample,
    delta: float,
    prevalence: float | None,
    limits: tuple[Place | None, Place | None],
    open_: Sequence[Stretch],
    proved: Proved,
) -> Found:
    """Bounds that have no argument of their own: where others decide, or where a pilot proposes."""
    low, high = limits
    others = families.caps + families.floors + families.walks
    if limits != (None, None) and prefers_low(goal, low, high) is not None:
        place = choose(goal, sample, prevalence, low, high, open_)
        values, holds_ = prove_there(families.rest, sample, lambda _: place, delta, prevalence)
        trials = [Trial(place.threshold(sample), values, holds_)]
        taken, note = (trials[0] if holds_ else None), ""
    else:
        taken, trials = prove(
            families.rest,
            sample,
            delta,
            prevalence,
            merit_of(goal, prevalence),
            Beside(others, lambda t: any(stretch.low <= t <= stretch.high for stretch in open_)),
        )
        place = Place(0.0 if taken is None else taken.threshold, chosen=True)
        note = "a quarter of the rows chose the threshold, the others prove it"
    if taken is None:
        notes = tuple(failed(families.rest, trials, sample, prevalence))
        notes = notes or (f"no threshold that was tried satisfies all of `{goal.text}`",)
        return Found(NOT_CERTIFIED, None, proved, notes)
    proved |= {a: (value, note) for a, value in zip(families.rest, taken.proved, strict=True)}
    return Found(CERTIFIED, place, proved)


def _strictest(side: list[Atom], limits: dict[Atom, Limit], sample: Sample) -> Place | None:
    """Of several caps the highest threshold, of several floors the lowest."""
    places = [place for atom in side if (place := limits[atom].place)]
    if not places:
        return None
    pick = max if side[0].caps else min
    place = pick(places, key=lambda p: p.threshold(sample))
    return place if len(places) == 1 else replace(place, chosen=True)


def _meet(
    low: Place | None, high: Place | None, walked: Sequence[Walked], sample: Sample
) -> list[Stretch]:
    """The thresholds that every family has proved."""
    start = -math.inf if low is None else low.threshold(sample)
    end = math.inf if high is None else high.threshold(sample)
    open_ = [Stretch(start, end)] if start <= end else []
    for found in walked:
        pairs = [(a, b) for a in open_ for b in found.stretches]
        meets = [Stretch(max(a.low, b.low), min(a.high, b.high)) for a, b in pairs]
        open_ = [stretch for stretch in meets if stretch.low <= stretch.high]
    return open_
