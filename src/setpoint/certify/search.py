"""One threshold that satisfies all bounds, each proved in the way of its kind.

Bounds that fall together under one argument form a family: all caps, all floors, each walk, all the
rest. Families share ``delta`` equally; a threshold is admissible if every family has proved it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from setpoint._checks import plural
from setpoint.certify.candidates import Candidate, test_places
from setpoint.certify.forms import Atom, atoms
from setpoint.certify.goals import Goal
from setpoint.certify.limits import Limit, limit
from setpoint.certify.pick import best, choose, is_of_accepted, measure
from setpoint.certify.places import Place
from setpoint.certify.records import CERTIFIED, INFEASIBLE, NOT_CERTIFIED
from setpoint.certify.samples import Sample
from setpoint.certify.walks import Stretch, Walked, walk


@dataclass(frozen=True)
class Found:
    """A verdict; the place, if there is one; and for each atom what is proved and from what."""

    status: str
    place: Place | None
    proved: dict[Atom, tuple[float | None, str]]
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
        walks = [a for a in found if a.caps is None and a.share is not None]
        rest = [a for a in found if a.caps is None and a.share is None]
        caps, floors = ([a for a in found if a.caps is side] for side in (True, False))
        return cls(caps, floors, walks, rest)

    def __len__(self) -> int:
        return bool(self.caps) + bool(self.floors) + len(self.walks) + bool(self.rest)


def search(goal: Goal, sample: Sample, delta: float, prevalence: float | None, mean: bool) -> Found:
    """The threshold that the objective likes best among those that are proved."""
    every = [atom for bound in goal.bounds for atom in atoms(bound, prevalence)]
    families = Families.of(every)
    if mean and (len(families) > 1 or families.walks or families.rest):
        raise ValueError(
            'guarantee="mean" holds for bounds that pull the threshold one way; '
            f'`{goal.text}` does not. Use guarantee="pac".'
        )
    tail = delta / len(families)
    limits = {a: limit(a, sample, tail, prevalence, mean) for a in families.caps + families.floors}
    walked = {atom: walk(atom, sample, tail) for atom in families.walks}
    proved = {a: (found.proved, found.note) for a, found in limits.items()}
    proved |= {atom: (atom.bound.level, "") for atom in walked}
    missing = [found.note for found in limits.values() if found.place is None]
    missing += [found.note for found in walked.values() if not found.feasible]
    if missing:
        return Found(INFEASIBLE, None, proved, tuple(missing))
    low, high = (_strictest(side, limits, sample) for side in (families.caps, families.floors))
    open_ = _meet(low, high, list(walked.values()), sample)
    if not open_:
        return Found(NOT_CERTIFIED, None, proved, _clash(limits, walked, sample))
    if not families.rest:
        place = choose(goal, sample, prevalence, low, high, open_)
        return Found(CERTIFIED, place, proved)
    forced = [place for place in (low, high) if place is not None]
    tested = test_places(families.rest, sample, tail, prevalence, forced)
    passed = [c for c in tested if c.holds and _inside(c.place.threshold(sample), open_)]
    if not passed:
        notes = tuple(_failed(families.rest, tested, sample, prevalence))
        notes = notes or (f"no threshold that was tried satisfies all of `{goal.text}`",)
        return Found(NOT_CERTIFIED, None, proved, notes)
    taken = _preferred(passed, families.rest, goal, sample, prevalence)
    counts = f"one of {plural(len(tested), 'rank')} fixed in advance" if not forced else ""
    proved |= {a: (value, counts) for a, value in zip(families.rest, taken.proved, strict=True)}
    return Found(CERTIFIED, taken.place, proved)


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


def _inside(threshold: float, open_: Sequence[Stretch]) -> bool:
    return any(stretch.low <= threshold <= stretch.high for stretch in open_)


def _preferred(
    passed: list[Candidate],
    rest: list[Atom],
    goal: Goal,
    sample: Sample,
    prevalence: float | None,
) -> Candidate:
    """What the objective likes best.

    Without one the lowest threshold for precision, else what is proved with the most to spare.
    """
    if goal.objective is not None:
        at = [c.place.threshold(sample) for c in passed]
        values = measure(goal.objective, sample, at, prevalence)
        return passed[best(values, goal.maximize)]
    if any(is_of_accepted(bound.expression) for bound in goal.bounds):
        return min(passed, key=lambda c: c.place.threshold(sample))

    def spare(candidate: Candidate) -> float:
        gaps = zip(rest, candidate.proved, strict=True)
        return min(abs(atom.bound.level - value) for atom, value in gaps)

    return max(passed, key=spare)


def _clash(
    limits: dict[Atom, Limit], walked: dict[Atom, Walked], sample: Sample
) -> tuple[str, ...]:
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


def _failed(
    rest: list[Atom], tested: list[Candidate], sample: Sample, prevalence: float | None
) -> Iterator[str]:
    """For each bound, how near it came."""
    for i, atom in enumerate(rest):
        turn = 1 if atom.bound.sense == "<=" else -1
        nearest = min(tested, key=lambda c: turn * c.proved[i])
        at = nearest.place.threshold(sample)
        value = float(measure(atom.bound.expression, sample, at, prevalence))
        side = "at most" if turn == 1 else "at least"
        if turn * nearest.proved[i] > turn * atom.bound.level:
            yield (
                f"`{atom.bound}` is not proved: at best {value:.4g} was measured, and {side} "
                f"{nearest.proved[i]:.4g} is proved"
            )
