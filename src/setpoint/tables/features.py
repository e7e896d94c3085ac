"""From the columns of a file to the features of a model, and the same again for new files.

Numbers are standardised; dates and times become days since 1970-01-01 and are numbers; texts of few
different values become one feature per value. Other columns are left out, and a note says why.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import is_number, plural, quoted, quoted_list
from setpoint.tables.decimal_marks import check_marks, column_format, format_note, read_values
from setpoint.tables.table import Chunk, TableError, TableSource
from setpoint.tables.values import (
    DATE_FORMATS,
    FORMAT_BY_NAME,
    PLAIN,
    FloatColumn,
    NumberFormat,
    coded,
    missing,
    number_text,
    numbers,
)

Features = NDArray[np.float32]
MOST_VALUES = 10_000  # different texts remembered
MOST_CATEGORIES = 200
_FEW_ROWS = 50  # with fewer rows than this, "all different" says nothing
_ID = re.compile(r"(^|[_\W])(id|uuid|guid|index|rownum)$|[a-z]I[dD]$|^unnamed: 0$", re.IGNORECASE)


class Odd(NamedTuple):
    """A text among numbers."""

    row: int
    text: str


class ColumnSummary:
    """Statistics of a column, gathered chunk by chunk, in memory that does not grow with the rows.

    Mean and scale come from the training rows alone: the rows kept for calibration must not
    influence the scores that they judge.
    """

    def __init__(self, name: str, source: TableSource) -> None:
        self.name, self._source = name, source
        self.rows = self.missing = self.count = 0
        self.format: NumberFormat | None = None
        self._sure = False
        self.numeric = self.whole = self.increasing = True
        self.values: set[str] | None = set()
        self.unit, self._mean, self._squares = 0.0, 0.0, 0.0
        self.smallest, self.largest, self.last = np.inf, -np.inf, -np.inf
        self.infinite: int | None = None
        self.odd: Odd | None = None
        self.notes: list[str] = []

    @property
    def mean(self) -> float:
        """The mean of the training rows."""
        return self._mean * self.unit

    @property
    def scale(self) -> float:
        """The deviation on the training rows (divided by n), 0 for a constant."""
        return float(np.sqrt(self._squares / self.count)) * self.unit if self.count else 0.0

    @property
    def present(self) -> int:
        """How many rows have a value."""
        return self.rows - self.missing

    def update(
        self, column: NDArray[Any], training: NDArray[np.bool_], rows: Sequence[int]
    ) -> None:
        """Take in one chunk; ``rows`` are the row numbers for errors."""
        self.rows += len(column)
        self.missing += int(missing(column).sum())
        if self.numeric and not self._sure and not missing(column).all():
            self._find_format(column)
        if self.numeric:
            found, wrong = numbers(column, self.format or PLAIN)
            if wrong is None:
                self._numbers(found, training, rows)
            else:
                self.numeric, self.odd = False, Odd(int(rows[wrong]), str(column[wrong]))
        if column.dtype == object and self.values is not None:
            self.values.update(text for text in coded(column)[0] if text is not None)
            if len(self.values) > MOST_VALUES:
                self.values = None

    def _find_format(self, column: NDArray[Any]) -> None:
        """Take the format of these values; if they do not tell it, that of the whole file."""
        here = read_values(column)
        self._sure = here.marked or here.point is None
        if here.unclear is not None:
            self.format, self.notes = column_format(self._source, self.name)
        elif self.format is None or here.point is not PLAIN or here.marked:
            self.format, self.notes = here.point, format_note(self.name, here.point, column)
        self.numeric = self.format is not None

    def _numbers(
        self, found: FloatColumn, training: NDArray[np.bool_], rows: Sequence[int]
    ) -> None:
        there = ~np.isnan(found)
        infinite = np.isinf(found)
        if infinite.any() and self.infinite is None:
            self.infinite = int(rows[int(np.argmax(infinite))])
        values = found[there & ~infinite]
        if not len(values):
            return
        self.whole &= bool((values == np.floor(values)).all())
        self.increasing &= bool(values[0] > self.last and (values[1:] > values[:-1]).all())
        self.last = float(values[-1])
        self.smallest = min(self.smallest, float(values.min()))
        self.largest = max(self.largest, float(values.max()))
        self._moments(found[there & ~infinite & training])

    def _moments(self, values: FloatColumn) -> None:
        """Chan's update of mean and sum of squares: stable over any number of chunks.

        In units of a power of two near the first values, so that squares of 1e200 do not overflow.
        """
        if not len(values):
            return
        if self.unit == 0.0:
            self.unit = float(np.ldexp(0.5, np.frexp(np.abs(values).max())[1]))
        with np.errstate(over="ignore", invalid="ignore"):
            values = values / self.unit
            mean, count = float(values.mean()), len(values)
            total, gap = self.count + count, mean - self._mean
            self._squares += float(((values - mean) ** 2).sum())
            self._squares += gap * gap * self.count * count / total
        self._mean += gap * count / total
        self.count = total

    def check(self, source: TableSource, keep: Collection[str]) -> None:
        """TableError for an infinite value, or a text among numbers."""
        if self.numeric and self.infinite is not None:
            problem = "the value is infinite; mend or remove the row, or --drop the column."
            raise TableError(source.path, problem, row=self.infinite, column=self.name)
        if self.numeric and not np.isfinite(self.scale):
            most = max(abs(self.smallest), abs(self.largest))
            problem = f"the largest value, {most:g}, is too far from the others for a model; mend "
            raise TableError(source.path, f"{problem}it, or --drop the column.", column=self.name)
        if self.odd is not None and self.name not in keep:
            problem = f"{quoted(self.odd.text)} is no number, and nearly all other values are; "
            problem += "mend it or leave it empty (--keep takes the column as text)."
            raise TableError(source.path, problem, row=self.odd.row, column=self.name)

    def encoded(self, keep: Collection[str] = ()) -> tuple[Number | Category | None, list[str]]:
        """How the column is encoded (None: not at all), and notes on what was done.

        Args:
            keep: Columns that the user wants used although they look like identifiers.
        """
        why = self._useless(keep)
        if why is not None:
            return None, [f"column {quoted(self.name)} left out: {why}"]
        kind = "filled in and marked" if self.numeric else "a category"
        where = f"in {quoted(self.name)}{' ' if self.numeric else ': '}{kind}."
        notes = [f"{plural(self.missing, 'missing value')} {where}"] if self.missing else []
        if self.numeric:
            written = (self.format or PLAIN).name
            number = Number(self.name, self.mean, self.scale, self.missing > 0, written)
            return number, notes + self.notes
        values: list[str | None] = [*sorted(self.values or ())]
        return Category(self.name, tuple([*values, None] if self.missing else values)), notes

    def _useless(self, keep: Collection[str]) -> str | None:
        """Why nothing can be learned from the column, if so."""
        if not self.present:
            return "it has no values."
        if self._constant():
            return "it is constant."
        if self.name not in keep and self._identifier():
            return "it looks like an identifier (every row its own value); --keep uses it anyway."
        different = None if self.values is None else len(self.values)
        if not self.numeric and (different is None or different > MOST_CATEGORIES):
            many = f"more than {MOST_VALUES:,}" if different is None else f"{different:,}"
            return f"{many} different texts{self._example()}; {MOST_CATEGORIES} at most."
        return None

    def _example(self) -> str:
        return f", such as {quoted(min(self.values))}" if self.values else ""

    def _constant(self) -> bool:
        if self.missing:
            return False  # whether a value is there still tells rows apart
        if self.numeric:
            return self.smallest == self.largest or (self.scale == 0 and self.count > 0)
        return self.values is not None and len(self.values) <= 1

    def _identifier(self) -> bool:
        if self.present < _FEW_ROWS or self.format in DATE_FORMATS:
            return False
        if self.numeric:
            counted = self.whole and self.largest - self.smallest + 1 >= self.present
            return counted and (self.increasing or bool(_ID.search(self.name)))
        if self.values is None:
            return bool(_ID.search(self.name))
        return len(self.values) > 0.9 * self.present


@dataclass(frozen=True)
class Number:
    """A column of numbers, standardised; a missing value becomes the mean and is marked."""

    name: str
    mean: float
    scale: float
    missing: bool
    written: str = PLAIN.name

    @property
    def width(self) -> int:
        """How many features it makes."""
        return 2 if self.missing else 1

    def encode(self, chunk: Chunk, out: Features, source: TableSource) -> None:
        """Write the features of these rows of ``source`` into ``out`` [n, width]."""
        column, known = chunk.column(self.name), FORMAT_BY_NAME[self.written]
        check_marks(source, self.name, column, known)
        found, wrong = numbers(column, known)
        if wrong is None:
            absent = np.isnan(found)
            part = 0.5 if self.scale > 1 else 1.0  # two numbers of 1e308 have no difference
            with np.errstate(over="ignore"):
                standard = (found * part - self.mean * part) / ((self.scale or 1.0) * part)
            far = np.abs(standard) > np.finfo(np.float32).max
            wrong = int(np.argmax(far)) if far.any() else None
        if wrong is not None:
            raise chunk.error(self._unfit(column[wrong : wrong + 1]), wrong, self.name)
        if absent.any() and not self.missing:
            problem = "the value is missing, and in training none was; fill it in."
            raise chunk.error(problem, int(np.argmax(absent)), self.name)
        out[:, 0] = np.where(absent, 0.0, standard)
        if self.missing:
            out[:, 1] = absent

    def _unfit(self, value: NDArray[Any]) -> str:
        """What is wrong with a column of one value that is no feature."""
        shown = quoted(value[0] if value.dtype == object else number_text(float(value[0])))
        found, odd = numbers(value, FORMAT_BY_NAME[self.written])
        if odd is None and np.isfinite(found[0]):
            usual = f"{self.mean:.3g} on average, with a deviation of {self.scale:.3g}"
            return f"{shown} is too far from the values in training ({usual}); mend it."
        kind = "" if self.written == PLAIN.name else f" ({self.written})"
        return f"{shown} is not a finite number{kind}, as this column had in training."


@dataclass(frozen=True)
class Category:
    """A column of texts: one feature per value; None stands for a missing one."""

    name: str
    values: tuple[str | None, ...]

    @property
    def width(self) -> int:
        """How many features it makes."""
        return len(self.values)

    def encode(self, chunk: Chunk, out: Features, source: TableSource) -> None:
        """See :class:`Number`."""
        values, codes = coded(chunk.column(self.name))
        places = {value: place for place, value in enumerate(self.values)}
        found = np.array([places.get(value, -1) for value in values], dtype=np.int64)[codes]
        if found.min(initial=0) < 0:
            row = int(np.argmin(found))
            new = values[codes[row]]
            shown = "a missing value" if new is None else f"the category {quoted(new)}"
            known = quoted_list([v for v in self.values if v is not None], 5)
            problem = f"{shown} did not occur in training; known: {known}. {self._way_out(new)}"
            raise chunk.error(problem, row, self.name)
        out[:] = 0
        out[np.arange(len(found)), found] = 1

    def _way_out(self, new: str | None) -> str:
        """What to do about rows with a value that the model does not know."""
        empty = "empty the cell (empty ones did occur), " if new and None in self.values else ""
        return f"Train with such rows, {empty}or leave them out."


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

    def encode(self, chunk: Chunk, source: TableSource) -> Features:
        """The features of these rows of ``source``, [n, width]."""
        out = np.empty((len(chunk), self.width), dtype=np.float32)
        start = 0
        for column in self.columns:
            column.encode(chunk, out[:, start : start + column.width], source)
            start += column.width
        return out

    def chunks(
        self, source: TableSource, also: Iterable[str] = ()
    ) -> Iterator[tuple[Chunk, Features]]:
        """The chunks of a table with the features of each; ``also`` names further columns.

        Raises:
            TableError: A column of training is missing, or a value does not fit.
        """
        self.check(source)
        for chunk in source.chunks([*self.names, *also]):
            yield chunk, self.encode(chunk, source)

    def check(self, source: TableSource) -> None:
        """TableError if a table lacks a column of training."""
        absent = [name for name in self.names if name not in source.names]
        if absent:
            problem = f"columns of training are missing: {quoted_list(absent)}; add them."
            raise TableError(source.path, problem)

    def to_json(self) -> list[dict[str, Any]]:
        """Plain data; :func:`read_encoder` reads it back."""
        kinds = {Number: "number", Category: "category"}
        return [{"name": c.name, "kind": kinds[type(c)], **asdict(c)} for c in self.columns]


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
    if entry.get("kind") == "number" and fields - {"written"} == {"mean", "scale", "missing"}:
        mean, scale, absent = entry["mean"], entry["scale"], entry["missing"]
        written = entry.get("written", PLAIN.name)
        known = isinstance(written, str) and written in FORMAT_BY_NAME
        if is_number(mean) and is_number(scale) and scale >= 0 and type(absent) is bool and known:
            return Number(entry["name"], float(mean), float(scale), absent, written)
    if entry.get("kind") == "category" and fields == {"values"}:
        values = entry["values"]
        texts = isinstance(values, list) and all(v is None or type(v) is str for v in values)
        if texts and values and len(set(values)) == len(values):
            return Category(entry["name"], tuple(values))
    raise ValueError(f"columns: entry {place} is not a number or category column.")
