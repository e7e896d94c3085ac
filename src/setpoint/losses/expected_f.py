"""The highest expected F score, given how likely the labels are (Dembczynski et al., 2011).

Among decisions that accept ``k`` examples, the expected F score of a set is the sum of
``D[i, k] = (1 + b^2) sum over s of Pr(y_i = 1, s positives) / (b^2 s + k)`` over its members. So
the best set of each size takes the largest entries of a column, and the best size is the one with
the largest value.
"""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint._checks import positive
from setpoint.batch import refuse_rows
from setpoint.losses.writing import LinearProgram, ProgramBuilder


def expected_f_loss(joint: Tensor, none: Tensor | float, *, beta: float = 1.0) -> Tensor:
    """One minus the highest expected F score that any decisions have, in ``n^2 log n``.

    Differentiable in both arguments: the gradient is that of the best decisions.

    Args:
        joint: ``[n, n]``: entry ``i, s - 1`` is the probability that example ``i`` is positive and
            ``s`` examples are. :func:`independent_joint` makes it for independent labels.
        none: The probability that no example is positive; accepting none of them then scores 1.
        beta: How many times as much recall counts as precision.

    Examples:
        >>> import torch
        >>> loss = expected_f_loss(*independent_joint(torch.tensor([0.9, 0.4, 0.1]).double()))
        >>> round(1 - loss.item(), 4)
        0.756
    """
    values, none = _best_by_size(joint, none, beta)
    return 1 - torch.maximum(values.max(), none)


def expected_f_program(joint: Tensor, none: Tensor | float, *, beta: float = 1.0) -> LinearProgram:
    """A share ``s_k`` per size ``k``, and ``z_ik <= s_k``: example i is in the set of size k."""
    joint, none = checked_joint(joint, none)
    n, one, program = len(joint), joint.new_ones(()), ProgramBuilder()
    z = program.variables(-column_worth(joint, beta).reshape(-1))
    sizes = program.variables(joint.new_zeros(n))
    nobody = program.variables(-none.reshape(1))
    program.at_most(joint.new_zeros(n * n), (z, one), (sizes.repeat(n), -one))
    for k, members in enumerate(z.reshape(n, n).T):
        program.sum_equal(0.0, (members, one), (sizes[k : k + 1], -(k + 1) * one))
    program.sum_equal(1.0, (sizes, one), (nobody, one))
    return program.build(offset=1.0)


def expected_f_decisions(joint: Tensor, none: Tensor | float, *, beta: float = 1.0) -> Tensor:
    """Which examples to accept for the highest expected F score, ``[n]``.

    Arguments as in :func:`expected_f_loss`.
    """
    values, none = _best_by_size(joint.detach(), none, beta)
    accepted = torch.zeros(len(joint), dtype=torch.bool, device=joint.device)
    if values.max() > none:
        size = int(values.argmax()) + 1
        accepted[column_worth(joint.detach().double(), beta)[:, size - 1].topk(size).indices] = True
    return accepted


def independent_joint(probabilities: Tensor) -> tuple[Tensor, Tensor]:
    """The joint probabilities that :func:`expected_f_loss` takes, for independent labels.

    Args:
        probabilities: That each example is positive, ``[n]``, between 0 and 1.
    """
    p = _checked_probabilities(probabilities)
    counts = p.new_ones(1)
    for one in p:  # the distribution of the number of positives
        counts = torch.cat([counts * (1 - one), counts.new_zeros(1)]) + torch.cat(
            [counts.new_zeros(1), counts * one]
        )
    return p[:, None] * _without_each(counts, p), counts[0]


def _without_each(counts: Tensor, p: Tensor) -> Tensor:
    """The distribution of the number of positives among all but one, ``[n, n]``.

    Taking an example out of the distribution is a division that is stable from one end: from below
    for unlikely examples, from above for likely ones.
    """
    up, down = [], []
    below = above = torch.zeros_like(p)
    unlikely, likely = 1 - p.clamp(max=0.5), p.clamp(min=0.5)
    for count in counts[:-1]:
        below = (count - p.clamp(max=0.5) * below) / unlikely
        up.append(below)
    for count in counts[1:].flip(0):
        above = (count - (1 - likely) * above) / likely
        down.append(above)
    return torch.where((p > 0.5)[:, None], torch.stack(down[::-1], 1), torch.stack(up, 1))


def column_worth(joint: Tensor, beta: float) -> Tensor:
    """``D``: what accepting example ``i`` adds to the score when ``k`` are accepted, ``[n, n]``."""
    square = positive(beta, "beta") ** 2
    sizes = torch.arange(1, len(joint) + 1, dtype=joint.dtype, device=joint.device)
    return (1 + square) * (joint @ (1 / (square * sizes[:, None] + sizes)))


def _best_by_size(joint: Tensor, none: Tensor | float, beta: float) -> tuple[Tensor, Tensor]:
    """The highest expected F score for each number of accepted examples, from 1 on."""
    joint, none = checked_joint(joint, none)
    best = column_worth(joint, beta).sort(0, descending=True).values
    return best.cumsum(0).diagonal(), none


def checked_joint(joint: Tensor, none: Tensor | float) -> tuple[Tensor, Tensor]:
    """Both in float64; raises unless they form one joint distribution."""
    if not isinstance(joint, Tensor) or joint.ndim != 2 or joint.shape[0] != joint.shape[1]:
        raise ValueError("joint must be a tensor [n, n]: examples by the number of positives.")
    if len(joint) == 0:
        raise ValueError("joint must have one example at least; got none.")
    joint = joint.double()
    none = torch.as_tensor(none, dtype=torch.float64, device=joint.device)
    sizes = torch.arange(1, len(joint) + 1, dtype=torch.float64, device=joint.device)
    total = float((joint.detach() / sizes).sum() + none.detach())
    least = min(float(joint.detach().min()), float(none.detach()))
    if not (least >= -1e-9 and abs(total - 1) < 1e-6):
        raise ValueError(
            "joint and none must be probabilities: at least 0, with sum(joint[i, s] / s) + none = "
            f"1; got a smallest of {least:.3g} and a sum of {total:.9g}."
        )
    return joint, none


def _checked_probabilities(probabilities: Tensor) -> Tensor:
    if not isinstance(probabilities, Tensor) or probabilities.ndim != 1 or not len(probabilities):
        raise ValueError("probabilities must be a tensor [n] of one example at least.")
    p = probabilities.double()
    wrong = ~((p >= 0) & (p <= 1))
    refuse_rows(wrong, p, "Probabilities lie between 0 and 1")
    return p
