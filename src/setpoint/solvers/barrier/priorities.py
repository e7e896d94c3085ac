"""Lexicographic directions: a loss is made small only where it does not hurt those before it.

As printed, ``v = grad f + u grad g`` with ``push = beta |grad g|^2``. Three things go wrong. The
multiplier ``u`` grows without bound as the main loss is solved, and a fixed step then overshoots.
Far from there ``u`` is about 1, so the units of ``f`` decide how much of it enters. And a batch's
``grad g`` is mostly noise, so that ``u`` does not see that ``f`` hurts ``g`` on average.

Here ``v = grad g + share grad f``: the same path on another clock, on which the main loss keeps its
learning rate. The share comes from a running mean of ``grad g``, with two limits:

* **Harm.** Of the mean's own descent a part is asked for and kept: little while the secondary loss
  has a way to go and gradients are exact (then this is eq. 4, to that factor), half once the two
  gradients oppose each other (then the secondary loss is as small as this level of the main loss
  allows), and half where gradients are noisy.
* **Trust.** ``share grad f`` is at most half as long as the mean, whatever the units of ``f``.
  Without noise the mean vanishes as the main loss is solved, while ``f`` may still have a way to go
  along the solutions. There the root mean square of *all* steps stands in for it: it falls like
  ``1 / sqrt(step)``, so that shares vanish but their sum does not (the condition of Solodov, 2007,
  for descent methods to find the lexicographic optimum).

How noisy gradients are is measured: a mean of ``n`` noisy gradients is ``n`` times shorter in the
square than they are, of exact ones it is as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from setpoint.solvers.barrier.directions import Direction, kkt_score, relative_length
from setpoint.solvers.barrier.push import Push
from setpoint.solvers.barrier.quadratic import Mask, Vector

PATIENCE = 0.01
"""Of the descent of the main loss, what is asked for while the secondary loss has a way to go."""
HASTE = 0.5
"""The same where it has none, or where gradients are noise."""
SETTLED = 0.3
"""Sine of the angle between the gradients below which they count as opposed."""
TRUST = 0.5
"""Length of the secondary part relative to the mean, if gradients are noise,"""
TRUST_EXACT = 2.0
"""and if they are exact."""
LARGEST = 1e12
"""What the multiplier is called where the secondary loss has no share at all."""


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


def ranked(gram: Vector, gaps: Vector, seen: Seen, push: Push) -> Direction:
    """The direction of the last loss after all others, in order of priority.

    Each level has a direction of its own: that of the level before it and a share of the next
    gradient, small enough not to hurt any direction before.

    Args:
        gram: Dot products of this step's gradients, the most important loss first, the objective
            last, then of the running means of all but the last, ``[2 m + 1, 2 m + 1]``.
        gaps: How far each loss but the last is above its lower bound (infinite if none is known).
        seen: What earlier steps said.
        push: What each level asks for.
    """
    levels = len(gaps)
    unit = np.eye(len(gram))
    now, mean = unit[0], unit[levels + 1]
    learnt = {name: values.copy() for name, values in seen.numbers.items()}
    above: list[tuple[Vector, float, float]] = []
    shares, binds, pushes = np.zeros(levels), np.zeros(levels, dtype=bool), np.zeros(levels)
    for i in range(levels):
        square = float(mean @ gram @ mean)
        side = float(gram[i + 1, i + 1])
        clear = _learn(learnt, i, float(now @ gram @ now), square, side, seen)
        pushes[i] = push(float(gaps[i]), square**0.5)
        above.append((mean, pushes[i], clear))
        trusted = _trusted(learnt, i, square, side, clear)
        harmless = min(_harmless(gram, i + 1, *each, seen.weights) for each in above)
        shares[i], binds[i] = min(trusted, harmless), harmless < trusted
        now = now + shares[i] * unit[i + 1]
        if i + 1 < levels:
            mean = mean + shares[i] * unit[levels + 2 + i]
    return _direction(gram, above[-1][0], now[: levels + 1], shares, binds, pushes, learnt)


def _learn(
    learnt: dict[str, Vector], i: int, length: float, square: float, side: float, seen: Seen
) -> float:
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
    for name, value in (("square", length), ("side", side)):
        learnt[name][i] += (value - learnt[name][i]) / (seen.looks + 1)
    pairs = ((signal, learnt["recent"][i]), (learnt["signal"][i], learnt["square"][i]))
    return max(
        min(float(true / all_), 1.0) if all_ > 0 and true > 0 else 0.0 for true, all_ in pairs
    )


def _trusted(
    learnt: Mapping[str, Vector], i: int, square: float, side: float, clear: float
) -> float:
    """The share at which the next gradient is as long as the level's direction allows.

    The next gradient counts with its root mean square of all steps: by its present length it would
    never come to rest at a minimum of its own.
    """
    own = max(float(learnt["side"][i]), side)
    allowed = max(square, clear * float(learnt["signal"][i]))
    trust = TRUST + (TRUST_EXACT - TRUST) * clear
    return trust * float(np.sqrt(allowed / own)) if own > 0 else 0.0


def _harmless(
    gram: Vector, side: int, mean: Vector, asked: float, clear: float, weights: Vector
) -> float:
    """The share at which a direction keeps what its level asks for of its own descent.

    What later losses do for it counts as kept: where one of them pulls back, the direction is as
    short as if there were less to hold against.
    """
    square, pull = float(mean @ gram @ mean), float(gram[side] @ mean)
    if pull >= 0:
        return inf
    sine = max(1 - pull**2 / (square * float(gram[side, side])), 0.0) ** 0.5
    opposed = max(0.0, 1 - (sine / SETTLED) ** 2)
    part = max(HASTE + (PATIENCE - HASTE) * clear, HASTE * opposed)
    later = gram[side + 1 : len(weights)] @ mean
    helped = float(weights[side + 1 :] @ np.maximum(later, 0.0))
    return float((square - min(part * asked, HASTE * square) + helped) / -pull)


def _direction(
    gram: Vector,
    mean: Vector,
    weights: Vector,
    shares: Vector,
    binds: Mask,
    pushes: Vector,
    learnt: Mapping[str, Vector],
) -> Direction:
    """What the report wants to know: the last loss against all that is more important."""
    levels = len(shares)
    two = np.stack([mean, np.eye(len(gram))[levels]])
    small = two @ gram @ two.T  # the mean direction above, and the last gradient
    above, pull = float(small[0, 0]), float(small[1, 0])
    wanted = np.array([pushes[-1] - pull, -pull])
    both = np.maximum(wanted, 0.0) / above if above > 0 else np.zeros(2)
    return Direction(
        weights=weights,
        multipliers=1 / np.maximum(shares, 1 / LARGEST),
        printed=np.full(levels, both[0]),
        pushes=pushes,
        score=kkt_score(small, np.array([both[0], 1.0]), pushes[-1:], np.zeros(1, dtype=bool)),
        residual=relative_length(small, np.array([both[1], 1.0])),
        opposed=False,
        binds=binds,
        learnt=learnt,
    )
