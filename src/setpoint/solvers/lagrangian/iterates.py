"""Iterates of proxy-Lagrangian training: the last one need not be the best, so several are kept.

The theory of proxy-Lagrangians is about a mixture of all iterates. A linear program
shrinks it to at most one iterate more than there are targets (Cotter et al., 2019); most people
want a single model, so the best feasible iterate is the default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor, nn

from setpoint._checks import whole
from setpoint.axes import read_sample
from setpoint.axes.arrays import Floats, quiet
from setpoint.axes.sample import exact
from setpoint.axes.scan import holds, tolerance
from setpoint.problems import GoalLike, Problem
from setpoint.rates import Bound
from setpoint.solvers.lagrangian.lagrangian import check_shared
from setpoint.solvers.lagrangian.terms import true_gaps


@dataclass(frozen=True)
class Iterate:
    """The weights of a model at one step, and its values on the evaluation data.

    Attributes:
        state: A copy of its ``state_dict()``.
        thresholds: Where its scores were cut.
        objective: The objective's true value there.
        excess: By how much each target was exceeded (of a setpoint ``rate - level``), one per
            target and threshold; negative where a bound was kept with room.
        label: Whatever it was called, such as the number of the step.
    """

    state: dict[str, Tensor]
    thresholds: tuple[float, ...]
    objective: float
    excess: tuple[float, ...]
    label: Any = None


class Iterates:
    """Iterates of one training run, the best of them, and their mixture.

    Args:
        problem: What they are evaluated by.
        most: How many are kept; when there are more, those that neither the mixture nor the best
            choice needs go first.

    Examples:
        >>> from setpoint import fnr_at_fpr
        >>> from setpoint.solvers import Iterates
        >>> model, iterates = nn.Linear(1, 1), Iterates(fnr_at_fpr(0.5))
        >>> scores, y = torch.tensor([2.0, 1.0, 0.0, -1.0]), torch.tensor([1, 0, 1, 0])
        >>> for threshold in (1.5, -0.5, -2.0):        # the last one accepts all examples
        ...     iterate = iterates.add(model, scores, y, [threshold], label=threshold)
        >>> iterates.best.label
        -0.5
    """

    def __init__(self, problem: GoalLike, *, most: int = 64) -> None:
        self.problem = problem = check_shared(problem, "Iterates")
        self.most = whole(most, "most", least=2 + len(problem.points) * len(problem.subject_to))
        self.kept: list[Iterate] = []

    def add(
        self,
        model: nn.Module,
        scores: Tensor,
        labels: Tensor,
        thresholds: Any,
        *,
        weights: Tensor | None = None,
        groups: Any = None,
        label: Any = None,
    ) -> Iterate:
        """Keep the present weights of a model, with its ``scores`` on the evaluation data."""
        objective, excess, at = measure_iterate(
            self.problem, scores, labels, thresholds, weights, groups
        )
        state = {name: value.detach().clone() for name, value in model.state_dict().items()}
        iterate = Iterate(state, at, objective, excess, label)
        self.kept.append(iterate)
        self._prune()
        return iterate

    @property
    def best(self) -> Iterate:
        """The feasible iterate with the best objective; without one, the least broken."""
        self._check()
        return min(self.kept, key=lambda each: (self._violation(each), self._cost(each)))

    def mixture(self) -> list[tuple[float, Iterate]]:
        """Probabilities of a few iterates whose mean keeps the targets at the best mean objective.

        If no mixture keeps them, the one that breaks them least. At most one iterate more than
        there are targets (twice as many for setpoints, which bound both sides).
        """
        self._check()
        usable = [each for each in self.kept if np.isfinite([self._cost(each), *each.excess]).all()]
        if not usable:
            return [(1.0, self.best)]
        costs = np.array([self._cost(each) for each in usable])
        excess = np.array([each.excess for each in usable]).reshape(len(usable), -1).T
        if not any(isinstance(target, Bound) for target in self.problem.points[0]):
            excess = np.vstack([excess, -excess])  # setpoints have two sides
        shares = shrink(costs, excess)
        found = [(float(p), each) for p, each in zip(shares, usable, strict=True) if p > 1e-9]
        total = sum(p for p, _ in found)
        return [(p / total, each) for p, each in found]

    def load(self, model: nn.Module, *, generator: torch.Generator | None = None) -> Iterate:
        """Put an iterate's weights into ``model``: the best, or one drawn from the mixture.

        Args:
            model: The model that was kept.
            generator: With one, the mixture decides; without, nothing is left to chance.
        """
        chosen = self.best
        if generator is not None:
            mixture = self.mixture()
            shares = torch.tensor([p for p, _ in mixture], dtype=torch.float64)
            chosen = mixture[int(torch.multinomial(shares, 1, generator=generator))][1]
        model.load_state_dict(chosen.state)
        return chosen

    def _cost(self, each: Iterate) -> float:
        return -each.objective if self.problem.maximize else each.objective

    def _violation(self, each: Iterate) -> float:
        """The largest gap, 0 if all targets are kept."""
        largest, count = 0.0, len(self.problem.points)
        for i, target in enumerate(self.problem.points[0]):
            gaps = each.excess[i * count : (i + 1) * count]
            bound, close = isinstance(target, Bound), tolerance(target.expression)
            gap = max(gaps) if bound else max(map(abs, gaps))
            largest = max(largest, gap if gap > close else 0.0)
        return largest

    def _prune(self) -> None:
        if len(self.kept) <= self.most:
            return
        needed = {id(each) for _, each in self.mixture()} | {id(self.best)}
        spare = next((i for i, each in enumerate(self.kept) if id(each) not in needed), 0)
        del self.kept[spare]

    def _check(self) -> None:
        if not self.kept:
            raise ValueError("No iterate was kept yet; call add(model, scores, labels, ...).")


def measure_iterate(
    problem: Problem, scores: Tensor, labels: Tensor, thresholds: Any, weights: Any, groups: Any
) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
    """The true objective, the excess of every target, and the thresholds they were taken at.

    0/0 is the worst there is: an infinite cost, an infinite excess.
    """
    sample = read_sample(problem.slices, scores, labels, weights, groups)
    at = exact(thresholds).astype(np.float64).reshape(1, -1)
    if len(sample.scores) != 1 or at.shape[1] != len(problem.points):
        raise ValueError(
            f"`{problem}` is judged at {len(problem.points)} threshold(s) of one output; "
            f"got {at.shape[1]} of {len(sample.scores)}."
        )
    tables = sample.tables_at(at)
    with quiet():
        values = np.broadcast_to(problem.objective.of(tables), at.shape)
    worst = float("-inf") if problem.maximize else float("inf")
    objective = float(np.where(np.isnan(values), worst, values).mean())
    gaps = true_gaps(holds(problem), tables, at)
    excess = np.where(np.isnan(gaps), np.inf, gaps).reshape(-1)
    return objective, tuple(excess.tolist()), tuple(at[0].tolist())


def shrink(costs: Floats, excess: Floats) -> Floats:
    """Probabilities ``[n]`` of the least mean cost among those that break targets least.

    Args:
        costs: What each iterate costs, ``[n]``.
        excess: By how much each exceeds each target, ``[targets, n]``; negative: with room.
    """
    ones = np.ones((1, len(costs)))
    if not len(excess):
        return _solved(costs, None, None, ones)
    largest = np.hstack([excess, -np.ones((len(excess), 1))])  # excess @ p - violation <= 0
    price = np.append(np.zeros(len(costs)), 1.0)
    violation = _solved(price, largest, np.zeros(len(excess)), np.append(ones, [[0.0]], 1))[-1]
    limits = np.full(len(excess), violation + 1e-12 * max(1.0, abs(excess).max()))
    return _solved(costs, excess, limits, ones)


def _solved(costs: Floats, rows: Floats | None, limits: Floats | None, mass: Floats) -> Floats:
    """A vertex: simplex, not an interior point, which would use every iterate a little."""
    found: Any = linprog(costs, A_ub=rows, b_ub=limits, A_eq=mass, b_eq=[1.0], method="highs-ds")
    shares: Floats = np.maximum(found.x, 0.0)
    return shares
