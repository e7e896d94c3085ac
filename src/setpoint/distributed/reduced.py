"""Gradients that bypass DDP, brought together by hand: rows with one tensor for each parameter."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from setpoint.distributed.ranks import workers

Row = list[Tensor | None]


def averaged(rows: list[Row], params: Sequence[Tensor], group: dist.ProcessGroup | None) -> None:
    """Replace every row by its mean over the workers: ``autograd.grad`` bypasses DDP's own.

    What a loss reaches on one worker and not on another counts as zero there; what it reaches on
    none stays None.
    """
    size = workers(group)
    reached = torch.tensor([[part is not None for part in row] for row in rows]).float()
    reached = reached.to(params[0].device)
    dist.all_reduce(reached, group=group)
    waiting = []
    for row, anywhere in zip(rows, reached.tolist(), strict=True):
        for index, parameter in enumerate(params):
            if not anywhere[index]:
                continue
            part = row[index]
            own = torch.zeros_like(parameter) if part is None else part / size
            row[index] = own = own.contiguous()
            waiting.append(dist.all_reduce(own, group=group, async_op=True))
    for work in waiting:
        work.wait()
