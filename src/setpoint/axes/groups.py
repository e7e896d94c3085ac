"""One threshold per group, coupled by what has to hold between the groups (ICO, example 6).

The choice is made on true counts (:class:`.group_search.GroupSearch`). What is then held: a
group's own bound that stops it; the differences between groups at the ends of a window, if groups
that choose each for itself would leave it; a bound on everyone that has a price. With fewer of
these equations than thresholds, the thresholds also hold combinations of their groups' coverages:
of all multipliers that make the objective stationary, those with the least weight on coverages
(each squared, over the share of its group). So nothing depends on the order of groups, shifting
the scores of one group changes nothing, and one group alone is the axis of everyone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats
from setpoint.axes.axis import Axis, Outcome, not_met, undefined
from setpoint.axes.cuts import tables_of
from setpoint.axes.group_cells import Cell, Cells, cells_of, check_known_groups, key_of
from setpoint.axes.group_search import GroupSearch
from setpoint.axes.group_targets import CellsInWindow
from setpoint.axes.implicit_function import Held, hold
from setpoint.axes.order_statistics import spread
from setpoint.axes.sample import Sample, read_sample
from setpoint.axes.scan import TOLERANCE, placement_at
from setpoint.axes.soft_counts import SoftCounts, gradient_of
from setpoint.axes.specification import Specification
from setpoint.batch import ScoredExamples
from setpoint.rates import Expression, Fold, Tables, Where, maximum, minimum
from setpoint.rates.slices import describe_slice
from setpoint.steps import Step


class Groups(Axis[Sample]):
    """One threshold per group; see :class:`setpoint.axes.axis.Axis`."""

    advice = "Use larger batches, pool scores over batches with memory=, or drop strict=True."

    def __init__(self, problem: Specification, **options: Any) -> None:
        super().__init__(problem, **options)
        self.wheres = cells_of(problem)
        if not self.wheres:
            raise ValueError(
                f"`{problem}` names no group to train a threshold for. Name them, as in "
                'subject_to=demographic_parity(0.02, sex=["f", "m"]), or for a bound in each group '
                'in "largest(fpr, sex=[f, m]) <= 0.01".'
            )
        self.slices: tuple[Where, ...] = ((), *self.wheres)
        self.keys = tuple(map(key_of, self.wheres))

    def read(self, examples: ScoredExamples) -> Sample:
        """A checked sample of a batch: one output, and every example in a group of the problem."""
        sample = read_sample(self.slices, *examples[:4])
        if len(sample.scores) > 1:
            raise ValueError(
                "One threshold per group takes one score per example; "
                f"got {len(sample.scores)} outputs."
            )
        everyone, named = sample.columns[0, :, :2].sum(-1), sample.columns[0, :, 2:].sum(-1)
        check_known_groups(self.problem, everyone > named, examples.groups, sample.scores[0])
        return sample

    def choose(self, sample: Sample) -> GroupThresholds:
        """The best thresholds on true counts, and what holds them."""
        columns = sample.columns[0]
        pairs = [(columns[:, 2 * i + 2], columns[:, 2 * i + 3]) for i in range(len(self.wheres))]
        cells = Cells(self.wheres, self.problem.slices, sample.scores[0], pairs)
        solver = GroupSearch(self.problem, cells, sample=True)
        picks = solver.solve()
        held = _joint(solver)
        pinned = [_pinned(solver, window, picks) for window in solver.asked.windows]
        held += [equation for equations, _ in pinned for equation in equations]
        parts = {g: part for _, own in pinned for g, part in own.items()}
        found = []
        for g, (cell, own) in enumerate(zip(cells.cells, solver.asked.local, strict=True)):
            placed = placement_at(cell.cuts, own, np.array([[picks[g]]]), np.zeros((1, 1)))
            stops = [h.expression for h, on in zip(own, placed.holding, strict=True) if on]
            marginal = float(placed.marginal[0, 0])
            if g in parts and not stops:
                marginal = _on_its_class(cell, picks[g], parts[g], marginal)
            found.append((marginal, float(placed.threshold[0, 0])))
            held += stops
        marginals, thresholds = np.array(found).reshape(-1, 2).T
        return GroupThresholds(solver, picks, marginals, thresholds, tuple(held))

    def hold(self, whole: Sample, own: Sample, step: Step, widening: float) -> GroupOutcome:
        """Choose the thresholds of all groups, and hold them."""
        if not whole.totals[0, :2].sum():
            seats = np.full(len(self.wheres), np.nan)
            none = np.zeros(1), np.zeros_like(own.scores), np.zeros(1, dtype=bool)
            return GroupOutcome(*none, seats, seats, self, None)
        placed = self.choose(whole)
        width = self._widths(placed.solver.cells, whole, step, widening)
        soft = GroupSoft(placed, width, step, whole, own)
        anchors = CoveragesAndEquations(soft, [soft.by_count(e) for e in placed.equations])
        objective = _judged_among(self.problem.objective, placed)
        held = hold(soft, anchors, self.sign * soft.by_count(objective))
        rate = float(np.squeeze(objective.of(soft.tables)))
        sound = np.isfinite(held.gradient.sum() + rate) & whole.both_classes
        numbers = np.array([self.sign * rate]), held.gradient, sound
        threshold, marginal = (
            self._of_all(placed, each) for each in (placed.threshold, placed.marginal)
        )
        return GroupOutcome(*numbers, threshold, marginal, self, placed, anchors, held, rate)

    def _of_all(self, placed: GroupThresholds, values: Floats) -> Floats:
        """Values of the groups that have examples in the places of all, NaN for the others."""
        found = np.full(len(self.wheres), np.nan)
        found[placed.present] = values
        return found

    def _widths(self, cells: Cells, whole: Sample, step: Step, widening: float) -> Floats:
        """The width of each group's step: by the spread of its own scores, if they have any."""
        every = spread(whole.scores, whole.weights)[0]
        own = (spread(c.cuts.scores, np.diff(c.tp + c.fp)[None])[0] for c in cells.cells)
        spreads = [found or every for found in own]
        widths = step.width_of(np.array(spreads, dtype=float)) * widening
        return np.where(widths == 0, 1.0, widths)


