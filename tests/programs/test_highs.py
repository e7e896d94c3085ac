"""HiGHS simplifies a program before it solves it, except where that takes longer."""

import pytest
import torch

from setpoint.programs import highs, linear_program

D = torch.float64


@pytest.mark.parametrize(("right", "status"), [(1.0, "optimal"), (-1.0, "infeasible")])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_a_variable_in_most_rows_is_not_presolved(monkeypatch, right, status, nonnegative):
    """It costs quadratic time there; what is then not optimal gets a second look."""
    asked, linprog = [], highs.linprog

    def watched(*args, **keywords):
        if keywords["options"]:  # the proof that there is no solution has none
            asked.append(keywords["options"]["presolve"])
        return linprog(*args, **keywords)

    monkeypatch.setattr(highs, "linprog", watched)
    n = 40
    f = torch.linspace(-1, 1, n, dtype=D)
    A = torch.cat([f[:, None], -torch.eye(n, dtype=D)], 1)  # w_j >= f_j t, as in the F score
    b, c, E = torch.zeros(n), torch.ones(n + 1, dtype=D), torch.ones(1, n + 1, dtype=D)
    if not nonnegative:
        A, b = torch.cat([A, -torch.eye(n + 1, dtype=D)]), torch.zeros(2 * n + 1)
    given = (c * torch.arange(1, n + 2), A.to_sparse(), b, E.to_sparse(), [right], nonnegative)
    _, info = linear_program(*given, strict=False)
    assert info.status == (status,)
    again = [True] * (status != "optimal")
    assert asked == ([False, *again] if nonnegative else [True])
    dense = linear_program(given[0], A, b, E, [right], nonnegative, strict=False)[1]
    torch.testing.assert_close(info.solution, dense.solution)
