"""An encoder read back from JSON that nobody vouches for: every field is checked."""

from __future__ import annotations

from typing import Any

from setpoint._checks import is_number
from setpoint.tables.encoder import Category, Encoder, Number


def read_encoder(given: Any) -> Encoder:
    """The encoder that :meth:`Encoder.to_json` wrote.

    Raises:
        ValueError: It is not one; the message says which column.
    """
    if not isinstance(given, list) or not given:
        raise ValueError("columns must be a list that is not empty.")
    columns = tuple(_column(entry, place) for place, entry in enumerate(given, start=1))
    if len({column.name for column in columns}) < len(columns):
        raise ValueError("columns has the same name twice.")
    return Encoder(columns)


def _column(entry: Any, place: int) -> Number | Category:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise ValueError(f"columns: entry {place} has no name.")
    fields = set(entry) - {"name", "kind"}
    if entry.get("kind") == "number" and fields == {"mean", "scale", "missing"}:
        mean, scale, missing = entry["mean"], entry["scale"], entry["missing"]
        if is_number(mean) and is_number(scale) and scale >= 0 and isinstance(missing, bool):
            return Number(entry["name"], float(mean), float(scale), missing)
    if entry.get("kind") == "category" and fields == {"values"}:
        values = entry["values"]
        texts = isinstance(values, list) and all(v is None or type(v) is str for v in values)
        if texts and values and len(set(values)) == len(values):
            return Category(entry["name"], tuple(values))
    raise ValueError(f"columns: entry {place} is not a number or category column.")
