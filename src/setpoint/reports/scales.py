"""Axes with round numbers on them."""

from __future__ import annotations

import math

from setpoint.reports.numbers import MINUS
from setpoint.reports.plot import Scale


def linear(low: float, high: float, *, shares: bool = False, about: int = 5) -> Scale:
    """An even axis whose marks are round numbers inside it; ``shares`` are shown in per cent."""
    if not high > low:
        low, high = low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1)
    raw = (high - low) / about
    size = 10 ** math.floor(math.log10(raw))
    step = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    marks = [(i * step, _text(i * step, shares)) for i in range(first, last + 1)]
    return Scale(low, high, marks)


def logarithmic(low: float, high: float) -> Scale:
    """A logarithmic axis of shares, marked at 1, and at 2 and 5 too if it is short."""
    fine = (1, 2, 5) if high / low < 300 else (1,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    values = [m * 10.0**e for e in range(first, last + 1) for m in fine]
    marks = [(v, _text(v, True)) for v in values if low * 0.999 <= v <= high * 1.001]
    return Scale(low, high, marks, log=True)


def unit(low: float = 0.0) -> Scale:
    """Shares up to 100 %."""
    return linear(low, 1.0, shares=True, about=5)


def counted(most: float) -> Scale:
    """Counts from less than one upward, by their logarithm."""
    top = 10.0 ** max(1, math.ceil(math.log10(max(most, 1) * 1.05)))
    steps = range(round(math.log10(top)) + 1)
    every = 2 if len(steps) > 5 else 1
    return Scale(0.5, top, [(10.0**e, f"{10**e:,}") for e in steps[::every]], log=True)


def _text(value: float, shares: bool) -> str:
    text = f"{100 * value:.6g} %" if shares else f"{value:.6g}"
    return "0" if value == 0 else text.replace("-", MINUS)
