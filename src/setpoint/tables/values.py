"""Texts as numbers: which are, which are not, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.source import Chunk, Source, TableError, quoted

Floats = NDArray[np.float64]


def is_text(column: NDArray[Any]) -> bool:
    """Whether a column of a chunk holds texts rather than numbers."""
    return column.dtype == object


def number_of(text: str) -> float | None:
    """The number a text shows, or None (``1_000`` is Python's spelling, and nobody else's)."""
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def numbers(column: NDArray[Any]) -> tuple[Floats, int | None]:
    """A column as floats, NaN where a value is missing, and the place of the first that is none."""
    if not is_text(column):
        return column, None
    found = np.empty(len(column))
    for place, text in enumerate(column):
        value = float("nan") if text is None else number_of(text)
        if value is None:
            return found, place
        found[place] = value
    return found, None


def need_numbers(source: Source, chunk: Chunk, name: str, what: str) -> Floats:
    """A column of finite numbers, or an error with the row of the first value that is none."""
    column = chunk.columns[name]
    found, wrong = numbers(column)
    if wrong is not None:
        problem = f"{quoted(column[wrong])} is not a number; {what} must be numbers."
        raise TableError(source.path, problem, row=chunk.rows[wrong], column=name)
    finite = np.isfinite(found)
    if not finite.all():
        wrong = int(np.argmin(finite))
        shown = "missing" if np.isnan(found[wrong]) else "infinite"
        problem = f"the value is {shown}; {what} must be finite numbers. Mend or remove the row."
        raise TableError(source.path, problem, row=chunk.rows[wrong], column=name)
    return found


def coded(column: NDArray[Any]) -> tuple[list[str | None], NDArray[np.int64]]:
    """The different values of a column as texts (None: missing), and which one each row has."""
    if not is_text(column):
        values, codes = np.unique(column, return_inverse=True)
        shown = [None if np.isnan(value) else written(float(value)) for value in values]
        return shown, codes.astype(np.int64)
    places: dict[str | None, int] = {}
    found = np.fromiter((places.setdefault(t, len(places)) for t in column), np.int64, len(column))
    return list(places), found


def written(value: float) -> str:
    """A number as short as it can be read back; 3.0 is ``3``."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def normal(text: str | None) -> str | None:
    """``1``, ``1.0`` and `` 1`` are one label."""
    if text is None:
        return None
    stripped = text.strip()
    value = number_of(stripped)
    return stripped if value is None or not np.isfinite(value) else written(value)


def need_groups(source: Source, chunk: Chunk, name: str) -> NDArray[Any]:
    """A column of group names, as texts; a missing one is an error with its row."""
    values, codes = coded(chunk.columns[name])
    if None in values:
        place = int(np.argmax(codes == values.index(None)))
        problem = "the value is missing; fill it in or remove the row."
        raise TableError(source.path, problem, row=chunk.rows[place], column=name)
    return np.array(values, dtype=str)[codes]


def shown(column: NDArray[Any]) -> list[str]:
    """A column as it is written into a csv file; a missing value is empty."""
    if is_text(column):
        return ["" if text is None else text for text in column]
    return ["" if np.isnan(value) else written(float(value)) for value in column]
