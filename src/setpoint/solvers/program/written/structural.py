"""The structural hinge and the expected F score as programs."""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._checks import number, positive
from setpoint.rates import Expression
from setpoint.solvers.program.expected import checked_joint, column_worth
from setpoint.solvers.program.linear import LinearProgram, Rows, blocks
from setpoint.solvers.program.mistakes import Mistakes, check_metric
from setpoint.solvers.program.written.sides import sides


def structural_program(
    scores: Tensor,
    labels: Tensor,
    *,
    metric: Expression,
    weights: Tensor | None = None,
    margin: float = 1.0,
    threshold: float = 0.0,
) -> LinearProgram:
    """One variable above a row for each pair of counts: the regret less what the scores say."""
    check_metric(metric)
    s = sides(scores, labels, weights)
    margin, threshold = positive(margin, "margin"), number(threshold, "threshold")
    low, up = _by_score(s.high, s.high_weights), _by_score(-s.low, s.low_weights)
    misses, alarms = _running(s.high_weights[low]), _running(s.low_weights[up])
    mistakes = Mistakes.of(metric, misses, alarms)
    missed = _running((s.high_weights * (s.high - threshold) / margin)[low])
    alarmed = _running((s.low_weights * (s.low - threshold) / margin)[up])
    worth = mistakes.worth(missed, alarmed)
    rows = Rows(1)
    (only,) = blocks(1)
    rows.add(-worth.reshape(-1), (only, -worth.new_ones(())))
    return LinearProgram(worth.new_ones(1), *rows.matrix(), None, None, True)


def expected_f_program(joint: Tensor, none: Tensor | float, *, beta: float = 1.0) -> LinearProgram:
    """A share ``s_k`` for each size, and ``z_ik <= s_k`` for whom a set of that size accepts."""
    joint, none = checked_joint(joint, none)
    n = len(joint)
    z, sizes, nobody = blocks(n * n, n, 1)
    z = z.reshape(n, n)
    one = joint.new_ones(())
    rows, held = Rows(n * n + n + 1), Rows(n * n + n + 1)
    rows.add(joint.new_zeros(n * n), (z.reshape(-1), one), (sizes.repeat(n), -one))
    for k, size in enumerate(sizes):
        held.sum(0.0, [z[:, k], size[None]], [joint.new_ones(n), joint.new_full((1,), -k - 1)])
    held.sum(1.0, [sizes, nobody], [joint.new_ones(n), joint.new_ones(1)])
    costs = [-column_worth(joint, beta).reshape(-1), joint.new_zeros(n), -none.reshape(1)]
    return LinearProgram(torch.cat(costs), *rows.matrix(), *held.matrix(), True, 1.0)


def _by_score(scores: Tensor, weights: Tensor) -> Tensor:
    order = weights.argsort()
    return order[scores[order].argsort(stable=True)]


def _running(values: Tensor) -> Tensor:
    return torch.cat([values.new_zeros(1), values.cumsum(0)])
