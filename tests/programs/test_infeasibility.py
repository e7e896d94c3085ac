"""Programs without a solution come with a proof; malformed ones with a sentence."""

import numpy as np
import pytest
import torch

from setpoint.programs import InfeasibleProgram, ProgramError, UnboundedProgram, linear_program

D = torch.float64
SOLVERS = ("highs", "newton")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CS[CR] tensor support")
ONE_VARIABLE = torch.tensor([[1.0], [-1.0]], dtype=D)  # z <= b_0 and -z <= b_1


def is_farkas(error, A, b, E, h, nonnegative):
    v, w = error.ray
    left = A.T @ v + E.T @ w
    balanced = (left >= -1e-9) if nonnegative else (left.abs() <= 1e-9)
    return bool(balanced.all() and (v >= 0).all() and b @ v + h @ w < -1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_contradiction_is_proven_by_a_farkas_ray(solver, nonnegative, sparse):
    g = torch.Generator().manual_seed(0)
    A, E = torch.randn(8, 5, generator=g, dtype=D), torch.randn(2, 5, generator=g, dtype=D)
    A[7] = -(A[2] + 2 * A[4]) - E[0]
    b, h = torch.rand(8, generator=g, dtype=D), torch.rand(2, generator=g, dtype=D)
    b[7] = -(b[2] + 2 * b[4]) - h[0] - 0.5
    matrix = A.to_sparse() if sparse else A
    rows = "" if nonnegative else r"rows A\[2\], A\[4\], A\[7\] and E\[0\] contradict"
    with pytest.raises(InfeasibleProgram, match=f"is infeasible: {rows}") as raised:
        linear_program(torch.ones(5, dtype=D), matrix, b, E, h, nonnegative, solver=solver)
    assert is_farkas(raised.value, A, b, E, h, nonnegative)
    assert raised.value.member == ()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("sparse", [False, True])
def test_an_endless_fall_is_proven_by_its_direction(solver, sparse):
    A = torch.tensor([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]], dtype=D)
    E = torch.tensor([[0.0, 1.0, -1.0]], dtype=D)
    c = torch.tensor([1.0, 0.0, 0.5], dtype=D)
    matrix = A.to_sparse() if sparse else A
    with pytest.raises(UnboundedProgram, match=r"falls for ever along z\[0\]") as raised:
        linear_program(c, matrix, [1.0, 1.0], E, [0.0], solver=solver)
    (d,) = raised.value.ray
    assert (A @ d <= 1e-9).all()
    assert (E @ d).abs().max() <= 1e-9
    assert c @ d < -1e-3


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
def test_a_batch_with_one_bad_member_says_which(solver):
    b = torch.ones(2, 3, 2, dtype=D)
    b[1, 2] = torch.tensor([1.0, -2.0])  # z <= 1 and z >= 2
    with pytest.raises(InfeasibleProgram, match=r"\(member \[1, 2\] of the batch\)") as raised:
        linear_program([1.0], ONE_VARIABLE, b, solver=solver)
    assert raised.value.member == (1, 2)


def test_not_strict_a_bad_member_moves_nothing_even_where_its_equalities_are_square():
    b = torch.tensor([1.0], dtype=D, requires_grad=True)
    h = torch.tensor([3.0], dtype=D, requires_grad=True)
    z, info = linear_program([1.0], [[1.0]], b, [[1.0]], h, strict=False)
    z.sum().backward()
    assert info.status == ("infeasible",)
    assert b.grad.item() == h.grad.item() == 0


@pytest.mark.parametrize(
    ("A", "b", "words"),
    [
        ([[1.0, 2.0]], [-1.0], r"rows A\[0\] and z >= 0 contradict each other"),
        ([[1.0, 2.0], [-1.0, -2.0]], [1.0, -2.0], r"rows A\[0\], A\[1\] contradict each other"),
        ([[0.0, 0.0]], [-1.0], r"row A\[0\] has no entries"),
    ],
)
def test_what_contradicts_is_named_with_the_bounds_if_they_are_needed(A, b, words):
    with pytest.raises(InfeasibleProgram, match=words):
        linear_program([1.0, 1.0], A, b, nonnegative=True)


