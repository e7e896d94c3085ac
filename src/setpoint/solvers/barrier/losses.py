"""The losses of one step, checked and named: those that are held first, the objective last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from setpoint._checks import number
from setpoint.distributed import workers
from setpoint.solvers.barrier.constraints import Constraint, listed_constraints, scalar
from setpoint.solvers.barrier.quadratic import Mask, Vector

OBJECTIVE = "the objective"


@dataclass(frozen=True)
class Losses:
    """What is differentiated, and how to read it.

    Attributes:
        tensors: Gaps of the bounds or losses in order of priority, then the objective.
        names: What errors and reports call them.
        kinds: The sense of each bound, or ``"after"``.
        signs: 1, or -1 where the tensor is the gap of a floor.
        levels: What is subtracted to get the gap: the bound, or a lower bound of the loss
            (minus infinity if none is known).
    """

    tensors: list[Tensor]
    names: list[str]
    kinds: list[str]
    signs: Vector
    levels: Vector

    @property
    def ranked(self) -> bool:
        """Whether the losses have an order of priority instead of bounds."""
        return "after" in self.kinds

    @property
    def free(self) -> Mask:
        """Which bounds are equalities."""
        return np.array([kind == "==" for kind in self.kinds])

    def values(self, group: dist.ProcessGroup | None, rows: int | None) -> tuple[Vector, float]:
        """The tensors as numbers, and what this worker counts for beside a mean one.

        Of several workers they are means, weighted by how many ``rows`` each has.
        """
        with torch.no_grad():
            first = self.tensors[0]
            wide = torch.float32 if first.device.type == "mps" else torch.float64
            flat = torch.stack([t.reshape(()).to(first.device, wide) for t in self.tensors])
            size = workers(group)
            if size == 1:
                return flat.cpu().numpy().astype(float), 1.0
            own = 1 if rows is None else rows
            # the mean over no rows is no number, and counts for nothing
            weighted = torch.where(torch.tensor(own > 0, device=flat.device), own * flat, 0.0)
            told = flat.new_tensor([own, rows is not None])
            sums = torch.cat([weighted, told])
            dist.all_reduce(sums, group=group)
        *totals, count, given = sums.tolist()
        if given not in (0, size) or not count:
            raise ValueError(
                f"rows= was given by {int(given)} of {size} processes, {int(count)} in all: "
                "give it in every process, and leave out steps without any rows."
            )
        return np.array(totals) / count, own * size / count

    def gaps(self, values: Vector) -> Vector:
        """By how much bounds are broken, or how far losses are above their lower bounds."""
        return values[:-1] - self.levels if self.ranked else values[:-1]

    def read(self, values: Vector) -> list[float]:
        """The losses as the user knows them, the objective last."""
        held = values[:-1] if self.ranked else values[:-1] * self.signs + self.levels
        return [*held.tolist(), float(values[-1])]


def collect(objective: object, subject_to: object, after: object, lower: object) -> Losses:
    """The losses of one call of ``backward``, or an error that says what to pass instead."""
    last = scalar(objective, "backward")
    if (subject_to is None) == (after is None):
        raise TypeError(
            "backward takes subject_to=, such as [at_most(loss, 0.35)], or after=, a more "
            "important loss: one of the two."
        )
    if subject_to is not None:
        if lower is not None:
            raise TypeError("lower= is a lower bound of the losses in after=; leave it out.")
        return _bounded(listed_constraints(subject_to), last)
    return _in_order(after, last, lower)


def _bounded(constraints: list[Constraint], objective: Tensor) -> Losses:
    if not constraints:
        raise ValueError("subject_to is empty; without bounds call objective.backward().")
    return Losses(
        [*(each.gap() for each in constraints), objective],
        [*(each.name or f"bound {i}" for i, each in enumerate(constraints)), OBJECTIVE],
        [each.sense for each in constraints],
        np.array([each.sign for each in constraints]),
        np.array([each.level for each in constraints]),
    )


def _in_order(after: object, objective: Tensor, lower: object) -> Losses:
    many: list[Any] = list(after) if isinstance(after, (list, tuple)) else [after]
    if not many:
        raise ValueError("after is empty; without a more important loss call loss.backward().")
    losses = [scalar(each, "after") for each in many]
    bounds: Sequence[Any] = lower if isinstance(lower, (list, tuple)) else [lower] * len(many)
    if len(bounds) != len(many):
        raise ValueError(f"lower= needs one number for each of {len(many)} losses; got {lower!r}.")
    names = [f"after[{i}]" for i in range(len(many))] if len(many) > 1 else ["after"]
    return Losses(
        [*losses, objective],
        [*names, OBJECTIVE],
        ["after"] * len(many),
        np.ones(len(many)),
        np.array([-math.inf if each is None else number(each, "lower") for each in bounds]),
    )
