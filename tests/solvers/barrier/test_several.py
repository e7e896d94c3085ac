"""Several bounds at once in training: their order, what is inside stays inside, folding them."""

import numpy as np
import torch
from numpy.testing import assert_allclose
from torch.testing import assert_close

from setpoint import Barrier, at_least, at_most, equal_to
from setpoint.solvers.barrier import together


def bounds_of(weight, noise):
    """A ceiling, a floor, an equality, and a ceiling that depends on the first two."""
    return [
        at_most(weight.square().sum() * (1 + noise), 1.0),
        at_least(weight[0] + noise, 0.2),
        equal_to(weight[1] - weight[2] + noise, 0.3),
        at_most(weight.square().sum() + weight[0], 1.5),
    ]


def path(order, *, steps=60):
    """Where noisy batches lead, with the noise correction on, and the multipliers of each bound."""
    rng = np.random.default_rng(0)
    weight = torch.tensor([1.0, -0.5, 2.0], dtype=torch.float64, requires_grad=True)
    barrier, optimizer = Barrier([weight]), torch.optim.Adam([weight], lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        bounds = bounds_of(weight, 0.1 * rng.normal())
        step = barrier.backward(
            (weight - 2).square().sum(), subject_to=[bounds[place] for place in order]
        )
        optimizer.step()
    assert (barrier.state.numbers["floor"] != 0).any()
    return weight.detach().numpy(), np.array(step["multiplier"])


def test_the_order_of_bounds_is_irrelevant_for_training():
    order = [2, 0, 3, 1]
    weights, multipliers = path(range(4))
    others, moved = path(order)
    assert_allclose(others, weights, rtol=1e-9)
    assert_allclose(moved, multipliers[order], rtol=1e-7, atol=1e-9)


def test_no_violation_increases_in_small_steps_and_what_is_inside_stays_inside():
    """Corollary 3.3 for several bounds: one is broken at first, two are not, all are approached."""
    weight = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    barrier = Barrier([weight], gain=0.0)
    optimizer = torch.optim.SGD([weight], lr=2e-3)
    gaps = []
    for _ in range(2500):
        optimizer.zero_grad()
        bounds = [at_most(weight[1], 1.0), at_most(weight[0], 0.8), at_least(weight.sum(), 1.0)]
        step = barrier.backward(
            (weight - torch.tensor([3.0, 2.0])).square().sum(), subject_to=bounds
        )
        gaps.append([-slack for slack in step["slack"]])
        optimizer.step()
    found = np.array(gaps)
    assert (np.diff(found[:, 0]) < 0).all()  # broken by 0.5: it falls, like exp(-alpha * time)
    assert_allclose(found[-1, 0], 0.5 * (1 - 2e-3) ** 2499, rtol=1e-9)
    assert (found[:, 1:] <= 0).all()
    assert_allclose(found[-1, 1], 0.0, atol=5e-3)  # and it was pushed against


def test_bounds_folded_into_one_are_all_kept():
    """40 ceilings on a circle for the price of one: the worst is held, just below its level."""
    angles = torch.linspace(0, 2 * torch.pi, 41, dtype=torch.float64)[:-1]
    normals = torch.stack([angles.cos(), angles.sin()], dim=1)
    weight = torch.tensor([0.0, 2.0], dtype=torch.float64, requires_grad=True)
    barrier, optimizer = Barrier([weight], alpha=4.0), torch.optim.SGD([weight], lr=0.02)
    for _ in range(600):
        optimizer.zero_grad()
        folded = together([at_most(gap, 1.0) for gap in normals @ weight], width=0.01)
        barrier.backward((weight - 3).square().sum(), subject_to=folded)
        optimizer.step()
    worst = (normals @ weight.detach()).max().item()
    assert 1 - 0.01 * np.log(40) <= worst <= 1 + 1e-6
    assert_close(
        weight.detach(), torch.full((2,), 0.5**0.5, dtype=torch.float64), atol=0.02, rtol=0
    )
    assert barrier.status == "held"
