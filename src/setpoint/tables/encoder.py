"""From the columns of a file to the features of a model, and the same again for new files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import is_number, quoted, quoted_list
from setpoint.tables.columns import ColumnSummary
from setpoint.tables.source import Chunk, TableError, TableSource, coded, number_text, numbers

Features = NDArray[np.float32]


@dataclass(frozen=True)
class Number:
    """A column of numbers, standardised; a missing value becomes the mean and is marked."""

    name: str
    mean: float
    scale: float
    missing: bool

    @property
    def width(self) -> int:
        """How many features it makes."""
        return 2 if self.missing else 1

    def encode(self, chunk: Chunk, out: Features) -> None:
        """Write the features of these rows into ``out`` [n, width]."""
        column = chunk.columns[self.name]
        found, wrong = numbers(column)
        if wrong is None and np.isinf(found).any():
            wrong = int(np.argmax(np.isinf(found)))
        if wrong is not None:
            shown = column[wrong] if column.dtype == object else number_text(float(column[wrong]))
            problem = f"{quoted(shown)} is not a finite number, as this column had in training."
            raise chunk.error(problem, wrong, self.name)
        absent = np.isnan(found)
        if absent.any() and not self.missing:
            problem = "the value is missing, and in training none was; fill it in."
            raise chunk.error(problem, int(np.argmax(absent)), self.name)
        out[:, 0] = np.where(absent, 0.0, (found - self.mean) / (self.scale or 1.0))
        if self.missing:
            out[:, 1] = absent


@dataclass(frozen=True)
class Category:
    """A column of texts: one feature per value; None stands for a missing one."""

    name: str
    values: tuple[str | None, ...]

    @property
    def width(self) -> int:
        """How many features it makes."""
        return len(self.values)

    def encode(self, chunk: Chunk, out: Features) -> None:
        """Write the features of these rows into ``out`` [n, width]."""
        values, codes = coded(chunk.columns[self.name])
        places = {value: place for place, value in enumerate(self.values)}
        found = np.array([places.get(value, -1) for value in values], dtype=np.int64)[codes]
        if found.min(initial=0) < 0:
            row = int(np.argmin(found))
            new = values[codes[row]]
            shown = "a missing value" if new is None else f"the category {quoted(new)}"
            known = quoted_list([v for v in self.values if v is not None], 5)
            problem = f"{shown} did not occur in training; known: {known}."
            raise chunk.error(problem, row, self.name)
        out[:] = 0
        out[np.arange(len(found)), found] = 1


@dataclass(frozen=True)
class Encoder:
    """The columns of a model's input, in order; it is stored with the model."""

    columns: tuple[Number | Category, ...]

    @property
    def width(self) -> int:
        """How many features a row has."""
        return sum(column.width for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns it needs, by name."""
        return tuple(column.name for column in self.columns)

    def encode(self, chunk: Chunk) -> Features:
        """The features of these rows, [n, width]."""
        out = np.empty((len(chunk), self.width), dtype=np.float32)
        start = 0
        for column in self.columns:
            column.encode(chunk, out[:, start : start + column.width])
            start += column.width
        return out

    def chunks(
        self, source: TableSource, also: Iterable[str] = ()
    ) -> Iterator[tuple[Chunk, Features]]:
        """The chunks of a table with the features of each; ``also`` names further columns.

        Raises:
            TableError: A column of training is missing, or a value does not fit.
        """
        missing = [name for name in self.names if name not in source.names]
        if missing:
            problem = f"columns of training are missing: {quoted_list(missing)}; add them."
            raise TableError(source.path, problem)
        for chunk in source.chunks(dict.fromkeys([*self.names, *also])):
            yield chunk, self.encode(chunk)

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data; :func:`read_encoder` reads it back."""
        kinds = {Number: "number", Category: "category"}
        return [{"name": c.name, "kind": kinds[type(c)], **asdict(c)} for c in self.columns]


def encoded_column(summary: ColumnSummary, role: str) -> Number | Category:
    """How a column with this role is encoded."""
    if role == "number":
        return Number(summary.name, summary.mean, summary.scale, summary.missing > 0)
    values: list[str | None] = [*sorted(summary.values or ())]
    return Category(summary.name, tuple([*values, None] if summary.missing else values))


def read_encoder(given: Any) -> Encoder:
    """The encoder that :meth:`Encoder.to_json` wrote, every field checked.

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
