"""In which order a front is walked: the ends first, then every point from a finished neighbour.

A leg depends on nothing but its start and the two ends, so the result is the same on one process or
on eight, and whatever is finished need not be walked again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple, get_args

Order = Literal["tighten", "loosen", "inward", "bisect"]
ORDERS: tuple[str, ...] = get_args(Order)


class Leg(NamedTuple):
    """One point to train: its place on the grid, and the place whose weights it starts from."""

    place: int
    start: int | None  # None: a fresh model


def route(points: int, order: Order) -> tuple[Leg, ...]:
    """All legs of a front; a leg stands behind the one it starts from.

    Args:
        points: How many, both ends included: place 0 has the smallest held objective.
        order: ``tighten`` walks from the last place down, ``loosen`` from the first place up,
            ``inward`` from both ends to the middle (two chains), ``bisect`` halves the widest gap
            (as many chains as there are processes, but longer jumps).

    Example:
        >>> [tuple(leg) for leg in route(5, "inward")]
        [(0, None), (4, None), (1, 0), (3, 4), (2, 1)]
    """
    last = points - 1
    ends = [Leg(0, None), Leg(last, None)]
    if order == "tighten":
        inner = [Leg(place, place + 1) for place in range(last - 1, 0, -1)]
    elif order == "loosen":
        inner = [Leg(place, place - 1) for place in range(1, last)]
    elif order == "inward":
        middle = last / 2
        inner = [Leg(p, p - 1) for p in range(1, last) if p <= middle]
        inner += [Leg(p, p + 1) for p in range(last - 1, 0, -1) if p > middle]
        inner.sort(key=lambda leg: min(leg.place, last - leg.place))
    else:
        inner = list(_halves(0, last))
    return (*ends, *inner)


def ready(legs: Collection[Leg], done: Collection[int]) -> list[Leg]:
    """The legs that can be walked now: not done, both ends and their own start done."""
    ends = [leg.place for leg in legs if leg.start is None]
    ends_done = all(place in done for place in ends)
    return [
        leg
        for leg in legs
        if leg.place not in done and (leg.start is None or (ends_done and leg.start in done))
    ]


def _halves(low: int, high: int) -> Iterator[Leg]:
    """The middle of every open gap, widest gaps first; it starts from the upper neighbour."""
    gaps = [(low, high)]
    while gaps:
        below, above = gaps.pop(0)
        if above - below > 1:
            middle = (below + above + 1) // 2
            yield Leg(middle, above)
            gaps += [(below, middle), (middle, above)]