@dataclass(frozen=True)
class GroupThresholds:
    """The thresholds of the groups that have examples, ``[g]`` each, and what holds them."""

    solver: GroupSearch
    picks: list[int]
    marginal: Floats
    threshold: Floats
    equations: tuple[Expression, ...]

    @property
    def present(self) -> list[int]:
        """The places of the groups that have examples, among all groups."""
        return [cell.index for cell in self.solver.cells.cells]

    @property
    def tables(self) -> Tables:
        """True counts of every slice."""
        return self.solver.cells.tables(self.picks)


class GroupSoft:
    """Soft counts of every group around its own threshold, ``[g, 2]``: positives and negatives."""

    def __init__(
        self, placed: GroupThresholds, width: Floats, step: Step, whole: Sample, own: Sample
    ) -> None:
        cells = placed.solver.cells
        self.slices = cells.slices
        self.inside = np.asarray(cells.inside, dtype=float)  # which groups make up a slice
        self.columns = [c for i in placed.present for c in (2 * i + 2, 2 * i + 3)]
        apart = self._apart(whole, placed.marginal, width)
        mine = apart if own is whole else self._apart(own, placed.marginal, width)
        self.width, self.own_width = width, width[self._cell_of(own)]
        unit = np.ones((1, 1))
        self.counts = SoftCounts(step, 0 * unit, unit, apart, mine)
        accepted, slopes = self.counts.counts()
        self.accepted: Floats = accepted.reshape(-1, 2)
        self.slopes: Floats = slopes.reshape(-1, 2) / width[:, None]
        self.totals: Floats = apart.totals.reshape(-1, 2)
        self.sizes: Floats = self.totals.sum(-1)
        self.coverage_slopes: Floats = self.slopes.sum(-1) / self.sizes
        # thresholds in units of their coverage: least squares then weigh coverages by group size
        self.scale = 1 / (self.coverage_slopes * np.sqrt(self.sizes / self.sizes.sum()))
        counts, totals = self._in_slices(self.accepted), self._in_slices(self.totals)[0]
        self._slice_counts = counts
        self.tables = tables_of(counts, totals, self.slices)

    def _cell_of(self, sample: Sample) -> NDArray[np.int64]:
        weights = sample.columns[0][:, self.columns]
        return np.asarray((weights[:, ::2] + weights[:, 1::2]).argmax(-1))

    def _apart(self, sample: Sample, marginal: Floats, width: Floats) -> Sample:
        """Every score from its own threshold on, in its own width."""
        g = self._cell_of(sample)
        scores = (sample.scores - marginal[g]) / width[g]
        return Sample(scores, sample.columns[..., self.columns])

    def _in_slices(self, values: Floats) -> Floats:
        return (self.inside @ values).reshape(1, 1, -1)

    def by_count(self, expression: Expression) -> Floats:
        """How an expression changes with the accepted of every group, ``[g, 2]``."""
        changed = gradient_of(expression, self._slice_counts, self.tables, self.slices)
        empty = (self.inside.sum(-1) == 0)[:, None]
        return np.asarray(self.inside.T @ np.where(empty, 0.0, changed.reshape(-1, 2)))

    def by_threshold(self, by_count: Floats) -> Floats:
        """The same by the thresholds, in units of :attr:`scale`, ``[g]``."""
        return np.asarray((by_count * self.slopes).sum(-1) * self.scale)

    def pull(self, by_count: Floats) -> Floats:
        """The gradient on the batch's scores, ``[1, n]``."""
        return np.asarray(self.counts.pull(by_count.reshape(1, 1, -1)) / self.own_width)


