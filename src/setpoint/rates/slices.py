"""Slices of the data: the examples where every named column has its value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from setpoint._checks import is_number
from setpoint.rates.text import numeral

Value = str | int | float | bool
Where = tuple[tuple[str, Value], ...]
"""A slice of the data: pairs of column and value, all of which must match. Empty: everyone."""


def narrow(where: Where, more: Mapping[str, Value]) -> Where:
    """The part of the slice ``where`` that is also in ``more``."""
    if not more:
        raise TypeError('A slice needs a column and a value: `.on(group="a")`.')
    return ordered([*where, *more.items()])


def ordered(pairs: Iterable[tuple[str, Value]]) -> Where:
    """Checked pairs in the order of their columns, so that equal slices are equal."""
    kept: dict[str, Value] = {}
    for column, given in pairs:
        if not isinstance(column, str) or not _is_unicode(column):
            raise TypeError(f"The column of a slice is a string; got {column!r}.")
        value = _value(column, given)
        if column in kept and kept[column] != value:
            raise ValueError(
                f"Already on {column}={quote(kept[column])}; nobody is also {quote(value)}."
            )
        kept[column] = value
    return tuple(sorted(kept.items()))


def describe(where: Where) -> str:
    """``group="a" & site=3``."""
    return " & ".join(f"{column_name(column)}={quote(value)}" for column, value in where)


def quote(value: Value) -> str:
    """A value as the parser reads it back; characters that do not print are escaped."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=not value.isprintable())
    return repr(value) if isinstance(value, int) else numeral(value)


def column_name(column: str) -> str:
    """A column as the parser reads it back: in quotes unless it is a plain name."""
    return column if re.fullmatch(r"[^\W\d]\w*", column) else quote(column)


def _value(column: str, given: object) -> Value:
    """The plain string or number: a numpy scalar or an enum would compare equal but not hash so."""
    value = given.item() if hasattr(given, "item") else given
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and _is_unicode(value):
        return str.__str__(value)
    if isinstance(value, int) and abs(value) < 10**1000:  # python reads back 4300 digits, no more
        return int(value)
    if is_number(value):
        return float(value)
    raise TypeError(f"A slice is picked by a string or a number; got {column}={given!r}.")


def _is_unicode(text: str) -> bool:
    """Whether the text can be written to a file: half a character (a lone surrogate) cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
