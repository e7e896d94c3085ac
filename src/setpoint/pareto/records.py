"""Points and fronts as JSON, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from setpoint.pareto.points import Point

FORMAT = "setpoint front 1"


def to_plain(point: Point) -> dict[str, Any]:
    """A point as JSON; a measure that is no finite number is null."""
    plain = asdict(point)
    measures = point.measures.items()
    plain["measures"] = {name: x if math.isfinite(x) else None for name, x in measures}
    return plain


def from_plain(plain: Mapping[str, Any]) -> Point:
    """And back."""
    measures = plain["measures"].items()
    numbers = {name: math.nan if x is None else float(x) for name, x in measures}
    return Point(**{**plain, "measures": numbers})


def write_json(content: Mapping[str, Any]) -> str:
    """A front's content, with the format it is written in."""
    return json.dumps({"format": FORMAT, **content}, indent=2, ensure_ascii=False, allow_nan=False)


def read_json(text: str) -> tuple[tuple[str, str], str, tuple[Point, ...], dict[str, Any]]:
    """Names, method, points and recipe of a front.

    Raises:
        ValueError: This is something else.
    """
    try:
        content = json.loads(text)
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}")
        plain = [dict(point) for point in content["points"]]
        for point in plain:
            del point["gap"], point["non_dominated"]
        first, second = content["names"]
        points = tuple(map(from_plain, plain))
        return (first, second), content["method"], points, dict(content["recipe"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"This is not a front that setpoint wrote ({error}).") from None
