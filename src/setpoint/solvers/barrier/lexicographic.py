"""Lexicographic training: losses in order of priority, the most important one first (eq. 3).

The paper's direction (eq. 4 with a push of zero) follows ``grad f`` except for the part of it that
opposes ``grad g``, so that ``g`` does not rise to first order. A step of fixed length makes ``g``
rise to second order all the same, by ``rate^2 / 2`` times a curvature, and training stalls where
this equals the descent of ``g``. Here that direction enters with a share:

    v = grad g + share * (grad f + u grad g),   u = max(0, -grad f . grad g / |grad g|^2).

The rise of ``g`` is quadratic in the share and the progress of ``f`` linear. So shares that vanish,
with a sum that does not converge, lead to the optimum (Solodov, 2007). Their size is

    share = lift / (1 + beta) * root mean square of grad g / root mean square of grad f

over all steps, which has no units and falls like ``1 / sqrt(step)`` once ``g`` is solved. The
*lift* starts at 1. It falls like a power of the step while ``f`` makes no progress, because it has
reached its optimum among the solutions of ``g``; it rises, by at most a power of the step, while
``f`` is free to move but slow and ``g`` is hardly disturbed.

Squared lengths are dot products of a gradient with the running mean of earlier ones. Of exact
gradients that is their square; noise, and oscillation around the solutions of ``g``, have mean
zero in it. Noisy gradients have another limit: a batch of ``f`` counts no more than one of ``g``.

With several losses each is projected against all earlier ones, and its share is the smallest that
any of them allows. Parameters that no earlier loss reaches, such as those of another head, cannot
hurt: there a loss keeps its own learning rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, log
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from setpoint._checks import share
from setpoint.distributed import Row
from setpoint.solvers.barrier.constraints import Losses
from setpoint.solvers.barrier.gradients import LossGradients, dot_products
from setpoint.solvers.barrier.kkt import kkt_score
from setpoint.solvers.barrier.quadratic_program import Vector, solve_multipliers
from setpoint.solvers.barrier.rules import ARRIVED, Push
from setpoint.solvers.barrier.state import LEARNT, BarrierState, Direction

_PACE = 0.02
"""The share of this step in the running mean of progress."""
_NEAR, _UNDISTURBED = 2.0, 0.25
"""Lengths of ``grad g`` next to ``share * grad f``: below the first, ``g`` no longer lags behind
the level that ``f`` allows; below the second, ``f`` could enter with more."""
_FREE, _RISE, _EARLY = 0.1, 2.0, 20
"""The lift rises like the step to the power ``_RISE`` while progress above ``_FREE`` is slow."""
_FALL, _CALM = 0.35, 100
"""The lift falls like the number of steps since the arrival to the power ``-_FALL``."""
_ZERO = 1e-14
"""A squared gradient below this part of the next one's is zero up to rounding."""
_VANISHED = 1e-3
"""Nothing is left to do for a loss with a gradient below this part of its root mean square."""
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
        """Weigh each loss, then move the running means."""
        looks, m = state.count("looks"), len(gaps)
        earlier = self.means.rows if looks else step.rows
        dots = dot_products([*step.rows, *earlier], step.dots)
        self.means.follow(step.rows, max(1 - self.memory, 1 / (1 + looks)))
        state.numbers["looks"] = np.array(looks + 1.0)
        owners = self.means.first_to_reach(len(step.params))
        grams = np.stack([dots[owners <= level].sum(0) for level in range(m)])
        learnt = {name: state.numbers[name] for name in LEARNT}
        return ranked(grams, gaps, push, learnt, looks)

    def scales(self, state: BarrierState, parameters: int) -> Vector:
        """On every parameter the first loss that reaches it keeps its learning rate."""
        scales: Vector = 1 / state.numbers["shares"][self.means.first_to_reach(parameters)]
        return scales


def ranked(
    grams: Vector, gaps: Vector, push: Push, learnt: Mapping[str, Vector], looks: int
) -> Direction:
    """The direction of losses in order of priority.

    Args:
        grams: Dot products of the gradients of all losses, the most important one first, and of
            the running means of earlier ones, ``[m, 2 m + 2, 2 m + 2]``: on the parameters that the
            first loss reaches, that the first two reach, and so on.
        gaps: How far each loss but the last is above its lower bound (infinite if none is known).
        push: What each loss asks for of its own descent (eq. 8).
        learnt: What earlier steps said (the numbers ``LEARNT`` of the state).
        looks: How many steps there were before this one.
    """
    m, new = len(gaps), {name: values.copy() for name, values in learnt.items()}
    alone = np.eye(m + 1)
    parts, weights, shares = [alone[0]], alone[0], np.ones(m + 1)
    lengths = list[Lengths]()
    for i in range(1, m + 1):
        j, now = i - 1, grams[i - 1, : m + 1, : m + 1]
        lengths.append(Lengths(new, j, grams[j], parts[j], looks))
        asked = push(float(gaps[j]), lengths[j].now[j] ** 0.5)
        lengths[j].keep(asked)
        share_ = new["lift"][j] * min(
            shares[k] * each.allow(i, i - k) for k, each in enumerate(lengths)
        )
        basis = np.stack(parts)
        small, needed = basis @ now @ basis.T, -basis @ now[i]
        above, shares[i] = weights, share_
        parts.append(
            alone[i] + solve_multipliers(small, needed, np.zeros(i, bool)).multipliers @ basis
        )
        weights = above + share_ * parts[i]
        arrived = _adjust(new, i, grams[j], above, weights, looks + 1)
    new["shares"] = shares
    rows = grams[-1, : m + 1, : m + 1]
    pushes = np.array([each.asked for each in lengths])
    return Direction(
        weights=weights,
        multipliers=weights[:-1] / weights[-1],
        printed=weights[:-1] / weights[-1],
        pushes=pushes,
        score=kkt_score(rows, weights / weights[-1], pushes, np.zeros(m, dtype=bool)),
        residual=float(np.sqrt(max(new["progress"][-1], 0.0))),
        opposed=False,
        binds=weights[:-1] != shares[:-1],
        arrived=arrived,
        learnt=new,
    )


