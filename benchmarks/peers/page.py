"""Tables go into docs/peers.md, each between the marks of its name."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

PAGE = Path(__file__).parents[2] / "docs" / "peers.md"
IMAGES = PAGE.parent / "images"


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    head = list(head)
    rows = [head, ["---"] * len(head), *map(list, lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def spread(values: Any) -> str:
    """Mean and standard error."""
    values = np.asarray(values, float)
    if len(values) < 2:
        return f"{values.mean():.2f} (1)" if len(values) else ""
    return f"{values.mean():.2f} ± {values.std(ddof=1) / len(values) ** 0.5:.2f}"


def gain(values: Any) -> str:
    """A paired difference: mean and standard error, bold where it is beyond two of them."""
    values = np.asarray(values, float)
    if len(values) < 2:
        return f"{values.mean():+.2f} (1)" if len(values) else ""
    error = values.std(ddof=1) / len(values) ** 0.5
    shown = f"{values.mean():+.2f} ± {error:.2f}"
    return f"**{shown}**" if abs(values.mean()) > 2 * error else shown
