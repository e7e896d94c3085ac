"""Laws of the direction, the quadratic program, the push and the noise correction.

Float64. Gradients are exact and the noise correction is off unless a law is about it.
"""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from setpoint import Barrier, at_least, at_most, equal_to
from setpoint.solvers.barrier import lexicographic_residual, together
from setpoint.solvers.barrier.directions import constrained
from setpoint.solvers.barrier.ledger import Ledger
from setpoint.solvers.barrier.noise import raise_floors
from setpoint.solvers.barrier.push import Push
from setpoint.solvers.barrier.quadratic import solve

FREE = np.zeros


def draw(seed, bounds, size=8, *, rank=None):
    """Gradients of some bounds and an objective, of very different lengths."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(bounds, size))
    if rank is not None:
        rows = rng.normal(size=(bounds, rank)) @ rng.normal(size=(rank, size))
    rows *= 10.0 ** rng.uniform(-3, 3, size=(bounds, 1))
    return rows, rng.normal(size=size), rng


def none_free(m):
    return np.zeros(m, dtype=bool)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("bounds", [1, 2, 5])
def test_the_direction_keeps_every_inequality(seed, bounds):
    rows, pull, rng = draw(seed, bounds)
    gram = np.vstack([rows, pull]) @ np.vstack([rows, pull]).T
    gaps = rng.normal(size=bounds) * np.diagonal(gram)[:bounds]
    found = constrained(gram, gaps, none_free(bounds), np.zeros(bounds), Push(), cap=1e8)
    direction = found.weights @ np.vstack([rows, pull])
    kept = rows @ direction - found.pushes
    scale = np.linalg.norm(rows, axis=1) * np.linalg.norm(direction) + np.abs(found.pushes)
    assert (kept >= -1e-10 * scale).all()
    assert (found.multipliers >= 0).all()
    # complementary: who does not bind has no multiplier
    assert_allclose(found.multipliers * kept, 0, atol=1e-9 * float(scale.max() + 1) ** 2)


@pytest.mark.parametrize("seed", range(8))
def test_the_direction_is_the_nearest_one(seed):
    """An independent solver finds no direction that is closer to the objective's gradient."""
    rng = np.random.default_rng(seed)
    rows, pull = rng.normal(size=(3, 6)), rng.normal(size=6)
    pushes = rng.normal(size=3)
    found = solve(rows @ rows.T, pushes - rows @ pull, none_free(3))
    ours = pull + found.multipliers @ rows
    theirs = minimize(
        lambda v: ((pull - v) ** 2).sum(),
        pull,
        jac=lambda v: 2 * (v - pull),
        constraints={"type": "ineq", "fun": lambda v: rows @ v - pushes, "jac": lambda v: rows},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    ).x
    assert_allclose(ours, theirs, atol=1e-6)  # what SLSQP reaches


def test_equalities_hold_exactly_with_multipliers_of_either_sign():
    signs = set()
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rows, pull, pushes = rng.normal(size=(3, 6)), rng.normal(size=6), rng.normal(size=3)
        free = np.array([True, False, True])
        found = solve(rows @ rows.T, pushes - rows @ pull, free)
        over = rows @ (pull + found.multipliers @ rows) - pushes
        assert_allclose(over[free], 0, atol=1e-11)
        assert over[1] >= -1e-11
        signs |= set(np.sign(found.multipliers[free]))
    assert signs == {-1.0, 1.0}


@pytest.mark.parametrize("seed", range(10))
def test_dependent_constraints_are_solved_like_independent_ones(seed):
    """16 bounds of rank 3, pushed so that a direction exists."""
    rows, pull, rng = draw(seed, 16, rank=3)
    inside = rng.normal(size=3) @ rows[:3]
    pushes = rows @ inside - np.abs(rng.normal(size=16)) * np.linalg.norm(rows, axis=1)
    found = solve(rows @ rows.T, pushes - rows @ pull, none_free(16), cap=1e8)
    missing = pushes - rows @ (pull + found.multipliers @ rows)
    lengths = np.linalg.norm(rows, axis=1)
    assert not found.opposed
    assert (missing <= 1e-8 * lengths * max(1.0, float((pushes / lengths).max()))).all()


