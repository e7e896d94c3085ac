"""The parts of the Newton solver, and the published recipe beside it."""

import pytest
import torch

from setpoint.programs import linear_program
from setpoint.programs.newton import Sketch, exact_step, newton_direction, polish
from setpoint.programs.standard_form import PrimalDual, check_program, equilibrate

D = torch.float64
NOTHING = (None, None, False)  # no equalities, variables of any sign


def draw(m, n, *, batch, seed=0):
    g = torch.Generator().manual_seed(seed)
    A = torch.randn(batch, m, n, generator=g, dtype=D)
    z = torch.randn(batch, n, 1, generator=g, dtype=D)
    b = (A @ z)[..., 0] + torch.rand(batch, m, generator=g, dtype=D)
    return -(torch.rand(batch, 1, m, generator=g, dtype=D) @ A)[:, 0], A, b


def test_the_exact_step_is_where_the_slope_is_zero():
    g = torch.Generator().manual_seed(0)
    r, a = (torch.randn(200, 30, generator=g, dtype=D) for _ in range(2))
    curve = torch.rand(200, generator=g, dtype=D)
    now = (a * r.clamp(min=0)).sum(1)
    start = -now - torch.rand(200, generator=g, dtype=D)  # the slope at 0 is negative
    t = exact_step(start, curve, r, a)
    slope = start + curve * t + (a * (r + t[:, None] * a).clamp(min=0)).sum(1)
    assert (t > 0).all()
    torch.testing.assert_close(slope, torch.zeros_like(slope), rtol=0, atol=1e-11)


def test_a_direction_is_finite_where_rounding_makes_the_matrix_singular():
    """Two equal columns, and a ridge that is lost beside them."""
    A = torch.tensor([[[1.0, 1.0], [1.0, 1.0]]], dtype=D)
    program, _ = check_program(torch.ones(1, 2, dtype=D), A, torch.ones(1, 2, dtype=D), *NOTHING)
    rows, ridge = torch.ones(1, 2, dtype=D), torch.full((1, 2), -1e-13, dtype=D)
    found = newton_direction(program, rows, 1.0, ridge, torch.ones(1, 2, dtype=D))
    torch.testing.assert_close(found, torch.full((1, 2), -0.25, dtype=D), rtol=2e-2, atol=0)


def test_the_size_of_a_sketch_of_nothing_is_that_of_one_direction():
    zeros = torch.zeros(1, 3, 2, dtype=D)
    ones = torch.ones(1, 3, dtype=D)
    program, _ = check_program(torch.ones(1, 2, dtype=D), zeros, ones, *NOTHING)
    assert Sketch.of(program, "auto", torch.Generator().manual_seed(0)).size == 3


def test_scaling_is_by_powers_of_two_and_brings_everything_near_one():
    g = torch.Generator().manual_seed(0)
    c, A, b = draw(20, 8, batch=3)
    rows = 10 ** torch.empty(20, dtype=D).uniform_(-4, 4, generator=g)
    columns = 10 ** torch.empty(8, dtype=D).uniform_(-4, 4, generator=g)
    A = rows[:, None] * A * columns
    program, _ = check_program(c * columns, A, b * rows, None, None, False)
    scaled, scales = equilibrate(program)
    for factor in (scales.rows, scales.columns, scales.cost, scales.right):
        assert torch.equal(torch.frexp(factor).mantissa, torch.full_like(factor, 0.5))
    size = scaled.A.values.abs()
    assert size.amax(2).min() > 0.3
    assert size.amax(2).max() < 3
    assert size.amax(1).min() > 0.1
    assert 0.5 < scaled.c.abs().max() < 2


def test_only_an_optimal_vertex_is_proven():
    """Corners of a square: one is the best, one is worse, and one pair of rows meets outside."""
    A = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1], [1, 1]], dtype=D)
    b = torch.tensor([1.0, 1, 1, 1, 1.5], dtype=D)
    program, _ = check_program([-1.0, -0.5], A, b, None, None, False)
    named = {"optimal": [1, 0, 0, 0, 1], "worse": [0, 0, 1, 1, 0], "outside": [1, 1, 0, 0, 0]}
    proven = {}
    for name, rows in named.items():
        zeros = torch.zeros(1, 2, dtype=D)
        at = PrimalDual(zeros, torch.tensor([rows], dtype=D), zeros[:, :0], zeros)
        _, is_optimal = polish(program, at)
        proven[name] = bool(is_optimal)
    assert proven == {"optimal": True, "worse": False, "outside": False}


@pytest.mark.parametrize("size", [8, 20, 100, 5000])
def test_a_sketched_matrix_costs_steps_and_no_accuracy(size):
    c, A, b = draw(400, 8, batch=3)
    random = torch.Generator().manual_seed(0)
    z, info = linear_program(c, A, b, sketch=size, generator=random)
    expected, _ = linear_program(c, A, b, solver="highs")
    assert info.solver == ("newton",) * 3
    torch.testing.assert_close(z, expected, rtol=1e-9, atol=1e-10)


def test_the_published_recipe_has_its_published_ridge():
    """On a program that it solves, values and gradients are short by 1 in 1.01."""
    A = -torch.eye(3, dtype=D)
    b = torch.tensor([-1.0, -2.0, -0.5], dtype=D, requires_grad=True)
    c = torch.ones(3, dtype=D)
    z, info = linear_program(c, A, b, unroll=True)
    z.sum().backward()
    assert info.solver == ("published",)
    assert info.status == ("optimal",)
    torch.testing.assert_close(z, torch.tensor([1.0, 2.0, 0.5], dtype=D) / 1.01)
    torch.testing.assert_close(b.grad, torch.full((3,), -1 / 1.01, dtype=D))
    value, _ = linear_program(c, A, b, unroll=True, value_only=True)
    assert value.item() == pytest.approx(3.5 / 1.01)


def test_the_published_recipe_says_when_it_has_not_converged():
    c, A, b = draw(60, 20, batch=10)
    z, info = linear_program(c, A, b, unroll=True)
    assert "unsolved" in info.status
    assert torch.isfinite(z).all()


def test_the_published_sketch_solves_another_program():
    c, A, b = draw(60, 8, batch=2)
    random = torch.Generator().manual_seed(0)
    z, _ = linear_program(c, A, b, unroll=True, sketch=30, generator=random)
    whole, _ = linear_program(c, A, b, unroll=True)
    assert not torch.allclose(z, whole, rtol=1e-3)
