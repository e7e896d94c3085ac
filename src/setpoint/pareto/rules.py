"""Rules for one point of a front: each turns two losses into one gradient.

The barrier holds ``g <= c`` itself, so evenly spaced levels give evenly spaced points, whatever the
shape of the front. The other rules weigh the losses, as is done everywhere; they are here so that
all methods are compared with the same budget, starts and files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor
from torch.optim import Optimizer

from setpoint.pareto.points import FrontPoint
from setpoint.solvers import Barrier, at_most

FrontMethod = Literal["barrier", "linear", "scaled linear", "tchebycheff"]
FRONT_METHODS: tuple[str, ...] = get_args(FrontMethod)
MEND = 0.8
"""The share of a gap that a step closes, whatever the rate has fallen to. Chosen on L_0.5 codes: a
fixed alpha of 1 ends half way to its level; shares of 0.25, 0.5 and 0.8 leave the hardest point of
20 newsgroups 0.09, 0.04 and 0.008 above it."""
PUSH_CAP = 10.0
"""The cap of the push (the paper's beta, 1 there). Where the held loss has kinks, such as |z|^0.5
at zero, most of its gradient is jitter that no step gains from, and the multiplier never exceeds
about ``beta``: with 1, points of an L_0.5 front end 0.4 above their level, with 10 on it."""


class PointRule(Protocol):
    """Combines two losses into one gradient."""

    def backward(self, minimized: Tensor, held: Tensor) -> None:
        """Fill the gradients."""

    @property
    def status(self) -> str:
        """The state of the training in words."""


class LexicographicEnd:
    """An end point: one loss as small as it gets, and the other without hurting the first.

    Both from the first step on. With the first loss alone for half of the steps its gradients are
    all but gone when the other one's turn comes, and what may be done for it is measured by them:
    on L_0.5 codes the penalty of the fit end was 3.7 after 500 steps, instead of 0.7.
    """

    def __init__(self, optimizer: Optimizer, *, held_first: bool) -> None:
        self.barrier = Barrier(parameters(optimizer))
        self.held_first = held_first

    def backward(self, minimized: Tensor, held: Tensor) -> None:
        """Fill the gradients; the more important loss is ``after``."""
        first, second = (held, minimized) if self.held_first else (minimized, held)
        self.barrier.backward(second, after=first)

    @property
    def status(self) -> str:
        """The status of the barrier."""
        return self.barrier.status


class AtMost:
    """A point between the ends: minimise one loss where the other is at most ``level``.

    Exact steps mend most of the gap at once. With batches that would answer their noise, from one
    side only, and settle below the level: there the barrier's own slow defaults hold the mean.

    An optimizer that remembers squares of gradients, as Adam does, would remember the multipliers
    of the way to the level, too, and make its steps along it shorter. So in the first half of the
    exact steps, while the bound is broken, the gradient is divided by one more than the multiplier:
    the same direction, as long as a weighted mean of both gradients. The second half lands.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        level: float,
        *,
        exact: bool,
        steps: int,
        holds_first: bool = False,
    ) -> None:
        """``holds_first`` swaps the losses: the first one is held and the second minimised."""
        self.trained = parameters(optimizer)
        if exact:
            self.barrier = Barrier(
                self.trained, fraction=MEND, optimizer=optimizer, beta=PUSH_CAP, gain=0.0
            )
        else:
            self.barrier = Barrier(self.trained)
        self.level = level
        self.nearing = steps // 2 if exact else 0
        self.holds_first = holds_first

    def backward(self, minimized: Tensor, held: Tensor) -> None:
        """Fill the gradients, with one constraint."""
        if self.holds_first:
            minimized, held = held, minimized
        step = self.barrier.backward(minimized, subject_to=[at_most(held, self.level)])
        if self.nearing > 0 and held.item() > self.level:
            for parameter in self.trained:
                if parameter.grad is not None:
                    parameter.grad.div_(1 + step["multiplier"][0])
        self.nearing -= 1

    @property
    def status(self) -> str:
        """The status of the barrier."""
        return self.barrier.status


def parameters(optimizer: Optimizer) -> list[Tensor]:
    """The parameters that an optimizer trains."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def inner_rule(
    method: FrontMethod,
    share: float,
    ends: tuple[FrontPoint, FrontPoint],
    optimizer: Optimizer,
    *,
    exact: bool,
    steps: int,
) -> tuple[PointRule, float | None]:
    """The rule for a point between the ends, and its level if it has one.

    Args:
        method: Which.
        share: How far from the first end to the last, between 0 and 1.
        ends: The point with the smallest held loss, and the one with the smallest minimised loss.
        optimizer: Knows what is trained, and at which rate.
        exact: Whether every step sees all data.
        steps: How many the point is trained for.
    """
    first, last = ends
    if method == "barrier":
        level = first.held + share * (last.held - first.held)
        return AtMost(optimizer, level, exact=exact, steps=steps), level
    scales = tuple(abs(a - b) or 1.0 for a, b in zip(first.pair, last.pair, strict=True))
    weight = 1 - share  # the first end is the one where only the held loss counts
    if method == "tchebycheff":
        return Tchebycheff(weight, (last.minimized, first.held), (scales[0], scales[1])), None
    return Linear(weight, (scales[0], scales[1]) if method == "scaled linear" else (1, 1)), None


_SMOOTHNESS = 0.05
"""Of the smooth maximum, in units of the range between the ends."""


@dataclass(frozen=True)
class Linear:
    """``(1 - w) f / s + w g / t`` with scales ``s`` and ``t``."""

    weight: float
    scales: tuple[float, float] = (1.0, 1.0)
    status: str = "weighted"

    def backward(self, minimized: Tensor, held: Tensor) -> None:
        """Fill the gradients, with one backward pass."""
        (s, t), w = self.scales, self.weight
        torch.autograd.backward((1 - w) * minimized / s + w * held / t)


@dataclass(frozen=True)
class Tchebycheff:
    """A smooth maximum of the weighted distances to the best value of each loss."""

    weight: float
    best: tuple[float, float]
    scales: tuple[float, float]
    status: str = "weighted"

    def backward(self, minimized: Tensor, held: Tensor) -> None:
        """Fill the gradients, with one backward pass."""
        (s, t), w = self.scales, self.weight
        first = (1 - w) * (minimized - self.best[0]) / s
        second = w * (held - self.best[1]) / t
        both = torch.stack([first, second]) / _SMOOTHNESS
        torch.autograd.backward(_SMOOTHNESS * both.logsumexp(0))
