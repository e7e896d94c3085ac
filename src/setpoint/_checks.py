"""Checks of single values; errors say what is wrong, with which value, what to do instead."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeGuard


def is_number(value: object) -> TypeGuard[float]:
    """Whether ``value`` is a real, finite number (numpy scalars included, booleans not)."""
    if isinstance(value, bool) or not hasattr(value, "__float__") or hasattr(value, "__len__"):
        return False
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def number(value: object, what: str) -> float:
    """``value`` as a float, or an error that names it."""
    if not is_number(value):
        raise TypeError(f"{what} must be a finite number; got {quoted(value)}.")
    return float(value)


def share(value: object, what: str, *, ends: bool = True) -> float:
    """``value`` as a share between 0 and 1, or an error with the likely slip."""
    x = number(value, what)
    inside = 0 <= x <= 1 if ends else 0 < x < 1
    if not inside:
        ends_text = "" if ends else ", ends excluded"
        slip = f" For {x:g} % write {x / 100:g}." if 1 < x <= 100 else ""
        raise ValueError(f"{what} must be a share between 0 and 1{ends_text}; got {x:g}.{slip}")
    return x


def positive(value: object, what: str) -> float:
    """``value`` as a number above zero, or an error that names it."""
    x = number(value, what)
    if x <= 0:
        raise ValueError(f"{what} must be positive; got {x:g}.")
    return x


def at_least_zero(value: object, what: str) -> float:
    """``value`` as a number that is not negative, or an error that names it."""
    x = number(value, what)
    if x < 0:
        raise ValueError(f"{what} must be at least 0; got {x:g}.")
    return x


def whole(value: object, what: str, *, least: int) -> int:
    """``value`` as a whole number of at least ``least``, or an error that names it."""
    if not is_number(value) or float(value) != int(value) or value < least:
        shown = quoted(value)
        raise ValueError(f"{what} must be a whole number of at least {least}; got {shown}.")
    return int(value)


def plural(count: float, noun: str) -> str:
    """``1 negative``, ``1,200 negatives``."""
    return f"{count:,.10g} {noun}{'' if count == 1 else 's'}"


def quoted(text: object, longest: int = 60) -> str:
    """A name or value from a user's file for a one-line message: escaped, and cut if long."""
    literal = repr(text)
    return literal if len(literal) <= longest else f"{literal[: longest - 1]}…"


def quoted_list(names: Iterable[object], most: int = 8) -> str:
    """The first ``most`` names, quoted, for a message."""
    every = [quoted(name, 30) for name in names]
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more
