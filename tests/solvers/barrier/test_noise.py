"""Laws of the noise correction, of equalities, and of what is left over."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from solvers.barrier.toys import none_free

from setpoint import Barrier, at_most, equal_to
from setpoint.solvers.barrier import lexicographic_residual
from setpoint.solvers.barrier.rules import HIGHEST, raise_floors
from setpoint.solvers.barrier.state import BarrierState


def noisy_state(floor=0.0, mean=0.01):
    state = BarrierState()
    state.open(["<="])
    for name, value in {
        "floor": floor,
        "gap": 0.0,
        "mean_gap": mean,
        "mean_jump": 0.02,
        "mean_square": 0.5,
    }.items():
        state.numbers[name] = np.array([value])
    state.numbers["steps"] = np.array(50.0)
    state.numbers["mean_pull"] = np.array(1.0)
    return state


def test_the_noise_correction_is_unbiased_over_batches():
    """The mean rise over the batches of a data set is the rise for the whole."""
    gaps = np.random.default_rng(0).normal(0.05, 0.1, size=64)
    state, options = noisy_state(floor=2.0), {"alpha": 1.3, "gain": 0.03}
    one = [raise_floors(state, np.array([g]), none_free(1), **options)[0] for g in gaps]
    whole = raise_floors(state, np.array([gaps.mean()]), none_free(1), **options)[0]
    assert_allclose(np.mean(one), whole, rtol=1e-12)


def test_floors_end_where_noise_cannot_be_beaten():
    """At a multiple of the ratio of gradient lengths; an equality's on either side of zero."""
    options, limit = {"alpha": 1.0, "gain": 0.02}, HIGHEST * (1.0 / 0.5) ** 0.5
    for gap, free, wanted in ((1e4, False, limit), (1e4, True, limit), (-1e4, True, -limit)):
        floors = raise_floors(noisy_state(), np.array([gap]), np.array([free]), **options)
        assert_allclose(floors, [wanted])
    assert raise_floors(noisy_state(), np.array([-1e4]), none_free(1), **options) == [0.0]


def test_the_multiplier_returns_to_zero_after_slack_steps():
    weight = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    barrier = Barrier([weight])
    rng = np.random.default_rng(0)
    multipliers = []
    for t in range(400):
        weight.grad = None
        level = 0.9 if t < 100 else 20.0  # broken, then slack; the batches are noisy
        held = weight.sum() * (1 + 0.1 * rng.normal())
        step = barrier.backward((weight - 3).square().sum(), subject_to=at_most(held, level))
        multipliers.append(step["multiplier"][0])
    assert barrier.state.numbers["floor"] == 0
    assert multipliers[-1] == 0
    assert max(multipliers[:100]) > 0


@pytest.mark.parametrize(("swing", "status"), [(0.3, "held"), (0.001, "fit is being mended")])
def test_a_bound_is_held_as_far_as_batches_can_tell(swing, status):
    """The mean is 0.03 above the level: within the noise of batches that swing by 0.3."""
    weight = torch.ones(1, dtype=torch.float64, requires_grad=True)
    barrier = Barrier([weight])
    for t in range(101):
        batch = weight * (1.03 + swing * (-1) ** t)
        barrier.backward(-weight, subject_to=at_most(batch, 1.0, name="fit"))
    assert barrier.status.startswith(status)


def test_the_largest_multiplier_is_remembered():
    weight = torch.tensor([2.0], requires_grad=True)
    barrier = Barrier([weight], gain=0.0)
    levels = (1.0, 50.0)
    steps = [
        barrier.backward((weight - 3).square().sum(), subject_to=at_most(weight, level))
        for level in levels
    ]
    assert steps[0]["multiplier"][0] > 0 == steps[1]["multiplier"][0]
    assert barrier.report()["largest_multiplier"] == steps[0]["multiplier"]


@pytest.mark.parametrize(("gain", "steps", "close"), [(0.0, 200, 1e-6), (0.02, 500, 1e-3)])
def test_equality_constraints_are_reached_from_both_sides(gain, steps, close):
    """With the correction its term has to fade first, at the rate of its gain."""
    for start in (0.2, 3.0):
        weight = torch.tensor([start, 1.0], dtype=torch.float64, requires_grad=True)
        barrier = Barrier([weight], gain=gain)
        optimizer = torch.optim.SGD([weight], lr=0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            barrier.backward(weight.square().sum(), subject_to=equal_to(weight.sum(), 1.0))
            optimizer.step()
        assert_allclose(weight.detach().numpy(), [0.5, 0.5], atol=close)
        assert barrier.status == "held"


def test_the_lexicographic_residual_is_what_is_left_in_the_null_space():
    """Eq. (16): the part of grad f outside the range of the main loss's Hessian."""
    torch.manual_seed(0)
    matrix = torch.randn(3, 6, dtype=torch.float64)
    x = torch.randn(6, dtype=torch.float64, requires_grad=True)
    aim = torch.randn(6, dtype=torch.float64)
    main, side = (matrix @ x).square().sum(), (x - aim).square().sum()
    found = lexicographic_residual(side, main, [x])
    pull = 2 * (x - aim).detach()
    outside = pull - torch.linalg.pinv(matrix) @ matrix @ pull
    assert_allclose(found, (outside.norm() / pull.norm()).item(), rtol=1e-8)
    solved = torch.linalg.pinv(matrix) @ torch.ones(3, dtype=torch.float64)
    x = solved.clone().requires_grad_()  # the solution of least norm
    main = (matrix @ x - 1).square().sum()
    assert lexicographic_residual(x.square().sum(), main, [x]) < 1e-8
