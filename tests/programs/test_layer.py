"""Solutions and multipliers against HiGHS: both solvers, dense and sparse, single and batched."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from setpoint.programs import linear_program

SOLVERS = ("highs", "newton")
D = torch.float64
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")


def draw(m, n, p=0, *, seed=0, batch=(), degenerate=False):
    """Programs around a point with multipliers, so that each has a solution."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*batch, *shape, generator=g, dtype=D)

    def uniform(*shape):
        return torch.rand(*batch, *shape, generator=g, dtype=D)

    A, E, z = normal(m, n), normal(p, n), uniform(n)
    slack = uniform(m) * (0 if degenerate else 1)
    b = (A @ z[..., None])[..., 0] + slack
    h = (E @ z[..., None])[..., 0]
    c = -(uniform(1, m) @ A)[..., 0, :] - (normal(1, p) @ E)[..., 0, :]
    return c, A, b, E, h


def by_scipy(c, A, b, E, h, nonnegative):
    answer = linprog(c, A, b, E, h, bounds=(0 if nonnegative else None, None), method="highs")
    assert answer.status == 0
    return answer


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize(("m", "n", "p"), [(1, 1, 0), (12, 5, 2), (60, 20, 0), (30, 40, 8)])
def test_the_value_is_that_of_highs(solver, nonnegative, m, n, p):
    program = draw(m, n, p, seed=m)
    if not nonnegative and m + p < n:
        program[0].add_(program[1].sum(0))  # leave it bounded: costs in the span of few rows
        program = (-(torch.ones(m, dtype=D) @ program[1]), *program[1:])
    z, info = linear_program(*program, nonnegative=nonnegative, solver=solver)
    expected = by_scipy(*(x.numpy() for x in program), nonnegative).fun
    assert info.status == ("optimal",)
    assert info.solver == (solver,)
    assert float(program[0] @ z) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    for quality in (info.gap, info.primal_residual, info.dual_residual):
        assert float(quality) < 1e-10


@pytest.mark.parametrize("solver", SOLVERS)
def test_multipliers_price_the_right_sides(solver):
    """One unit more of b_i lowers the value by duals_i, one of h_k by equality_duals_k."""
    program = [x.numpy() for x in draw(20, 6, 2, seed=3)]
    _, info = linear_program(*program, nonnegative=True, solver=solver)
    base = by_scipy(*program, True)
    assert info.duals.numpy() == pytest.approx(-base.ineqlin.marginals, abs=1e-9)
    assert info.equality_duals.numpy() == pytest.approx(-base.eqlin.marginals, abs=1e-9)
    assert info.bound_duals.numpy() == pytest.approx(base.lower.marginals, abs=1e-9)
    assert (info.duals > 1e-9).equal(info.active)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_member_of_a_batch_is_solved_as_if_alone(solver):
    program = draw(15, 6, 1, seed=5, batch=(2, 3))
    z, info = linear_program(*program, nonnegative=True, solver=solver)
    assert z.shape == (2, 3, 6)
    assert info.duals.shape == (2, 3, 15)
    assert info.gap.shape == info.unique.shape == info.objective.shape == (2, 3)
    assert len(info.status) == 6
    for i in range(2):
        for k in range(3):
            one, _ = linear_program(*(x[i, k] for x in program), nonnegative=True, solver=solver)
            torch.testing.assert_close(z[i, k], one, rtol=1e-9, atol=1e-11)


def test_leading_shapes_are_broadcast():
    c, A, b, E, h = draw(15, 6, 1, seed=5)
    costs = torch.stack([c, 2 * c, 3 * c])
    z, _ = linear_program(costs, A, b, E, h)
    assert z.shape == (3, 6)
    torch.testing.assert_close(z, linear_program(c, A, b, E, h)[0].expand(3, 6))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_sparse_matrices_give_what_dense_ones_give(solver, layout, batch):
    c, A, b, E, h = draw(15, 6, 1, seed=7, batch=batch)
    holes = torch.rand(15, 6, generator=torch.Generator().manual_seed(0)) < 0.3
    A = A.masked_fill(holes, 0)
    b, h = b + 5, h * 0
    expected, _ = linear_program(c * 0 + 1, A, b, E, h, nonnegative=True, solver=solver)
    thin = A.to_sparse() if layout == "coo" else A.to_sparse_csr()
    z, info = linear_program(c * 0 + 1, thin, b, E.to_sparse(), h, nonnegative=True, solver=solver)
    assert set(info.solver) == {solver}
    torch.testing.assert_close(z, expected, rtol=1e-9, atol=1e-11)


