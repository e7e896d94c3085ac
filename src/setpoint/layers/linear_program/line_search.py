"""The exact minimum of the penalty along a line.

Along ``y + t d`` each residual is ``r + t a`` and counts only while it is positive, so the slope of
the penalty is a rising broken line of ``t``: sort its breakpoints, add up, find where it crosses 0.
"""

from __future__ import annotations

import torch
from torch import Tensor


def exact_step(start: Tensor, curve: Tensor, r: Tensor, a: Tensor) -> Tensor:
    """The ``t > 0`` where ``start + curve t + sum_i a_i max(r_i + a_i t, 0)`` is zero.

    Args:
        start: The slope at 0 of the part that has no breakpoints, ``[batch]``.
        curve: Its second derivative, ``[batch]``.
        r: Residuals at 0, ``[batch, rows]``.
        a: Their speeds, ``[batch, rows]``.
    """
    counts = (r > 0) | ((r == 0) & (a > 0))
    turns = ((a > 0) & (r < 0)) | ((a < 0) & (r > 0))
    when, order = torch.where(turns, -r / torch.where(turns, a, 1), torch.inf).sort(1)
    a, r, turns = a.gather(1, order), r.gather(1, order), turns.gather(1, order)
    start, curve = start[:, None], curve[:, None]
    counts = counts.gather(1, order)
    start = start + (a * r * counts).sum(1, keepdim=True)
    curve = curve + (a * a * counts).sum(1, keepdim=True)
    change = a.sign() * turns  # a row comes in if it rises, and goes out if it falls
    starts = torch.cat([start, start + (change * a * r).cumsum(1)], 1)
    curves = torch.cat([curve, curve + (change * a * a).cumsum(1)], 1)
    crossed = turns & (starts[:, :-1] + curves[:, :-1] * torch.where(turns, when, 0) >= 0)
    piece = torch.where(crossed.any(1), crossed.to(torch.uint8).argmax(1), turns.sum(1))[:, None]
    start, curve = starts.gather(1, piece)[:, 0], curves.gather(1, piece)[:, 0]
    return torch.where(curve > 0, -start / torch.where(curve > 0, curve, 1), 1.0).clamp(min=0)
