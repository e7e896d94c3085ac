"""Steps from 0 to 1: the hard one that decides, and soft ones that have a gradient.

A soft step reads ``u = (score - threshold) / width``. The width is a bandwidth: either relative to
the spread of the scores a threshold sees (the default, free of units), or a fixed ``temperature``
in units of the scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from setpoint._checks import positive

A = TypeVar("A")  # an array of numpy or torch


@dataclass(frozen=True, slots=True, repr=False)
class Step:
    """A step, its slope and the slope of its slope, as functions of ``u``.

    Args:
        width: Width of the step as a share of the spread of the scores.
        temperature: Width of the step in units of the scores, instead of ``width``. The papers
            multiply where we divide: their temperature is one over ours.
    """

    width: float | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        if self.width is not None and self.temperature is not None:
            raise ValueError("A step has a relative width or a fixed temperature, not both.")
        for name in ("width", "temperature"):
            value = getattr(self, name)
            if value is not None:
                positive(value, name)
        if self.width is None and self.temperature is None:
            object.__setattr__(self, "width", self._usual)

    _usual = 0.05
    complementary = True
    """Whether ``value(u) + value(-u)`` is one, as counts of a class have to add up."""

    def __repr__(self) -> str:
        name = "width" if self.temperature is None else "temperature"
        return f"{type(self).__name__}({name}={getattr(self, name)!r})"

    def width_of(self, spread: A) -> A:
        """The width in units of the scores, for scores of this ``spread`` (numpy or torch)."""
        if self.temperature is not None:
            like: Any = torch if isinstance(spread, Tensor) else np
            return cast(A, like.full_like(spread, self.temperature))
        return cast(A, self.width * cast(Any, spread))

    def value(self, u: Tensor) -> Tensor:
        """The step."""
        raise NotImplementedError

    def slope(self, u: Tensor) -> Tensor:
        """Its first derivative: the kernel that weighs examples by their distance."""
        raise NotImplementedError

    def value_and_slope(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Both at once, for steps that can share work."""
        return self.value(u), self.slope(u)

    def curvature(self, u: Tensor) -> Tensor:
        """Its second derivative."""
        raise NotImplementedError


class Hard(Step):
    """The true decision, ``score > threshold``: no gradient, for finding and reporting."""

    __slots__ = ()

    def value(self, u: Tensor) -> Tensor:
        """1 above the threshold, else 0."""
        return (u > 0).to(u.dtype)

    def slope(self, u: Tensor) -> Tensor:
        """Zero everywhere."""
        return torch.zeros_like(u)

    curvature = slope


class Sigmoid(Step):
    """The logistic step; its counts tend to the hard ones as the width falls."""

    __slots__ = ()

    def value(self, u: Tensor) -> Tensor:
        """``1 / (1 + exp(-u))``."""
        return torch.sigmoid(u)

    def slope(self, u: Tensor) -> Tensor:
        """The product of both tails; ``s * (1 - s)`` would be exactly 0 from u = 37 on."""
        return torch.sigmoid(u) * torch.sigmoid(-u)

    def value_and_slope(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Both tails, and their product."""
        value = torch.sigmoid(u)
        return value, torch.sigmoid(-u).mul_(value)

    def curvature(self, u: Tensor) -> Tensor:
        """``-slope * tanh(u / 2)``."""
        return -self.slope(u) * torch.tanh(u / 2)


class Softplus(Step):
    """The paper's convex surrogate. It does not tend to hard counts: for equalities only."""

    __slots__ = ()
    _usual = 0.5
    complementary = False

    def value(self, u: Tensor) -> Tensor:
        """``log(1 + exp(u))``."""
        return torch.nn.functional.softplus(u)

    def slope(self, u: Tensor) -> Tensor:
        """The logistic function."""
        return torch.sigmoid(u)

    def curvature(self, u: Tensor) -> Tensor:
        """The slope of the logistic function."""
        return torch.sigmoid(u) * torch.sigmoid(-u)


class Hinge(Step):
    """``max(0, 1 + u)``, the convex surrogate of support vector machines: for equalities only."""

    __slots__ = ()
    _usual = 0.5
    complementary = False

    def value(self, u: Tensor) -> Tensor:
        """``max(0, 1 + u)``."""
        return torch.relu(1 + u)

    def slope(self, u: Tensor) -> Tensor:
        """1 from one width below the threshold on."""
        return (u > -1).to(u.dtype)

    def curvature(self, u: Tensor) -> Tensor:
        """Zero (but at the kink)."""
        return torch.zeros_like(u)


class SlopeOf(Step):
    """The slope of another step, read as a step: its counts are densities."""

    __slots__ = ("step",)
    step: Step

    def __init__(self, step: Step) -> None:
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "width", step.width)
        object.__setattr__(self, "temperature", step.temperature)

    @property
    def complementary(self) -> bool:  # type: ignore[override]
        """As the step it is the slope of."""
        return self.step.complementary

    def value(self, u: Tensor) -> Tensor:
        """The slope of the step."""
        return self.step.slope(u)

    def slope(self, u: Tensor) -> Tensor:
        """Its curvature."""
        return self.step.curvature(u)
