"""Hold a rate at its target: find the threshold, and let gradients pass through it.

The threshold is the root of ``gap(scores, threshold) = level``. Nobody knows it as a formula of the
scores, but when the scores move a little the gap must stay where it is, so the threshold moves by
``-(d gap / d scores) / (d gap / d threshold)``. That is all the implicit function theorem says
(ICO, equations 3 to 6), and all we need.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Gap = Callable[[Tensor, Tensor], Tensor]
"""``gap(scores, thresholds)``: one number for each threshold."""


def hold(
    gap: Gap,
    scores: Tensor,
    *,
    find: Callable[[Tensor], Tensor],
    slope: Tensor | None = None,
    coupled: bool = False,
) -> Tensor:
    """The thresholds where ``gap`` is held at its present level, differentiable in ``scores``.

    Args:
        gap: A differentiable function of scores and thresholds, one value for each threshold.
        scores: What the thresholds depend on.
        find: Gives the thresholds for detached scores, by whatever means: the gap need not be zero
            there (with true counts it rarely is), its level is held.
        slope: The derivative of each gap by its threshold, if it is known better than by
            differentiating ``gap`` (a larger sample, say).
        coupled: Whether a gap depends on other thresholds than its own. The thresholds are then one
            vector, and their full Jacobian is solved.

    Examples:
        >>> share = lambda s, t: torch.sigmoid(s - t).mean() - 0.5     # accept half of the examples
        >>> scores = torch.tensor([0.0, 1.0, 5.0], requires_grad=True)
        >>> hold(share, scores, find=torch.median).backward()
        >>> round(scores.grad.sum().item(), 4)                          # all scores +1: so is t
        1.0
    """
    root = find(scores.detach()).detach()
    with torch.enable_grad():
        moving = root.clone().requires_grad_()
        gaps = gap(scores.detach(), moving)
        if slope is None:
            slope = _jacobian(gaps, moving) if coupled else _own_slope(gaps, moving)
    now = gap(scores, root)
    if now.shape != root.shape:
        raise ValueError(
            f"gap must give one value for each threshold, {tuple(root.shape)}; "
            f"got the shape {tuple(now.shape)}."
        )
    moved = now - now.detach()  # zero, but it knows how the gap depends on the scores
    if coupled:
        moved = torch.linalg.solve(slope, moved)
    else:  # where the gap is flat there is nothing near the threshold, and it does not move
        moved = moved / torch.where(slope == 0, torch.inf, slope)
    return root - moved


def _own_slope(gaps: Tensor, thresholds: Tensor) -> Tensor:
    return torch.autograd.grad(gaps.sum(), thresholds)[0]


def _jacobian(gaps: Tensor, thresholds: Tensor) -> Tensor:
    rows = [torch.autograd.grad(g, thresholds, retain_graph=True)[0] for g in gaps]
    return torch.stack(rows)
