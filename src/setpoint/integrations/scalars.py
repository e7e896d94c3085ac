"""The plain dict of a criterion as scalars, for TensorBoard and every other logger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from setpoint._checks import is_number

GOOD = ("held", "slack", "certified", "settled")


def scalars(stats: Mapping[str, Any], prefix: str = "setpoint/") -> dict[str, float]:
    """Numbers by name, from ``criterion.stats()``, ``barrier.report()`` or any such dict.

    Lists become ``name/0``, ``name/1``; what is None or infinite is left out; a status becomes
    ``status``: 1 if all is well, else 0. Words other than a status are left out.

    Args:
        stats: Plain values.
        prefix: Before every name.

    Example:
        >>> scalars({"status": "held", "threshold": [0.5, None], "note": "words"})
        {'setpoint/status': 1.0, 'setpoint/threshold/0': 0.5}
    """
    found: dict[str, float] = {}
    for name, value in stats.items():
        if name == "status":
            found[prefix + name] = float(str(value).startswith(GOOD))
        elif isinstance(value, Mapping):
            found |= scalars(value, f"{prefix}{name}/")
        elif isinstance(value, (list, tuple)):
            found |= scalars({str(i): each for i, each in enumerate(value)}, f"{prefix}{name}/")
        elif isinstance(value, bool) or is_number(value):
            found[prefix + name] = float(value)
    return found
