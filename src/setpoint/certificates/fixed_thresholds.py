"""What is proved at thresholds that were fixed before the data were looked at."""

from __future__ import annotations

from setpoint.certificates.evidence import Place
from setpoint.certificates.goals import Atom
from setpoint.certificates.regions import Places, gather, largest
from setpoint.certificates.sample import PRIOR, Part, Sample, signs
from setpoint.certificates.tails import lower, upper
from setpoint.rates import Expression


def excess(atom: Atom) -> tuple[Expression, float]:
    """The bound as ``expression <= level``."""
    if atom.bound.sense == "<=":
        return atom.bound.expression, atom.bound.level
    return -atom.bound.expression, -atom.bound.level


def holds(atom: Atom, proved: float) -> bool:
    """Whether a proved value of the bound's expression proves the bound."""
    return proved <= atom.bound.level if atom.bound.sense == "<=" else proved >= atom.bound.level


def proved_at(
    atom: Atom,
    sample: Sample,
    places: Places,
    delta: float,
    prevalence: float | None,
    quick: bool = False,
) -> float:
    """A value that the bound's expression does not pass, wrong with probability ``delta``.

    If it is to be ``quick``, several parts get by with the union bound.
    """
    if atom.share is not None:
        place = places(atom.share.part.where)
        table = sample.table(atom.share.part.where, place.threshold(sample), None)
        count, n = atom.share.counts(table)
        side = upper if atom.share.at_most else lower
        return atom.share.value(float(side(count, n, delta)))
    turned, _ = excess(atom)
    known, apart = gather(turned, sample, places, prevalence)
    bound = largest(turned, known, delta, prevalence, apart and not quick)
    return bound if atom.bound.sense == "<=" else -bound


def at(threshold: float) -> Places:
    """One fixed threshold for everyone."""
    place = Place(threshold)
    return lambda _: place


# Bounds on several parts at a threshold that other bounds have decided: gaps at fpr <= 0.01.
#
# The threshold is a rank of its anchor, fixed in advance. ``|a - b| <= gap`` is two inequalities.
# If no part overlaps the anchor, their tests are exact given the threshold; a claim needs all tests
# passed, so it is false with probability ``delta`` at most, however many there are. If the anchor
# is one of the parts, the inequalities share ``delta``.


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