class CoveragesAndEquations:
    """What groups keep: equations, and of their coverages what these leave open."""

    def __init__(self, soft: GroupSoft, equations: list[Floats]) -> None:
        self.soft, self.equations = soft, equations
        rows = [soft.by_threshold(equation) for equation in equations]
        self.slopes = np.array(rows).reshape(-1, len(soft.sizes))

    def rests(self, multipliers: Floats, towards: Floats) -> Floats:
        """The multipliers of the groups' coverages: for what those of the equations leave."""
        rest = towards + (multipliers[..., None] * self.slopes).sum(-2)
        return np.asarray(-rest / (self.soft.scale * self.soft.coverage_slopes))

    def total(self, multipliers: Floats, towards: Floats) -> Floats:
        """Multipliers times equations, and the rest by the coverages, ``[g, 2]``."""
        total = (self.rests(multipliers, towards) / self.soft.sizes)[:, None] * np.ones(2)
        for multiplier, equation in zip(multipliers, self.equations, strict=True):
            total = total + multiplier * equation
        return total


@dataclass(eq=False)
class GroupOutcome(Outcome):
    """A batch with one threshold per group; see :class:`setpoint.axes.axis.Outcome`."""

    axis: Groups
    placed: GroupThresholds | None  # None: the batch has no examples
    anchors: CoveragesAndEquations | None = None
    held: Held | None = None
    rate: float = float("nan")

    def trouble(self) -> str:
        """The first thing that is missing, missed or undefined."""
        if self.placed is None:
            return "no positives in the batch"
        with np.errstate(all="ignore"):
            return self._missing(self.placed) or self._missed(self.placed)

    def _missing(self, placed: GroupThresholds) -> str:
        for name in ("positives", "negatives"):
            if getattr(placed.tables[()], name) == 0:
                return f"no {name} in the batch"
        missing = [w for i, w in enumerate(self.axis.wheres) if i not in placed.present]
        return f"no examples of {describe_slice(missing[0])} in the batch" if missing else ""

    def _missed(self, placed: GroupThresholds) -> str:
        asked, tables = placed.solver.asked, placed.tables
        for target, needed in zip(asked.targets, asked.holds, strict=True):
            value = float(target.expression.of(tables))
            gap = needed.gap(value, target.level)
            if not gap <= needed.tolerance and needed.sense != "at":
                return not_met(target, gap, f"{value:.4g}")
        for target, step in asked.coarse:
            return f"too coarse: one example of a group changes `{target}` by {step:.2g}"
        if not np.isfinite(self.rate):
            return undefined(self.axis.problem.objective)
        return ""

    def numbers(self) -> dict[str, Any]:
        """Plain numbers, thresholds and rates by group."""
        if self.placed is None or self.held is None or self.anchors is None:
            return {}
        tables, problem = self.placed.tables, self.axis.problem
        with np.errstate(all="ignore"):
            hard = float(problem.objective.of(tables))
            rates = {
                str(target.expression): float(target.expression.of(tables))
                for target in self.placed.solver.asked.targets
            }
        names = [self.axis.keys[i] for i in self.placed.present]
        equations = map(str, self.placed.equations)
        rests = self.anchors.rests(self.held.multipliers, self.held.towards)
        return {
            "threshold": dict(zip(names, self.placed.threshold.tolist(), strict=True)),
            "held_rates": rates,
            "soft_objective": float(self.rate),
            "hard_objective": hard,
            "multipliers": dict(zip(equations, self.held.multipliers.tolist(), strict=True)),
            "coverage_multipliers": dict(zip(names, rests.tolist(), strict=True)),
        }


