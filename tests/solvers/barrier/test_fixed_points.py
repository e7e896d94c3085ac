"""Laws of where training with bounds ends, and of the way there."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from solvers.barrier.toys import none_free

from setpoint import Barrier, at_least, at_most
from setpoint.solvers.barrier import together
from setpoint.solvers.barrier.quadratic_program import solve
from setpoint.solvers.barrier.rules import Push


def at_the_boundary(scale=1.0, map_f=lambda f: f, map_g=lambda g: g, steps=150):
    """min (w - 2)^2 + u^2 s.t. w^2 + u^2 <= 1, optimum (1, 0) with the multiplier 1."""
    weight = torch.tensor([0.3, 0.4], dtype=torch.float64, requires_grad=True)
    barrier = Barrier([weight], gain=0.0, alpha=4.0, beta=4.0)
    optimizer = torch.optim.SGD([weight], lr=0.1 / max(1.0, scale))
    for _ in range(steps):
        optimizer.zero_grad()
        f = scale * map_f((weight[0] - 2) ** 2 + weight[1] ** 2)
        level = map_g(torch.tensor(1.0, dtype=torch.float64)).item()
        step = barrier.backward(f, subject_to=at_most(map_g(weight.square().sum()), level))
        optimizer.step()
    return weight.detach(), step["multiplier"][0]


def test_scaling_the_objective_scales_the_multiplier_at_the_boundary_only():
    _, once = at_the_boundary()
    _, thrice = at_the_boundary(3.0, steps=400)
    assert_allclose([once, thrice], [1.0, 3.0], rtol=1e-6)
    rows = np.array([[2.0, 0.0]])
    pull = np.array([-1.0, 0.5])
    far = [
        solve(rows @ rows.T, np.array([0.7]) - rows @ (k * pull), none_free(1)).multipliers[0]
        for k in (1.0, 3.0)
    ]
    assert abs(far[1] - 3 * far[0]) > 0.1  # the push is not scaled


@pytest.mark.parametrize("name", ["objective", "bound"])
def test_monotone_maps_leave_the_fixed_point(name):
    maps = {"objective": {"map_f": lambda f: torch.log(1 + f)}, "bound": {"map_g": torch.exp}}
    weight, _ = at_the_boundary(**maps[name], steps=300)
    assert_allclose(weight.numpy(), [1.0, 0.0], atol=1e-6)


def test_the_violation_never_increases_in_small_steps():
    """Corollary 3.3: outside the bound it falls at every step, inside it stays inside."""
    weight = torch.tensor([2.0, 1.0], dtype=torch.float64, requires_grad=True)
    barrier = Barrier([weight], gain=0.0)
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    broken = []
    for _ in range(300):
        optimizer.zero_grad()
        held = weight.square().sum()
        step = barrier.backward((weight - 3).square().sum(), subject_to=at_most(held, 1.0))
        broken.append(-step["slack"][0])
        optimizer.step()
    falls = np.diff(broken)
    assert (falls < 0).all()
    assert_allclose(falls[-1], -1e-3 * broken[-2], rtol=0.02)  # the rate is alpha, to first order


def test_the_push_is_equation_8_and_proposition_3_7():
    assert Push(2.0, 0.5)(0.3, 4.0) == 0.6
    assert Push(2.0, 0.5)(9.0, 4.0) == 0.5 * 4.0**2
    assert Push(2.0, 0.5, 3.0)(99.0, 4.0) == 0.5 * 4.0**3
    assert Push(2.0, 0.5)(-0.3, 4.0) == -0.6
    assert Push(2.0, 0.5)(-99.0, 4.0, both_ways=True) == -0.5 * 4.0**2
    assert Push()(float("inf"), 2.0) == 4.0


def test_the_smooth_maximum_lies_just_above_the_worst_gap():
    losses = torch.tensor([0.1, 0.32, 0.31], dtype=torch.float64, requires_grad=True)
    bounds = [at_most(losses[0], 0.4), at_most(losses[1], 0.3), at_least(losses[2], 0.3)]
    folded = together(bounds, width=0.01)
    assert 0.02 <= folded.loss.item() <= 0.02 + 0.01 * np.log(3)
    (gradient,) = torch.autograd.grad(folded.loss, losses)
    assert gradient[1] > 0.9  # the one that is broken
