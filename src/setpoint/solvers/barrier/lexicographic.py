"""Lexicographic training: losses in order of priority, the most important one first (eq. 3).

The paper's direction (eq. 4 with a push of zero) follows ``grad f`` except for the part of it that
opposes ``grad g``, so that ``g`` does not rise to first order. A step of fixed length makes ``g``
rise to second order all the same, by ``rate^2 / 2`` times a curvature, and training stalls where
this equals the descent of ``g``. Here that direction enters with a share:

    v = grad g + share * (grad f + u grad g),   u = max(0, -grad f . grad g / |grad g|^2).

By the choice of ``u`` the bracket ``d`` has ``d . grad g >= 0`` and ``|d| <= |grad f|``, so that
``v . grad g >= |grad g|^2``: to first order ``g`` falls as if it were alone. With a gradient of
Lipschitz constant ``L`` and steps of ``rate <= 1 / 2L``, as ``|v|^2 <= 2 |grad g|^2 + 2 share^2
|d|^2``, a step changes ``g`` by at most

    -rate / 2 |grad g|^2 + rate^2 L share^2 |grad f|^2,

and the mean of ``|grad g|^2`` over ``T`` steps is at most ``2 (g - min g) / (rate T)`` plus
``2 rate L`` times that of ``share^2 |grad f|^2``: ``g`` is solved if shares vanish. The progress of
``f`` is linear in the share; shares that vanish with a sum that does not converge lead to the
optimum of convex losses (Solodov, 2007). The rest is measured, not proved. The size of the share is

    share = lift / (1 + beta) * root mean square of grad g / root mean square of grad f

over all steps, which has no units and falls like ``1 / sqrt(step)`` once ``g`` is solved. The
*lift* starts at 1 and follows the residual of eq. (16), which recent directions tell. At rest
their mean ``V`` is ``share`` times the free part of ``grad f``: the pull of ``g`` balances the
rest. While the share changes, the balanced part lags behind, so that
``V = share (free - lag held)`` with ``grad f = free + held``. Then ``grad f - V / share`` is
``held`` up to a factor, and

    residual = sine of the angle between grad f and grad f - V / share.

The lift falls, like a power of the step, where the squared residual is below ``step^-1.25``. It
rises where it is above and ``f`` is slow: its squared free part does not fall like a power of the
step by itself.

Squared lengths are dot products of a gradient with the running mean of earlier ones. Of exact
gradients that is their square; noise, and oscillation around the solutions of ``g``, have mean
zero in it. Noisy gradients have another limit: a batch of ``f`` counts no more than one of ``g``.

With several losses each is projected against all earlier ones, and its share is the smallest that
any of them allows. Parameters that no earlier loss reaches, such as those of another head, cannot
hurt: there a loss keeps its own learning rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from setpoint.solvers.barrier.kkt import kkt_score
from setpoint.solvers.barrier.quadratic_program import Vector, solve_multipliers
from setpoint.solvers.barrier.rules import ARRIVED, Push
from setpoint.solvers.barrier.state import LEARNT, BarrierState, Direction

_WINDOW, _LONGER, _SHORTEST = 10.0, 5.0, 0.25
"""Running means look at a tenth or a fifth of all steps so far, and at four steps or more."""
_TURN, _START = 0.05, 0.5
"""The share of a step in the mean of directions: later, and in the first steps."""
_TARGET, _LOOSE = 1.25, 0.1
"""The squared residual that is asked for: the step to this power, inverted, and at most that."""
_RISE, _SLOW = 2.0, 1.5
"""The power of the step by which the lift rises while the free part is slow: while its mean over a
fifth of the steps is less than so many times that over a tenth."""
_FALL, _GENTLE, _CLEAR, _EARLY = 1.0, 0.35, 2.0, 20
"""The power by which it falls: of exact gradients, and where they are mostly noise, by the part of
the squared length of ``grad g`` that is no noise."""
_HIGHER, _UNDISTURBED = 0.1, 0.25
"""The largest share so far is exceeded only with a squared residual above the first number, and if
``grad g`` is shorter than that part of ``share * grad f``."""
_BEHIND = 2.0
"""``g`` lags behind where its pull is longer than so many times what balances ``grad f``."""
_CUT_OFF = 10.0
"""What one step says is cut off there."""
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
        self.paths = MeanGradients()

    def reset(self) -> None:
        """Forget all steps."""
        self.means.reset()
        self.paths.reset()

    def observe(self, state: BarrierState, losses: Losses, gaps: Vector, push: Push) -> None:
        """Nothing to update: running means move only where gradients of all losses are known."""

    def direction(
        self, state: BarrierState, step: LossGradients, gaps: Vector, push: Push
    ) -> Direction:
        """Weigh each loss, then move the running means."""
        looks, m = state.count("looks"), len(gaps)
        earlier = self.means.rows if looks else step.rows
        recent = self.paths.rows if looks else step.rows[1:]
        dots = dot_products([*step.rows, *earlier, *recent], step.dots)
        self.means.follow(step.rows, max(1 - self.memory, 1 / (1 + looks)))
        state.numbers["looks"] = np.array(looks + 1.0)
        owners = self.means.first_to_reach(len(step.params))
        grams = np.stack([dots[owners <= level].sum(0) for level in range(m)])
        learnt = {name: state.numbers[name] for name in LEARNT}
        found = ranked(grams, gaps, push, learnt, looks)
        pace = max(_TURN, min(_START, _WINDOW / (1 + looks))) if looks else 1.0
        self.paths.follow_sums(step.rows, found.learnt["levels"], pace)
        return found

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
            the running means of earlier ones, and of the recent direction of each loss but the
            first, ``[m, 3 m + 2, 3 m + 2]``: on the parameters that the first loss reaches, that
            the first two reach, and so on.
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
        weights = new["levels"][j] = above + share_ * parts[i]
        arrived = _adjust(new, i, grams[j], above, looks + 1)
    new["shares"] = shares
    rows = grams[-1, : m + 1, : m + 1]
    pushes = np.array([each.asked for each in lengths])
    return Direction(
        weights=weights,
        multipliers=weights[:-1] / weights[-1],
        printed=weights[:-1] / weights[-1],
        pushes=pushes,
        score=kkt_score(rows, weights / weights[-1], pushes, np.zeros(m, dtype=bool)),
        residual=float(np.sqrt(new["residual"][-1])),
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
        means = slice(count, 2 * count)
        self.seen = products(gram[:count, means])
        self.mean = products(gram[means, means])
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


def _adjust(new: dict[str, Vector], i: int, gram: Vector, above: Vector, step: int) -> bool:
    """Move the lift of loss ``i`` for the next step; returns whether it makes no more progress.

    Args:
        new: What has been learnt; changed in place.
        i: The loss.
        gram: As one of ``grams`` in :func:`ranked`.
        above: Weights of all losses without this one and later ones.
        step: The number of this step, from 1.
    """
    at, count = i - 1, len(above)
    share_, length = float(new["levels"][at, i]), float(gram[i, i]) ** 0.5
    if share_ == 0 or length <= _VANISHED * new["square"][at, i] ** 0.5:
        new["residual"][at] = 0.0
        return True
    free, near, opposed = _residual(new, i, gram, step)
    new["residual"][at] = free if opposed else 1.0
    target, pace = min(_LOOSE, step**-_TARGET), 1 / (step + _EARLY)
    exact = float(gram[i, count + i]) > length**2 / 2
    moving = new["whole"][at] > target and new["longer"][at] < _SLOW * new["recent"][at]
    pull = max(float(above @ gram[:count, :count] @ above), 0.0) ** 0.5 / (share_ * length)
    higher = free > _HIGHER and pull <= _UNDISTURBED
    if free <= target:
        clear = _CLEAR * new["signal"][at, at] / max(float(new["square"][at, at]), 1e-300)
        new["lift"][at] *= 1 - near * max(_GENTLE, _FALL * min(clear, 1.0)) * pace
    elif moving and exact and pull <= 1 and (higher or share_ < new["largest_share"][at]):
        new["lift"][at] *= 1 + _RISE * (1 + free) * pace
    new["largest_share"][at] = max(float(new["largest_share"][at]), share_)
    return opposed and near and free <= ARRIVED**2


def _residual(new: dict[str, Vector], i: int, gram: Vector, step: int) -> tuple[float, bool, bool]:
    """The squared residual of loss ``i``, and what it rests on.

    The first flag is whether earlier losses have come near their balance; the second whether they
    oppose loss ``i``: while they pull the same way nothing balances it, whatever the angle.

    With ``f = grad f`` and ``V`` the mean direction, two running means are kept, of
    ``a = V . f / (share f^2)`` and, with the direction ``v`` of this step, of
    ``b = V . v / (share^2 f^2)``. They estimate a length without oscillation and noise, which are
    independent of earlier steps. The squared sine of the angle between ``f`` and ``f - V / share``
    is ``(b - a^2) / (1 + b - 2 a)``. The arguments are those of :func:`_adjust`.
    """
    at, count = i - 1, new["levels"].shape[1]
    weights, square = new["levels"][at], float(gram[i, i])
    share_, paths = float(weights[i]), gram[2 * count :, :count]
    said = {"along": 1.0, "path": 1.0, "whole": 1.0}  # before there are directions to compare
    if step > 2:
        said["along"] = float(paths[at, i]) / (share_ * square)
        said["path"] = float(paths[at] @ weights) / (share_**2 * square)
        said["whole"] = float(paths[-1, i]) / (share_ * square)
    said = {name: min(max(each, -_CUT_OFF), _CUT_OFF) for name, each in said.items()}
    said |= {"recent": said["along"] * square, "longer": said["along"] * square}
    for name, each in said.items():
        window = _LONGER if name == "longer" else _WINDOW
        new[name][at] += min(_SHORTEST, window / step) * (each - new[name][at])
    a, b = float(new["along"][at]), float(new["path"][at])
    held = 1 + b - 2 * a  # the squared length of f - V / share, next to that of f
    free = min(max((b - a * a) / held, 0.0), 1.0) if held > 1e-9 else 1.0
    return free, held <= _BEHIND**2 * (1 - free), a <= 1


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
                mean[index] = _towards(mean[index], part, pace)

    def follow_sums(self, rows: Sequence[Row], weights: Vector, pace: float) -> None:
        """Move each mean towards a weighted sum of the rows, one line of ``weights`` for each."""
        kept = self.rows or [[None] * len(rows[0]) for _ in weights]
        for mean, line in zip(kept, weights.tolist(), strict=True):
            for index, part in enumerate(mean):
                if part is not None:
                    part.mul_(1 - pace)
                for row, weight in zip(rows, line, strict=True):
                    mean[index] = _plus(mean[index], row[index], pace * weight)
        self.rows = kept

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


def _towards(mean: Tensor | None, part: Tensor | None, pace: float) -> Tensor | None:
    """A tensor of the mean; half precision would lose steps of a hundredth."""
    if part is None:
        return None if mean is None else mean.mul_(1 - pace)
    wide = part.float() if part.dtype in _HALF else part
    if mean is None:
        return wide * pace
    if mean.device != wide.device:
        mean = mean.to(wide.device)
    return mean.lerp_(wide, pace)


def _plus(mean: Tensor | None, part: Tensor | None, weight: float) -> Tensor | None:
    """``mean + weight * part`` in place, where there is such a part."""
    if part is None or weight == 0:
        return mean
    if mean is None:
        return (part.float() if part.dtype in _HALF else part) * weight
    return mean.to(part.device).add_(part, alpha=weight)
