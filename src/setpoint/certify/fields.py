"""The fields of a file that nobody vouches for: every one has a type, and is checked."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from typing import Any, TypeVar

LARGEST = 50_000_000
"""Characters of a file that are read at all."""
MOST = sys.float_info.max
R = TypeVar("R")


def json_object(text: object) -> dict[str, Any]:
    """The object in a JSON text; NaN and infinities are no JSON."""
    if not isinstance(text, str):
        raise TypeError(f"from_json reads a text; got {type(text).__name__}.")
    need(len(text) <= LARGEST, f"it is longer than {LARGEST:,} characters")
    try:
        body = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This is no certificate: it is not JSON ({error}).") from None
    if not isinstance(body, dict):
        raise ValueError("This is no certificate: the file holds no JSON object.")
    return body


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def need(right: bool, why: str) -> None:
    """Refuse the file unless it is right."""
    if not right:
        raise ValueError(f"This is no valid certificate: {why}.")


def list_of(body: dict[str, Any], name: str) -> list[Any]:
    """A field that must be a list."""
    need(isinstance(body.get(name), list), f"{name} is a list")
    found: list[Any] = body[name]
    return found


_NUMBER, _COUNT, _TEXT = (int, float), (int,), (str,)
_NOTHING = type(None)
_TYPES: dict[str, tuple[type, ...]] = {
    "group": (str, int, float, bool, _NOTHING),
    "threshold": (*_NUMBER, _NOTHING),
    "positives": (*_COUNT, _NOTHING),
    "true_alerts": (*_COUNT, _NOTHING),
    "examples": _COUNT,
    "alerts": _COUNT,
    "bound": _TEXT,
    "counts": _TEXT,
    "name": _TEXT,
    "measured": (*_NUMBER, _NOTHING),
    "proved": (*_NUMBER, _NOTHING),
    **dict.fromkeys(("value", "low", "high"), _NUMBER),
}


def record(cls: type[R], given: object, where: str) -> R:
    """An entry with exactly the fields of ``cls``, each of its type."""
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    need(isinstance(given, dict) and set(given) == set(names), f"{where} hold {', '.join(names)}")
    assert isinstance(given, dict)
    for name, value in given.items():
        allowed = _TYPES[name]
        right = isinstance(value, allowed) and (not isinstance(value, bool) or bool in allowed)
        if _COUNT[0] in allowed and float not in allowed and isinstance(value, int):
            right = right and value >= 0
        if float in allowed and right and value is not None and not isinstance(value, str):
            right = -MOST < value < MOST
        need(right, f"{name} in {where} cannot be {value!r:.60}")
    return cls(**given)
