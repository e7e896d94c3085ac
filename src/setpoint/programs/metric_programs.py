"""The metric losses as the linear programs they are the optimal values of.

Each writer takes the arguments of its loss and writes the program down with one variable per pair
or per example, as in the textbook. Add rows of your own and hand it to
:func:`setpoint.programs.linear_program`. To train, call the loss: it gives the same value and
gradient without a solver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec

import torch
from torch import Tensor

from setpoint._checks import number, positive
from setpoint.losses.auc import (
    PairSurrogate,
    auc_loss,
    checked_range,
    checked_surrogate,
    partial_auc_loss,
)
from setpoint.losses.expected_f import checked_joint, column_worth, expected_f_loss
from setpoint.losses.multiclass import (
    MulticlassKind,
    checked_classes,
    comparisons,
    multiclass_auc_loss,
)
from setpoint.losses.precision_at_recall import (
    AlarmObjective,
    checked_objective,
    checked_recall,
    precision_at_recall_loss,
)
from setpoint.losses.ratios import (
    JACCARD,
    DecisionThreshold,
    Ratio,
    checked_threshold,
    f_ratio,
    f_score_loss,
    jaccard_loss,
)
from setpoint.losses.structural import ErrorQueue, ErrorTable, check_metric, structural_loss
from setpoint.programs.writing import (
    LinearProgram,
    RowBuilder,
    TwoClasses,
    blocks,
    read_two_classes,
    split_classes,
)
from setpoint.rates import Expression

Arguments = ParamSpec("Arguments")


def as_program(
    loss: Callable[Arguments, Tensor], /, *given: Arguments.args, **options: Arguments.kwargs
) -> LinearProgram:
    """The linear program whose optimal value is ``loss(scores, labels, ...)``.

    Called like the loss itself, with its options. The program has one variable per pair of
    examples (areas) or per example: it is for adding constraints of one's own, and for checking.
    Raises a ValueError if ``loss`` is none of :mod:`setpoint.losses`.

    Examples:
        >>> import torch
        >>> from setpoint.losses import auc_loss
        >>> from setpoint.programs import as_program
        >>> program = as_program(auc_loss, torch.tensor([2.0, 0.5, 0.0]), torch.tensor([1, 1, 0]))
        >>> program.A.shape, program.b.tolist()      # one variable and row per pair
        (torch.Size([2, 2]), [1.0, -0.5])
        >>> program.value(torch.tensor([0.0, 0.5]).double()).item()      # at its solution
        0.25
    """
    write: Any = _WRITERS.get(loss)
    if write is None:
        known = ", ".join(sorted(f.__name__ for f in _WRITERS))
        raise ValueError(f"No program is known for {loss!r}; there is one for {known}.")
    program: LinearProgram = write(*given, **options)
    return program


def auc_program(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    surrogate: PairSurrogate = "hinge",
) -> LinearProgram:
    """One variable ``z >= 1 - d / margin`` per pair (equation 1); see :func:`_pairs_program`."""
    s = read_two_classes(scores, labels, weights)
    return _pairs_program(s.differences, s.pair_weights, margin, surrogate)


def _pairs_program(
    differences: Tensor, weights: Tensor, margin: float, surrogate: PairSurrogate
) -> LinearProgram:
    """``min sum w z``; the ramp gives back what a misranked pair costs above 1.

    What it gives back is ``min over 0 <= r <= 1 of r d / margin``: another variable per pair, with
    the scores in its cost.
    """
    u = differences / positive(margin, "margin")
    ramp = checked_surrogate(surrogate) == "ramp"
    z, back = blocks(len(u), len(u) if ramp else 0)
    rows = RowBuilder(len(z) + len(back))
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
    surrogate: PairSurrogate = "hinge",
    kind: MulticlassKind = "mu",
    partition: Any = None,
) -> LinearProgram:
    """The binary program of every comparison of classes (equation 2), side by side."""
    labels, example = checked_classes(scores, labels, weights)
    differences, shares = [], []
    found = (x.to(scores.device) for x in comparisons(scores.shape[1], kind, partition))
    for direction, ones, others in zip(*found, strict=True):
        positives, negatives = ones[labels] * example, others[labels] * example
        if positives.any() and negatives.any():
            s = split_classes(scores.double() @ direction, positives, negatives)
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
    s = read_two_classes(scores, labels, weights)
    u = s.differences / positive(margin, "margin")
    z, slack, level, off = blocks(len(u), len(s.low), 1, len(s.low) if low else 0)
    rows = RowBuilder(len(z) + len(slack) + 1 + len(off))
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
    held = RowBuilder(rows.columns)
    held.sum(float(low * total), [off], [torch.ones_like(s.low)])
    values = (shares[:, None] * (1 - u).clamp(min=0).reshape(len(shares), -1)).sum(0)
    costs.append(-values / size)
    return LinearProgram(torch.cat(costs), *rows.matrix(), *held.matrix(), True)


def f_score_program(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    beta: float = 1.0,
    margin: float = 1.0,
    threshold: DecisionThreshold = 0.0,
    lift: bool = True,
) -> LinearProgram:
    """The program of :func:`setpoint.losses.f_score_loss`; see :func:`_ratio_program`."""
    return _ratio_program(
        f_ratio(beta), read_two_classes(scores, labels, weights), margin, threshold, lift
    )


def jaccard_program(
    scores: Tensor,
    labels: Tensor,
    *,
    weights: Tensor | None = None,
    margin: float = 1.0,
    threshold: DecisionThreshold = 0.0,
    lift: bool = True,
) -> LinearProgram:
    """The program of :func:`setpoint.losses.jaccard_loss`; see :func:`_ratio_program`."""
    return _ratio_program(
        JACCARD, read_two_classes(scores, labels, weights), margin, threshold, lift
    )


def _ratio_program(
    ratio: Ratio, s: TwoClasses, margin: float, threshold: DecisionThreshold, lift: bool
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
    rows = RowBuilder(2 + len(u) + len(v) + len(miss) if lift or free else 1 + len(u) + len(v))
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
    held = RowBuilder(rows.columns)
    whole = (ratio.fixed + ratio.moving) * s.positives
    held.sum(1.0, [t, x, w], [whole, -ratio.moving * s.high_weights, s.low_weights])
    return LinearProgram(torch.cat(costs), *rows.matrix(), *held.matrix(), not free, 1.0)


def _add_lift(rows: RowBuilder, s: TwoClasses, u: Tensor, miss: Tensor, over: Tensor) -> None:
    """Add a program beside it: by how much the misses exceed the positives."""
    one = u.new_ones(())
    rows.add(u - 1, (miss, -one))
    rows.sum(float(s.positives), [miss, over], [s.high_weights, -one.reshape(1)])


def precision_at_recall_program(
    scores: Tensor,
    labels: Tensor,
    *,
    recall: float,
    weights: Tensor | None = None,
    margin: float = 1.0,
    objective: AlarmObjective = "precision",
) -> LinearProgram:
    """False alarms and misses around a free threshold; for the precision, all times ``t``."""
    margin, recall = positive(margin, "margin"), checked_recall(recall)
    s = read_two_classes(scores, labels, weights)
    if checked_objective(objective) == "fpr":
        return _alarm_program(s, s.high / margin, s.low / margin, recall)
    return _precision_program(s, s.high / margin, s.low / margin, recall)


def _alarm_program(s: TwoClasses, u: Tensor, v: Tensor, recall: float) -> LinearProgram:
    """``alarm >= 1 + v - level``, ``miss >= 1 - u + level``, misses within what is allowed."""
    alarm, miss, level = blocks(len(v), len(u), 1)
    rows, one = RowBuilder(len(v) + len(u) + 1), u.new_ones(())
    rows.add(-1 - v, (alarm, -one), (level, -one))
    rows.add(u - 1, (miss, -one), (level, one))
    rows.sum(float((1 - recall) * s.positives), [miss], [s.high_weights])
    rows.at_least_zero(alarm, miss)
    cost = torch.cat([s.low_weights / s.low_weights.sum(), u.new_zeros(len(u) + 1)])
    return LinearProgram(cost, *rows.matrix(), None, None, False)


def _precision_program(s: TwoClasses, u: Tensor, v: Tensor, recall: float) -> LinearProgram:
    """The same, with ``recall P + alarms`` held at 1 by a variable ``t`` that scales everything."""
    alarm, miss, level, t = blocks(len(v), len(u), 1, 1)
    rows, one = RowBuilder(len(v) + len(u) + 2), u.new_ones(())
    rows.add(torch.zeros_like(v), (t, 1 + v), (level, -one), (alarm, -one))
    rows.add(torch.zeros_like(u), (t, 1 - u), (level, one), (miss, -one))
    rows.sum(0.0, [miss, t], [s.high_weights, (recall - 1) * s.positives])
    rows.at_least_zero(alarm, miss, t)
    held = RowBuilder(rows.columns)
    held.sum(1.0, [alarm, t], [s.low_weights, recall * s.positives])
    cost = torch.cat([s.low_weights, u.new_zeros(len(u) + 2)])
    return LinearProgram(cost, *rows.matrix(), *held.matrix(), False)


def structural_program(
    scores: Tensor,
    labels: Tensor,
    *,
    metric: Expression,
    weights: Tensor | None = None,
    margin: float = 1.0,
    threshold: float = 0.0,
) -> LinearProgram:
    """One variable, with one row per pair of counts: it is at least their loss."""
    check_metric(metric)
    s = read_two_classes(scores, labels, weights)
    margin, threshold = positive(margin, "margin"), number(threshold, "threshold")
    low = ErrorQueue.of((s.high - threshold) / margin, s.high_weights, descending=False)
    top = ErrorQueue.of((s.low - threshold) / margin, s.low_weights, descending=True)
    worth = ErrorTable.of(metric, low, top).loss()
    rows = RowBuilder(1)
    (only,) = blocks(1)
    rows.add(-worth.reshape(-1), (only, -worth.new_ones(())))
    return LinearProgram(worth.new_ones(1), *rows.matrix(), None, None, True)


def expected_f_program(joint: Tensor, none: Tensor | float, *, beta: float = 1.0) -> LinearProgram:
    """A share ``s_k`` per size ``k``, and ``z_ik <= s_k``: example i is in the set of size k."""
    joint, none = checked_joint(joint, none)
    n = len(joint)
    z, sizes, nobody = blocks(n * n, n, 1)
    z = z.reshape(n, n)
    one = joint.new_ones(())
    rows, held = RowBuilder(n * n + n + 1), RowBuilder(n * n + n + 1)
    rows.add(joint.new_zeros(n * n), (z.reshape(-1), one), (sizes.repeat(n), -one))
    for k, size in enumerate(sizes):
        held.sum(0.0, [z[:, k], size[None]], [joint.new_ones(n), joint.new_full((1,), -k - 1)])
    held.sum(1.0, [sizes, nobody], [joint.new_ones(n), joint.new_ones(1)])
    costs = [-column_worth(joint, beta).reshape(-1), joint.new_zeros(n), -none.reshape(1)]
    return LinearProgram(torch.cat(costs), *rows.matrix(), *held.matrix(), True, 1.0)


_WRITERS: dict[Callable[..., Tensor], Callable[..., LinearProgram]] = {
    auc_loss: auc_program,
    partial_auc_loss: partial_auc_program,
    multiclass_auc_loss: multiclass_auc_program,
    f_score_loss: f_score_program,
    jaccard_loss: jaccard_program,
    precision_at_recall_loss: precision_at_recall_program,
    structural_loss: structural_program,
    expected_f_loss: expected_f_program,
}
