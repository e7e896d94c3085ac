"""What happened in the last batch: kept as tensors, put into words and numbers only when asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from setpoint._checks import plural
from setpoint.axes.scan import TOLERANCE
from setpoint.problems import Problem
from setpoint.rates import Array, Bound, Expression, Range, Rate, Setpoint, Tables, Where
from setpoint.solvers.held import Held, tables_of
from setpoint.solvers.schedule import Seat
from setpoint.steps import Hard
from setpoint.thresholds import Reading, tensor_of


@dataclass(frozen=True)
class Snapshot:
    """The last batch: how it was read, where the thresholds sat, what came out (``[c, m]``)."""

    problem: Problem
    slices: tuple[Where, ...]
    reading: Reading
    seat: Seat
    held: Held
    share: Tensor | float
    main: Tensor | None = None

    @cached_property
    def hard(self) -> Tables:
        """True counts at the reported thresholds."""
        at = tensor_of(self.seat.threshold)
        reading = replace(self.reading, step=Hard(), at=at, _kernels=[])
        return tables_of(reading.counts()[0], tensor_of(reading.whole.totals), self.slices)

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
        weight, squares = self.reading.band(tensor_of(self.seat.marginal))
        return torch.where(squares > 0, weight**2 / squares, 0.0)

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
        totals = tensor_of(self.reading.whole.totals)
        if not tensor_of(self.reading.whole.scores).isfinite().all():
            return "undefined: scores are not finite"
        if self.main is not None and not self.main.isfinite().all():
            return "undefined: the main loss has no finite gradient"
        for name, column in (("positives", 0), ("negatives", 1)):
            if (totals[:, column] == 0).any():
                return f"no {name} in the batch"
        for target in self.problem.subject_to:
            trouble = self._missed(target)
            if trouble:
                return trouble
        if not tensor_of(self.held.soft).isfinite().all():
            return f"undefined: {self.problem.objective} is 0/0 in the batch"
        if (self.held.slope == 0).any():
            return "flat: no score near the threshold"
        return ""

    def _missed(self, target: Bound | Setpoint | Range) -> str:
        """Why a target is not held, in words."""
        value, word = (
            target.expression.of(self.hard),
            "infeasible" if self.seat.fresh else "drifting",
        )
        if value.isnan().any():
            return f"undefined: {target.expression} is 0/0 in the batch"
        if isinstance(target, Bound):
            gap, unit = target.gap(self.hard), TOLERANCE
        else:  # the nearest attainable rate is at most one example away
            levels = [point.level for (point,) in self.problem.points]
            gap, unit = abs(value - value.new_tensor(levels)), self._unit(target.expression)
            if isinstance(target, Range) and target.floors:
                gap, unit = value.new_tensor(levels) - value, TOLERANCE
        if (gap > unit).any():
            return (
                f"{word} (gap {float(gap.max()):.2g}): {target} is not met, it is {_plain(value)}"
            )
        aims = [t.level for point in self.problem.points for t in point]
        if isinstance(target.expression, Rate):
            return self._too_coarse(target.expression, min(min(x, 1 - x) for x in aims))
        return ""

    def _unit(self, expression: Expression) -> float:
        """What one example changes in a rate, at most."""
        units = [1 / size for size in map(self._size, expression.rates()) if size > 0]
        return max(units, default=0.0) + TOLERANCE

    def _size(self, rate: Rate) -> float:
        """The smallest denominator of a rate, over outputs and thresholds."""
        return float(torch.as_tensor(rate.denominator.of(self.hard[rate.where])).min())

    def _too_coarse(self, rate: Rate, aim: float) -> str:
        """A batch of 32 negatives cannot hold 1 % of them."""
        if rate.direction is None or not rate.is_share:
            return ""
        size = self._size(rate)
        if 0 < aim * size < 1 - TOLERANCE:
            return (
                f"too coarse: one of {plural(size, 'example')} is a rate of {1 / size:.2g}, "
                f"more than {aim:.4g}"
            )
        return ""


def _plain(values: Array) -> Any:
    """Plain floats, None for what is no finite number (the threshold that accepts everybody)."""
    flat = [x if abs(x) < float("inf") else None for x in values.reshape(-1).tolist()]
    if len(flat) == 1:
        return flat[0]
    wide = values.ndim == 2 and 1 not in values.shape
    return (
        [flat[i : i + values.shape[1]] for i in range(0, len(flat), values.shape[1])]
        if wide
        else flat
    )
