"""What one pass over a column shows, in memory that does not grow with the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint.tables.values import coded, is_text, number_of, numbers

MOST_VALUES = 10_000  # different texts remembered
FEW = 0.01
"""So small a share of texts in a column of numbers is a slip and no category."""
Mask = NDArray[np.bool_]


class Odd(NamedTuple):
    """A text among numbers."""

    row: int
    text: str


class Summary:
    """Statistics of a column, gathered chunk by chunk.

    Everything that a model learns from (mean, scale) comes from the training rows alone: the rows
    kept for calibration must not have a say in the scores they are judged by.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = self.missing = 0
        self.numeric = self.whole = self.increasing = True
        self.values: set[str] | None = set()
        self.mean = self.squares = self.largest = 0.0
        self.count = 0
        self.smallest = np.inf
        self.largest = self.last = -np.inf
        self.infinite: int | None = None
        self.odd: Odd | None = None

    def update(self, column: NDArray[Any], training: Mask, rows: Any) -> None:
        """Take in one chunk; ``rows`` are the numbers that errors call them by."""
        self.rows += len(column)
        found, wrong = numbers(column) if self.numeric else (np.empty(0), 0)
        if wrong is not None:
            if self.numeric:
                self.odd = self._odd_one(column, int(rows[wrong]), wrong)
            self.numeric = False
        else:
            self._numbers(found, training, rows)
        if is_text(column):
            self._texts(column)
        else:
            self.missing += int(np.isnan(column).sum())

    def _odd_one(self, column: NDArray[Any], row: int, place: int) -> Odd | None:
        """The first text, if nearly everything up to here (this chunk included) is a number."""
        there = [text for text in column if text is not None]
        texts = sum(number_of(text) is None for text in there)
        seen = self.rows - len(column) - self.missing + len(there)
        return Odd(row, str(column[place])) if texts <= FEW * seen else None

    @property
    def scale(self) -> float:
        """The deviation on the training rows (divided by n), 0 for a constant."""
        return float(np.sqrt(self.squares / self.count)) if self.count else 0.0

    @property
    def present(self) -> int:
        """How many rows have a value."""
        return self.rows - self.missing

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

    def _numbers(self, found: NDArray[np.float64], training: Mask, rows: Any) -> None:
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

    def _moments(self, values: NDArray[np.float64]) -> None:
        """Chan's update of mean and sum of squares: stable over any number of chunks."""
        if not len(values):
            return
        mean, count = float(values.mean()), len(values)
        total, gap = self.count + count, mean - self.mean
        self.squares += float(((values - mean) ** 2).sum())
        self.squares += gap * gap * self.count * count / total
        self.mean += gap * count / total
        self.count = total
