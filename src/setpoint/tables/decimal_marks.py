"""Whether 1.270 is 1.27 or 1270: how the numbers of a column are written, by the whole file.

A mark before exactly three digits is a decimal mark in one country and separates thousands in
another. Another value of the column that can be read in one way only (``12,5``, ``1.234.567``,
``0.270``) decides, wherever in the file it stands. Without one, two signs are looked at:

* the file: the decimal mark of its other columns, else a decimal comma if semicolons separate the
  values and a decimal point otherwise; columns that differ are no sign;
* the column: whole numbers below 1000 only beside the marks show that the marks are of thousands,
  larger ones without a mark that they are decimal marks.

If these agree, the column is read so, and a note says it; otherwise a person must say it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import quoted
from setpoint.tables.table import Chunk, TableError, TableSource
from setpoint.tables.values import FORMATS, PLAIN, NumberFormat, find_format, number_text

DECIMALS = {"point": ".", "comma": ","}
"""What people call the decimal marks, and the marks."""
_WORDS = {mark: word for word, mark in DECIMALS.items()}
_OTHER = {".": ",", ",": "."}
_MOST_LOOKED_AT = 1000  # different texts, for an example


class Reading(NamedTuple):
    """How some values of a column may be read.

    Attributes:
        point: Their format if marks that do not tell are decimal points; None: no numbers.
        comma: Their format if such marks are decimal commas.
        unclear: A text that is another number in the second format, if there is one.
        marked: Whether there are points or commas.
    """

    point: NumberFormat | None
    comma: NumberFormat | None
    unclear: str | None
    marked: bool

    def format(self, decimal: str) -> NumberFormat | None:
        """The format, given the decimal mark."""
        return self.comma if decimal == "," else self.point

    def number(self, decimal: str) -> str:
        """The unclear text as a number, given the decimal mark."""
        known = self.format(decimal) or PLAIN
        value = known.number(self.unclear or "")
        return "" if value is None else number_text(value)


def read_values(column: NDArray[Any]) -> Reading:
    """How the values of a column may be read, by themselves.

    Examples:
        >>> one, two = np.array(["1.270", "5"], object), np.array(["1.270", "12,5"], object)
        >>> read_values(one).unclear, read_values(two).unclear, read_values(two).comma.name
        ('1.270', None, 'a number with decimal comma')
    """
    point = find_format(column, ".")
    if point is None or column.dtype != object:
        return Reading(point, point, None, column.dtype != object)
    marked = [text for text in dict.fromkeys(column) if _is_marked(text)]
    comma = find_format(column, ",") if marked else point
    unclear = None
    if comma is not None and comma is not point:
        unclear = next((t for t in marked if point.number(t) != comma.number(t)), None)
    return Reading(point, point if unclear is None else comma, unclear, bool(marked))


def _is_marked(text: str | None) -> bool:
    return text is not None and ("." in text or "," in text)


def column_format(
    source: TableSource, name: str, chunks: Iterable[Chunk] | None = None
) -> tuple[NumberFormat | None, list[str]]:
    """How the numbers of a column are written (None: they are none), and a note if unusual.

    Args:
        source: The table.
        name: The column.
        chunks: All chunks, if they are in memory. By default as many are read as it takes to know,
            most often one; a rank, which reads a part of the file, asks the whole.

    Raises:
        TableError: Nothing tells whether a mark is a decimal mark.
    """
    found: Reading | None = None
    small = large = False
    for chunk in source.between(0, None).chunks([name]) if chunks is None else chunks:
        column = chunk.column(name)
        if chunk.absent(name).all():
            continue
        here = read_values(column)
        if (here.unclear is None and here.marked) or here.point is None:
            return here.point, format_note(name, here.point, column)
        if found is None or (found.unclear is None and here.unclear is not None):
            found, first = here, column
        sizes = list(_unmarked_sizes(column, here.point))
        small, large = small or any(s < 1000 for s in sizes), large or any(s >= 1000 for s in sizes)
    if found is None:
        return None, []
    if found.unclear is None:
        return found.point, format_note(name, found.point, first)
    if source.decimal is not None:
        known = found.format(source.decimal)
        return known, format_note(name, known, first)
    return _decided(source, name, found, large if small or large else None)


def _unmarked_sizes(column: NDArray[Any], known: NumberFormat) -> Iterator[float]:
    """The sizes of the numbers that have neither a point nor a comma."""
    for text in dict.fromkeys(column):
        if text is not None and not _is_marked(text):
            yield abs(known.number(text) or 0.0)


def _decided(
    source: TableSource, name: str, found: Reading, unmarked_thousands: bool | None
) -> tuple[NumberFormat | None, list[str]]:
    """The format of a column whose values do not tell, by the signs around them."""
    assert found.unclear is not None
    mark = next(sign for sign in found.unclear if sign in ".,")
    signs = [*_marks_of_file(source)]
    if unmarked_thousands is not None:
        of_column = mark if unmarked_thousands else _OTHER[mark]
        signs.append((of_column, "the whole numbers beside it"))
    if len({decimal for decimal, _ in signs}) != 1:
        how = [f"{found.number(decimal)} by {why}" for decimal, why in signs]
        problem = f"{quoted(found.unclear)} is {' and '.join(how)}: add --decimal point or "
        raise TableError(source.path, f"{problem}--decimal comma.", column=name)
    decimal, other = signs[0][0], _OTHER[signs[0][0]]
    read = f"column {quoted(name)}: {quoted(found.unclear)} read as {found.number(decimal)}, by "
    read += " and ".join(why for _, why in signs)
    note = f"{read}; for {found.number(other)} add --decimal {_WORDS[other]}."
    return found.format(decimal), [note]


def _marks_of_file(source: TableSource) -> list[tuple[str, str]]:
    """The decimal marks of a file by its first rows, and what tells them; found once."""
    if source.marks is None:
        names = [name for name in source.names if name not in source.unreadable]
        chunk = next(iter(source.between(0, None).chunks(names)))
        seen = [read_values(chunk.column(name)) for name in names]
        clear = {one.point.decimal for one in seen if one.point and one.marked and not one.unclear}
        source.marks = [(mark, "other columns") for mark in sorted(clear - {""})]
        if not source.marks:
            by = (",", "the semicolons between values"), (".", "default")
            source.marks = [by[source.delimiter != ";"]]
    return source.marks


def check_marks(
    source: TableSource, name: str, column: NDArray[Any], written: NumberFormat
) -> None:
    """TableError if marks do not tell, and mean one thing in this file and another in ``written``.

    Args:
        source: The file.
        name: A column of it.
        column: Some of its values.
        written: The format in which the column was written in another file.
    """
    if column.dtype != object:  # numbers have no marks
        return
    first = np.array([next((text for text in column if _is_marked(text)), None)], object)
    if read_values(first).unclear is None:
        return
    text = read_values(column).unclear
    known = None if text is None else column_format(source, name)[0]
    if text is None or known is None or known.number(text) == written.number(text):
        return
    here, there = (number_text(f.number(text) or 0.0) for f in (known, written))
    problem = f"{quoted(text)} is {here} by this file, and {there} as in training: write one of "
    problem += "them, or say what the mark is: --decimal point, --decimal comma."
    raise TableError(source.path, problem, column=name)


def format_note(name: str, known: NumberFormat | None, column: NDArray[Any]) -> list[str]:
    """A sentence on the format of a column, with a telling example; none for plain numbers."""
    if known is None or known is PLAIN or column.dtype != object:
        return []
    return [f"column {quoted(name)}: {quoted(_telling(known, column))} read as {known.name}."]


def _telling(known: NumberFormat, column: NDArray[Any]) -> str:
    """A value that few formats read: one with marks, not a plain 12."""
    texts = islice(dict.fromkeys(text for text in column if text is not None), _MOST_LOOKED_AT)
    mine: list[str] = [text for text in texts if known.number(text) is not None]
    return min(mine, key=lambda text: sum(f.number(text) is not None for f in FORMATS))
