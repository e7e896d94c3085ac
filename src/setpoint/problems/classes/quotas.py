"""How many examples every class is to have."""

from __future__ import annotations

import numpy as np

from setpoint.problems.classes.data import Floats


def shared_out(wanted: dict[int, float], truth: Floats, weights: Floats) -> Floats:
    """What each class gets of the whole weight; whole numbers if all weights are 1."""
    total, quotas = float(weights.sum()), truth.astype(float)
    for column, weight in wanted.items():
        quotas[column] = min(weight, total)
    free = [i for i in range(len(quotas)) if i not in wanted]
    left = total - sum(quotas[i] for i in wanted)
    if free:
        own = quotas[free].sum()
        quotas[free] = quotas[free] * left / own if own > 0 else left / len(free)
    return whole_numbers(quotas, wanted, free) if np.all(weights == 1) else quotas


def whole_numbers(quotas: Floats, wanted: dict[int, float], free: list[int]) -> Floats:
    """Whole numbers near the quotas that add up to the same.

    A wanted count is rounded to the nearest, half down, as a setpoint is; the others take the rest.
    """
    total = round(float(quotas.sum()))
    counts = np.ceil(quotas - 0.5 - 1e-9)
    for column in wanted:
        counts[column] = min(counts[column], total)
    pool = free or list(wanted)
    while (short := total - int(counts.sum())) != 0:
        gaps = np.array([quotas[i] - counts[i] for i in pool])
        best = pool[
            int(
                np.argmax(gaps)
                if short > 0
                else np.argmin(np.where(counts[pool] > 0, gaps, np.inf))
            )
        ]
        counts[best] += 1 if short > 0 else -1
    return np.maximum(counts, 0.0)
