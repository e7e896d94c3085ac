"""How numbers and sums are written, so that they read back as exactly the same."""

from __future__ import annotations

from collections.abc import Iterable


def numeral(x: float) -> str:
    """The shortest text that reads back as exactly ``x``: ``0.01``, ``1``, ``1e-05``."""
    return repr(float(x)).removesuffix(".0")


def signed_sum(terms: Iterable[tuple[float, str]]) -> str:
    """``2 TP + FN - 0.5``: a sum from pairs of weight and name (the empty name: a constant)."""
    text = ""
    for weight, name in terms:
        if not weight:
            continue
        size = "" if abs(weight) == 1 and name else numeral(abs(weight))
        sign = "-" if weight < 0 else "+"
        lead = f" {sign} " if text else "-" if weight < 0 else ""
        text += f"{lead}{size}{' ' if size and name else ''}{name}"
    return text or "0"
