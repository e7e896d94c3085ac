"""One threshold per group: the best cuts on these data, under bounds between the groups.

Exact for one window (any of the named fairness constraints, :mod:`setpoint.axes.windows`), bounds
inside groups, and objectives that add up over groups, are a ratio over everyone or are the worst of
the groups. A second window is scanned over levels of its own, bounds on everyone get a price each
(a multiplier, found by bisection), and the cuts are then improved one or two groups at a time.

A ratio over everyone (precision) is replaced by its tangent at the present choice; choosing by it
and taking the next tangent is Dinkelbach's method, which never gets worse and ends at the best
ratio.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats, Ints, quiet
from setpoint.axes.choice import (
    Choice,
    check_feasible,
    objective_value,
    rates_reached,
    representable,
)
from setpoint.axes.group_cells import Cell, Cells, check_known_groups, codes_of, key_of
from setpoint.axes.group_targets import UNDEFINED_COST, CellsInWindow, GroupCosts, GroupTargets
from setpoint.axes.sample import read_to_evaluate
from setpoint.axes.scan import (
    TOLERANCE,
    Hold,
    Worth,
    admissible,
    cost_of,
    placement_at,
    tolerance,
    violation,
)
from setpoint.axes.specification import Specification
from setpoint.axes.windows import (
    best_alone,
    best_together,
)
from setpoint.batch import ScoredExamples
from setpoint.rates import (
    ONE,
    Bound,
    Fold,
    Rate,
    Setpoint,
)

_TANGENTS = 20
_LEVELS = 32
_HALVINGS = 40
_PRICE_ROUNDS = 3
_SWEEPS = 10
_NEAR = 32
_PRICE_PRECISION = 1e-3
_Picks = list[int]
_JudgedPicks = tuple[_Picks, Worth]


@dataclass
class GroupSearch:
    """The search for the best cut of every group on some data."""

    problem: Specification
    cells: Cells
    sample: bool = False
    """Whether the data are only a sample, such as a batch: see :class:`GroupTargets`."""

    def __post_init__(self) -> None:
        with quiet():
            self.asked = GroupTargets(self.problem, self.cells, sample=self.sample)
            self.costs = GroupCosts(self.problem, self.cells)
            pairs = zip(self.cells.cells, self.asked.local, strict=True)
            self.allowed = [_allowed(cell, own) for cell, own in pairs]
        self.slack = tolerance(self.problem.objective)
        self.prices: list[Floats] = []

    def solve(self) -> _Picks:
        """The cut of every cell: how many of its scores are accepted."""
        with quiet():
            picks = self.tangents([np.zeros((len(self.cells.cells), 2))])
            joint = self.asked.joint
            if joint:
                picks = _priced(self, picks)
            if joint or len(self.asked.windows) > 1:
                picks = _improved(self, picks)
            return picks

    def judge(self, picks: Sequence[int]) -> Worth:
        """By how much targets are missed, and what the objective costs."""
        return Worth.of(self.problem, self.asked.holds, self.cells.tables(picks))

    def better(self, first: Worth, second: Worth) -> bool:
        """Whether the first judgement is better."""
        return first.beats(second, TOLERANCE, self.slack)

    def tangents(self, prices: list[Floats]) -> _Picks:
        """Choose by tangents until the choice stays; once is enough for objectives that add up."""
        picks = [_middle_cut(ok) for ok in self.allowed]
        best: _Picks | None = None
        for _ in range(_TANGENTS):
            costs = self._priced_costs(picks, prices)
            picks = self._scan(costs, self.asked.windows)
            if not self.costs.bent or picks == best:
                return picks
            if best is None or self.better(self.judge(picks), self.judge(best)):
                best = picks
            elif len(prices) == 1:
                return best
        return picks if best is None else best

    def _priced_costs(self, picks: _Picks, prices: list[Floats]) -> list[Floats]:
        """The cost of every cut with the prices of joint targets; infinite where not allowed."""
        costs = self.costs.at(picks)
        for price in prices:
            for g, cell in enumerate(self.cells.cells):
                costs[g] = costs[g] + price[g, 0] * cell.tp + price[g, 1] * cell.fp
        return [np.where(ok, c, np.inf) for ok, c in zip(self.allowed, costs, strict=True)]

    def binds(self, picks: _Picks, together: CellsInWindow) -> bool:
        """Whether groups that choose each for itself would leave the window."""
        free = self._scan(self._priced_costs(picks, self.prices), ())
        rates = [r[free[g]] for g, r in zip(together.cells, together.rates, strict=True)]
        return not max(rates) <= together.window.upper(min(rates)) + TOLERANCE

    def _scan(self, costs: list[Floats], windows: Sequence[CellsInWindow]) -> _Picks:
        """The best cuts for costs that are known at every cut."""
        picks = [best_alone(cost, self.slack) for cost in costs]
        if not windows:
            return picks
        first, *others = windows
        if others:
            return self._scan_levels(costs, first, others)
        mine = [costs[g] for g in first.cells]
        found = best_together(mine, first.rates, first.window, self.costs.total, self.slack)
        for g, cut in zip(first.cells, found, strict=True):
            picks[g] = cut
        return picks

    def _scan_levels(
        self, costs: list[Floats], outer: CellsInWindow, others: Sequence[CellsInWindow]
    ) -> _Picks:
        """The outer window at many levels, the others inside it; then between the best of them."""
        everything = np.unique(np.concatenate(outer.rates))
        everything = everything[~np.isnan(everything)]
        low, high, best = 0, len(everything) - 1, None
        while True:
            places = np.unique(np.linspace(low, high, _LEVELS).round().astype(int))
            tried = [self._inside(costs, outer, others, everything[i]) for i in places]
            judged = [self.judge(picks) for picks in tried]
            for i, picks, score in zip(places, tried, judged, strict=True):
                if best is None or self.better(score, best[2]):
                    best = (i, picks, score)
            assert best is not None
            if len(places) < _LEVELS:  # every level was tried
                return best[1]
            step = max(1, (high - low) // (_LEVELS - 1))
            low, high = max(low, best[0] - step), min(high, best[0] + step)

    def _inside(
        self,
        costs: list[Floats],
        outer: CellsInWindow,
        others: Sequence[CellsInWindow],
        level: float,
    ) -> _Picks:
        """The best cuts with the outer window's smallest rate at a level."""
        inside = list(costs)
        for g, rate in zip(outer.cells, outer.rates, strict=True):
            over = rate - outer.window.upper(level)
            miss = np.maximum(np.maximum(level - rate, over), 0.0)
            miss = np.where(np.isfinite(costs[g]) & ~np.isnan(rate), miss, np.inf)
            inside[g] = np.where(miss <= miss.min() + TOLERANCE, costs[g], np.inf)
        return self._scan(inside, others)


