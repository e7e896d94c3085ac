"""Hold the thresholds of many queries: placed on hard counts, moved with soft ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from setpoint.axes.arrays import quiet
from setpoint.axes.scan import TOLERANCE, Hold, place
from setpoint.problems import Problem
from setpoint.rates import Bound, Where
from setpoint.solvers.held import hold_thresholds
from setpoint.solvers.queries.losses import listwise_gradient
from setpoint.solvers.queries.parts import read_rows, whole_queries
from setpoint.solvers.queries.reading import QueryReading, QuerySample, per_query
from setpoint.solvers.queries.width import spread_within
from setpoint.solvers.schedule import Seat, representable
from setpoint.steps import Step


class Part(NamedTuple):
    """Some queries, held."""

    seat: Seat
    gradient: Tensor  # [n] of the sum of their objectives
    sums: Tensor  # of objectives; numbers of queries: judged, there, missing their bounds


class Whole(NamedTuple):
    """All queries of a batch: the mean objective, and its gradient beside the listwise one."""

    value: Tensor
    judged: Tensor
    present: Tensor
    missed: Tensor
    thresholds: Tensor  # [q, m]
    implicit: Tensor  # [n]
    listwise: Tensor  # [n]


@dataclass(frozen=True)
class Holder:
    """What is held, and with which steps."""

    problem: Problem
    targets: list[Hold]
    slices: tuple[Where, ...]
    step: Step
    widening: Tensor | float
    flatness: float
    slope_floor: float

    def whole(
        self, scores: Tensor, given: dict[str, Any], exact: torch.dtype | None, listwise: bool
    ) -> Whole:
        """All queries, some at a time; gradients only if a type for them is given.

        Means are over the queries that have both kinds of documents: the others rank nothing.
        """
        implicit, ranked = (torch.zeros_like(scores, dtype=exact) for _ in range(2))
        sums, thresholds = torch.zeros(4, dtype=torch.float64, device=scores.device), []
        points = len(self.problem.points)
        for rows, queries in whole_queries(self.problem.query, given["queries"], scores, points):
            sample = read_rows(self.slices, rows, queries, scores, given)
            part = self.part(sample)
            sums = sums + part.sums
            thresholds.append(representable(part.seat, scores.dtype))
            if exact is not None:
                implicit[rows] = part.gradient.to(exact)
                if listwise:
                    ranked[rows] = listwise_gradient(sample).to(exact)
        judged = sums[1].clamp(min=1)
        value, (_, found, present, missed) = sums[0] / judged, sums
        for gradient in (implicit, ranked):
            gradient /= judged.to(gradient.dtype)
        return Whole(value, found, present, missed, torch.cat(thresholds), implicit, ranked)

    def part(self, sample: QuerySample) -> Part:
        """The thresholds of some queries, and the gradient of the sum of their objectives."""
        cuts = sample.query_cuts(self.slices)
        placed = place(cuts, self.problem, self.targets)
        seat = Seat.of(placed, sample.scores)
        with quiet(cuts.xp):
            width = self.step.width_of(torch.as_tensor(spread_within(cuts))) * self.widening
        width = torch.where(width > 0, width, 1.0)[:, None].expand_as(seat.marginal)
        held = hold_thresholds(
            self.problem,
            self.targets,
            self.slices,
            QueryReading(self.step, seat.marginal, width, sample, sample),
            seat,
            flatness=self.flatness,
            slope_floor=self.slope_floor,
        )
        judged = (sample.totals[:, :2].amin(-1) > 0) & held.value.isfinite()
        judged &= per_query(sample.queries, held.gradient).isfinite()
        bounded = any(isinstance(t, Bound) for point in self.problem.points for t in point)
        missed = judged & (torch.as_tensor(placed.violation).amax(-1) > TOLERANCE) & bounded
        present = torch.as_tensor(cuts.present) > 0
        value = torch.where(judged, held.value, 0.0)
        sums = torch.stack([x.double().sum() for x in (value, judged, present, missed)])
        return Part(seat, torch.where(judged[sample.ids], held.gradient, 0.0), sums)
