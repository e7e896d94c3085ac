"""How much of a less important loss a direction may take: what earlier steps say about harm.

A batch's gradient is mostly noise, so that neither its length nor its angle to another one says
what a loss does to the next on average. Running means do: of ``n`` noisy gradients the mean is
``n`` times shorter in the square than they are, of exact ones it is as long. That ratio tells how
*clear* the gradients of a level are, from 0 (noise) to 1 (exact), and both limits depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from setpoint.solvers.barrier.quadratic import Vector

TRUST, TRUST_EXACT = 0.5, 4.0
"""How long the mean of the less important part may be next to that of the level: noise, exact."""
PATIENCE, HASTE, RUSH = 0.01, 0.5, 0.8
"""Of its own descent, what a level keeps: of exact gradients little while the next loss has a way
to go and most of it once the two oppose each other; half where gradients are noise."""
OPPOSED = 0.5
"""Sine of the angle between two gradients below which they begin to count as opposed."""


@dataclass(frozen=True)
class Seen:
    """What earlier steps said about each level: see ``LEARNT`` in the ledger.

    Attributes:
        numbers: Running means of squares, one number for each level.
        pace: The share of this step in the means of gradients.
        spent: The sum of the squared shares of all steps in them: 1 / n for a plain mean of n.
        looks: How many steps there were before this one.
        weights: Of all losses in the last step; empty before.
    """

    numbers: Mapping[str, Vector]
    pace: float
    spent: float
    looks: int
    weights: Vector


def learn(learnt: dict[str, Vector], i: int, length: float, square: float, seen: Seen) -> float:
    """Enter a step into the running squares; returns how clear the gradients of a level are.

    ``(|mean|^2 - spent * recent) / (1 - spent)`` is an unbiased estimate of the squared length of
    the true gradient, where ``recent`` is the same mean of squared lengths. Over those squares it
    is 1 for exact gradients that stay, next to 0 for noise, and less than 1 for exact ones that
    vanish faster than the mean forgets; so the larger one of now and of all steps counts.
    """
    learnt["recent"][i] += seen.pace * (length - learnt["recent"][i])
    signal = 0.0
    if seen.looks > 0:
        signal = (square - seen.spent * float(learnt["recent"][i])) / (1 - seen.spent)
        learnt["signal"][i] += (signal - learnt["signal"][i]) / seen.looks
    learnt["square"][i] += (length - learnt["square"][i]) / (seen.looks + 1)
    pairs = ((signal, learnt["recent"][i]), (learnt["signal"][i], learnt["square"][i]))
    return max(
        min(float(true / all_), 1.0) if all_ > 0 and true > 0 else 0.0 for true, all_ in pairs
    )


def trusted(
    learnt: Mapping[str, Vector],
    i: int,
    square: float,
    after: tuple[float, float],
    clear: float,
    looks: int,
) -> float:
    """The share at which the next gradient is as long as the level's direction allows.

    The means are compared, and, where gradients are noise, batches as well: the next one may not
    make a step noisier than it is. The next gradient counts with its root mean square of all
    steps: by its present length it would never come to rest at a minimum of its own.

    Args:
        learnt: Running squares; those of the next gradient are entered here.
        i: The level.
        square: Of the length of the level's mean direction.
        after: The same of the next gradient: its mean as far as gradients are noise, its batch.
        clear: How clear gradients are.
        looks: How many steps there were before this one.
    """
    lengths = []
    for name, value in zip(("next", "next_batch"), after, strict=True):
        learnt[name][i] += (value - learnt[name][i]) / (looks + 1)
        lengths.append(max(float(learnt[name][i]), value))
    allowed = max(square, clear * float(learnt["signal"][i]))
    if not lengths[0] or not lengths[1] or not allowed:
        return 1.0  # nothing to hurt, or nothing that could
    trust = TRUST * float((TRUST_EXACT / TRUST) ** clear)
    by_mean = trust * float(np.sqrt(allowed / lengths[0]))
    by_batch = float(np.sqrt(learnt["recent"][i] / lengths[1]))
    return min(by_mean, by_batch / (1 - clear)) if clear < 1 else by_mean


def harmless(
    gram: Vector, after: Vector, mean: Vector, asked: float, clear: float, helped: float
) -> float:
    """The share at which a direction keeps what its level asks for of its own descent.

    Args:
        gram: Dot products.
        after: The next gradient, ``mean``: the level's direction, both in terms of ``gram``.
        mean: See above.
        asked: What the level asks for (eq. 8).
        clear: How clear its gradients are.
        helped: What still later losses do for the level: it counts as kept, so that a direction
            which one of them opposes is as short as if there were less to hold against.
    """
    square, pull = float(mean @ gram @ mean), float(after @ gram @ mean)
    if pull >= 0:
        return inf
    sine = max(1 - pull**2 / (square * float(after @ gram @ after)), 0.0) ** 0.5
    opposed = max(0.0, 1 - (sine / OPPOSED) ** 2)
    most = HASTE + (RUSH - HASTE) * clear * opposed
    part = max(HASTE + (PATIENCE - HASTE) * clear, most * opposed)
    return float((square - min(part * asked, most * square) + helped) / -pull)
