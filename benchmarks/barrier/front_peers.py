"""What others do with ``min f subject to g <= c``, for eight starts of one number at once.

The starts do not meet: every method below treats each element of ``x`` by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Losses = Callable[[Tensor], tuple[Tensor, Tensor]]
"""f and g of every start."""


def linear(x: Tensor, losses: Losses, c: float, weight: float, steps: int, rate: float) -> None:
    """Descend ``f + weight g``, with the true multiplier as its weight."""
    for _ in range(steps):
        f, g = losses(x)
        _step(x, f + weight * g, rate)


def primal_dual(x: Tensor, losses: Losses, c: float, steps: int, rate: float) -> None:
    """Equation 19: the multiplier climbs by ``g - c``, the weights descend."""
    multiplier = torch.zeros_like(x)
    for _ in range(steps):
        f, g = losses(x)
        multiplier = (multiplier + rate * (g.detach() - c)).clamp(min=0)
        _step(x, f + multiplier * g, rate)


def cooper(
    x: Tensor, losses: Losses, c: float, steps: int, rate: float, penalty: float | None
) -> None:
    """Cooper's Lagrangian, or its augmented Lagrangian with a fixed penalty."""
    import cooper
    from cooper.optim import SimultaneousOptimizer

    class Problem(cooper.ConstrainedMinimizationProblem):
        def __init__(self) -> None:
            super().__init__()
            multiplier = cooper.multipliers.DenseMultiplier(num_constraints=len(x), dtype=x.dtype)
            options = {"constraint_type": cooper.ConstraintType.INEQUALITY}
            if penalty is None:
                self.bound = cooper.Constraint(multiplier=multiplier, **options)
            else:
                self.bound = cooper.Constraint(
                    multiplier=multiplier,
                    formulation_type=cooper.formulations.AugmentedLagrangian,
                    penalty_coefficient=cooper.penalty_coefficients.DensePenaltyCoefficient(
                        init=torch.full_like(x, penalty)
                    ),
                    **options,
                )

        def compute_cmp_state(self) -> cooper.CMPState:
            f, g = losses(x)
            state = cooper.ConstraintState(violation=g - c)
            return cooper.CMPState(loss=f.sum(), observed_constraints={self.bound: state})

    problem = Problem()
    optimizer = SimultaneousOptimizer(
        cmp=problem,
        primal_optimizers=torch.optim.SGD([x], lr=rate),
        dual_optimizers=torch.optim.SGD(problem.dual_parameters(), lr=rate, maximize=True),
    )
    for _ in range(steps):
        optimizer.roll()


def _step(x: Tensor, loss: Tensor, rate: float) -> None:
    (gradient,) = torch.autograd.grad(loss.sum(), x)
    with torch.no_grad():
        x -= rate * gradient
