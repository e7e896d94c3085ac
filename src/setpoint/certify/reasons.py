"""Why there is no threshold: goals that ask for nothing, bounds that clash, proofs that fail."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from setpoint.certify.fixed import holds
from setpoint.certify.forms import Atom
from setpoint.certify.goals import Goal
from setpoint.certify.limits import Limit
from setpoint.certify.parts import PRIOR, signs
from setpoint.certify.pick import measure
from setpoint.certify.pilots import Trial
from setpoint.certify.ranges import spread
from setpoint.certify.records import CannotPromise
from setpoint.certify.samples import Sample
from setpoint.certify.walks import Walked


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
