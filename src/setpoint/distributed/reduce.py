"""Sums and means over ranks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from setpoint.distributed.ranks import workers

Row = list[Tensor | None]
"""One gradient per parameter; None where the loss does not reach it."""


def sum_tensors(numbers: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """The numbers of all ranks added up in float64 (whole numbers in int64), on every rank."""
    device = "cuda" if dist.get_backend(group) == "nccl" else "cpu"  # nccl sends from a GPU only
    dtype = torch.float64 if numbers.is_floating_point() else torch.int64
    total = numbers.detach().to(device, dtype, copy=True)
    dist.all_reduce(total, group=group)
    return total.to(numbers.device)


def average_gradients(
    rows: list[Row], params: Sequence[Tensor], group: dist.ProcessGroup | None
) -> None:
    """Replace every row by its mean over the ranks: ``autograd.grad`` bypasses DDP's own.

    What a loss reaches on one rank and not on another counts as zero there; what it reaches on
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