class Lengths:
    """How long gradients are on the parameters that the first losses reach, up to loss ``j``.

    Args:
        new: What has been learnt: this step is entered into its means.
        j: The loss.
        gram: As one of ``grams`` in :func:`ranked`.
        part: The loss's direction, projected against those before it, in terms of the losses.
        looks: How many steps there were before this one.
    """

    def __init__(
        self, new: Mapping[str, Vector], j: int, gram: Vector, part: Vector, looks: int
    ) -> None:
        count = len(part)
        vectors = np.eye(count)
        vectors[j] = part

        def products(block: Vector) -> Vector:
            found: Vector = np.maximum(np.einsum("ik,kl,il->i", vectors, block, vectors), 0.0)
            return found

        self.j, self.asked, self.kept = j, 0.0, 1.0
        self.now = products(gram[:count, :count])
        self.seen = products(gram[:count, count:])
        self.mean = products(gram[count:, count:])
        damped = max(1.0, float(new["lift"][j:].max())) ** 2
        self.seen[j] /= damped  # what a raised share does to a loss is no reason to raise it more
        self.mean[j] /= damped
        self.signal, self.square = new["signal"][j], new["square"][j]
        self.signal += (self.seen - self.signal) / (looks + 1)
        self.square += (self.now - self.square) / (looks + 1)

    def keep(self, asked: float) -> None:
        """Leave to the loss what it asks for of its own descent."""
        self.asked, own = asked, float(self.now[self.j])
        self.kept = own / (own + asked) if asked > 0 else 1.0

    def allow(self, i: int, levels: int) -> float:
        """The share of loss ``i``, so many levels below, next to that of this loss.

        As far as its own gradients are noise its present mean counts, and batches are compared as
        well.
        """
        signal, square = float(self.signal[self.j]), float(self.square[self.j])
        longest = max(float(self.signal[i]), float(self.seen[i]))
        if self.now[i] == 0 or signal <= _ZERO * longest:
            return 1.0  # nothing to hurt, or nothing that could
        own = max(min(signal / square, 1.0) * signal, float(self.mean[self.j]))
        by_mean = own / longest if longest > 0 else inf
        by_batch = square / max(float(self.square[i]), float(self.now[i]))
        return float(self.kept**levels * min(by_mean, by_batch) ** 0.5)


def _adjust(
    new: dict[str, Vector], i: int, gram: Vector, above: Vector, weights: Vector, step: int
) -> bool:
    """Move the lift of loss ``i`` for the next step; returns whether it makes no more progress.

    Args:
        new: What has been learnt; changed in place.
        i: The loss.
        gram: As one of ``grams`` in :func:`ranked`.
        above: Weights of all losses without this one and later ones.
        weights: The same with this one.
        step: The number of this step, from 1.
    """
    at, count = i - 1, len(weights)
    rows, square, signal = gram[:count, :count], float(gram[i, i]), float(gram[i, count + i])
    alone = float(weights[i]) * square
    progress = float(weights @ rows[i]) / alone if alone > 0 else 0.0
    pace = max(_PACE, 1 / step)
    new["progress"][at] += pace * (min(max(progress, -1.0), 1.0) - new["progress"][at])
    length, before = square**0.5, float(new["length"][at])
    new["length"][at] = length
    if alone == 0 or length <= _VANISHED * new["square"][at, i] ** 0.5:
        new["progress"][at] = 0.0
        return True
    mean = float(new["progress"][at])
    lag = max(float(above @ rows @ above), 0.0) ** 0.5 / (float(weights[i]) * length)
    arrived = mean <= ARRIVED**2 and lag <= _NEAR
    if arrived:
        new["lift"][at] *= 1 - _FALL / (_CALM + new["calm"][at])
        new["calm"][at] += 1
    elif mean > _FREE and lag <= _UNDISTURBED and signal > square / 2 and before > 0:
        rise = _RISE / (step + _EARLY)
        if abs(log(length / before)) < mean * rise:  # slower than training has lasted so far
            new["lift"][at] *= 1 + rise
            new["calm"][at] = 0.0
    return arrived


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
