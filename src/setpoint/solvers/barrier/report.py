"""What the barrier did, in numbers for a logger and in words for a reader."""

from __future__ import annotations

from typing import Any


class Report(dict[str, Any]):
    """A plain dict that prints as a few lines."""

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{key:<{width}}  {_shown(value)}" for key, value in self.items())


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return str(value)
