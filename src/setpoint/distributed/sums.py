"""Sums over ranks: one message, as long as there are numbers to add."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from setpoint.distributed.wire import Wire


def sums_of_all(numbers: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
    """The numbers of all ranks added up, ``[k]`` in double precision, the same on every rank."""
    total = numbers.detach().to(Wire(group).device, torch.float64, copy=True)
    dist.all_reduce(total, group=group)
    return total.to(numbers.device)
