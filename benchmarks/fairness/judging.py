"""What a classifier does on test data: its error, and how far apart its groups are."""

from itertools import permutations
from typing import Any

import numpy as np

from benchmarks.fairness.data import Part
from setpoint.results.measured import clopper_pearson

DOUBT = 0.05


def judged(rule: str, chances: np.ndarray, test: Part) -> dict[str, Any]:
    """Error, rates by group, the gap and what it is at least.

    ``chances`` are those of being accepted: 0 or 1 unless a method throws dice, which is then
    judged by its expectation.
    """
    shares = {}
    for name in sorted(set(test.g)):
        inside = test.g == name
        own = chances[inside & (test.y == 1) if rule == "equal opportunity" else inside]
        shares[name] = (float(own.sum()), len(own))
    rates = {name: count / n for name, (count, n) in shares.items()}
    wrong = np.where(test.y == 1, 1 - chances, chances)
    return {
        "error": float(wrong.mean()),
        "gap": max(rates.values()) - min(rates.values()),
        "gap_low": at_least(list(shares.values())),
        "rates": rates,
        "dice": float(np.mean((chances > 0.01) & (chances < 0.99))),
    }


def at_least(shares: list[tuple[float, int]]) -> float:
    """The lower end of a 95 % interval of the largest difference between groups.

    Newcombe's interval of a difference (square and add) from Clopper and Pearson's of each share;
    all pairs of groups share the 5 %.
    """
    sure = 1 - DOUBT / (len(shares) * (len(shares) - 1))
    ends = [clopper_pearson(round(count), n, sure) for count, n in shares]
    rates = [count / n for count, n in shares]
    found = [0.0]
    for i, j in permutations(range(len(shares)), 2):
        reach = np.hypot(max(0.0, rates[i] - ends[i].low), max(0.0, ends[j].high - rates[j]))
        found.append(rates[i] - rates[j] - float(reach))
    return max(found)
