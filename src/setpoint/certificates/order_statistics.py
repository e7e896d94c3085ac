"""Bounds that move one way with the threshold: the last threshold at which they can be proved.

``fpr <= alpha``. The accepted share of the negatives falls as the threshold rises, so there is one
true limit: the bound holds from there on. Test the bound at every threshold, from the strictest on
downwards, each time with the exact binomial tail ``P(Bin(n, alpha) <= false alarms) <= delta``, and
stop where it fails. To end below the true limit, the test *at* the limit must have been passed,
which happens with probability at most ``delta``: one test counts, though all were made. The last
threshold that passes is an order statistic, the ``(m + 1)``-th largest negative score with ``m``
the largest count that passes; ``FPR(T) ~ Beta(m + 1, n - m)`` if scores are continuous, and less
with ties, since equal scores are rejected together.

The argument uses no more than one valid test for each fixed threshold, so it also covers monotone
bounds on several parts (0.5 fpr on a + 0.5 fpr on b), and several bounds in the same direction at
once: the strictest limit decides, and only the test there counts. Bounds in two directions (fpr and
recall) share ``delta``.

``guarantee="mean"``: conformal risk control. The next negative exceeds the ``(m + 1)``-th largest
of ``n`` with probability at most ``(m + 1) / (n + 1)``, so the false positive rate is ``alpha`` *on
average* over calibration samples; about every other one of them is above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from setpoint.certificates.evidence import Place, scaled
from setpoint.certificates.fixed_thresholds import excess, holds, proved_at
from setpoint.certificates.goals import Atom, Share
from setpoint.certificates.regions import gather, largest
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
from setpoint.certificates.tails import (
    allowed,
    allowed_on_average,
    lower,
    needed,
    needed_on_average,
    upper,
)


@dataclass(frozen=True)
class Limit:
    """Up to where a bound is proved: from ``place`` on upwards (a cap) or downwards (a floor)."""

    place: Place | None
    proved: float | None
    """What is proved of the bound's expression: a little more than was asked for."""
    note: str
    """The counts behind it, or what is missing."""


def limit(
    atom: Atom, sample: Sample, delta: float, prevalence: float | None, mean: bool = False
) -> Limit:
    """The last threshold at which a monotone bound can be proved."""
    if atom.share is not None and atom.kind in (POSITIVES, NEGATIVES, EVERYONE):
        return _of_share(atom, atom.share, sample, delta, mean)
    if mean:
        raise ValueError(
            f'`{atom.source}`: guarantee="mean" is for bounds on one kind of examples '
            "(fpr, recall, fnr, tnr, coverage)."
        )
    return _of_several(atom, sample, delta, prevalence)


def _of_share(atom: Atom, share: Share, sample: Sample, delta: float, mean: bool) -> Limit:
    n = sample.size(share.part)
    risk = share.limit if share.at_most else 1 - share.limit
    m = allowed_on_average(n, risk) if mean else allowed(n, risk, delta)
    if m < 0:
        count = needed_on_average(risk) if mean else needed(risk, delta)
        return Limit(None, None, _missing(atom, share.part, n, count))
    scores = sample.sorted(share.part)
    if share.at_most:
        place = Place(float(scores[n - m - 1]), anchor=share.part)
        reached = (m + 1) / (n + 1) if mean else float(upper(m, n, delta))
    else:
        place = Place(float(scores[m]), inclusive=True, anchor=share.part)
        reached = (n - m) / (n + 1) if mean else float(lower(n - m, n, delta))
    side = "above" if share.at_most else "at or below"
    note = f"at most {m:,} of {have(n, share.part)} may lie {side} the threshold"
    return Limit(place, share.value(reached), note)


def _missing(atom: Atom, part: Part, n: int, count: int | None) -> str:
    if count is None:
        return f"no number of examples can prove `{atom.source}`: bound it away from the end"
    return f"`{atom.source}` needs {have(count, part)}, you have {n:,}"


def _of_several(atom: Atom, sample: Sample, delta: float, prevalence: float | None) -> Limit:
    """By bisection over all scores: the proof gets easier in one direction."""
    caps, parts = bool(atom.caps), _scored(atom, prevalence)
    scores = np.unique(np.concatenate([sample.sorted(part) for part in parts]))
    scores = scores if caps else scores[::-1]  # the last one is the easiest to prove

    def proved(i: int) -> float:
        place = Place(float(scores[i]), inclusive=not caps)
        return proved_at(atom, sample, lambda _: place, delta, prevalence)

    low, high = -1, len(scores) - 1
    if not holds(atom, proved(high)):
        return Limit(None, None, _scarce(atom, parts, sample, delta, prevalence))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(atom, proved(middle)) else (middle, high)
    counted = ", ".join(have(sample.size(part), part) for part in parts)
    place = Place(float(scores[high]), inclusive=not caps, chosen=True)
    return Limit(place, proved(high), f"from {counted}")


def _scored(atom: Atom, prevalence: float | None) -> list[Part]:
    """The parts whose scores decide."""
    return [p for p in signs(atom.bound.expression, prevalence) if p.kind != PRIOR]


def _scarce(
    atom: Atom, parts: list[Part], sample: Sample, delta: float, prevalence: float | None
) -> str:
    """How many times as many examples could prove it, if all of them went right."""
    turned, level = excess(atom)
    end = np.inf if atom.caps else -np.inf
    known, apart = gather(turned, sample, lambda _: Place(float(end)), prevalence)
    for factor in _FACTORS:
        more = {part: scaled(seen, factor) for part, seen in known.items()}
        if largest(turned, more, delta, prevalence, apart) <= level:
            need = " and ".join(have(round(factor * sample.size(part)), part) for part in parts)
            return f"`{atom.source}` needs about {need}, {factor:.2g} times what you have"
    return f"`{atom.source}` cannot be proved with any number of such examples"


_FACTORS = tuple(1.25**i for i in range(1, 60))
