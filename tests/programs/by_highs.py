"""An independent answer: a loss's program, solved by HiGHS, with the gradient of its Lagrangian."""

import torch
from scipy.optimize import linprog
from scipy.sparse import csr_matrix


def csr(matrix):
    """A sparse tensor for scipy."""
    if matrix is None:
        return None
    matrix = matrix.detach().coalesce()
    return csr_matrix((matrix.values().numpy(), matrix.indices().numpy()), shape=matrix.shape)


def plain(vector):
    return None if vector is None else vector.detach().numpy()


def solved(program):
    """HiGHS' result for a program."""
    found = linprog(
        plain(program.c),
        A_ub=csr(program.A),
        b_ub=plain(program.b),
        A_eq=csr(program.E),
        b_eq=plain(program.h),
        bounds=(0, None) if program.nonnegative else (None, None),
        method="highs",
    )
    assert found.status == 0, found.message
    return found


def value_and_gradient(program, inputs):
    """The optimal value, and its derivative by ``inputs``: that of the Lagrangian (Danskin)."""
    found = solved(program)
    z = torch.tensor(found.x)
    lagrangian = program.c @ z - program.b @ torch.tensor(-found.ineqlin.marginals)
    lagrangian = lagrangian + torch.tensor(-found.ineqlin.marginals) @ times(program.A, z)
    if program.E is not None:
        multipliers = torch.tensor(-found.eqlin.marginals)
        lagrangian = lagrangian + multipliers @ (times(program.E, z) - program.h)
    gradient = torch.zeros_like(inputs)
    if lagrangian.requires_grad:
        (gradient,) = torch.autograd.grad(lagrangian, inputs)
    return found.fun + program.offset, gradient


def times(matrix, vector):
    return torch.sparse.mm(matrix, vector[:, None])[:, 0]