def test_all_bad_members_are_named():
    b = torch.tensor([[1.0, 1.0], [1.0, -2.0], [0.0, 0.0], [0.0, -1.0]], dtype=D)
    with pytest.raises(ProgramError, match=r"member \[1\] .*; 2 members fail, also \[3\]"):
        linear_program([1.0], ONE_VARIABLE, b)


def test_infeasible_comes_before_unbounded():
    with pytest.raises(InfeasibleProgram):
        linear_program([1.0, 1.0], [[1.0, 0.0], [-1.0, 0.0]], [1.0, -2.0])


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
@pytest.mark.parametrize("value_only", [False, True])
def test_not_strict_a_bad_member_is_zeros_with_a_status_and_no_gradient(solver, value_only):
    b = torch.tensor([[1.0, 1.0], [1.0, -2.0]], dtype=D, requires_grad=True)
    c = torch.tensor([[1.0], [1.0]], dtype=D, requires_grad=True)
    answer, info = linear_program(
        c, ONE_VARIABLE, b, solver=solver, strict=False, value_only=value_only
    )
    assert info.status == ("optimal", "infeasible")
    assert info.optimal.tolist() == [True, False]
    assert answer.flatten().tolist() == [-1, 0]
    assert [len(ray) for ray in info.rays] == [0, 2]
    answer.sum().backward()
    assert b.grad.tolist() == [[0, -1], [0, 0]]
    assert c.grad[1].item() == 0
    assert not info.unique[1]
    assert not info.degenerate[1]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("n", [1, 7, 30])
def test_newton_and_highs_name_the_same_trouble(solver, n):
    """Random programs around a ray, of each kind."""
    rng = np.random.default_rng(n)
    A, d = rng.normal(size=(2 * n, n)), rng.normal(size=n)
    A -= np.outer(np.maximum(A @ d, 0) / (d @ d), d)
    b = A @ rng.normal(size=n) + 1
    _, info = linear_program(-d, A, b, solver=solver, strict=False)
    assert info.status == ("unbounded",)
    twice, right = np.concatenate([A, -A[:1]]), np.append(b, -b[0] - 0.1)
    _, info = linear_program(-d, twice, right, solver=solver, strict=False)
    assert info.status == ("infeasible",)


def test_flags_of_an_edge_a_vertex_and_a_crowded_vertex():
    square = torch.cat([torch.eye(2, dtype=D), -torch.eye(2, dtype=D)])
    ones = torch.ones(4, dtype=D)
    crowded = torch.cat([square, torch.ones(1, 2, dtype=D)])
    cases = {
        "vertex": ([-1.0, -2.0], square, ones, True, False),
        "edge": ([-1.0, 0.0], square, ones, False, True),
        "everything": ([0.0, 0.0], square, ones, False, True),
        "crowded": ([-1.0, -2.0], crowded, torch.tensor([1.0, 1, 1, 1, 2], dtype=D), True, True),
        "crowded edge": (
            [-1.0, 0.0],
            crowded,
            torch.tensor([1.0, 1, 1, 1, 2], dtype=D),
            False,
            True,
        ),
    }
    for solver in SOLVERS:
        for name, (c, A, b, unique, degenerate) in cases.items():
            for matrix in (A, A.to_sparse()):
                _, info = linear_program(c, matrix, b, solver=solver)
                assert info.unique.item() == unique, (solver, name)
                assert info.degenerate.item() == degenerate, (solver, name)


