"""Laws of the direction, the quadratic program, the push and the noise correction.

Float64. Gradients are exact and the noise correction is off unless a law is about it."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from solvers.barrier.toys import none_free

from setpoint import Barrier
from setpoint.solvers import at_least, at_most
from setpoint.solvers.barrier.quadratic_program import solve_multipliers
from setpoint.solvers.barrier.rules import Push, constrained

FREE = np.zeros


def draw(seed, bounds, size=8, *, rank=None):
    """Gradients of some bounds and an objective, of very different lengths."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(bounds, size))
    if rank is not None:
        rows = rng.normal(size=(bounds, rank)) @ rng.normal(size=(rank, size))
    rows *= 10.0 ** rng.uniform(-3, 3, size=(bounds, 1))
    return rows, rng.normal(size=size), rng


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
    found = solve_multipliers(rows @ rows.T, pushes - rows @ pull, none_free(3))
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
        found = solve_multipliers(rows @ rows.T, pushes - rows @ pull, free)
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
    found = solve_multipliers(rows @ rows.T, pushes - rows @ pull, none_free(16), cap=1e8)
    missing = pushes - rows @ (pull + found.multipliers @ rows)
    lengths = np.linalg.norm(rows, axis=1)
    assert not found.opposed
    assert (missing <= 1e-8 * lengths * max(1.0, float((pushes / lengths).max()))).all()


def test_opposed_constraints_are_least_broken_with_bounded_multipliers():
    """v >= 1 and -v >= 1: the sum of squares is least at v = 0, from wherever we start."""
    for pull in (0.0, 3.0, -5.0):
        rows = np.array([[1.0, 0.0], [-1.0, 0.0]])
        direction = np.array([pull, 2.0])
        found = solve_multipliers(rows @ rows.T, 1.0 - rows @ direction, none_free(2), cap=1e4)
        v = direction + found.multipliers @ rows
        assert found.opposed
        assert_allclose(v, [0.0, 2.0], atol=1e-3)
        assert np.isfinite(found.multipliers).all()
        assert found.multipliers.max() <= 1e4 * (1 + abs(pull))


def test_flat_constraints_get_no_multiplier():
    found = solve_multipliers(np.diag([0.0, 4.0]), np.array([1.0, 2.0]), none_free(2))
    assert_allclose(found.multipliers, [0.0, 0.5])
    level = solve_multipliers(np.diag([0.0, 4.0]), np.array([1.0, 2.0]), np.array([True, False]))
    assert_allclose(level.multipliers, [0.0, 0.5], rtol=1e-11)
    assert solve_multipliers(np.zeros((1, 1)), np.ones(1), none_free(1)).multipliers == [0.0]


def test_slack_constraints_leave_the_gradient_alone():
    weight = torch.tensor([3.0, -1.0], dtype=torch.float64, requires_grad=True)
    barrier = Barrier([weight])
    loose = [at_most(weight.sum(), 100.0), at_least(weight[0], -50.0)]
    assert solve_multipliers(np.ones((1, 1)), -np.ones(1), none_free(1)).multipliers == [0.0]
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
