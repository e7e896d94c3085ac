"""What is proved at thresholds that were fixed before the data were looked at."""

from __future__ import annotations

from setpoint.certify.forms import Atom
from setpoint.certify.places import Place
from setpoint.certify.ranges import Places, gather, largest
from setpoint.certify.samples import Sample
from setpoint.certify.tails import lower, upper
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
