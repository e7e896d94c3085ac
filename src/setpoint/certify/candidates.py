"""Everything else (F scores, error, gaps between groups): tested at ranks fixed in advance.

These bounds are about several parts of the data at once and do not move one way with the
threshold. The thresholds are ranks of one part, the anchor, fixed in advance; at each of them the
shares of the parts are bounded together (:mod:`setpoint.certify.regions`), and with them the
expression. Each of the ``g`` ranks gets ``delta / g``.

Two things keep ``g`` small. If a cap or a floor decides the threshold anyway (a gap of at most 0.02
at fpr <= 0.01), it is the only candidate. Otherwise a dozen ranks will do, since these rates are
flat around their best threshold.

``|a - b| <= gap`` is two inequalities. If no part overlaps the anchor, all tests are exact given
the threshold; a claim needs every test passed, so it is false with probability ``delta`` at most
however many there are. If the anchor is one of the parts, the inequalities share ``delta``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from setpoint.certify.forms import Atom
from setpoint.certify.limits import excess
from setpoint.certify.parts import NEGATIVES, POSITIVES, PRIOR, Part, signs
from setpoint.certify.places import Place
from setpoint.certify.ranges import gather, largest
from setpoint.certify.samples import Sample

OF_POSITIVES = (0.98, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.4, 0.3, 0.2)
OF_OTHERS = (0.9, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.06, 0.04, 0.02, 0.01, 0.005, 0.002, 0.001)
"""The shares of the anchor that are accepted."""


@dataclass(frozen=True)
class Candidate:
    """A place, and what is proved there of each bound's expression (a value, not yet a verdict)."""

    place: Place
    proved: tuple[float, ...]
    holds: bool


def test_places(
    atoms: list[Atom],
    sample: Sample,
    delta: float,
    prevalence: float | None,
    forced: list[Place],
) -> list[Candidate]:
    """What can be proved of all ``atoms`` at each place."""
    parts = [p for a in atoms for p in signs(a.bound.expression, prevalence) if p.kind != PRIOR]
    places = forced or ranked(sample, anchor_of(parts, sample))
    found = []
    for place in places:
        free = place.anchor is not None and not any(p.overlaps(place.anchor) for p in parts)
        tail = delta / len(places) / (1 if free else len(atoms))
        found.append(_test(atoms, sample, tail, prevalence, replace(place, tests=len(places))))
    return found


def anchor_of(parts: list[Part], sample: Sample) -> Part:
    """The part whose ranks the thresholds are: one that is not asked about, if there is one."""
    kinds = {part.kind for part in parts}
    if kinds == {POSITIVES}:
        return Part((), NEGATIVES)
    if kinds == {NEGATIVES}:
        return Part((), POSITIVES)
    own = [part for part in parts if part.kind == POSITIVES] or parts
    return max(own, key=sample.size)


def ranked(sample: Sample, anchor: Part) -> list[Place]:
    """Thresholds on ranks of ``anchor`` that depend on nothing but its size."""
    scores = sample.sorted(anchor)
    shares = OF_POSITIVES if anchor.kind == POSITIVES else OF_OTHERS
    ranks = np.unique([round(share * len(scores)) for share in shares])
    ranks = ranks[(ranks > 0) & (ranks < len(scores))]
    return [Place(float(scores[len(scores) - 1 - r]), anchor=anchor) for r in ranks]


def _test(
    atoms: list[Atom], sample: Sample, tail: float, prevalence: float | None, place: Place
) -> Candidate:
    proved, holds = [], True
    for atom in atoms:
        turned, level = excess(atom)
        # the tail is divided here, not once more by the evidence
        known, apart = gather(turned, sample, lambda _: replace(place, tests=1), prevalence)
        bound = largest(turned, known, tail, prevalence, apart)
        proved.append(bound if atom.bound.sense == "<=" else -bound)
        holds = holds and bound <= level
    return Candidate(place, tuple(proved), holds)
