"""Cooper 1.0.1: a Lagrangian of any torch losses; here its constraints are our rates.

As its README has it: a problem class that computes loss and violations, a primal optimizer, a dual
one that maximizes, and ``roll``. Rates are read with ``sigmoid(score - threshold)``, one learnable
threshold for each operating point; with ``proxy`` the multipliers see true counts
(``strict_violation``).
"""

from typing import Any

import cooper
import torch
from torch import Tensor, nn

from benchmarks.peers.rates import objective, tables, violations
from setpoint import Problem
from setpoint.rates import Bound

DUAL_RATE = 1e-2  # of the README


class RateProblem(cooper.ConstrainedMinimizationProblem):
    """A problem of ours as Cooper wants it."""

    def __init__(self, problem: Problem, proxy: bool = False) -> None:
        super().__init__()
        self.problem, self.proxy = problem, proxy
        self.thresholds = nn.Parameter(torch.zeros(len(problem.points)))
        equal = not isinstance(problem.points[0][0], Bound)
        kind = cooper.ConstraintType.EQUALITY if equal else cooper.ConstraintType.INEQUALITY
        count = len(problem.points) * len(problem.points[0])
        multiplier = cooper.multipliers.DenseMultiplier(num_constraints=count)
        self.constraint = cooper.Constraint(constraint_type=kind, multiplier=multiplier)

    def compute_cmp_state(self, model: nn.Module, x: Tensor, y: Tensor) -> cooper.CMPState:
        """Loss and violations of a batch."""
        scores = model(x)[:, 0]
        counts = tables(scores, y, self.thresholds)
        strict = None
        if self.proxy:
            hard = tables(scores.detach(), y, self.thresholds.detach(), soft=False)
            strict = violations(self.problem, hard)
        state = cooper.ConstraintState(
            violation=violations(self.problem, counts), strict_violation=strict
        )
        loss = objective(self.problem, counts)
        return cooper.CMPState(loss=loss, observed_constraints={self.constraint: state})


class CooperLearner:
    """Simultaneous steps: Adam for weights and thresholds, gradient ascent for multipliers."""

    def __init__(
        self,
        model: nn.Module,
        x: Tensor,
        y: Tensor,
        problem: Problem,
        rate: float,
        *,
        dual_rate: float = DUAL_RATE,
        proxy: bool = False,
    ) -> None:
        self.model, self.x, self.y = model, x, y
        self.cmp = RateProblem(problem, proxy)
        primal = torch.optim.Adam([*model.parameters(), self.cmp.thresholds], lr=rate)
        dual = torch.optim.SGD(self.cmp.dual_parameters(), lr=dual_rate, maximize=True)
        self.optimizer = cooper.optim.SimultaneousOptimizer(
            cmp=self.cmp, primal_optimizers=primal, dual_optimizers=dual
        )

    def step(self, rows: Tensor) -> None:
        """One roll."""
        batch = {"model": self.model, "x": self.x[rows], "y": self.y[rows]}
        self.optimizer.roll(compute_cmp_state_kwargs=batch)

    @torch.no_grad()
    def scores(self, x: Tensor) -> Any:
        """Scores of the model."""
        return self.model(x)[:, 0].numpy()