def _middle_cut(allowed: NDArray[np.bool_]) -> int:
    """A cut to start from, with examples on both sides if possible."""
    places = np.flatnonzero(allowed)
    return int(places[len(places) // 2])


def _allowed(cell: Cell, targets: list[Hold]) -> NDArray[np.bool_]:
    """The cuts of a cell that miss its own targets least."""
    values = [cell.values(hold.expression)[None, None] for hold in targets]
    zero = np.zeros((1, 1, len(cell.tp)))
    best, _ = admissible(cell.cuts, targets, values, cell.cuts.valid(), zero)
    found: NDArray[np.bool_] = best[0, 0]
    return found


def _raising(target: Bound | Setpoint, cells: Cells, tables: Any) -> Floats:
    """The direction in counts that raises what a joint target bounds."""
    e = target.expression
    if isinstance(e, Fold) and e.kind == "abs":
        e = e.parts[0]
    slopes = cells.slopes(_in_counts(e, target.level), tables)
    turn = -1.0 if isinstance(target, Bound) and target.sense == ">=" else 1.0
    return turn * np.nan_to_num(slopes, posinf=0.0, neginf=0.0)


def _excess(target: Bound | Setpoint, tables: Any) -> float:
    """How far a joint target is missed, signed if it has two sides; 0 inside."""
    e, level = target.expression, target.level
    if isinstance(target, Setpoint):
        return float(e.of(tables)) - level
    if isinstance(e, Fold) and e.kind == "abs" and target.sense == "<=":
        value = float(e.parts[0].of(tables))
        return value - level if value > level else value + level if value < -level else 0.0
    return max(0.0, float(target.gap(tables)))


def _in_counts(e: Any, level: float) -> Any:
    """``precision >= 0.9`` as ``TP - 0.9 (TP + FP) >= 0``: the same, in counts that add up."""
    if isinstance(e, Rate) and not e.is_steady:
        return Rate(e.numerator - level * e.denominator, ONE, e.where)
    return e


def _priced(solver: GroupSearch, picks: _Picks) -> _Picks:
    """The best cuts with a price on each joint target, found by bisection, one after the other."""
    prices = [np.zeros((len(solver.cells.cells), 2)) for _ in solver.asked.joint]
    best = (picks, solver.judge(picks))
    for _ in range(1 if len(prices) == 1 else _PRICE_ROUNDS):
        for j in range(len(prices)):
            best = _bisect(solver, prices, j, best)
    solver.prices = prices
    return best[0]


def _bisect(solver: GroupSearch, prices: list[Floats], j: int, best: _JudgedPicks) -> _JudgedPicks:
    """The smallest price at which a joint target is met; the best choice on the way."""
    target = solver.asked.joint[j]
    prices[j] = 0 * prices[j]
    start = solver.tangents(prices)
    best = _keep(solver, start, best)
    tables = solver.cells.tables(start)
    missed = _excess(target, tables)
    direction = _raising(target, solver.cells, tables)
    if not missed or np.isnan(missed) or not direction.any():
        return best
    turn, low, high, price = np.sign(missed), 0.0, 0.0, _unit_price(solver, direction)
    for _ in range(_HALVINGS):
        prices[j] = turn * price * direction
        trial = solver.tangents(prices)
        best = _keep(solver, trial, best)
        if turn * _excess(target, solver.cells.tables(trial)) > 0:
            low, price = price, (2 * price if not high else (price + high) / 2)
        else:
            high, price = price, (low + price) / 2
        if high and high - low <= _PRICE_PRECISION * high:
            break
    prices[j] = turn * (high or price) * direction
    return best


def _unit_price(solver: GroupSearch, direction: Floats) -> float:
    """A price at which the target weighs about as much as the objective."""
    moves = [np.ptp(cost[abs(cost) < UNDEFINED_COST / 2]) for cost in solver.costs.fixed]
    totals = np.array([(cell.tp[-1], cell.fp[-1]) for cell in solver.cells.cells])
    return float(max(*moves, 1e-3) / max((abs(direction) * totals).max(), 1e-12))


def _keep(solver: GroupSearch, new: _Picks, old: _JudgedPicks) -> _JudgedPicks:
    score = solver.judge(new)
    return (new, score) if solver.better(score, old[1]) else old


def _improved(solver: GroupSearch, picks: _Picks) -> _Picks:
    """Move the cuts of one or two groups at a time to better places, while there are any."""
    best = (picks, solver.judge(picks))
    places = [np.flatnonzero(ok) for ok in solver.allowed]
    for _ in range(_SWEEPS):
        before = best[0]
        for g, h in _pairs(len(places)):
            best = _keep(solver, _best_of_two_groups(solver, best[0], places, g, h), best)
        if best[0] == before:
            break
    return best[0]


def _best_of_two_groups(
    solver: GroupSearch, picks: _Picks, places: list[Ints], g: int, h: int
) -> _Picks:
    """The best cuts of groups g and h, those of the others staying."""
    if g == h:
        along = {g: places[g]}
        grid: tuple[Ints, ...] = (places[g],)
    else:
        near = [_cuts_near(places[i], picks[i]) for i in (g, h)]
        grid = tuple(np.meshgrid(*near, indexing="ij"))
        along = dict(zip((g, h), grid, strict=True))
    tables = solver.cells.tables(picks, along)
    missed = np.broadcast_to(violation(solver.asked.holds, tables), grid[0].shape)
    cost = np.broadcast_to(cost_of(solver.problem, tables), grid[0].shape)
    cost = np.where(missed <= missed.min() + TOLERANCE, cost, np.inf)
    best = np.unravel_index(best_alone(cost.reshape(-1), solver.slack), cost.shape)
    moved = list(picks)
    for i, cuts in zip((g, h), grid, strict=False):
        moved[i] = int(cuts[best])
    return moved


def _pairs(count: int) -> Iterator[tuple[int, int]]:
    """Every group by itself, then every pair of groups."""
    yield from ((g, g) for g in range(count))
    yield from combinations(range(count), 2)


def _cuts_near(places: Ints, now: int) -> Ints:
    """The allowed cuts nearest to the present one."""
    at = int(np.searchsorted(places, now))
    start = max(0, min(at - _NEAR, len(places) - 2 * _NEAR))
    return places[start : start + 2 * _NEAR]


def choose_groups(problem: Specification, examples: ScoredExamples) -> Choice:
    """The best threshold of every group, under what has to hold between them."""
    sample = read_to_evaluate(problem.slices, examples)
    s, both = sample.scores[0], sample.columns[0, :, :2].T
    wheres, codes = codes_of(problem, examples.groups, s)
    check_known_groups(problem, (codes < 0) & both.any(0), examples.groups, s)
    pairs = [(both[0] * (codes == i), both[1] * (codes == i)) for i in range(len(wheres))]
    with quiet():
        cells = Cells(wheres, problem.slices, s, pairs)
        search = GroupSearch(problem, cells)
        picks = search.solve()
        tables = cells.tables(picks)
        check_feasible(problem, tables, sample)
        value = objective_value(problem, tables, sample)
        found = {}
        for cell, own, cut in zip(cells.cells, search.asked.local, picks, strict=True):
            placed = placement_at(cell.cuts, own, np.array([[cut]]), np.zeros((1, 1)))
            threshold, mine = float(placed.threshold[0, 0]), s[codes == cell.index]
            found[key_of(cell.where)] = representable(threshold, examples.scores, mine)
    return Choice(found, value, rates_reached(problem, value, tables))
