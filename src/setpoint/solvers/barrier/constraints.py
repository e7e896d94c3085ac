"""What a loss is held to: ``at_most(loss, 0.35)``, ``at_least(...)``, ``equal_to(...)``.

``loss <= 0.35`` on tensors compares two numbers and forgets the graph, so bounds on losses are
written as words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from setpoint._checks import number, positive

Sense = Literal["<=", ">=", "=="]


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
        level: The most it may be.
        name: What reports and errors call it.

    Example:
        >>> str(at_most(torch.tensor(0.5, requires_grad=True), 0.35, name="error"))
        'error <= 0.35'
    """
    return Constraint(scalar(loss, "at_most", name), "<=", number(level, "The level"), name)


def at_least(loss: Tensor, level: float, *, name: str = "") -> Constraint:
    """Hold ``loss >= level``; as :func:`at_most`."""
    return Constraint(scalar(loss, "at_least", name), ">=", number(level, "The level"), name)


def equal_to(loss: Tensor, level: float, *, name: str = "") -> Constraint:
    """Hold ``loss == level``; as :func:`at_most`, with a multiplier of either sign."""
    return Constraint(scalar(loss, "equal_to", name), "==", number(level, "The level"), name)


def together(constraints: Iterable[Constraint], *, width: float = 0.01) -> Constraint:
    """Many bounds as one: their smooth maximum ``width * log sum exp(gap / width)`` is at most 0.

    One more backward pass in all instead of one for each (the paper's advice for many constraints).
    The smooth maximum lies above the true one by at most ``width * log(n)``, so every bound holds
    where the folded one does.

    Args:
        constraints: Bounds of :func:`at_most` and :func:`at_least`, in comparable units.
        width: How soft the maximum is, in units of the losses.

    Example:
        >>> losses = torch.tensor([0.2, 0.5], requires_grad=True)
        >>> folded = together([at_most(loss, 0.4) for loss in losses])
        >>> round(folded.loss.item(), 3), str(folded)
        (0.1, 'the worst of 2 bounds <= 0')
    """
    listed = list(constraints)
    for each in listed:
        if not isinstance(each, Constraint) or each.sense == "==":
            raise TypeError(
                f"together takes bounds made by at_most and at_least; got {_shown(each)}."
            )
    if not listed:
        raise ValueError("together needs at least one bound.")
    width = positive(width, "width")
    gaps = torch.stack([each.gap().reshape(()) for each in listed])
    worst = width * torch.logsumexp(gaps / width, 0)
    return Constraint(worst, "<=", 0.0, f"the worst of {len(listed)} bounds")


def scalar(loss: object, where: str, name: str = "") -> Tensor:
    """``loss`` if it is a single number with a graph, else an error that says what to pass."""
    named = f"{where} ({name})" if name else where
    if not isinstance(loss, Tensor):
        raise TypeError(f"{named} takes a loss, a scalar tensor; got {_shown(loss)}.")
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
    """``subject_to`` as a list, or an error with the likely slip."""
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
                f"got {_shown(each)}. Bounds on rates belong in a Problem."
            )
    return many


def _shown(value: object) -> str:
    text = repr(value) if not isinstance(value, Tensor) else f"a tensor {tuple(value.shape)}"
    return text if len(text) < 60 else f"a {type(value).__name__}"
