"""Lexicographic directions: a loss is made small only where it does not hurt those before it.

As printed, ``v = grad f + u grad g`` with ``push = beta |grad g|^2``. Three things go wrong. The
multiplier ``u`` grows without bound as the main loss is solved, and a fixed step then overshoots.
Far from there ``u`` is about 1, so the units of ``f`` decide how much of it enters. And a batch's
``grad g`` is mostly noise, so that ``u`` does not see that ``f`` hurts ``g`` on average.

Here ``v = grad g + share grad f``: the same path on another clock, on which the main loss keeps its
learning rate. The share comes from running means of both gradients, with two limits:

* **Harm.** Of the mean's own descent a part is asked for and kept: little while the secondary loss
  has a way to go and gradients are exact (then this is eq. 4, to that factor), most of it once the
  two gradients oppose each other (then the secondary loss is as small as this level of the main
  loss allows), and half where gradients are noisy.
* **Trust.** Of noisy gradients, ``share`` times the mean of ``grad f`` is at most half as long as
  the mean of ``grad g``, whatever the units of ``f``. Without noise the mean vanishes as the main
  loss is solved, while ``f`` may still have a way to go along the solutions. There the root mean
  square of *all* steps stands in for it: it falls like ``1 / sqrt(step)``, so that shares vanish
  but their sum does not (the condition of Solodov, 2007, for descent methods to find the
  lexicographic optimum).

Parameters that the main loss does not reach, such as those of another head, cannot hurt it: there
``f`` keeps its learning rate.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from setpoint.solvers.barrier.directions import Direction, kkt_score, relative_length
from setpoint.solvers.barrier.push import Push
from setpoint.solvers.barrier.quadratic import Mask, Vector
from setpoint.solvers.barrier.shares import Seen, harmless, learn, trusted

LEAST = 1e-12
"""The share of a loss that may have none: on what it alone reaches, others are measured by it."""


def ranked(grams: Vector, gaps: Vector, seen: Seen, push: Push) -> Direction:
    """The direction of the last loss after all others, in order of priority.

    Each level has a direction of its own: that of the level before it and a share of the next
    gradient, small enough not to hurt any direction before.

    Args:
        grams: Dot products of this step's gradients, the most important loss first, the objective
            last, then of their running means, ``[m + 1, 2 m + 2, 2 m + 2]``: on the parameters
            that the first loss reaches, on those that the second one is the first to reach, and
            so on. There the first one that reaches them has the weight 1.
        gaps: How far each loss but the last is above its lower bound (infinite if none is known).
        seen: What earlier steps said.
        push: What each level asks for.
    """
    levels = len(gaps)
    gram, (rows, means) = grams[0], np.split(np.eye(2 * levels + 2), 2)
    now, mean = rows[0], means[0]
    learnt = {name: values.copy() for name, values in seen.numbers.items()}
    above: list[tuple[Vector, float, float]] = []
    shares, binds, pushes = np.zeros(levels), np.zeros(levels, dtype=bool), np.zeros(levels)
    for i in range(levels):
        square = float(mean @ gram @ mean)
        clear = learn(learnt, i, float(now @ gram @ now), square, seen)
        after = clear * rows[i + 1] + (1 - clear) * means[i + 1]
        both = float(after @ gram @ after), float(gram[i + 1, i + 1])
        pushes[i] = push(float(gaps[i]), square**0.5)
        above.append((mean, pushes[i], clear))
        longest = trusted(learnt, i, square, both, clear, seen.looks)
        most = min(
            harmless(gram, after, *each, _helped(gram, each[0], i + 2, seen)) for each in above
        )
        shares[i], binds[i] = max(min(longest, most), LEAST), most < longest
        now, mean = now + shares[i] * rows[i + 1], mean + shares[i] * means[i + 1]
        if i + 1 < levels:
            gram = gram + grams[i + 1] / shares[i] ** 2
    last = above[-1][0], rows[levels]
    return _direction(gram + grams[-1], last, now[: levels + 1], shares, binds, pushes, learnt)


def _helped(gram: Vector, mean: Vector, later: int, seen: Seen) -> float:
    """What losses from a place on did for a direction, by their weights in the last step."""
    pulls = gram[later : len(seen.weights)] @ mean
    return float(seen.weights[later:] @ np.maximum(pulls, 0.0))


def _direction(
    gram: Vector,
    last: tuple[Vector, Vector],
    weights: Vector,
    shares: Vector,
    binds: Mask,
    pushes: Vector,
    learnt: Mapping[str, Vector],
) -> Direction:
    """What the report wants to know: the last loss against all that is more important."""
    two = np.stack(last)
    small = two @ gram @ two.T  # the mean direction above, and the last gradient
    above, pull = float(small[0, 0]), float(small[1, 0])
    wanted = np.array([pushes[-1] - pull, -pull])
    both = np.maximum(wanted, 0.0) / above if above > 0 else np.zeros(2)
    return Direction(
        weights=weights,
        multipliers=1 / shares,
        printed=np.full(len(shares), both[0]),
        pushes=pushes,
        score=kkt_score(small, np.array([both[0], 1.0]), pushes[-1:], np.zeros(1, dtype=bool)),
        residual=relative_length(small, np.array([both[1], 1.0])),
        opposed=False,
        binds=binds,
        learnt=learnt,
    )
