"""Ratios of counts as programs: a variable for each example, by Charnes and Cooper."""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._checks import positive
from setpoint.solvers.program.linear import LinearProgram, Rows, blocks
from setpoint.solvers.program.ratios import JACCARD, Ratio, f_ratio
from setpoint.solvers.program.written.sides import Sides, sides


def f_score_program(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    beta: float = 1.0,
    margin: float = 1.0,
    lift: bool = True,
) -> LinearProgram:
    """See :func:`_ratio_program`."""
    return _ratio_program(f_ratio(beta), sides(scores, labels, weights), margin, lift)


def jaccard_program(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    lift: bool = True,
) -> LinearProgram:
    """See :func:`_ratio_program`."""
    return _ratio_program(JACCARD, sides(scores, labels, weights), margin, lift)


def _ratio_program(ratio: Ratio, s: Sides, margin: float, lift: bool) -> LinearProgram:
    """The substitution of Charnes and Cooper: everything times ``t``, the denominator held at 1.

    Misses ``x_i >= t (1 - u_i)`` and alarms ``w_j >= t (1 + u_j)``, all at least 0. The lift is a
    program of its own beside it: ``q >= sum of misses - P``.
    """
    margin = positive(margin, "margin")
    u, v, one = s.high / margin, s.low / margin, s.high.new_ones(())
    count, p, q = s.high_weights.sum(), len(u), len(v)
    t, x, w, miss, over = blocks(1, p, q, p if lift else 0, 1 if lift else 0)
    rows = Rows(1 + p + q + len(miss) + len(over))
    rows.add(torch.zeros_like(u), (t, 1 - u), (x, -one))
    rows.add(torch.zeros_like(v), (t, 1 + v), (w, -one))
    top = ratio.top
    costs = [-top * count.reshape(1), top * s.high_weights, torch.zeros_like(v)]
    if lift:
        rows.add(u - 1, (miss, -one))
        rows.sum(float(count), [miss, over], [s.high_weights, -one.reshape(1)])
        costs += [torch.zeros_like(u), top / (ratio.fixed * count).reshape(1)]
    held = Rows(rows.columns)
    whole = ((ratio.fixed + ratio.moving) * count).reshape(1)
    held.sum(1.0, [t, x, w], [whole, -ratio.moving * s.high_weights, s.low_weights])
    return LinearProgram(torch.cat(costs), *rows.matrix(), *held.matrix(), True, 1.0)
