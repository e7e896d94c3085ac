"""One front, measured: how even, how close to its levels, and how much area it claims."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint.pareto import Front

METHODS = ("barrier", "linear", "scaled linear", "tchebycheff")


def measured(front: Front) -> dict[str, Any]:
    """Plain numbers; area as a share of the box between the ends, which all methods have alike."""
    first, last = front.points[0], front.points[-1]
    box = abs((first.minimized - last.minimized) * (last.held - first.held))
    corner = (first.minimized, last.held)
    gaps = [abs(gap) for gap in front.gaps if gap is not None]
    inner = front.points[1:-1]
    width = abs(last.held - first.held)
    return {
        "unevenness": front.unevenness,
        "largest_gap": max(gaps) if gaps else None,
        "range": width,
        "area": front.hypervolume(corner) / box if box > 0 else 0.0,
        "not_dominated": sum(front.non_dominated),
        "points": len(front.points),
        "clear_of_ends": sum(0.02 * width < p.held - first.held < 0.98 * width for p in inner),
        "seconds": sum(p.seconds for p in front.points),
        "pairs": [list(p.pair) for p in front.points],
        "levels": [p.level for p in front.points],
        "measures": [dict(p.measures) for p in front.points],
    }


def below(theirs: list[dict[str, Any]], ours: list[dict[str, Any]]) -> list[float]:
    """How far a method's minimised loss lies below our front at the same held one, seed by seed.

    Our front is taken to be straight between its points; theirs count from a tenth to nine tenths
    of the way from end to end.
    """
    found = []
    fronts = {row["seed"]: sorted((held, least) for least, held in row["pairs"]) for row in ours}
    for row in (each for each in theirs if each["seed"] in fronts):
        held, least = np.array(fronts[row["seed"]]).T
        low, high = held[0] + 0.1 * np.ptp(held), held[-1] - 0.1 * np.ptp(held)
        gains = [np.interp(g, held, least) - f for f, g in row["pairs"] if low < g < high]
        found += [float(np.mean(gains))] if gains else []
    return found
