"""Running means of gradients, which tell the truth from noise, and who reaches what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from setpoint.solvers.barrier.gradients import Row

HALF = (torch.float16, torch.bfloat16)


class Means(nn.Module):
    """One row for each of the losses; a module so that they travel in ``state_dict()``."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Row] = []

    def reset(self) -> None:
        """Forget everything."""
        self.rows = []

    def follow(self, rows: Sequence[Row], pace: float) -> None:
        """Move each mean towards the row of this step by the share ``pace``."""
        if not self.rows:
            self.rows = [[None] * len(row) for row in rows]
        for mean, row in zip(self.rows, rows, strict=True):
            for index, part in enumerate(row):
                mean[index] = _moved(mean[index], part, pace)

    def first_to_reach(self, params: int) -> list[int]:
        """For each parameter the first loss that ever had a gradient there.

        What none has ever reached belongs to the last one.
        """
        reached = [[row[i] is not None for row in self.rows[:-1]] for i in range(params)]
        return [[*each, True].index(True) for each in reached]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for level, row in enumerate(self.rows):
            # names the place of a parameter that no gradient has reached, too: rows have a length
            destination[f"{prefix}{level}"] = torch.tensor([part is not None for part in row])
            for index, part in enumerate(row):
                if part is not None:
                    destination[f"{prefix}{level}.{index}"] = part.clone()

    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        unexpected: list[str] = rest[3]
        self.rows = []
        while (name := f"{prefix}{len(self.rows)}") in state:
            there = state[name].tolist()
            self.rows.append(
                [state[f"{name}.{i}"].clone() if one else None for i, one in enumerate(there)]
            )
        known = set(self.state_dict(prefix=prefix))
        unexpected += [key for key in state if key.startswith(prefix) and key not in known]


def _moved(mean: Tensor | None, part: Tensor | None, pace: float) -> Tensor | None:
    """A tensor of the mean; half precision would lose steps of a hundredth."""
    if part is None:
        return None if mean is None else mean.mul_(1 - pace)
    wide = part.float() if part.dtype in HALF else part
    if mean is None:
        return wide * pace
    if mean.device != wide.device:
        mean = mean.to(wide.device)
    return mean.lerp_(wide, pace)
