"""Steps from 0 to 1: the hard one that decides, and soft ones that have a gradient.

A soft step reads ``u = (score - threshold) / width``. The width is a bandwidth: either relative to
the spread of the scores a threshold sees (the default, free of units), or a fixed ``temperature``
in units of the scores. Steps take numpy arrays and torch tensors alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from setpoint._checks import positive

Values = Any
"""A numpy array or a torch tensor."""


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

    _usual: ClassVar[float] = 0.05
    _sides_add_up: ClassVar[bool] = True

    def __repr__(self) -> str:
        name = "width" if self.temperature is None else "temperature"
        return f"{type(self).__name__}({name}={getattr(self, name)!r})"

    @property
    def complementary(self) -> bool:
        """Whether ``value(u) + value(-u)`` is one, as counts of a class have to add up."""
        return self._sides_add_up

    def width_of(self, spread: Values) -> Values:
        """The width in units of the scores, for scores of this ``spread``."""
        if self.temperature is not None:
            return 0 * spread + self.temperature
        return self.width * spread

    def value(self, u: Values) -> Values:
        """The step."""
        raise NotImplementedError

    def slope(self, u: Values) -> Values:
        """Its first derivative: the kernel that weighs examples by their distance."""
        raise NotImplementedError

    def value_and_slope(self, u: Values) -> tuple[Values, Values]:
        """Both at once, for steps that can share work."""
        return self.value(u), self.slope(u)

    def curvature(self, u: Values) -> Values:
        """Its second derivative."""
        raise NotImplementedError


class Hard(Step):
    """The true decision, ``score > threshold``: no gradient, for finding and reporting.

    Examples:
        >>> Hard().value(np.array([-2.0, 0.0, 2.0])).tolist()
        [0.0, 0.0, 1.0]
    """

    __slots__ = ()

    def value(self, u: Values) -> Values:
        """1 above the threshold, else 0."""
        return _in_precision_of(u > 0, u)

    def slope(self, u: Values) -> Values:
        """Zero everywhere."""
        return _in_precision_of(u != u, u)

    curvature = slope


class Sigmoid(Step):
    """The logistic step; its counts tend to the hard ones as the width falls.

    Examples:
        >>> Sigmoid().value(np.array([-2.0, 0.0, 2.0])).round(2).tolist()
        [0.12, 0.5, 0.88]
    """

    __slots__ = ()

    def value(self, u: Values) -> Values:
        """``1 / (1 + exp(-u))``."""
        return u.sigmoid() if hasattr(u, "sigmoid") else self.value_and_slope(u)[0]

    def slope(self, u: Values) -> Values:
        """The product of both tails; ``s * (1 - s)`` would be exactly 0 from u = 37 on."""
        return self.value_and_slope(u)[1]

    def value_and_slope(self, u: Values) -> tuple[Values, Values]:
        """Both from one exponential; far out they keep their digits."""
        if not isinstance(u, np.ndarray):
            value = u.sigmoid()
            return value, (-u).sigmoid() * value
        odds = u.clip(-700.0, np.inf)  # its exponential is a number, and beyond it both are zero
        np.negative(odds, out=odds)
        np.exp(odds, out=odds)
        value = odds + 1.0
        np.reciprocal(value, out=value)
        odds *= value
        odds *= value
        return value, odds

    def curvature(self, u: Values) -> Values:
        """``-slope * tanh(u / 2)``."""
        value, slope = self.value_and_slope(u)
        return -slope * (2 * value - 1)


class Softplus(Step):
    """The paper's convex surrogate. It does not tend to hard counts: for equalities only.

    Examples:
        >>> Softplus().value(np.array([-2.0, 0.0, 2.0])).round(2).tolist()
        [0.13, 0.69, 2.13]
    """

    __slots__ = ()
    _usual, _sides_add_up = 0.5, False

    def value(self, u: Values) -> Values:
        """``log(1 + exp(u))``."""
        return np.logaddexp(0.0, u) if isinstance(u, np.ndarray) else u.logaddexp(0 * u)

    def slope(self, u: Values) -> Values:
        """The logistic function."""
        return Sigmoid().value(u)

    def curvature(self, u: Values) -> Values:
        """The slope of the logistic function."""
        return Sigmoid().slope(u)


class Hinge(Step):
    """``max(0, 1 + u)``, the convex surrogate of support vector machines: for equalities only.

    Examples:
        >>> Hinge().value(np.array([-2.0, 0.0, 2.0])).tolist()
        [0.0, 1.0, 3.0]
    """

    __slots__ = ()
    _usual, _sides_add_up = 0.5, False

    def value(self, u: Values) -> Values:
        """``max(0, 1 + u)``."""
        return (1 + u).clip(min=0)

    def slope(self, u: Values) -> Values:
        """1 from one width below the threshold on."""
        return _in_precision_of(u > -1, u)

    def curvature(self, u: Values) -> Values:
        """Zero, except at the kink, where it is not defined."""
        return _in_precision_of(u != u, u)


class SlopeOf(Step):
    """The slope of another step, read as a step: its counts are densities."""

    __slots__ = ("step",)
    step: Step

    def __init__(self, step: Step) -> None:
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "width", step.width)
        object.__setattr__(self, "temperature", step.temperature)

    @property
    def complementary(self) -> bool:
        """As the step it is the slope of."""
        return self.step.complementary

    def value(self, u: Values) -> Values:
        """The slope of the step."""
        return self.step.slope(u)

    def slope(self, u: Values) -> Values:
        """Its curvature."""
        return self.step.curvature(u)


def _in_precision_of(mask: Values, like: Values) -> Values:
    """Ones and zeros in the precision of ``like``."""
    return mask.to(like.dtype) if hasattr(mask, "to") else mask.astype(like.dtype)
