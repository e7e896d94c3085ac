"""Which methods a name asks for: one, or the portfolio of ``method="auto"``."""

from __future__ import annotations

from setpoint.train import METHODS

PORTFOLIO = ("focal", "resampled", "implicit")
"""What ``method="auto"`` tries: the two strongest baselines and ours."""


def methods_of(name: str) -> tuple[str, ...]:
    """The methods that a name asks for."""
    if name == "auto":
        return PORTFOLIO
    if name not in METHODS:
        known = ", ".join(map(repr, [*METHODS, "auto"]))
        raise ValueError(f"method must be one of {known}; got {name!r}.")
    return (name,)
