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

    Example:
        >>> share = lambda s, t: torch.sigmoid(s - t).mean() - 0.5     # accept half of the examples
        >>> scores = torch.tensor([0.0, 1.0, 5.0], requires_grad=True)
        >>> hold(share, scores, find=torch.median).backward()
        >>> round(scores.grad.sum().item(), 4)                          # all scores +1: so is t
        1.0
    """
    still = scores.detach()
    root = find(still).detach()
    if slope is None:
        slope = _jacobian(gap, still, root) if coupled else own_slope(gap, still, root)
    now = gap(scores, root)
    moved = now - now.detach()  # zero, but it knows how the gap depends on the scores
    if coupled:
        return root - torch.linalg.solve(slope, moved)
    flat = slope == 0  # nothing near the threshold: it does not move
    return root - moved / torch.where(flat, torch.inf, slope)


def own_slope(gap: Gap, scores: Tensor, thresholds: Tensor) -> Tensor:
    """The derivative of each gap by its own threshold; the gaps do not depend on each other's."""
    with torch.enable_grad():
        t = thresholds.detach().requires_grad_()
        (slope,) = torch.autograd.grad(gap(scores, t).sum(), t)
    return slope


def _jacobian(gap: Gap, scores: Tensor, thresholds: Tensor) -> Tensor:
    with torch.enable_grad():
        t = thresholds.detach().requires_grad_()
        gaps = gap(scores, t)
        rows = [torch.autograd.grad(g, t, retain_graph=True)[0] for g in gaps]
    return torch.stack(rows)