def test_a_batch_of_sparse_matrices_may_have_different_patterns():
    c, A, b, *_ = draw(15, 6, 1, seed=8, batch=(4,))
    A = A.masked_fill(torch.rand(A.shape, generator=torch.Generator().manual_seed(1)) < 0.3, 0)
    box = torch.cat([torch.eye(6, dtype=D), -torch.eye(6, dtype=D)]).expand(4, 12, 6)
    A, b = torch.cat([A, box], 1), torch.cat([b + 5, torch.ones(4, 12, dtype=D) * 3], 1)
    expected, _ = linear_program(c, A, b)
    torch.testing.assert_close(linear_program(c, A.to_sparse(), b)[0], expected)


@pytest.mark.parametrize("solver", SOLVERS)
def test_units_of_rows_and_columns_do_not_matter(solver):
    """Rows and columns from 1e-4 to 1e4: the same program in other units."""
    rng = np.random.default_rng(0)
    c, A, b, E, h = (x.numpy() for x in draw(60, 20, 2, seed=9))
    r, q, s = (10 ** rng.uniform(-4, 4, k) for k in (60, 2, 20))
    z, _ = linear_program(c, A, b, E, h, solver=solver)
    other, info = linear_program(
        c * s, r[:, None] * A * s, r * b, q[:, None] * E * s, q * h, solver=solver
    )
    assert (other * torch.from_numpy(s)).numpy() == pytest.approx(z.numpy(), rel=1e-9, abs=1e-9)
    assert info.solver == (solver,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, D])
def test_answers_come_in_the_dtype_of_the_parts_and_are_computed_in_float64(dtype):
    A = torch.tensor([[1.0, 1.0], [1.0, 0.5]], dtype=dtype)
    b = torch.tensor([4.0, 3.0], dtype=dtype)
    z, info = linear_program(torch.tensor([-3.0, -2.0], dtype=dtype), A, b, nonnegative=True)
    assert z.dtype == dtype
    assert info.solution.dtype == D
    assert z.tolist() == [2, 2]


def test_lists_and_arrays_and_whole_numbers_are_accepted():
    z, _ = linear_program([-3, -2], np.array([[2, 2], [2, 1]]), [8, 6], nonnegative=True)
    assert z.dtype == torch.get_default_dtype() or z.dtype == D
    assert z.tolist() == [2, 2]


def test_programs_without_inequalities_or_without_any_constraint_row():
    z, info = linear_program([1.0, 2.0, 1.5], E=[[1.0, 1.0, 1.0]], h=[1.0], nonnegative=True)
    assert z.tolist() == [1, 0, 0]
    assert info.duals.shape == (0,)
    z, _ = linear_program([1.0, 2.0], nonnegative=True)
    assert z.tolist() == [0, 0]


def test_an_empty_batch_is_an_empty_answer():
    c, A, b, E, h = draw(5, 3, 1, batch=(0,))
    z, info = linear_program(c, A, b.requires_grad_(), E, h)
    assert z.shape == (0, 3)
    assert info.status == ()
    z.sum().backward()
    assert b.grad.shape == (0, 5)


@pytest.mark.parametrize("batch", [1, 64])
def test_the_choice_of_a_solver_follows_the_batch(batch):
    """The benchmark's rule: dense batches to Newton, single and sparse programs to HiGHS."""
    c, A, b, _, _ = draw(60, 20, batch=(batch,))
    _, info = linear_program(c, A, b)
    assert set(info.solver) == {"highs" if batch == 1 else "newton"}
    _, info = linear_program(c[:2], A[0].to_sparse(), b[0])
    assert set(info.solver) == {"highs"}


@pytest.mark.parametrize("kind", ["generic", "degenerate", "redundant", "transport"])
def test_newton_needs_no_help(kind):
    """The published recipe converged on none of 40 such programs; this one on all, by itself."""
    if kind == "transport":
        k = 5
        cost = torch.rand(40, k * k, generator=torch.Generator().manual_seed(0), dtype=D)
        place = torch.arange(k * k)
        E = torch.zeros(2 * k, k * k, dtype=D)
        E[place // k, place] = E[k + place % k, place] = 1
        program = (cost, None, None, E, torch.full((2 * k,), 1 / k, dtype=D), True)
    else:
        c, A, b, E, h = draw(60, 20, batch=(40,), degenerate=kind == "degenerate")
        if kind == "redundant":
            A, b = torch.cat([A, 2 * A[:, :20]], 1), torch.cat([b, 2 * b[:, :20]], 1)
        program = (c, A, b, E, h, False)
    _, info = linear_program(*program, solver="newton")
    assert info.solver == ("newton",) * 40
    _, expected = linear_program(*program, solver="highs")
    torch.testing.assert_close(info.objective, expected.objective, rtol=1e-9, atol=1e-10)
    assert max(info.found.iterations) < 150
    assert math.isclose(float(info.gap.max()), 0, abs_tol=1e-9)


def test_who_solves_no_program_does_not_wait_for_scipy(fresh_python):
    """Its solvers take a third as long to import as torch itself."""
    code = "import sys, setpoint.losses; print('scipy.optimize' in sys.modules)"
    assert fresh_python(code) == "False"
