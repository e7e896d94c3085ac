"""Ratios of counts as programs: a variable for each example, by Charnes and Cooper."""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._checks import positive
from setpoint.solvers.program.linear import LinearProgram, Rows, blocks
from setpoint.solvers.program.ratio import JACCARD, Ratio, f_ratio
from setpoint.solvers.program.ratios import Threshold, checked_threshold
from setpoint.solvers.program.written.sides import Sides, sides


def f_score_program(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    beta: float = 1.0,
    margin: float = 1.0,
    threshold: Threshold = 0.0,
    lift: bool = True,
) -> LinearProgram:
    """See :func:`_ratio_program`."""
    return _ratio_program(f_ratio(beta), sides(scores, labels, weights), margin, threshold, lift)


def jaccard_program(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    threshold: Threshold = 0.0,
    lift: bool = True,
) -> LinearProgram:
    """See :func:`_ratio_program`."""
    return _ratio_program(JACCARD, sides(scores, labels, weights), margin, threshold, lift)


def _ratio_program(
    ratio: Ratio, s: Sides, margin: float, threshold: Threshold, lift: bool
) -> LinearProgram:
    """The substitution of Charnes and Cooper: everything times ``t``, the denominator held at 1.

    Misses ``x_i >= t (1 - u_i)`` and alarms ``w_j >= t (1 + u_j)``, all at least 0. A free
    threshold, times ``t``, is one more variable without a sign.
    """
    margin, threshold = positive(margin, "margin"), checked_threshold(threshold)
    free = threshold == "best"
    at = 0.0 if threshold == "best" else threshold
    u, v, one = (s.high - at) / margin, (s.low - at) / margin, s.high.new_ones(())
    lift = lift and not free
    t, x, w, level, miss, over = blocks(
        1, len(u), len(v), int(free), len(u) if lift else 0, int(lift)
    )
    rows = Rows(2 + len(u) + len(v) + len(miss) if lift or free else 1 + len(u) + len(v))
    up, down = ([(level, one)], [(level, -one)]) if free else ([], [])
    rows.add(torch.zeros_like(u), (t, 1 - u), (x, -one), *up)
    rows.add(torch.zeros_like(v), (t, 1 + v), (w, -one), *down)
    costs = [-ratio.top * s.positives, ratio.top * s.high_weights, torch.zeros_like(v)]
    if lift:
        _add_lift(rows, s, u, miss, over)
        costs += [torch.zeros_like(u), ratio.top / (ratio.fixed * s.positives)]
    if free:
        costs.append(one.new_zeros(1))
        rows.at_least_zero(t, x, w)
    held = Rows(rows.columns)
    whole = (ratio.fixed + ratio.moving) * s.positives
    held.sum(1.0, [t, x, w], [whole, -ratio.moving * s.high_weights, s.low_weights])
    return LinearProgram(torch.cat(costs), *rows.matrix(), *held.matrix(), not free, 1.0)


def _add_lift(rows: Rows, s: Sides, u: Tensor, miss: Tensor, over: Tensor) -> None:
    """A program of its own beside it: what the misses are worth above all positives."""
    one = u.new_ones(())
    rows.add(u - 1, (miss, -one))
    rows.sum(float(s.positives), [miss, over], [s.high_weights, -one.reshape(1)])
