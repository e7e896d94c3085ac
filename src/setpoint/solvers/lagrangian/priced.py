"""The Lagrangian of one batch at the present prices: its value, its gradient, and the gaps."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint.axes.scan import Hold
from setpoint.problems import Problem
from setpoint.rates import Where
from setpoint.solvers.held import Held
from setpoint.solvers.lagrangian.duals import Additive, Swap
from setpoint.solvers.lagrangian.slack import Slack
from setpoint.solvers.lagrangian.terms import terms_at, true_gaps
from setpoint.solvers.mix import attach
from setpoint.solvers.schedule import Seat
from setpoint.solvers.snapshot import Snapshot
from setpoint.thresholds import Reading


@dataclass(frozen=True)
class Priced:
    """What a step needs: tensors ``[c, m]`` but for those that say otherwise."""

    reading: Reading
    objective: Tensor
    value: Tensor
    by_count: Tensor  # [c, m, k]
    slopes: Tensor  # of the counts by the thresholds, [c, m, k]
    gradient: Tensor  # on the scores, [c, n]
    gaps: Tensor  # [t, c, m]
    prices: Tensor  # [t, c, m]
    sound: Tensor  # both classes are there and all is finite, [c]

    def towards(self) -> Tensor:
        """How the Lagrangian changes with the thresholds; zero where it is not sound."""
        return torch.where(self.sound[:, None], (self.by_count * self.slopes).sum(-1), 0.0)

    def loss(self, scores: Tensor) -> Tensor:
        """One number with the gradient attached, if the scores have any."""
        loss = torch.where(self.sound, self.value.mean(-1), 0.0).mean()
        loss = loss.to(torch.promote_types(scores.dtype, torch.float32))
        if torch.compiler.is_compiling():  # where nothing can raise, NaN stays NaN
            loss = loss + (0 * scores.detach()).sum()
        if not (torch.is_grad_enabled() and scores.requires_grad):
            return loss
        gradient = torch.where(self.sound[:, None], self.gradient, 0.0) / len(self.gradient)
        return attach(scores, loss, gradient.T.reshape(scores.shape))

    def snapshot(self, problem: Problem, slices: tuple[Where, ...]) -> Snapshot:
        """The batch as other criteria keep it, for words and numbers."""
        seat = Seat(self.reading.at, self.reading.at, (), fresh=False)
        soft = -self.objective if problem.maximize else self.objective
        price = self.prices[0] if len(self.prices) else torch.zeros_like(soft)
        slope, value = torch.ones_like(soft), soft.mean(-1)
        held = Held(value, self.gradient, soft, slope, price, self.by_count, self.sound)
        return Snapshot(problem, slices, self.reading, seat, held, 0.0)


def priced(
    problem: Problem,
    targets: list[Hold],
    slices: tuple[Where, ...],
    reading: Reading,
    slack: Slack,
    duals: Additive | Swap,
    *,
    proxy: bool,
    steps: bool,
) -> Priced:
    """The Lagrangian around a batch; ``steps``: slack variables follow it."""
    sound = reading.whole.totals.amin(-1) > 0
    counts, slopes = reading.counts()
    around = slack.around(counts, reading.whole.totals, sound, steps)
    terms = terms_at(problem, targets, slices, counts, *around)
    weight, prices = duals.prices(reading.at)
    value, by_count = terms.priced(weight, prices)
    gradient = reading.pull(by_count)
    # counts too: on several ranks, one without rows has no gradient to tell by
    found = value.sum(-1) + gradient.sum(-1) + by_count.sum((-1, -2))
    sound = sound & found.isfinite()
    gaps = true_gaps(targets, slices, reading) if proxy else terms.gaps
    return Priced(reading, terms.objective, value, by_count, slopes, gradient, gaps, prices, sound)