def test_opposed_constraints_are_least_broken_with_bounded_multipliers():
    """v >= 1 and -v >= 1: the sum of squares is least at v = 0, from wherever we start."""
    for pull in (0.0, 3.0, -5.0):
        rows = np.array([[1.0, 0.0], [-1.0, 0.0]])
        direction = np.array([pull, 2.0])
        found = solve(rows @ rows.T, 1.0 - rows @ direction, none_free(2), cap=1e4)
        v = direction + found.multipliers @ rows
        assert found.opposed
        assert_allclose(v, [0.0, 2.0], atol=1e-3)
        assert np.isfinite(found.multipliers).all()
        assert found.multipliers.max() <= 1e4 * (1 + abs(pull))


def test_flat_constraints_get_no_multiplier():
    found = solve(np.diag([0.0, 4.0]), np.array([1.0, 2.0]), none_free(2))
    assert_allclose(found.multipliers, [0.0, 0.5])
    assert solve(np.zeros((1, 1)), np.ones(1), none_free(1)).multipliers == [0.0]


def test_slack_constraints_leave_the_gradient_alone():
    weight = torch.tensor([3.0, -1.0], dtype=torch.float64, requires_grad=True)
    barrier = Barrier([weight])
    loose = [at_most(weight.sum(), 100.0), at_least(weight[0], -50.0)]
    assert solve(np.ones((1, 1)), -np.ones(1), none_free(1)).multipliers == [0.0]
    step = barrier.backward(weight.square().sum(), subject_to=loose)
    assert torch.equal(weight.grad, 2 * weight.detach())
    assert step["multiplier"] == [0.0, 0.0]
    assert step["status"] == "slack"


def test_the_order_of_constraints_is_irrelevant():
    for seed in range(5):
        rows, pull, rng = draw(seed, 4)
        stacked = np.vstack([rows, pull])
        gram = stacked @ stacked.T
        gaps = rng.normal(size=4)
        order = rng.permutation(4)
        moved = np.append(order, 4)
        one = constrained(gram, gaps, none_free(4), np.zeros(4), Push(), cap=1e8)
        other = constrained(
            gram[np.ix_(moved, moved)], gaps[order], none_free(4), np.zeros(4), Push(), cap=1e8
        )
        assert_allclose(one.weights @ stacked, other.weights @ stacked[moved], rtol=1e-7)


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


def noisy_ledger(floor=0.0, mean=0.01):
    ledger = Ledger()
    ledger.open(["<="])
    for name, value in {
        "floor": floor,
        "gap": 0.0,
        "mean_gap": mean,
        "mean_jump": 0.02,
        "mean_square": 0.5,
    }.items():
        ledger.numbers[name] = np.array([value])
    ledger.numbers["steps"] = np.array(50.0)
    ledger.numbers["mean_pull"] = np.array(1.0)
    return ledger


def test_the_noise_correction_is_unbiased_over_batches():
    """The mean rise over the batches of a data set is the rise for the whole."""
    gaps = np.random.default_rng(0).normal(0.05, 0.1, size=64)
    ledger, options = noisy_ledger(floor=2.0), {"alpha": 1.3, "gain": 0.03}
    one = [raise_floors(ledger, np.array([g]), none_free(1), **options)[0] for g in gaps]
    whole = raise_floors(ledger, np.array([gaps.mean()]), none_free(1), **options)[0]
    assert_allclose(np.mean(one), whole, rtol=1e-12)


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
    assert barrier.ledger.numbers["floor"] == 0
    assert multipliers[-1] == 0
    assert max(multipliers[:100]) > 0


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
