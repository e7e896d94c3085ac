"""What the barrier remembers between steps: a few numbers for each bound, kept in numpy.

They are read and written by python at every step, so they are arrays, and become tensors only in
``state_dict()``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from setpoint.solvers.barrier.quadratic import Vector

KINDS = ("<=", ">=", "==", "after")
PER_BOUND = (
    "multiplier",  # of the last step
    "largest",  # multiplier so far
    "binds",  # whether it mattered in the last step
    "binding",  # in how many steps it did
    "floor",  # the noise correction: what the multiplier is at least
    "gap",  # of the last step (lexicographic: the loss itself)
    "mean_gap",
    "mean_jump",  # of the squared difference of successive gaps
    "mean_square",  # of the squared length of the gradient
    "mean_printed",  # of the multiplier that a single batch asks for
    "mean_multiplier",
)
LEARNT = (  # lexicographic: of the direction of each level,
    "recent",  # the mean of its squared length, with the weights of the running mean of gradients
    "signal",  # the mean over all steps of the squared length of the true gradient
    "square",  # the same of the batch's gradient
    "next",  # the same of the next level's gradient, as far as it is no noise
    "next_batch",  # the same of its batches
)
COUNTS = ("steps", "opposed", "skipped", "looks")
SCALARS = ("mean_pull", "residual", "spent")
MEMORY = 0.05
"""The share of the newest step in running means; before the 20th step they are plain means."""


class Ledger(nn.Module):
    """Running numbers of a barrier; a module so that they travel in ``state_dict()``."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[str, Vector] = {}
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        names = (*PER_BOUND, *LEARNT, "kinds", "weights")
        self.numbers.update({name: np.zeros(0) for name in names})
        self.numbers.update({name: np.zeros(()) for name in (*COUNTS, *SCALARS)})

    def check(self, kinds: Sequence[str]) -> None:
        """An error if there were other bounds before."""
        known = [KINDS[int(code)] for code in self.numbers["kinds"]]
        if known and known != list(kinds):
            raise ValueError(
                f"This barrier has kept the bounds ({', '.join(known)}) so far and now got "
                f"({', '.join(kinds)}). What it learns belongs to each bound: use another "
                "Barrier, or call reset() first."
            )

    def open(self, kinds: Sequence[str]) -> None:
        """Make room for these bounds, in the first step."""
        if not len(self.numbers["kinds"]):
            self.numbers.update({name: np.zeros(len(kinds)) for name in (*PER_BOUND, *LEARNT)})
            self.numbers["kinds"] = np.array([KINDS.index(kind) for kind in kinds], dtype=float)

    def count(self, name: str) -> int:
        """How often something happened."""
        return int(self.numbers[name])

    def follow(self, name: str, values: Vector) -> None:
        """Move a running mean towards the values of this step."""
        mean = self.numbers[name]
        self.numbers[name] = mean + self.pace() * (values - mean)

    def pace(self) -> float:
        """The share of this step in running means."""
        return max(MEMORY, 1 / (1 + self.count("steps")))

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, values in self.numbers.items():
            destination[prefix + name] = torch.tensor(values, dtype=torch.float64)

    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        missing: list[str] = rest[2]
        for name in self.numbers:
            if prefix + name in state:
                self.numbers[name] = state[prefix + name].double().cpu().numpy().copy()
            else:
                missing.append(prefix + name)
