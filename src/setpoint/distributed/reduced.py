"""Gradients that bypass DDP, brought together by hand: rows with one tensor for each parameter."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from setpoint.distributed.ranks import workers

Row = list[Tensor | None]


def averaged(rows: list[Row], params: Sequence[Tensor], group: dist.ProcessGroup | None) -> None:
    """Replace every row by its mean over the workers: ``autograd.grad`` bypasses DDP's own."""
    size = workers(group)
    waiting = []
    for row in rows:
        for index, parameter in enumerate(params):
            part = row[index]
            # another worker may have a gradient where this one has none, and all must take part
            own = torch.zeros_like(parameter) if part is None else part / size
            row[index] = own = own.contiguous()
            waiting.append(dist.all_reduce(own, group=group, async_op=True))
    for work in waiting:
        work.wait()
