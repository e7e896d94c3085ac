"""Multipliers of a Lagrangian: how they move with the gaps, their log, and what reports say.

A positive gap raises the multiplier. The gap of a bound is the amount by which it is broken, of a
setpoint ``rate - level``. The multiplier of a bound is at least zero, that of a setpoint any.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint.axes.scan import Hold
from setpoint.problems import Problem
from setpoint.solvers.memory import State

_LARGEST_MULTIPLIER = 1e6
"""The largest multiplier, so that a diverging run stays finite."""


class Additive(State):
    """Gradient ascent, projected: ``max(0, multiplier + rate * gap)`` (external regret)."""

    values: Tensor
    _flexible = ("values",)

    def __init__(self, targets: list[Hold]) -> None:
        super().__init__()
        self.signed = [hold.sense == "at" for hold in targets]
        self.register_buffer("values", torch.zeros(len(targets), 1, 1, dtype=torch.float64))

    def prices(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The weight of the objective ``[c, m]`` and the multipliers ``[t, c, m]``."""
        values = self.values.to(like).expand(len(self.signed), *like.shape)
        return torch.ones_like(like), values

    def update(self, gaps: Tensor, rate: float) -> None:
        """Move the multipliers by gaps ``[t, c, m]``; a gap that is not finite counts as 0."""
        moved = self.values.to(gaps) + rate * torch.nan_to_num(gaps, posinf=0.0, neginf=0.0)
        floors = gaps.new_tensor(
            [-_LARGEST_MULTIPLIER if signed else 0.0 for signed in self.signed]
        )
        self.values = moved.clamp(max=_LARGEST_MULTIPLIER).maximum(floors[:, None, None])