def _judged_among(objective: Expression, placed: GroupThresholds) -> Expression:
    """The objective; the worst of groups is the worst of those that can be judged."""
    if not isinstance(objective, Fold) or objective.kind == "abs":
        return objective
    parts = [part for part in objective.parts if placed.solver.cells.defined(part)]
    fold = maximum if objective.kind == "max" else minimum
    return fold(*parts) if parts else objective


def _on_its_class(cell: Cell, cut: int, part: Expression, marginal: float) -> float:
    """The accepted score nearest to the cut among those that the held rate counts.

    A rate of positives has no slope where only negatives are near.
    """
    tops = [rate.numerator for rate in part.rates()]
    if all(top.fp == top.tn for top in tops):
        running = cell.tp
    elif all(top.tp == top.fn for top in tops):
        running = cell.fp
    else:
        return marginal
    # none of them is accepted: the first that would be
    side = "right" if running[cut] == running[0] else "left"
    last = int(np.searchsorted(running, running[cut], side))  # type: ignore[call-overload]
    return float(cell.cuts.score(np.array([[last - 1]]))[0, 0])


def _next(places: NDArray[np.int64], values: Floats, cut: int) -> list[float]:
    """What a rate becomes at the nearest cuts, on both sides, where it is another."""
    now = values[places == cut][0]
    other = abs(values - now) > TOLERANCE
    before, after = values[(places < cut) & other], values[(places > cut) & other]
    return [float(x[i]) for x, i in ((before, -1), (after, 0)) if len(x)]


def _joint(solver: GroupSearch) -> list[Expression]:
    """What bounds everyone, at a price."""
    held = []
    for target, price in zip(solver.asked.joint, solver.prices, strict=True):
        e = target.expression
        inner = e.parts[0] if isinstance(e, Fold) and e.kind == "abs" else e
        known = target.caps is not None or inner is not e  # else thresholds may move it either way
        if known and price.any():
            held.append(inner)
    return held


def _pinned(
    solver: GroupSearch, together: CellsInWindow, picks: Sequence[int]
) -> tuple[list[Expression], dict[int, Expression]]:
    """The differences between groups that a window keeps from growing, and whose they are."""
    window, cells = together.window, solver.cells
    if any(not part.direction for part in window.parts) or not solver.binds(list(picks), together):
        return [], {}
    rates = [float(r[picks[g]]) for g, r in zip(together.cells, together.rates, strict=True)]
    low, high = min(rates), max(rates)
    ends: dict[int, float] = {}
    for i, (g, along) in enumerate(zip(together.cells, together.rates, strict=True)):
        others = rates[:i] + rates[i + 1 :]
        places = np.flatnonzero(cells.cells[g].valid)
        for moved in _next(places, along[places], picks[g]):
            if max(moved, *others) > window.upper(min(moved, *others)) + TOLERANCE:
                ends[i] = window.factor if high - rates[i] <= rates[i] - low else 1.0
    for i, rate in enumerate(rates):
        if min(rate - low, high - rate) <= TOLERANCE:
            ends.setdefault(i, 1.0 if rate - low <= TOLERANCE else window.factor)
    (first, scale), *others_ = sorted(ends.items())
    base = window.parts[first] / scale
    differences = [window.parts[i] / by - base for i, by in others_]
    return differences, {together.cells[i]: window.parts[i] for i in ends}
