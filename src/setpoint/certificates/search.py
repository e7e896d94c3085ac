"""The bounds of a goal by how they are proved, and what a search for a threshold finds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from setpoint.certificates.evidence import Place
from setpoint.certificates.fixed_thresholds import holds, prove_there
from setpoint.certificates.goals import ACCEPTED, REJECTED, Atom, Goal, atoms
from setpoint.certificates.order_statistics import Limit, limit
from setpoint.certificates.precision_walk import Stretch, Walked, walk
from setpoint.certificates.records import CERTIFIED, INFEASIBLE, NOT_CERTIFIED, CannotPromise
from setpoint.certificates.regions import spread
from setpoint.certificates.sample import PRIOR, Sample, signs
from setpoint.certificates.selection import choose, measure, merit_of, prefers_low
from setpoint.certificates.split_test import Beside, Trial, prove

Proved = dict[Atom, tuple[float | None, str]]


@dataclass(frozen=True)
class Found:
    """A verdict; the place, if there is one; and for each atom what is proved and from what."""

    status: str
    place: Place | None
    proved: Proved
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Families:
    """The atoms of a goal by how they are proved."""

    caps: list[Atom]
    floors: list[Atom]
    walks: list[Atom]
    rest: list[Atom]

    @classmethod
    def of(cls, found: Sequence[Atom]) -> Families:
        """Sort atoms into families."""
        open_ = [a for a in found if a.caps is None]
        walks = [a for a in open_ if a.kind in (ACCEPTED, REJECTED)]
        rest = [a for a in open_ if a not in walks]
        caps, floors = ([a for a in found if a.caps is side] for side in (True, False))
        return cls(caps, floors, walks, rest)

    def __len__(self) -> int:
        return bool(self.caps) + bool(self.floors) + len(self.walks) + bool(self.rest)


# Why there is no threshold: goals that ask for nothing, bounds that clash, proofs that fail.


def check_asks(goal: Goal, every: list[Atom], prevalence: float | None) -> None:
    """A gap alone is closed where nobody is accepted."""
    parts = [part for atom in every for part in signs(atom.bound.expression, prevalence)]
    for end in (0.0, 1.0):
        box = {p: (np.array([0.5 if p.kind == PRIOR else end]),) * 2 for p in parts}
        with np.errstate(all="ignore"):
            values = [float(spread(a.bound.expression, box, prevalence)[0][0]) for a in every]
        if not all(map(holds, every, values)):
            return
    raise CannotPromise(
        f"`{goal.text}` holds where nobody is accepted. Add a bound, such as fpr <= 0.1, or an "
        "objective, as in 'maximize recall subject to ...'."
    )


def clash(limits: dict[Atom, Limit], walked: dict[Atom, Walked], sample: Sample) -> tuple[str, ...]:
    """Where each bound is proved, when that is nowhere together."""
    notes = [found.note for found in walked.values() if found.note]
    if notes:
        return tuple(notes)
    for atom, found in limits.items():
        assert found.place is not None
        side = "from" if atom.caps else "up to"
        notes.append(f"`{atom.source}` is proved {side} {found.place.threshold(sample):.6g}")
    for atom, seen in walked.items():
        ends = ", ".join(f"{s.low:.6g} to {s.high:.6g}" for s in seen.stretches)
        notes.append(f"`{atom.source}` is proved from {ends}")
    return ("no threshold satisfies all bounds: " + "; ".join(notes),)


def failed(
    rest: list[Atom], trials: list[Trial], sample: Sample, prevalence: float | None
) -> Iterator[str]:
    """For each bound that failed, how near it came."""
    for trial in trials[:1]:
        for atom, value in zip(rest, trial.proved, strict=True):
            if not holds(atom, value):
                seen = float(measure(atom.bound.expression, sample, trial.threshold, prevalence))
                side = "at most" if atom.bound.sense == "<=" else "at least"
                yield (
                    f"`{atom.bound}` is not proved: {seen:.4g} was measured, and {side} "
                    f"{value:.4g} is proved"
                )


# One threshold that satisfies all bounds, each proved in the way of its kind.
#
# Bounds that fall together under one argument form a family: all caps, all floors, each walk, all
# the rest. Families share ``delta`` equally; a threshold is admissible if every family has proved
# it.


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
