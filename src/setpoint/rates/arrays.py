"""Arithmetic that floats, numpy arrays and torch tensors have in common, without importing them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar

Array = Any
"""A float, a numpy array or a torch tensor: whatever supports ``+ - * /``."""
K = TypeVar("K", bound=Hashable)


def divide(top: Array, bottom: Array) -> Array:
    """``top / bottom`` where 0/0 is NaN, for floats as for arrays."""
    try:
        return top / bottom
    except ZeroDivisionError:
        return float("nan") if top == 0 else float("inf") * top


def larger(a: Array, b: Array) -> Array:
    """The larger of two, exactly; NaN stays NaN."""
    if hasattr(a, "clip"):  # numpy and torch both have it, and broadcast
        return a.clip(min=b)
    if hasattr(b, "clip"):
        return b.clip(min=a)
    return a if a >= b or a != a else b


def sign(value: Array) -> Array:
    """1, 0 or -1."""
    return (value > 0) * 1.0 - (value < 0) * 1.0


def weighted_sum(*terms: tuple[Array, dict[K, Array]]) -> dict[K, Array]:
    """The sum of ``weight * values``, entry by entry; what an entry lacks is zero."""
    total: dict[K, Array] = {}
    for weight, values in terms:
        for key, value in values.items():
            total[key] = total[key] + weight * value if key in total else weight * value
    return total
