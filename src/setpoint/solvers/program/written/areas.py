"""Areas as programs: a variable for each pair of examples."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint._checks import positive
from setpoint.solvers.program.auc import checked_range, checked_surrogate
from setpoint.solvers.program.classes import Kind, checked_classes, comparisons
from setpoint.solvers.program.linear import LinearProgram, Rows, blocks
from setpoint.solvers.program.pairs import Surrogate
from setpoint.solvers.program.written.sides import sides, split


def auc_program(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    surrogate: Surrogate = "hinge",
) -> LinearProgram:
    """A variable ``z >= 1 - d / margin`` for each pair (equation 1); see :func:`_pairs_program`."""
    s = sides(scores, labels, weights)
    return _pairs_program(s.differences, s.pair_weights, margin, surrogate)


def _pairs_program(
    differences: Tensor, weights: Tensor, margin: float, surrogate: Surrogate
) -> LinearProgram:
    """``min sum w z``; the ramp gives back what a misranked pair costs above 1.

    What it gives back is ``min over 0 <= r <= 1 of r d / margin``: another variable for each pair,
    with the scores in its cost.
    """
    u = differences / positive(margin, "margin")
    ramp = checked_surrogate(surrogate) == "ramp"
    z, back = blocks(len(u), len(u) if ramp else 0)
    rows = Rows(len(z) + len(back))
    rows.add(u - 1, (z, -torch.ones_like(u)))
    costs = [weights]
    if ramp:
        rows.add(torch.ones_like(u), (back, torch.ones_like(u)))
        costs.append(weights * u)
    return LinearProgram(torch.cat(costs), *rows.matrix(), None, None, True)


def multiclass_auc_program(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    surrogate: Surrogate = "hinge",
    kind: Kind = "mu",
    partition: Any = None,
) -> LinearProgram:
    """The binary program of every comparison of classes (equation 2), side by side."""
    labels, example = checked_classes(scores, labels, weights)
    differences, shares = [], []
    found = (x.to(scores.device) for x in comparisons(scores.shape[1], kind, partition))
    for direction, ones, others in zip(*found, strict=True):
        positives, negatives = ones[labels] * example, others[labels] * example
        if positives.any() and negatives.any():
            s = split(scores.double() @ direction, positives, negatives)
            differences.append(s.differences)
            shares.append(s.pair_weights)
    if not shares:
        raise ValueError("The program needs examples of two classes at least.")
    mean = torch.cat(shares) / len(shares)
    return _pairs_program(torch.cat(differences), mean, margin, surrogate)


def partial_auc_program(
    scores: Tensor,
    labels: Tensor,
    *,
    fpr: tuple[float, float],
    weights: Tensor | None = None,
    margin: float = 1.0,
) -> LinearProgram:
    """The sum of the largest: ``min k t + sum w s, s_j >= v_j - t`` with ``v_j`` the pairs of j.

    For a range that does not begin at 0 the sum of the largest up to its beginning is taken off
    again: ``min -sum o v`` over ``0 <= o <= w, sum o = k``, with the values in the cost.
    """
    low, high = checked_range(fpr)
    s = sides(scores, labels, weights)
    u = s.differences / positive(margin, "margin")
    z, slack, level, off = blocks(len(u), len(s.low), 1, len(s.low) if low else 0)
    rows = Rows(len(z) + len(slack) + 1 + len(off))
    rows.add(u - 1, (z, -torch.ones_like(u)))
    shares = s.high_weights / s.high_weights.sum()
    by_negative = z.reshape(len(s.high), len(s.low)).T
    one = u.new_ones(())
    rows.add(
        torch.zeros_like(s.low),
        (slack, -one),
        (level, -one),
        *((by_negative[:, i], share) for i, share in enumerate(shares)),
    )
    total = s.low_weights.sum()
    size = (high - low) * total
    costs = [torch.zeros_like(u), s.low_weights / size, (high * total / size).reshape(1)]
    if not low:
        return LinearProgram(torch.cat(costs), *rows.matrix(), None, None, True)
    rows.add(s.low_weights, (off, one))
    held = Rows(rows.columns)
    held.sum(float(low * total), [off], [torch.ones_like(s.low)])
    values = (shares[:, None] * (1 - u).clamp(min=0).reshape(len(shares), -1)).sum(0)
    costs.append(-values / size)
    return LinearProgram(torch.cat(costs), *rows.matrix(), *held.matrix(), True)
