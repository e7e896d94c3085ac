"""One threshold for everyone: per output and operating point, a system of its own.

The threshold is an order statistic of the scores where one target decides, and chosen by a scan of
the sorted scores where more has to be weighed. It then holds the target that stops it, or, where
none does, its coverage: the share of examples that it accepts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from setpoint.axes.axis import (
    Axis,
    BatchT,
    Outcome,
    not_met,
    plain_numbers,
    too_coarse,
    undefined,
)
from setpoint.axes.choice import of_one, size_of
from setpoint.axes.cuts import tables_of
from setpoint.axes.implicit_function import Held, hold, solve
from setpoint.axes.order_statistics import lowest_permitted, spread
from setpoint.axes.sample import Sample, exact, read_sample
from setpoint.axes.scan import TOLERANCE, Placement, holds, place
from setpoint.axes.soft_counts import Form, SoftCounts
from setpoint.axes.specification import Specification
from setpoint.batch import ScoredExamples
from setpoint.rates import (
    Array,
    Bound,
    Counts,
    Range,
    Rate,
    Setpoint,
    Tables,
    coverage,
)
from setpoint.steps import SlopeOf, Step


class Separable(Axis[BatchT]):
    """Thresholds that depend on their own examples alone: a stack of 1 x 1 systems."""

    def __init__(self, problem: Specification, **options: Any) -> None:
        super().__init__(problem, **options)
        self.targets = holds(problem)
        self.slices = problem.slices
        self.objective = Form(problem.objective, self.slices)
        self.coverage = Form(coverage, self.slices)
        self.kept = [Form(target.expression, self.slices) for target in self.targets]

    def held(self, counts: SoftCounts, placed: Placement, *, fresh: bool = True) -> PlainOutcome:
        """The objective at placed thresholds, and its gradient.

        Args:
            counts: Soft counts around the thresholds.
            placed: What the thresholds were chosen as.
            fresh: Whether they were chosen on these very examples.
        """
        soft = PlainSoft(counts)
        rates, goal = self.objective(soft)
        kept = self._anchor(soft, placed)
        anchor = OneAnchor(kept, soft.by_threshold(kept)[..., None])
        sign = self.sign / soft.slopes.shape[1]  # the mean over operating points
        floor = self.slope_floor / counts.width[..., None] if self.slope_floor else None
        held = hold(soft, anchor, goal * sign, floor)
        value, gradient = rates.sum(-1) * sign, held.gradient
        if self.flatness:
            gradient = gradient + self.flatness * _flatness_gradient(soft, anchor)
        sound = np.isfinite(value) & (soft.totals > 0).all(-1)
        numbers = value, gradient, sound, placed.threshold, placed.marginal
        return PlainOutcome(*numbers, self.problem, counts, placed, rates, fresh, held, anchor)

    def _anchor(self, soft: PlainSoft, placed: Placement) -> Array:
        """By count, what each threshold keeps: the target that stops it, or the coverage."""
        targets, holding = self.targets, placed.holding
        if len(targets) == 1 and (targets[0].sorts or holding[0].all()):  # the usual case
            return self.kept[0].by_count(soft)
        anchor = self.coverage.by_count(soft)
        for target, form, held in zip(targets, self.kept, holding, strict=True):
            if target.caps is not None:
                anchor = np.where(held[..., None], form.by_count(soft), anchor)
        return anchor


class Everyone(Separable[Sample]):
    """One threshold for everyone; see :class:`setpoint.axes.axis.Axis`."""

    def read(self, examples: ScoredExamples) -> Sample:
        """A checked sample of a batch."""
        return read_sample(self.slices, *examples[:4])

    def choose(self, sample: Sample) -> Placement:
        """The best thresholds on true counts."""
        if len(self.targets) == 1 and self.targets[0].counted:
            found = lowest_permitted(sample, self.targets[0])
            if found is not None:
                return found
        return place(sample.cuts, self.problem, self.targets)

    def hold(
        self,
        whole: Sample,
        own: Sample,
        step: Step,
        widening: float,
        placed: Placement | None = None,
    ) -> PlainOutcome:
        """Choose thresholds, or take those that were ``placed`` on other batches, and hold them."""
        found = self.choose(whole) if placed is None else placed
        counts = soft_counts(whole, own, found.marginal, step, widening)
        return self.held(counts, found, fresh=placed is None)


def soft_counts(
    whole: Sample, own: Sample, at: Array, step: Step, widening: float = 1.0
) -> SoftCounts:
    """Soft counts around thresholds ``at``, as wide as the spread of the scores says."""
    weights = None if whole.unweighted else whole.weights
    spreads = spread(whole.scores, weights, whole.ranked).tolist()
    width = np.array([[step.width_of(each) * widening or 1.0] for each in spreads])
    return SoftCounts(step, at, width, whole, own)


class PlainSoft:
    """Soft counts around one threshold per output and operating point, ``[c, m, k]``."""

    def __init__(self, counts: SoftCounts) -> None:
        self.counts, self.pull = counts, counts.pull
        self.accepted, self.slopes = counts.counts()
        self.totals = counts.whole.totals

    @cached_property
    def tables(self) -> Tables:
        """The same as tables of counts, ``[c, m]``."""
        return tables_of(self.accepted, self.totals, self.counts.whole.slices)

    def by_threshold(self, by_count: Array) -> Array:
        """A derivative by the threshold of each system, ``[c, m, 1]``, from that by the counts."""
        return (by_count * self.slopes).sum(-1, keepdims=True)


class OneAnchor(NamedTuple):
    """One rate per threshold, kept by it.

    Attributes:
        by_count: Its derivatives by the counts, ``[c, m, k]``.
        slopes: By the threshold, ``[c, m, 1, 1]``.
    """

    by_count: Array
    slopes: Array

    def total(self, multipliers: Array, towards: Array) -> Array:
        """The multiplier times what is kept."""
        return multipliers * self.by_count


def _flatness_gradient(soft: PlainSoft, anchor: OneAnchor) -> Array:
    """The gradient of ``sum (width * d gap / d threshold)^2`` (section 3.4).

    Counted with the slope of the step instead of the step, counts are what this square is made of;
    it moves with the scores directly and through the thresholds.
    """
    bend = replace(soft.counts, step=SlopeOf(soft.counts.step), _kernels=[])
    densities, slopes = bend.counts()
    signs = np.ones_like(densities)
    signs[..., : soft.counts.whole.columns.shape[-1]] = -1  # accepted leave as a threshold rises
    root = (signs * anchor.by_count * densities).sum(-1, keepdims=True)
    by_density = 2 * root * signs * anchor.by_count
    pace, _ = solve((by_density * slopes).sum(-1, keepdims=True), anchor.slopes)
    return bend.pull(by_density) + soft.pull(pace * anchor.by_count)


@dataclass(eq=False)
class PlainOutcome(Outcome):
    """A batch with one threshold for everyone; see :class:`setpoint.axes.axis.Outcome`."""

    problem: Specification
    counts: SoftCounts
    placed: Placement
    rates: Array  # the objective in soft counts, [c, m]
    fresh: bool = False  # whether the thresholds were found on this very batch
    held: Held | None = None  # None: the thresholds are not held, but learned
    anchor: OneAnchor | None = None

    @cached_property
    def hard(self) -> Tables:
        """True counts at the reported thresholds."""
        return self.counts.whole.tables_at(self.placed.threshold)

    def motion(self) -> Array:
        """How the thresholds move with the scores, summed over them, ``[c, n]``."""
        assert self.anchor is not None
        pace, _ = solve(np.ones(self.anchor.slopes.shape[:-1]), self.anchor.slopes)
        return self.counts.pull(pace * self.anchor.by_count)

    def numbers(self) -> dict[str, Any]:
        """Plain numbers; a list where there are several thresholds or outputs."""
        first = self.problem.subject_to[0].expression if self.problem.subject_to else None
        return {
            "threshold": plain_numbers(self.placed.threshold),
            "held_rate": None if first is None else plain_numbers(first.of(self.hard)),
            "soft_objective": plain_numbers(self.rates),
            "hard_objective": plain_numbers(self.problem.objective.of(self.hard)),
            "multiplier": None
            if self.held is None
            else plain_numbers(self.held.multipliers[..., 0]),
            "examples_in_band": plain_numbers(exact(self.counts.examples_in_band())),
        }

    def trouble(self) -> str:
        """What is wrong with the first output that has trouble."""
        return next(filter(None, self.troubles()), "")

    def troubles(self) -> list[str]:
        """For each output the first thing that is missing, missed, undefined or flat."""
        return [self._trouble_of(place) for place in range(len(self.placed.threshold))]

    def _trouble_of(self, output: int) -> str:
        for name, column in (("positives", 0), ("negatives", 1)):
            if self.counts.whole.totals[output, column] == 0:
                return f"no {name} in the batch"
        tables = {where: _of_output(table, output) for where, table in self.hard.items()}
        one = float(np.broadcast_to(self.counts.whole.unit, (len(self.value), 1))[output, 0])
        for target in self.problem.subject_to:
            trouble = self._missed(target, tables, one)
            if trouble:
                return trouble
        if not np.isfinite(exact(self.rates)[output]).all():
            return undefined(self.problem.objective)
        if self.held and self.held.flat:
            return "flat: no score near the threshold"
        return self._tied(output)

    def _tied(self, output: int) -> str:
        """Whether nobody is accepted because too many share the highest score, in words."""
        scores, thresholds = (
            exact(x)[output] for x in (self.counts.whole.scores, self.placed.threshold)
        )
        highest = scores.max()
        sharing = int((scores == highest).sum())
        if sharing == 1 or (thresholds < highest).any():
            return ""
        return (
            f"tied: {sharing} of {len(scores)} examples share the highest score, so nobody is "
            "accepted (all units are off there? try LeakyReLU, more units or another start)"
        )

    def _missed(self, target: Bound | Setpoint | Range, tables: Tables, one: float) -> str:
        """Why a target is not held, in words; an example weighs ``one``."""
        value, word = target.expression.of(tables), "infeasible" if self.fresh else "drifting"
        if np.isnan(value).any():
            return undefined(target.expression)
        if isinstance(target, Bound):
            gap, unit = target.gap(tables), TOLERANCE
        else:  # the nearest attainable rate is at most one example away
            levels = np.array([point.level for (point,) in self.problem.points])
            gap, unit = abs(value - levels), TOLERANCE + of_one(target.expression, tables, one)
            if isinstance(target, Range) and target.floors:
                gap, unit = levels - value, TOLERANCE
        if (gap > unit).any():
            reached = ", ".join(f"{each:.3g}" for each in np.atleast_1d(value))
            return not_met(target, float(gap.max()), reached, word)
        aims = [t.level for point in self.problem.points for t in point]
        rate = target.expression
        if isinstance(rate, Rate) and rate.direction is not None:
            size = size_of(rate, tables) / one
            return too_coarse(rate, size, min(min(x, 1 - x) for x in aims))
        return ""


def _of_output(table: Counts, output: int) -> Counts:
    """The counts of one output, ``[m]``."""
    return Counts(*(part[output] for part in vars(table).values()))
