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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint._checks import share
from setpoint.distributed import Row
from setpoint.solvers.barrier.constraints import Losses
from setpoint.solvers.barrier.gradients import LossGradients, dot_products
from setpoint.solvers.barrier.kkt import kkt_score, relative_length
from setpoint.solvers.barrier.quadratic_program import Mask, Vector
from setpoint.solvers.barrier.rules import Push
from setpoint.solvers.barrier.state import LEVEL_MEANS, BarrierState, Direction

_LEAST = 1e-12
"""The share of a loss that may have none: on what it alone reaches, others are measured by it."""
_TRUST, _TRUST_EXACT = 0.5, 4.0
"""How long the mean of the less important part may be next to that of the level: noise, exact."""
_PATIENCE, HASTE, RUSH = 0.01, 0.5, 0.8
"""Of its own descent, what a level keeps: of exact gradients little while the next loss has a way
to go and most of it once the two oppose each other; half where gradients are noise."""
_OPPOSED = 0.5
"""Sine of the angle between two gradients below which they begin to count as opposed."""
_HALF = (torch.float16, torch.bfloat16)


class Lexicographic(nn.Module):
    """The rule for ``after=``: losses in order of priority, the objective last.

    Args:
        memory: The memory of the running means of gradients: 0.99 looks at about 100 batches.
    """

    def __init__(self, *, memory: float) -> None:
        super().__init__()
        self.memory = share(memory, "memory", ends=False)
        self.means = MeanGradients()

    def observe(self, state: BarrierState, losses: Losses, gaps: Vector, push: Push) -> None:
        """Nothing to update: running means move only where gradients of all losses are known."""

    def direction(
        self, state: BarrierState, step: LossGradients, gaps: Vector, push: Push
    ) -> Direction:
        """Move the running means, and weigh each loss by what earlier steps say."""
        seen = self._look(state)
        self.means.follow(step.rows, seen.pace)
        owners = self.means.first_to_reach(len(step.params))
        dots = dot_products([*step.rows, *self.means.rows], step.dots)
        grams = np.stack([dots[owners == loss].sum(0) for loss in range(len(step.rows))])
        return ranked(grams, gaps, seen, push)

    def scales(self, weights: Vector, parameters: int) -> Vector:
        """On every parameter the first loss that reaches it keeps its learning rate."""
        scales: Vector = 1 / weights[self.means.first_to_reach(parameters)]
        return scales

    def _look(self, state: BarrierState) -> Seen:
        """What earlier steps said; counts this step."""
        numbers, looks = state.numbers, state.count("looks")
        pace = max(1 - self.memory, 1 / (1 + looks))
        spent = (1 - pace) ** 2 * float(numbers["spent"]) + pace**2
        numbers["spent"], numbers["looks"] = np.array(spent), np.array(looks + 1.0)
        learnt = {name: numbers[name] for name in LEVEL_MEANS}
        return Seen(learnt, pace, spent, looks, numbers["weights"])


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
        shares[i], binds[i] = max(min(longest, most), _LEAST), most < longest
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
    """The direction with its scores: the last loss against all more important ones."""
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


@dataclass(frozen=True)
class Seen:
    """What earlier steps say about each level (the numbers ``LEVEL_MEANS`` of the state).

    A batch's gradient is mostly noise, so neither its length nor its angle to another one says what
    a loss does to the next on average. Running means do: of ``n`` noisy gradients the mean is ``n``
    times shorter in the square than they are, of exact ones it is as long. That ratio tells how
    *clear* the gradients of a level are, from 0 (noise) to 1 (exact); both limits depend on it.

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
    trust = _TRUST * float((_TRUST_EXACT / _TRUST) ** clear)
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
    opposed = max(0.0, 1 - (sine / _OPPOSED) ** 2)
    most = HASTE + (RUSH - HASTE) * clear * opposed
    part = max(HASTE + (_PATIENCE - HASTE) * clear, most * opposed)
    return float((square - min(part * asked, most * square) + helped) / -pull)


class MeanGradients(nn.Module):
    """Running means of gradients, one row per loss; a module, so that ``state_dict()`` has them."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Row] = []

    def reset(self) -> None:
        """Forget everything."""
        self.rows = []

    def follow(self, rows: Sequence[Row], pace: float) -> None:
        """Move each mean towards the row of this step by the share ``pace``."""
        if not self.rows:
            self.rows = [[None] * len(row) for row in rows]
        for mean, row in zip(self.rows, rows, strict=True):
            for index, part in enumerate(row):
                mean[index] = _moved(mean[index], part, pace)

    def first_to_reach(self, parameters: int) -> NDArray[np.intp]:
        """For each parameter the first loss that ever had a gradient there, ``[parameters]``.

        A parameter that no loss has reached belongs to the last one.
        """
        reached = [[row[i] is not None for row in self.rows[:-1]] for i in range(parameters)]
        return np.array([[*each, True].index(True) for each in reached])

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for level, row in enumerate(self.rows):
            # names the place of a parameter that no gradient has reached, too: rows have a length
            destination[f"{prefix}{level}"] = torch.tensor([part is not None for part in row])
            for index, part in enumerate(row):
                if part is not None:
                    destination[f"{prefix}{level}.{index}"] = part.clone()

    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        unexpected: list[str] = rest[3]
        self.rows = []
        while (name := f"{prefix}{len(self.rows)}") in state:
            there = state[name].tolist()
            self.rows.append(
                [state[f"{name}.{i}"].clone() if one else None for i, one in enumerate(there)]
            )
        known = set(self.state_dict(prefix=prefix))
        unexpected += [key for key in state if key.startswith(prefix) and key not in known]


def _moved(mean: Tensor | None, part: Tensor | None, pace: float) -> Tensor | None:
    """A tensor of the mean; half precision would lose steps of a hundredth."""
    if part is None:
        return None if mean is None else mean.mul_(1 - pace)
    wide = part.float() if part.dtype in _HALF else part
    if mean is None:
        return wide * pace
    if mean.device != wide.device:
        mean = mean.to(wide.device)
    return mean.lerp_(wide, pace)
