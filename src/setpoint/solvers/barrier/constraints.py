"""Bounds on losses: ``at_most(loss, 0.35)``, ``at_least(...)``, ``equal_to(...)``.

``loss <= 0.35`` on tensors compares two numbers and forgets the graph, so bounds on losses are
written as words.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from setpoint._checks import number, positive
from setpoint.distributed import workers
from setpoint.solvers.barrier.quadratic_program import Mask, Vector

Sense = Literal["<=", ">=", "=="]
OBJECTIVE = "the objective"


@dataclass(frozen=True, eq=False)
class Constraint:
    """A loss with a graph, the sense of its bound, and the level; made by the functions below."""

    loss: Tensor
    sense: Sense
    level: float
    name: str = ""

    @property
    def sign(self) -> float:
        """1, or -1 for a floor: ``sign * (loss - level)`` is to be at most zero."""
        return -1.0 if self.sense == ">=" else 1.0

    def gap(self) -> Tensor:
        """By how much the bound is broken, with gradients: positive if it is."""
        return self.sign * (self.loss - self.level)

    def __str__(self) -> str:
        return f"{self.name or 'loss'} {self.sense} {self.level:g}"


def at_most(loss: Tensor, level: float, *, name: str = "") -> Constraint:
    """Hold ``loss <= level``.

    Args:
        loss: A scalar with a graph, such as ``cross_entropy(out, y)``.
        level: The largest allowed value.
        name: Its name in reports and errors.

    Examples:
        >>> str(at_most(torch.tensor(0.5, requires_grad=True), 0.35, name="error"))
        'error <= 0.35'
    """
    return Constraint(scalar(loss, "at_most", name), "<=", number(level, "The level"), name)


def at_least(loss: Tensor, level: float, *, name: str = "") -> Constraint:
    """Hold ``loss >= level``; as :func:`at_most`.

    Examples:
        >>> str(at_least(torch.tensor(0.5, requires_grad=True), 1.0, name="entropy"))
        'entropy >= 1'
    """
    return Constraint(scalar(loss, "at_least", name), ">=", number(level, "The level"), name)


def equal_to(loss: Tensor, level: float, *, name: str = "") -> Constraint:
    """Hold ``loss == level``; as :func:`at_most`, with a multiplier of either sign.

    Examples:
        >>> equal_to(torch.tensor(0.75, requires_grad=True), 0.25).gap().item()
        0.5
    """
    return Constraint(scalar(loss, "equal_to", name), "==", number(level, "The level"), name)


def together(constraints: Iterable[Constraint], *, width: float = 0.01) -> Constraint:
    """Many bounds as one: their smooth maximum ``width * log sum exp(gap / width)`` is at most 0.

    One more backward pass in all instead of one for each (the paper's advice for many constraints).
    The smooth maximum lies above the true one by at most ``width * log(n)``, so every bound holds
    where the folded one does.

    Args:
        constraints: Bounds of :func:`at_most` and :func:`at_least`, in comparable units.
        width: How soft the maximum is, in units of the losses.

    Examples:
        >>> losses = torch.tensor([0.2, 0.5], requires_grad=True)
        >>> folded = together([at_most(loss, 0.4) for loss in losses])
        >>> round(folded.loss.item(), 3), str(folded)
        (0.1, 'the worst of 2 bounds <= 0')
    """
    listed = list(constraints)
    for each in listed:
        if not isinstance(each, Constraint) or each.sense == "==":
            raise TypeError(
                f"together takes bounds made by at_most and at_least; got {_short(each)}."
            )
    if not listed:
        raise ValueError("together needs at least one bound.")
    width = positive(width, "width")
    gaps = torch.stack([each.gap().reshape(()) for each in listed])
    worst = width * torch.logsumexp(gaps / width, 0)
    return Constraint(worst, "<=", 0.0, f"the worst of {len(listed)} bounds")


def scalar(loss: object, where: str, name: str = "") -> Tensor:
    """``loss``, if it is a single number with a graph; raises otherwise."""
    named = f"{where} ({name})" if name else where
    if not isinstance(loss, Tensor):
        raise TypeError(f"{named} takes a loss, a scalar tensor; got {_short(loss)}.")
    if loss.dtype == torch.bool:
        raise TypeError(
            f"{named} got a truth value: `loss <= 0.35` compares numbers; "
            "write `at_most(loss, 0.35)`."
        )
    if loss.numel() != 1:
        raise ValueError(
            f"{named} takes a single number; got the shape {tuple(loss.shape)}. "
            "Take its mean first: loss.mean()."
        )
    if not loss.is_floating_point():
        raise TypeError(f"{named} takes a floating-point loss; got {loss.dtype}.")
    if not loss.requires_grad:
        raise ValueError(
            f"{named} got a loss without a graph (requires_grad is False). Compute it from the "
            "model's output, without detach(), item() or torch.no_grad()."
        )
    return loss


def listed_constraints(given: object) -> list[Constraint]:
    """``subject_to`` as a list; raises if it holds anything but bounds."""
    many: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
    for each in many:
        if isinstance(each, Tensor):
            if each.dtype == torch.bool:
                scalar(each, "subject_to")
            raise TypeError(
                "subject_to takes bounds; got a bare tensor. "
                "Say what it is held to: at_most(loss, 0.35)."
            )
        if not isinstance(each, Constraint):
            raise TypeError(
                "subject_to takes bounds on losses such as at_most(loss, 0.35); "
                f"got {_short(each)}. Bounds on rates belong in a Problem."
            )
    return many


def _short(value: object) -> str:
    text = repr(value) if not isinstance(value, Tensor) else f"a tensor {tuple(value.shape)}"
    return text if len(text) < 60 else f"a {type(value).__name__}"


@dataclass(frozen=True)
class Losses:
    """The losses of one step, in the order in which they are differentiated.

    Attributes:
        tensors: Gaps of the bounds or losses in order of priority, then the objective.
        names: Their names in errors and reports.
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
        """The tensors as numbers, and this worker's share of the rows relative to a mean worker.

        With several workers the numbers are means, weighted by how many ``rows`` each has.
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
        """The values of the losses as the user passed them, the objective last."""
        held = values[:-1] if self.ranked else values[:-1] * self.signs + self.levels
        return [*held.tolist(), float(values[-1])]


def collect(objective: object, subject_to: object, after: object, lower: object) -> Losses:
    """The losses of one call of ``backward``; raises if the arguments do not fit."""
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
