"""What happened in the last batch: kept as tensors, put into words and numbers only when asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from setpoint._checks import plural
from setpoint.problems import Problem
from setpoint.problems.scan import TOLERANCE
from setpoint.rates import Bound, Range, Rate, Setpoint, Tables, Where
from setpoint.solvers.held import Held, tables_of
from setpoint.solvers.schedule import Seat
from setpoint.steps import Hard
from setpoint.thresholds import Reading


@dataclass(frozen=True)
class Snapshot:
    """The last batch: how it was read, where the thresholds sat, what came out (``[c, m]``)."""

    problem: Problem
    slices: tuple[Where, ...]
    reading: Reading
    seat: Seat
    held: Held
    share: Tensor | float

    @cached_property
    def hard(self) -> Tables:
        """True counts at the reported thresholds."""
        reading = replace(self.reading, step=Hard(), at=self.seat.threshold, _kernels=[])
        return tables_of(reading.counts()[0], reading.whole.totals, self.slices)

    def stats(self) -> dict[str, Any]:
        """Plain numbers; a list where there are several thresholds or outputs."""
        first = self.problem.subject_to[0].expression if self.problem.subject_to else None
        return {
            "status": self.status,
            "threshold": _plain(self.seat.threshold),
            "held_rate": None if first is None else _plain(first.of(self.hard)),
            "soft_objective": _plain(self.held.soft),
            "hard_objective": _plain(self.problem.objective.of(self.hard)),
            "multiplier": _plain(self.held.multiplier),
            "share": float(self.share),
            "examples_in_band": _plain(self.examples_in_band()),
        }

    def examples_in_band(self) -> Tensor:
        """How many examples share the gradient: ``(sum k)^2 / sum k^2`` of the kernel weights."""
        r = self.reading
        distance = r.whole.scores[:, None] - self.seat.marginal[..., None]
        kernel = (
            r.step.slope(distance / r.width[..., None]) * r.whole.columns[..., :2].sum(-1)[:, None]
        )
        squares = (kernel**2).sum(-1)
        return torch.where(squares > 0, kernel.sum(-1) ** 2 / squares, 0.0)

    @cached_property
    def status(self) -> str:
        """The first trouble, or *held*."""
        return self._trouble() or "held"

    def raise_if_not_held(self) -> None:
        """For ``strict=True``: every trouble is an error."""
        if self.status != "held":
            raise ValueError(
                f"Cannot hold `{self.problem}` on this batch: {self.status}. Use larger or "
                "balanced batches, pool scores over batches with memory=, or drop strict=True."
            )

    def _trouble(self) -> str:
        totals = self.reading.whole.totals
        if not self.reading.whole.scores.isfinite().all():
            return "undefined: scores are not finite"
        for name, column in (("positives", 0), ("negatives", 1)):
            if (totals[:, column] == 0).any():
                return f"no {name} in the batch"
        for target in self.problem.subject_to:
            trouble = self._missed(target)
            if trouble:
                return trouble
        if not self.held.soft.isfinite().all():
            return f"undefined: {self.problem.objective} is 0/0 in the batch"
        if (self.held.slope == 0).any():
            return "flat: no score near the threshold"
        return ""

    def _missed(self, target: Bound | Setpoint | Range) -> str:
        """Why a target is not held, in words."""
        value = target.expression.of(self.hard)
        if value.isnan().any():
            return f"undefined: {target.expression} is 0/0 in the batch"
        if isinstance(target, Bound):
            gap = float(target.gap(self.hard).max())
            if gap > TOLERANCE:
                word = "infeasible" if self.seat.fresh else "drifting"
                return f"{word} (gap {gap:.2g}): {target} is not met, it is {_plain(value)}"
        if isinstance(target, (Bound, Setpoint)) and isinstance(target.expression, Rate):
            return self._too_coarse(target.expression, target.level)
        return ""

    def _too_coarse(self, rate: Rate, level: float) -> str:
        """A batch of 32 negatives cannot hold 1 % of them."""
        if rate.direction is None or not rate.is_share:
            return ""
        size = float(rate.denominator.of(self.hard[rate.where]).min())
        aim = min(level, 1 - level)
        if 0 < aim * size < 1 - TOLERANCE:
            return (
                f"too coarse: one of {plural(size, 'example')} is a rate of {1 / size:.2g}, "
                f"more than {aim:g}"
            )
        return ""


def _plain(values: Tensor) -> Any:
    return values.item() if values.numel() == 1 else values.squeeze().tolist()
