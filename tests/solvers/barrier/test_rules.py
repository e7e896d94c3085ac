"""Laws of the noise correction, of equalities, and of what is left over."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from solvers.barrier.toys import none_free

from setpoint import Barrier
from setpoint.solvers import at_least, at_most, equal_to
from setpoint.solvers.barrier import lexicographic_residual, together
from setpoint.solvers.barrier.quadratic_program import solve_multipliers
from setpoint.solvers.barrier.rules import HIGHEST, Push, raise_floors
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
        solve_multipliers(
            rows @ rows.T, np.array([0.7]) - rows @ (k * pull), none_free(1)
        ).multipliers[0]
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
