"""Gradients of solutions and values: against finite differences, where they exist and where not."""

import pytest
import torch
from torch.autograd import gradcheck

from setpoint.programs import linear_program

D = torch.float64
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
HOURS = torch.tensor([[1.0, 1.0], [1.0, 0.5]], dtype=D)
PRICES = -torch.tensor([3.0, 2.0], dtype=D)


def draw(m, n, p, *, seed, batch=()):
    g = torch.Generator().manual_seed(seed)
    A, E = (torch.randn(*batch, k, n, generator=g, dtype=D) for k in (m, p))
    z = torch.rand(*batch, n, generator=g, dtype=D)
    b = (A @ z[..., None])[..., 0] + torch.rand(*batch, m, generator=g, dtype=D)
    h = (E @ z[..., None])[..., 0]
    c = -(torch.rand(*batch, 1, m, generator=g, dtype=D) @ A)[..., 0, :]
    return [x.requires_grad_() for x in (c, A, b, E, h)]


@pytest.mark.parametrize("solver", ["highs", "newton"])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("value_only", [False, True])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_gradcheck(solver, nonnegative, value_only, batch):
    parts = draw(12, 5, 2, seed=1, batch=batch)
    options = {"nonnegative": nonnegative, "solver": solver, "value_only": value_only}
    _, info = linear_program(*parts, **options)
    assert info.unique.all()
    assert not info.degenerate.any()
    assert gradcheck(lambda *x: linear_program(*x, **options)[0], parts, fast_mode=True)


def test_gradcheck_entry_by_entry():
    parts = draw(6, 3, 1, seed=1)
    assert gradcheck(lambda *x: linear_program(*x, nonnegative=True)[0], parts)


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize("value_only", [False, True])
def test_sparse_gradients_are_the_dense_ones_on_the_pattern(layout, batch, value_only):
    c, A, b, E, h = (x.detach() for x in draw(12, 5, 2, seed=1, batch=batch))
    thin = A.to_sparse() if layout == "coo" else A.to_sparse_csr()
    gradients = []
    for matrix in (A.clone(), thin):
        matrix.requires_grad_()
        right = b.clone().requires_grad_()
        equal = E.clone() if matrix.layout == torch.strided else E.to_sparse()
        equal.requires_grad_()
        answer, _ = linear_program(c, matrix, right, equal, h, value_only=value_only)
        (answer * torch.arange(1.0, answer.numel() + 1).reshape(answer.shape)).sum().backward()
        assert matrix.grad.layout == matrix.layout
        gradients.append([x.grad.to_dense() for x in (matrix, right, equal)])
    for dense, sparse in zip(*gradients, strict=True):
        torch.testing.assert_close(dense, sparse, rtol=1e-10, atol=1e-12)


def test_a_shared_part_collects_the_gradients_of_all_members():
    _, A, b, E, h = draw(12, 5, 2, seed=2)
    costs = torch.stack([-(k @ A.detach()) for k in torch.rand(3, 12, dtype=D)])
    z, _ = linear_program(costs, A, b, E, h)
    z.sum().backward()
    together = A.grad.clone()
    A.grad = None
    for c in costs:
        linear_program(c, A, b, E, h)[0].sum().backward()
    torch.testing.assert_close(together, A.grad)


def test_large_batches_and_single_programs_have_the_same_gradients():
    """They are factored by different code: one gathers whole systems, one drops fixed columns."""
    parts = draw(12, 5, 2, seed=3, batch=(40,))
    linear_program(*parts, nonnegative=True, solver="highs")[0].sin().sum().backward()
    for i in (0, 17):
        one = [x[i].detach().clone().requires_grad_() for x in parts]
        linear_program(*one, nonnegative=True, solver="highs")[0].sin().sum().backward()
        for all_of_them, alone in zip(parts[1:], one[1:], strict=True):
            torch.testing.assert_close(all_of_them.grad[i], alone.grad)


def test_the_solution_does_not_feel_the_costs_and_the_gradient_says_so():
    c = PRICES.clone().requires_grad_()
    z, _ = linear_program(c, HOURS, [4.0, 3.0], nonnegative=True)
    z.sum().backward()
    assert torch.equal(c.grad, torch.zeros(2, dtype=D))


def test_only_the_value_feels_them_by_the_solution():
    c = PRICES.clone().requires_grad_()
    value, info = linear_program(c, HOURS, [4.0, 3.0], nonnegative=True, value_only=True)
    value.backward()
    assert value.item() == -10
    assert torch.equal(c.grad, info.solution)


def test_a_doubled_row_shares_its_gradient():
    """Degenerate: the derivative has sides, and ours lies between them."""
    A = torch.cat([HOURS, HOURS[:1]])
    b = torch.tensor([4.0, 3.0, 4.0], dtype=D, requires_grad=True)
    z, info = linear_program(PRICES, A, b, nonnegative=True, solver="newton")
    z[0].backward()
    assert info.degenerate.item()
    assert info.unique.item()
    torch.testing.assert_close(b.grad, torch.tensor([-0.5, 2.0, -0.5], dtype=D))


@pytest.mark.parametrize("sparse", [False, True])
def test_where_the_solution_is_an_edge_it_moves_with_the_edge(sparse):
    """min -x - y with x + y <= b: whatever point is returned, the sum of z follows b."""
    A = torch.ones(1, 2, dtype=D)
    b = torch.tensor([1.0], dtype=D, requires_grad=True)
    z, info = linear_program([-1.0, -1.0], A.to_sparse() if sparse else A, b, solver="newton")
    z.sum().backward()
    assert not info.unique.item()
    assert b.grad.item() == pytest.approx(1)


def test_a_change_in_place_between_forward_and_backward_is_refused():
    b = torch.tensor([4.0, 3.0], dtype=D, requires_grad=True)
    A = HOURS.clone()
    z, _ = linear_program(PRICES, A, b, nonnegative=True)
    A.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_without_gradients_nothing_is_kept():
    with torch.no_grad():
        z, _ = linear_program(*draw(12, 5, 2, seed=1))
    assert not z.requires_grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_come_back_in_the_dtype_of_each_part(dtype):
    b = torch.tensor([4.0, 3.0], dtype=dtype, requires_grad=True)
    z, _ = linear_program(PRICES.to(dtype), HOURS.to(dtype), b, nonnegative=True)
    z[0].backward()
    assert b.grad.dtype == dtype
    assert b.grad.tolist() == [-1, 2]


@pytest.mark.parametrize("value_only", [False, True], ids=["solution", "value"])
@pytest.mark.parametrize("power", [1, 2])
def test_second_derivatives_raise_and_are_never_partly_there(value_only, power):
    """With ``b = x^2`` the second derivative has a part through the layer's own gradient."""
    x = torch.tensor([1.0, 1.5], dtype=torch.float64, requires_grad=True)
    A = torch.tensor([[1.0, 0.3], [0.2, 1.0]], dtype=torch.float64) * x
    found, _ = linear_program(torch.tensor([-1.0, -1.0]), A, x**2, value_only=value_only)
    (first,) = torch.autograd.grad((found**power).sum(), x, create_graph=True)
    assert torch.isfinite(first).all()
    with pytest.raises(RuntimeError, match="linear_program has first derivatives only"):
        torch.autograd.grad(first.sum(), x)
