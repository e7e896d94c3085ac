"""Where the thresholds of all groups sit on a batch, and which of its bounds keep them there.

The choice is made on hard counts (:class:`setpoint.axes.group_search.Solver`). What is then held: a
group's own bound that stops it; the differences between groups at the ends of a window, if groups
that choose each for itself would leave it; a bound on everyone that has a price. What they leave
open is left to the groups' own coverages: see :mod:`setpoint.solvers.groups.held`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setpoint.axes.arrays import Floats, quiet
from setpoint.axes.group_cells import Cell, Cells
from setpoint.axes.group_search import Solver, Together
from setpoint.axes.scan import TOLERANCE, sit
from setpoint.problems import Problem
from setpoint.rates import Expression, Fold, Where
from setpoint.steps import Step
from setpoint.thresholds import Sample, spread


@dataclass(frozen=True)
class GroupSeats:
    """The thresholds of the groups that are there, ``[g]`` each, and what holds them."""

    solver: Solver
    picks: list[int]
    marginal: Tensor
    threshold: Tensor
    width: Tensor
    equations: tuple[Expression, ...]

    @property
    def present(self) -> list[int]:
        """The places of the groups that have examples, among all groups."""
        return [cell.index for cell in self.solver.cells.cells]


def seat_groups(
    problem: Problem, wheres: tuple[Where, ...], sample: Sample, step: Step, wider: float
) -> GroupSeats:
    """Choose the thresholds of all groups on ``sample``, and find out what holds them."""
    scores, columns = sample.scores[0].cpu().numpy(), sample.columns[0].cpu().numpy()
    pairs = [(columns[:, 2 * i + 2], columns[:, 2 * i + 3]) for i in range(len(wheres))]
    cells = Cells(wheres, problem.slices, scores, pairs)
    solver = Solver(problem, cells, sample=True)
    picks = solver.solve()
    with quiet(np):
        held = _joint(solver)
        pinned = [_pinned(solver, window, picks) for window in solver.asked.windows]
        held += [equation for equations, _ in pinned for equation in equations]
        parts = {g: part for _, own in pinned for g, part in own.items()}
        found = []
        for g, (cell, own) in enumerate(zip(cells.cells, solver.asked.local, strict=True)):
            placed = sit(cell.cuts, own, np.array([[picks[g]]]), np.zeros((1, 1)))
            stops = [h.expression for h, on in zip(own, placed.holding, strict=True) if on]
            marginal = float(placed.marginal[0, 0])
            if g in parts and not stops:
                marginal = _on_its_class(cell, picks[g], parts[g], marginal)
            reach = float(spread(cell.cuts)[0] or spread(sample.cuts(((), *wheres)))[0])
            width = float(step.width_of(torch.tensor(reach, dtype=torch.float64))) * wider or 1.0
            found.append((marginal, float(placed.threshold[0, 0]), width))
            held += stops
    seats = torch.tensor(found, dtype=sample.scores.dtype, device=sample.scores.device)
    marginals, thresholds, widths = seats.reshape(-1, 3).T
    return GroupSeats(solver, picks, marginals, thresholds, widths, tuple(held))


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
    if running[cut] == running[0]:  # none of them is accepted: the first that would be
        last = int(np.searchsorted(running, running[cut], "right"))
    else:
        last = int(np.searchsorted(running, running[cut], "left"))
    return float(cell.cuts.score(np.array([[last - 1]]))[0, 0])


def _next(places: NDArray[np.int64], values: Floats, cut: int) -> list[float]:
    """What a rate becomes at the nearest cuts, on both sides, where it is another."""
    now = values[places == cut][0]
    other = abs(values - now) > TOLERANCE
    before, after = values[(places < cut) & other], values[(places > cut) & other]
    return [float(x[i]) for x, i in ((before, -1), (after, 0)) if len(x)]


def _joint(solver: Solver) -> list[Expression]:
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
    solver: Solver, together: Together, picks: list[int]
) -> tuple[list[Expression], dict[int, Expression]]:
    """The differences between groups that a window keeps from growing, and whose they are."""
    window, cells = together.window, solver.cells
    if any(not part.direction for part in window.parts) or not solver.binds(picks, together):
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
