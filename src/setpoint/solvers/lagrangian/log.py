"""The last steps of the multipliers: a ring in the state of a criterion."""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.thresholds import State

LENGTH = 1000


class Log(State):
    """One row a step, the last :data:`LENGTH` of them."""

    rows: Tensor
    count: Tensor
    _flexible = ("rows",)

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.empty(0, 0, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def add(self, row: Tensor) -> None:
        """Write down one row of numbers."""
        if self.rows.shape != (LENGTH, len(row)):
            self.rows = row.new_zeros(LENGTH, len(row))
        place = (self.count % LENGTH).to(row.device)
        self.rows = self.rows.to(row).index_copy(0, place[None], row[None])
        self.count = self.count + 1

    def read(self) -> tuple[list[int], Tensor]:
        """The numbers of the steps (1 is the first), and their rows, oldest first."""
        count = int(self.count)
        first = max(0, count - LENGTH)
        order = torch.arange(first, count) % LENGTH
        return list(range(first + 1, count + 1)), self.rows[order.to(self.rows.device)]
