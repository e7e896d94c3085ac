"""How a rate is narrowed: to a slice of the data, or to a set of classes.

Slices and classes have a normal form, so that equal ones are equal, and a text that reads back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from setpoint._checks import is_number

Value = str | int | float | bool
Where = tuple[tuple[str, Value], ...]
"""A slice of the data: pairs of column and value, all of which must match. Empty: all examples."""
ClassName = str | int
ClassSet = tuple[ClassName, ...]
"""The classes that a rate is of, each by its name or by its number (the column of the scores)."""


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
        value = _plain_value(column, given)
        if column in kept and kept[column] != value:
            raise ValueError(
                f"Already on {column}={quote(kept[column])}; no example is also {quote(value)}."
            )
        kept[column] = value
    return tuple(sorted(kept.items()))


def class_names(given: tuple[object, ...]) -> ClassSet:
    """Checked names in a fixed order, so that equal sets are equal."""
    names: dict[ClassName, None] = {}
    for one in given:
        ((_, name),) = ordered([("class", one)])  # type: ignore[list-item]
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            raise TypeError(f"A class is called by its name or its number; got {one!r}.")
        if isinstance(name, int) and not 0 <= name < 10**9:
            raise ValueError(f"The number of a class is a column of the scores; got {name}.")
        names[name] = None
    if not names:
        raise TypeError('A rate of a class needs the class: recall.of("cat").')
    return tuple(sorted(names, key=lambda name: (isinstance(name, str), name)))


def describe_slice(where: Where) -> str:
    """``group="a" & site=3``."""
    return " & ".join(f"{column_name(column)}={quote(value)}" for column, value in where)


def whom(where: Where, classes: ClassSet = ()) -> str:
    """`` of "cat" on group="a"``: the classes and the slice in words, if there are any."""
    text = f" of {describe_classes(classes)}" if classes else ""
    return f"{text} on {describe_slice(where)}" if where else text


def describe_classes(classes: ClassSet) -> str:
    """``"cat" or "dog"``."""
    return " or ".join(map(quote, classes))


def quote(value: Value) -> str:
    """A value as the parser reads it back; characters that do not print are escaped."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=not value.isprintable())
    return repr(value) if isinstance(value, int) else numeral(value)


def column_name(column: str) -> str:
    """A column as the parser reads it back: in quotes unless it is a plain name."""
    return column if re.fullmatch(r"[^\W\d]\w*", column) else quote(column)


def numeral(x: float) -> str:
    """The shortest text that reads back as exactly ``x``: ``0.01``, ``1``, ``1e-05``."""
    return repr(float(x)).removesuffix(".0")


def _plain_value(column: str, given: object) -> Value:
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
