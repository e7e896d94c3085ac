"""Statistics of a column, gathered chunk by chunk, and what the column is used for."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural, quoted
from setpoint.tables.source import FloatColumn, coded, number_of, numbers

Role = Literal["number", "category", "drop"]
MOST_VALUES = 10_000  # different texts remembered
MOST_CATEGORIES = 200
_FEW_TEXTS = 0.01  # a share of texts in a column of numbers so small is a slip and no category
_FEW_ROWS = 50  # with fewer rows than this, "all different" says nothing
_ID = re.compile(r"(^|[_\W])(id|uuid|guid|index|rownum)$|[a-z]I[dD]$|^unnamed: 0$", re.IGNORECASE)


class Odd(NamedTuple):
    """A text among numbers."""

    row: int
    text: str


class ColumnSummary:
    """Statistics of a column, in memory that does not grow with the rows.

    Mean and scale come from the training rows alone: the rows kept for calibration must not
    influence the scores that they judge.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = self.missing = self.count = 0
        self.numeric = self.whole = self.increasing = True
        self.values: set[str] | None = set()
        self.mean = self.squares = 0.0
        self.smallest, self.largest, self.last = np.inf, -np.inf, -np.inf
        self.infinite: int | None = None
        self.odd: Odd | None = None

    @property
    def scale(self) -> float:
        """The deviation on the training rows (divided by n), 0 for a constant."""
        return float(np.sqrt(self.squares / self.count)) if self.count else 0.0

    @property
    def present(self) -> int:
        """How many rows have a value."""
        return self.rows - self.missing

    def update(
        self, column: NDArray[Any], training: NDArray[np.bool_], rows: Sequence[int]
    ) -> None:
        """Take in one chunk; ``rows`` are the row numbers for errors."""
        self.rows += len(column)
        found, wrong = numbers(column) if self.numeric else (np.empty(0), 0)
        if wrong is None:
            self._numbers(found, training, rows)
        else:
            if self.numeric:
                self.odd = self._odd_one(column, int(rows[wrong]), wrong)
            self.numeric = False
        if column.dtype == object:
            self._texts(column)
        else:
            self.missing += int(np.isnan(column).sum())

    def _odd_one(self, column: NDArray[Any], row: int, place: int) -> Odd | None:
        """The first text, if nearly everything up to here (this chunk included) is a number."""
        there = [text for text in column if text is not None]
        texts = sum(number_of(text) is None for text in there)
        seen = self.rows - len(column) - self.missing + len(there)
        return Odd(row, str(column[place])) if texts <= _FEW_TEXTS * seen else None

    def _texts(self, column: NDArray[Any]) -> None:
        if self.values is None:
            self.missing += sum(text is None for text in column)
            return
        values, codes = coded(column)
        if None in values:
            self.missing += int((codes == values.index(None)).sum())
        self.values.update(text for text in values if text is not None)
        if len(self.values) > MOST_VALUES:
            self.values = None

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
        self.increasing &= bool(values[0] > self.last and (np.diff(values) > 0).all())
        self.last = float(values[-1])
        self.smallest = min(self.smallest, float(values.min()))
        self.largest = max(self.largest, float(values.max()))
        self._moments(found[there & ~infinite & training])

    def _moments(self, values: FloatColumn) -> None:
        """Chan's update of mean and sum of squares: stable over any number of chunks."""
        if not len(values):
            return
        mean, count = float(values.mean()), len(values)
        total, gap = self.count + count, mean - self.mean
        self.squares += float(((values - mean) ** 2).sum())
        self.squares += gap * gap * self.count * count / total
        self.mean += gap * count / total
        self.count = total


def role_of(column: ColumnSummary, keep: Collection[str] = ()) -> tuple[Role, str | None]:
    """The role of a column, and a note for the report where there is something to say.

    Args:
        column: What a pass over the file found.
        keep: Columns that the user wants used although they look like identifiers.
    """
    name = quoted(column.name)
    if not column.present:
        return "drop", f"column {name} left out: it has no values."
    if _constant(column):
        return "drop", f"column {name} left out: it is constant."
    if column.name not in keep and _identifier(column):
        why = "it looks like an identifier (every row its own value)"
        return "drop", f"column {name} left out: {why}; --keep uses it anyway."
    filled = f" in {name} filled in and marked" if column.numeric else f" in {name}: a category"
    note = f"{plural(column.missing, 'missing value')}{filled}." if column.missing else None
    if column.numeric:
        return "number", note
    different = None if column.values is None else len(column.values)
    if different is None or different > MOST_CATEGORIES:
        many = f"more than {MOST_VALUES:,}" if different is None else f"{different:,}"
        return "drop", f"column {name} left out: {many} different texts; {MOST_CATEGORIES} at most."
    return "category", note


def _constant(column: ColumnSummary) -> bool:
    if column.missing:
        return False  # whether a value is there still tells rows apart
    if column.numeric:
        return column.smallest == column.largest or (column.scale == 0 and column.count > 0)
    return column.values is not None and len(column.values) <= 1


def _identifier(column: ColumnSummary) -> bool:
    if column.present < _FEW_ROWS:
        return False
    if column.numeric:
        counted = column.whole and column.largest - column.smallest + 1 >= column.present
        return counted and (column.increasing or bool(_ID.search(column.name)))
    if column.values is None:
        return bool(_ID.search(column.name))
    return len(column.values) > 0.9 * column.present
