"""Large programs whose variables stand alone need no solver."""

import pytest
import torch

from setpoint.programs import linear_program

D = torch.float64


def hinges(n, *, seed=0, batch=()):
    """One variable for each pair: z >= gap, z >= 0, and a second, looser row for each."""
    g = torch.Generator().manual_seed(seed)
    gaps = torch.randn(*batch, n, generator=g, dtype=D)
    loose = gaps - torch.rand(*batch, n, generator=g, dtype=D)
    row, column = torch.arange(2 * n), torch.arange(n).repeat(2)
    values = -torch.rand(2 * n, generator=g, dtype=D) - 0.5
    b = torch.cat([gaps, loose], -1) * values
    shape = (2 * n, n)
    A = torch.sparse_coo_tensor(torch.stack([row, column]), values, shape, check_invariants=True)
    return torch.rand(*batch, n, generator=g, dtype=D), A, b, gaps


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_lonely_variables_go_to_their_nearest_bound(batch, nonnegative):
    c, A, b, gaps = hinges(40, batch=batch)
    z, info = linear_program(c, A, b, nonnegative=nonnegative)
    assert set(info.solver) == {"closed form"}
    torch.testing.assert_close(z, gaps.clamp(min=0) if nonnegative else gaps)
    _, expected = linear_program(c, A, b, nonnegative=nonnegative, solver="highs")
    torch.testing.assert_close(info.duals, expected.duals)
    torch.testing.assert_close(info.bound_duals, expected.bound_duals)
    assert info.unique.all()
    assert info.gap.max() < 1e-12


def test_costs_of_either_sign_and_none():
    A = torch.zeros(7, 4)
    A[[0, 1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 2, 2, 3]] = torch.tensor([1.0, -1, 2, -1, 1, -1, 1])
    b = torch.tensor([3.0, 1, 4, 5, 6, -2, 5])
    z, info = linear_program([1.0, -1.0, 0.0, 0.0], A.to_sparse(), b)
    assert info.solver == ("closed form",)
    assert z.tolist() == [-1, 2, 2, 0]
    assert info.duals.tolist() == [0, 1, 0.5, 0, 0, 0, 0]
    assert not info.unique.item()


def test_of_two_equal_bounds_one_pays():
    A = -torch.eye(2).repeat(2, 1)
    b = torch.tensor([-1.0, -2, -1, -3])
    _, info = linear_program([1.0, 1.0], A.to_sparse(), b, nonnegative=True)
    assert info.solver == ("closed form",)
    assert info.duals.tolist() == [1, 0, 0, 1]
    assert float(info.gap) == 0
    assert info.degenerate.item()


def test_only_the_rest_goes_to_a_solver():
    g = torch.Generator().manual_seed(0)
    c, A, b, _ = hinges(30)
    own = torch.zeros(7, 34, dtype=D)
    own[:, 30:] = torch.randn(7, 4, generator=g, dtype=D)
    own[4:, 0] = 0
    A = torch.cat([torch.cat([A.to_dense(), torch.zeros(60, 4, dtype=D)], 1), own])
    b = torch.cat([b, torch.rand(7, generator=g, dtype=D) + 1])
    E = torch.zeros(1, 34, dtype=D)
    E[0, 31:] = 1
    c = torch.cat([c, torch.tensor([1.0, 1.1, 1.2, 1.3], dtype=D)])  # no tie: one solution
    b, E, A = b.requires_grad_(), E.to_sparse(), A.to_sparse()
    z, info = linear_program(c, A, b, E, [1.0], nonnegative=True)
    dense, other = linear_program(c, A.to_dense(), b, E.to_dense(), [1.0], nonnegative=True)
    assert info.solver == ("highs",)
    assert info.unique.item()
    torch.testing.assert_close(z, dense)
    torch.testing.assert_close(info.duals, other.duals)
    (by_b,) = torch.autograd.grad(z.sum(), b)
    torch.testing.assert_close(by_b, torch.autograd.grad(dense.sum(), b)[0])


@pytest.mark.parametrize(("b", "status"), [([1.0, -2.0], "infeasible"), ([1.0, 1.0], "unbounded")])
def test_trouble_is_left_to_the_proofs(b, status):
    A = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).to_sparse()
    _, info = linear_program([1.0, -1.0], A, b, strict=False)
    assert info.status == (status,)


@pytest.mark.slow
def test_all_pairs_of_512_scores_fit_into_100_mb(fresh_python):
    """65,536 variables and rows would be 34 GB as a dense matrix."""
    code = """
import resource, torch
from setpoint.programs import linear_program

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def hinge(n):
    i = torch.arange(n)
    place, minus = torch.stack([i, i]), -torch.ones(n, dtype=torch.float64)
    A = torch.sparse_coo_tensor(place, minus, (n, n), check_invariants=True)
    b = torch.linspace(-1, 1, n, dtype=torch.float64).requires_grad_()
    z, _ = linear_program(torch.ones(n), A, b, nonnegative=True)
    z.sum().backward()

hinge(2)
before = peak()
hinge(256 * 256)
print(peak() - before)
"""
    assert int(fresh_python(code)) < 100
