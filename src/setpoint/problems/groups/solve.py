"""One threshold per group: the best cuts on these data, under what is asked between the groups.

Exact for one window (any of the named fairness constraints), bounds inside groups, and objectives
that add up over groups, are a ratio over everyone or are the worst of the groups: see
:mod:`setpoint.problems.groups.levels`. A second window is scanned over levels of its own, and
bounds on everyone get a price each; the cuts are then improved one group at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setpoint.problems.cuts import quiet
from setpoint.problems.groups.asked import Asked, Together, allowed
from setpoint.problems.groups.cells import Cells
from setpoint.problems.groups.costs import Costs
from setpoint.problems.groups.levels import best_alone, best_together
from setpoint.problems.groups.search import Picks, improved, priced
from setpoint.problems.holds import TOLERANCE, tolerance
from setpoint.problems.inputs import Floats
from setpoint.problems.problem import Problem

TANGENTS, LEVELS = 20, 32


@dataclass
class Solver:
    """The inner problem on some data."""

    problem: Problem
    cells: Cells
    sample: bool = False
    """Whether these are examples to learn from, not all that are to be judged."""

    def __post_init__(self) -> None:
        with quiet(np):
            self.asked = Asked(self.problem, self.cells, sample=self.sample)
            self.costs = Costs(self.problem, self.cells)
            pairs = zip(self.cells.cells, self.asked.local, strict=True)
            self.allowed = [allowed(cell, own) for cell, own in pairs]
        self.slack = tolerance(self.problem.objective)
        self.prices: list[Floats] = []

    def solve(self) -> Picks:
        """The cut of every cell: how many of its scores are accepted."""
        with quiet(np):
            picks = self.tangents([np.zeros((len(self.cells.cells), 2))])
            joint = self.asked.joint
            if joint:
                picks = priced(self, picks)
            if joint or len(self.asked.windows) > 1:
                picks = improved(self, picks)
            return picks

    def judge(self, picks: Sequence[int]) -> tuple[float, float]:
        """By how much targets are missed, and what the objective costs."""
        tables = self.cells.tables(picks)
        return float(self.asked.violation(tables)), float(self.costs.value(tables))

    def better(self, first: tuple[float, float], second: tuple[float, float]) -> bool:
        """Whether the first judgement is better: targets come before the objective."""
        if abs(first[0] - second[0]) > TOLERANCE:
            return first[0] < second[0]
        return first[1] < second[1] - self.slack

    def tangents(self, prices: list[Floats]) -> Picks:
        """Choose by tangents until none moves the choice: once is enough for sums."""
        picks = [_middle(ok) for ok in self.allowed]
        best: Picks | None = None
        for _ in range(TANGENTS):
            costs = self._priced_costs(picks, prices)
            picks = self._scan(costs, self.asked.windows)
            if not self.costs.bent or picks == best:
                return picks
            if best is None or self.better(self.judge(picks), self.judge(best)):
                best = picks
            elif len(prices) == 1:
                return best
        return picks if best is None else best

    def _priced_costs(self, picks: Picks, prices: list[Floats]) -> list[Floats]:
        """The cost of every cut with the prices of joint targets; infinite where not allowed."""
        costs = self.costs.at(picks)
        for price in prices:
            for g, cell in enumerate(self.cells.cells):
                costs[g] = costs[g] + price[g, 0] * cell.tp + price[g, 1] * cell.fp
        return [np.where(ok, c, np.inf) for ok, c in zip(self.allowed, costs, strict=True)]

    def binds(self, picks: Picks, together: Together) -> bool:
        """Whether groups that choose each for itself would leave the window."""
        free = self._scan(self._priced_costs(picks, self.prices), ())
        rates = [r[free[g]] for g, r in zip(together.cells, together.rates, strict=True)]
        return not max(rates) <= together.window.upper(min(rates)) + TOLERANCE

    def _scan(self, costs: list[Floats], windows: Sequence[Together]) -> Picks:
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
        self, costs: list[Floats], outer: Together, others: Sequence[Together]
    ) -> Picks:
        """The outer window at many levels, the others inside it; then between the best of them."""
        everything = np.unique(np.concatenate(outer.rates))
        everything = everything[~np.isnan(everything)]
        low, high, best = 0, len(everything) - 1, None
        while True:
            places = np.unique(np.linspace(low, high, LEVELS).round().astype(int))
            tried = [self._inside(costs, outer, others, everything[i]) for i in places]
            judged = [self.judge(picks) for picks in tried]
            for i, picks, score in zip(places, tried, judged, strict=True):
                if best is None or self.better(score, best[2]):
                    best = (i, picks, score)
            assert best is not None
            if len(places) < LEVELS:  # every level was tried
                return best[1]
            step = max(1, (high - low) // (LEVELS - 1))
            low, high = max(low, best[0] - step), min(high, best[0] + step)

    def _inside(
        self, costs: list[Floats], outer: Together, others: Sequence[Together], level: float
    ) -> Picks:
        """The best cuts with the outer window's smallest rate at a level."""
        inside = list(costs)
        for g, rate in zip(outer.cells, outer.rates, strict=True):
            over = rate - outer.window.upper(level)
            miss = np.maximum(np.maximum(level - rate, over), 0.0)
            miss = np.where(np.isfinite(costs[g]) & ~np.isnan(rate), miss, np.inf)
            inside[g] = np.where(miss <= miss.min() + TOLERANCE, costs[g], np.inf)
        return self._scan(inside, others)


def _middle(allowed: NDArray[np.bool_]) -> int:
    """A cut to start from, with examples on both sides if possible."""
    places = np.flatnonzero(allowed)
    return int(places[len(places) // 2])