def test_a_vertex_that_only_all_tight_rows_determine_is_unique():
    """A pyramid over a square, its apex the best point: no two multipliers determine it alone."""
    A = torch.tensor([[1.0, 0, 1], [-1, 0, 1], [0, 1, 1], [0, -1, 1]], dtype=D)
    for solver in SOLVERS:
        z, info = linear_program([0.0, 0.0, -1.0], A, torch.ones(4, dtype=D), solver=solver)
        torch.testing.assert_close(z, torch.tensor([0.0, 0.0, 1.0], dtype=D))
        assert info.unique.item()
        assert info.degenerate.item()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"c": []}, r"at least one variable: .* got the shape \(0,\)"),
        ({"c": 1.0}, r"at least one variable"),
        ({"c": [1.0, float("nan")]}, r"c must be finite; got nan at \[1\]"),
        ({"c": [1.0], "A": [[1.0]]}, "need both A and b; A came without b"),
        ({"c": [1.0], "h": [1.0]}, "need both E and h; h came without E"),
        ({"c": [1.0], "A": [[1.0, 2.0]], "b": [1.0]}, r"A must be \[..., rows, 1\]"),
        ({"c": [1.0], "A": [[1.0]], "b": [1.0, 2.0]}, r"b must be \[..., 1\], one value for each"),
        (
            {"c": [1.0], "A": [[1.0]], "b": [float("inf")]},
            "b must be finite; got inf .* Drop a row",
        ),
        (
            {"c": [[1.0]] * 2, "A": [[1.0]], "b": [[1.0]] * 3},
            r"do not fit together: c \(2,\).* b \(3,\)",
        ),
        ({"c": [1.0], "solver": "simplex"}, "solver must be one of 'auto', .*; got 'simplex'"),
        ({"c": [1.0], "cost_gradient": "magic"}, "cost_gradient must be one of 'blackbox', "),
        (
            {"c": [1.0], "cost_gradient": "blackbox", "strength": 0},
            "strength must be positive; got 0",
        ),
        (
            {"c": [1.0], "cost_gradient": "perturbed", "samples": 0},
            "samples must be a whole number",
        ),
        (
            {"c": [1.0], "cost_gradient": "blackbox", "value_only": True},
            "cost_gradient goes with solutions",
        ),
        ({"c": [1.0], "sketch": 0}, "sketch must be a whole number of at least 1; got 0"),
        ({"c": [1.0], "sketch": 5, "solver": "highs"}, 'sketch goes with dense .* solver="newton"'),
        ({"c": [1.0], "unroll": True, "cost_gradient": "blackbox"}, "unroll=True goes with dense"),
    ],
)
def test_what_is_malformed_is_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        linear_program(**arguments)


def test_wrong_kinds_are_named():
    with pytest.raises(TypeError, match=r"c must hold real numbers; got torch\.complex64"):
        linear_program(torch.ones(1, dtype=torch.complex64))
    with pytest.raises(TypeError, match="b must be dense"):
        linear_program([1.0], [[1.0]], torch.ones(1).to_sparse())
    with pytest.raises(TypeError, match="A must be dense, sparse COO or CSR; got torch"):
        linear_program([1.0], torch.ones(1, 1).to_sparse_csc(), [1.0])
    with pytest.raises(TypeError, match="c is missing"):
        linear_program(None)


def test_nan_in_a_sparse_matrix_is_named():
    A = torch.tensor([[1.0, 0.0], [float("nan"), 1.0]]).to_sparse()
    with pytest.raises(ValueError, match="A must be finite; got nan"):
        linear_program([1.0, 1.0], A, [1.0, 1.0])


def test_a_ray_need_not_point_along_every_axis():
    """Minimize -x over x >= 0 and 0 <= y <= 5: the ray is x alone."""
    c, A, b = (torch.tensor(x, dtype=D) for x in ([-1.0, 1.0], [[0.0, 1.0]], [5.0]))
    for solver in SOLVERS:
        with pytest.raises(UnboundedProgram) as caught:
            linear_program(c, A, b, nonnegative=True, solver=solver)
        x, y = caught.value.ray[0].tolist()
        assert x > 0
        assert y == 0