class Swap(State):
    """A distribution over the objective and the targets, without swap regret.

    Cotter, Jiang, Sridharan (2019), algorithm 2: a matrix with positive columns that sum to one;
    the prices are its stationary distribution. Entries grow by ``exp(rate * gap * price)``. A
    setpoint is two bounds.
    """

    logarithms: Tensor
    _flexible = ("logarithms",)

    def __init__(self, targets: list[Hold]) -> None:
        super().__init__()
        self.signed = [hold.sense == "at" for hold in targets]
        size = 1 + len(targets) + sum(self.signed)
        start = torch.zeros(1, 1, size, size, dtype=torch.float64)
        self.register_buffer("logarithms", start.log_softmax(-2))

    def _shares(self, like: Tensor) -> Tensor:
        """The stationary distribution ``[c, m, 1 + bounds]``."""
        matrix = self.logarithms.to(like).exp()
        one = torch.ones_like(matrix[..., 0])
        inflow = torch.eye(matrix.shape[-1]).to(matrix) - matrix
        shares: Tensor = torch.linalg.solve(inflow + 1.0, one)
        return shares.expand(*like.shape, shares.shape[-1])

    def prices(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The weight of the objective ``[c, m]`` and the multipliers ``[t, c, m]``."""
        first, *rest = self._shares(like).unbind(-1)
        prices = []
        for signed in self.signed:
            price = rest.pop(0)
            prices.append(price - rest.pop(0) if signed else price)
        return first, torch.stack(prices) if prices else like.new_zeros(0, *like.shape)

    def update(self, gaps: Tensor, rate: float) -> None:
        """Move the multipliers by gaps ``[t, c, m]``; a gap that is not finite counts as 0."""
        gaps = torch.nan_to_num(gaps, posinf=0.0, neginf=0.0)
        payoffs = [torch.zeros_like(gaps[0]) if len(gaps) else gaps.new_zeros(1, 1)]
        for gap, signed in zip(gaps, self.signed, strict=True):
            payoffs += [gap, -gap] if signed else [gap]
        payoff = torch.stack(payoffs, -1)
        gain = payoff[..., :, None] * self._shares(payoff[..., 0])[..., None, :]
        self.logarithms = (self.logarithms.to(gain) + rate * gain).log_softmax(-2)


_LENGTH = 1000


class MultiplierLog(State):
    """A ring buffer of the last 1,000 steps, one row per step."""

    rows: Tensor
    count: Tensor
    _flexible = ("rows",)

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.empty(0, 0, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def add(self, row: Tensor) -> None:
        """Append one row of numbers."""
        if self.rows.shape != (_LENGTH, len(row)):
            self.rows = row.new_zeros(_LENGTH, len(row))
        place = (self.count % _LENGTH).to(row.device)
        self.rows = self.rows.to(row).index_copy(0, place[None], row[None])
        self.count = self.count + 1

    def read(self) -> tuple[list[int], Tensor]:
        """The numbers of the steps (1 is the first), and their rows, oldest first."""
        count = int(self.count)
        first = max(0, count - _LENGTH)
        order = torch.arange(first, count) % _LENGTH
        return list(range(first + 1, count + 1)), self.rows[order.to(self.rows.device)]


_TOO_LARGE = 1e3
"""A multiplier above this, with the target still broken, counts as diverging."""
_BLOCKS, _BLOCK = 5, 100
_BROKEN, _STILL = 0.01, 0.8
"""So is one that was broken by this much in each of the last blocks of steps, and in the last one
by this share of what it was in the first."""


def described(problem: Problem, multipliers: Tensor, gaps: Tensor | None) -> dict[str, Any]:
    """Multipliers and gaps by the names of their targets; lists for several thresholds."""
    names = [str(target) for target in problem.subject_to]
    found = {"multipliers": _by_name(names, multipliers)}
    if gaps is not None:
        found["gaps"] = _by_name(names, gaps)
    return found


def diverging(problem: Problem, multipliers: Tensor, gaps: Tensor | None, log: Tensor) -> str:
    """Which target is not reached although its multiplier is huge or has grown for long; or ""."""
    if gaps is None:
        return ""
    runaway = (multipliers.abs() > _TOO_LARGE) & (gaps * multipliers > 0)
    lasting = _broken_for_long(len(problem.subject_to), log)
    for place, (target, price) in enumerate(zip(problem.subject_to, multipliers, strict=True)):
        begin = f"diverging (multiplier {float(price.abs().max()):.2g}): {target}"
        if runaway[place].any():
            return (
                f"{begin} is not reached at any price; loosen it, lower dual_rate, or train a "
                "larger model"
            )
        if lasting is not None and lasting[place] > 0:
            return (
                f"{begin} has been broken by {float(lasting[place]):.2g} for "
                f"{_BLOCKS * _BLOCK} steps; loosen it, train a larger model, or raise dual_rate"
            )
    return ""


def _broken_for_long(targets: int, log: Tensor) -> Tensor | None:
    """By how much each target was broken lately if always to the same side and no less at last.

    A mean over a hundred steps is little noise; one that is on its way to the target shrinks.
    """
    if not targets or len(log) < _BLOCKS * _BLOCK:
        return None
    prices, gaps = log[-_BLOCKS * _BLOCK :].reshape(_BLOCKS, _BLOCK, 2, targets, -1).unbind(2)
    means = gaps.mean(1)
    one_side = (means.sign() == means[0].sign()).all(0) & (means[-1] * prices[-1, -1] > 0)
    size = means.abs()
    lasting = one_side & (size > _BROKEN).all(0) & (size[-1] > _STILL * size[0])
    return (size[-1] * lasting).amax(-1)


def history_of(problem: Problem, steps: list[int], rows: Tensor) -> list[dict[str, Any]]:
    """One plain dict per step, from rows of multipliers and then gaps."""
    count = len(problem.subject_to)
    history = []
    for step, row in zip(steps, rows, strict=True):
        prices, gaps = row.reshape(2, count, -1) if count else (row, row)
        history.append({"step": step, **described(problem, prices, gaps)})
    return history


def _by_name(names: list[str], values: Tensor) -> dict[str, Any]:
    listed = (value.reshape(-1).tolist() for value in values)
    return {
        name: each[0] if len(each) == 1 else each for name, each in zip(names, listed, strict=False)
    }
