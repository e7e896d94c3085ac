"""Bounds on several parts at a threshold that other bounds have decided: gaps at fpr <= 0.01.

The threshold is a rank of its anchor, fixed in advance. ``|a - b| <= gap`` is two inequalities. If
no part overlaps the anchor, their tests are exact given the threshold; a claim needs all tests
passed, so it is false with probability ``delta`` at most, however many there are. If the anchor is
one of the parts, the inequalities share ``delta``.
"""

from __future__ import annotations

from setpoint.certify.fixed import excess, holds
from setpoint.certify.forms import Atom
from setpoint.certify.parts import PRIOR, Part, signs
from setpoint.certify.places import Place
from setpoint.certify.ranges import Places, gather, largest
from setpoint.certify.samples import Sample


def prove_there(
    atoms: list[Atom], sample: Sample, places: Places, delta: float, prevalence: float | None
) -> tuple[tuple[float, ...], bool]:
    """What is proved of each bound's expression at decided places, and whether all bounds hold."""
    asked = [p for a in atoms for p in signs(a.bound.expression, prevalence) if p.kind != PRIOR]
    free = not any(_entangled(places(part.where), part) for part in asked)
    tail = delta / (1 if free else len(atoms))
    proved = []
    for atom in atoms:
        turned, _ = excess(atom)
        known, apart = gather(turned, sample, places, prevalence)
        bound = largest(turned, known, tail, prevalence, apart)
        proved.append(bound if atom.bound.sense == "<=" else -bound)
    return tuple(proved), all(map(holds, atoms, proved))


def _entangled(place: Place, part: Part) -> bool:
    """Whether the place may depend on the examples of a part."""
    return place.chosen or place.anchor is None or part.overlaps(place.anchor)
