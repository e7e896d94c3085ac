"""One bound on a rate that goes one way along the sorted scores: the case people train most.

The cuts that keep such a bound are a stretch from one end, found by bisection, and the best of them
is one look at the stretch. In plain floats of one output it takes a sixth of the general scan.
"""

from __future__ import annotations

import numpy as np

from setpoint.problems.cuts import Cuts
from setpoint.problems.holds import Hold
from setpoint.problems.placement import Placement
from setpoint.rates import Array

Ends = tuple[int, int, float]


def place_in_stretch(
    cuts: Cuts, hold: Hold, value: Array, cost: Array, slack: float
) -> Placement | None:
    """The placement of the general scan, for ``value`` and ``cost`` at every cut, ``[n + 1]``.

    None where there is no stretch to look at: nobody is there, or the rate is 0/0.
    """
    here = int(cuts.present[0])
    if not here or value[0] != value[0]:
        return None
    first, last, violation = _stretch(hold, value)
    part, scores = cost[first : last + 1], cuts.scores[0]
    apart = np.ones(len(part), bool)  # equal scores are never split
    inner = slice(max(first, 1), min(last, len(scores) - 1) + 1)
    apart[inner.start - first : inner.stop - first] = _apart(scores, inner)
    lowest = part[apart].min()
    cut = first + int((apart & (part <= lowest + slack)).nonzero()[0][-1])
    return _seat(cuts, hold, value, min(cut, here), violation)


def _stretch(hold: Hold, value: Array) -> Ends:
    """The first and last cut that miss the bound least, and by how much that is."""
    direction, close = hold.direction, hold.tolerance
    rising, level = (value, hold.levels[0]) if direction > 0 else (-value, -hold.levels[0])
    end = len(rising) - 1
    missed = float(rising[0] - level if hold.caps else level - rising[end])
    missed = missed if missed > close else 0.0
    if hold.caps:
        return 0, max(0, int(rising.searchsorted(level + missed + close, "right")) - 1), missed
    return min(end, int(rising.searchsorted(level - missed - close))), end, missed


def _apart(scores: Array, inner: slice) -> Array:
    """Whether these cuts, neither the first nor the last of all, split no equal scores."""
    return scores[inner.start - 1 : inner.stop - 1] > scores[inner]


def _seat(cuts: Cuts, hold: Hold, value: Array, cut: int, violation: float) -> Placement:
    """The threshold that makes ``cut``, and whether the bound keeps it there."""
    scores, here = cuts.scores[0], int(cuts.present[0])
    accepted, rejected = float(scores[max(cut - 1, 0)]), float(scores[min(cut, here - 1)])
    beyond = cut
    if hold.caps and cut < here:
        beyond = int(cuts.rising[0].searchsorted(-rejected, "right"))
    elif not hold.caps and cut:
        beyond = int(cuts.rising[0].searchsorted(-accepted))
    now, there = (float(hold.gap(value[k], hold.levels[0])) for k in (cut, beyond))
    holds = now <= hold.tolerance < there
    rejects = holds and bool(hold.caps)
    middle = accepted / 2 + rejected / 2
    middle = middle if middle < accepted else rejected  # adjacent floats have no middle
    at = -float("inf") if cut >= here else rejected if rejects or not cut else middle
    numbers = (cut, at, rejected if rejects else accepted, violation, holds)
    cuts_, threshold, marginal, missed, holding = (np.array([[x]]) for x in numbers)
    return Placement(cuts_, threshold, marginal, [holding], missed)
