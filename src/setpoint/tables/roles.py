"""What each column is good for: a number, a category, or nothing, with the reason."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from setpoint._checks import plural
from setpoint.tables.errors import quoted
from setpoint.tables.summary import Summary

Role = Literal["number", "category", "drop"]
MOST_CATEGORIES = 200
FEW_ROWS = 50  # with fewer rows than this, "all different" says nothing
_ID = re.compile(r"(^|[_\W])(id|uuid|guid|index|rownum)$|[a-z]I[dD]$|^unnamed: 0$", re.IGNORECASE)


def role_of(column: Summary, keep: Collection[str] = ()) -> tuple[Role, str | None]:
    """The role of a column, and a note for the report where there is something to say.

    Args:
        column: What a pass over the file showed.
        keep: Columns the user wants used although they look like identifiers.
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
    different = len(column.values) if column.values is not None else None
    if different is None or different > MOST_CATEGORIES:
        many = "more than 10,000" if different is None else f"{different:,}"
        return "drop", f"column {name} left out: {many} different texts; {MOST_CATEGORIES} at most."
    return "category", note


def _constant(column: Summary) -> bool:
    if column.missing:
        return False  # whether a value is there still tells rows apart
    if column.numeric:
        return column.smallest == column.largest or (column.scale == 0 and column.count > 0)
    return column.values is not None and len(column.values) <= 1


def _identifier(column: Summary) -> bool:
    if column.present < FEW_ROWS:
        return False
    if column.numeric:
        counted = column.whole and column.largest - column.smallest + 1 >= column.present
        return counted and (column.increasing or bool(_ID.search(column.name)))
    if column.values is None:
        return bool(_ID.search(column.name))
    return len(column.values) > 0.9 * column.present
