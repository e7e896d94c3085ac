"""Beyond the scan: prices for what everyone is asked together, and small moves that improve."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from setpoint.problems.groups.asked import excess, pull
from setpoint.problems.groups.costs import WORST
from setpoint.problems.groups.levels import Ints, best_alone
from setpoint.problems.holds import TOLERANCE
from setpoint.problems.inputs import Floats

if TYPE_CHECKING:
    from setpoint.problems.groups.solve import Solver

HALVINGS, ROUNDS, SWEEPS, NEAR, CLOSE = 40, 3, 10, 32, 1e-3
Picks = list[int]
Judged = tuple[Picks, tuple[float, float]]


def priced(solver: Solver, picks: Picks) -> Picks:
    """A price on each joint target, found by bisection, in turns."""
    prices = [np.zeros((len(solver.cells.cells), 2)) for _ in solver.asked.joint]
    best = (picks, solver.judge(picks))
    for _ in range(1 if len(prices) == 1 else ROUNDS):
        for j in range(len(prices)):
            best = _bisect(solver, prices, j, best)
    solver.prices = prices
    return best[0]


def _bisect(solver: Solver, prices: list[Floats], j: int, best: Judged) -> Judged:
    """The smallest price at which a joint target is met; the best choice on the way."""
    target = solver.asked.joint[j]
    prices[j] = 0 * prices[j]
    start = solver.tangents(prices)
    best = _keep(solver, start, best)
    tables = solver.cells.tables(start)
    missed = excess(target, tables)
    direction = pull(target, solver.cells, tables)
    if not missed or np.isnan(missed) or not direction.any():
        return best
    turn, low, high, price = np.sign(missed), 0.0, 0.0, _unit(solver, direction)
    for _ in range(HALVINGS):
        prices[j] = turn * price * direction
        trial = solver.tangents(prices)
        best = _keep(solver, trial, best)
        if turn * excess(target, solver.cells.tables(trial)) > 0:
            low, price = price, (2 * price if not high else (price + high) / 2)
        else:
            high, price = price, (low + price) / 2
        if high and high - low <= CLOSE * high:
            break
    prices[j] = turn * (high or price) * direction
    return best


def _unit(solver: Solver, direction: Floats) -> float:
    """A price at which the target weighs about as much as the objective."""
    moves = [np.ptp(cost[abs(cost) < WORST / 2]) for cost in solver.costs.fixed]
    totals = np.array([(cell.tp[-1], cell.fp[-1]) for cell in solver.cells.cells])
    return float(max(*moves, 1e-3) / max((abs(direction) * totals).max(), 1e-12))


def _keep(solver: Solver, new: Picks, old: Judged) -> Judged:
    score = solver.judge(new)
    return (new, score) if solver.better(score, old[1]) else old


def improved(solver: Solver, picks: Picks) -> Picks:
    """Move the cuts of one or two groups at a time to better places, while there are any."""
    best = (picks, solver.judge(picks))
    places = [np.flatnonzero(ok) for ok in solver.allowed]
    for _ in range(SWEEPS):
        before = best[0]
        for g, h in moves(len(places)):
            best = _keep(solver, _moved(solver, best[0], places, g, h), best)
        if best[0] == before:
            break
    return best[0]


def _moved(solver: Solver, picks: Picks, places: list[Ints], g: int, h: int) -> Picks:
    """The best cuts of groups g and h, those of the others staying."""
    if g == h:
        along = {g: places[g]}
        grid: tuple[Ints, ...] = (places[g],)
    else:
        near = [around(places[i], picks[i]) for i in (g, h)]
        grid = tuple(np.meshgrid(*near, indexing="ij"))
        along = dict(zip((g, h), grid, strict=True))
    tables = solver.cells.tables(picks, along)
    violation = np.broadcast_to(solver.asked.violation(tables), grid[0].shape)
    cost = np.broadcast_to(solver.costs.value(tables), grid[0].shape)
    cost = np.where(violation <= violation.min() + TOLERANCE, cost, np.inf)
    best = np.unravel_index(best_alone(cost.reshape(-1), solver.slack), cost.shape)
    moved = list(picks)
    for i, cuts in zip((g, h), grid, strict=False):
        moved[i] = int(cuts[best])
    return moved


def moves(count: int) -> Iterator[tuple[int, int]]:
    """Every group by itself, then every two."""
    yield from ((g, g) for g in range(count))
    yield from combinations(range(count), 2)


def around(places: Ints, now: int) -> Ints:
    """The allowed cuts nearest to the present one."""
    at = int(np.searchsorted(places, now))
    start = max(0, min(at - NEAR, len(places) - 2 * NEAR))
    return places[start : start + 2 * NEAR]
