"""The values of a column: numbers as people write them, dates, and texts compared exactly.

A column is an array of floats (NaN where a value is missing) or of texts (None where one is).
A column of texts that all are numbers in one format is a column of numbers. The format is found in
the first rows that have values; a later value in another format is an error, not a guess.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatColumn = NDArray[np.float64]
Codes = NDArray[np.int64]
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
"""Texts that mean "no value", in any capitals."""
_CURRENCY = r"(?:[$€£¥₹]|[A-Z]{3})"
_SPACES = " \u00a0\u202f'\u2019"  # that separate thousands in some countries
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DATE = re.compile(r"(\d{4})([-/])(\d{2})\2(\d{2})([ T].*)?")
_CLOCK = re.compile(r"[ T](\d{1,2}):(\d\d.*?)(?: ?([ap])\.?m\.?)?", re.IGNORECASE)
_YEAR_LAST = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})([ T].*)?")
_MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
_MONTH = (
    "(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_NAMED_MONTH = re.compile(
    rf"(?:(\d{{1,2}})[ -]{_MONTH}|{_MONTH} (\d{{1,2}})),?[ -](\d{{4}})([ T].*)?", re.IGNORECASE
)


def text_column(values: Sequence[str]) -> NDArray[Any]:
    """The cells of a csv column; None where a cell says that there is no value."""
    column = np.empty(len(values), dtype=object)
    column[:] = [None if value.strip().lower() in MISSING else value for value in values]
    return column


def number_of(text: str) -> float | None:
    """The number that a text shows, or None (``1_000`` is a number for Python alone)."""
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def days_of(text: str) -> float | None:
    """Days since 1970-01-01 (UTC) of an ISO date or time; None for another text.

    Examples:
        >>> days_of("1970-01-02"), days_of("1970-01-01T06:00:00Z"), days_of("tomorrow")
        (1.0, 0.25, None)
        >>> days_of("1970/01/02 6:00 PM")
        1.75
    """
    found = _DATE.fullmatch(text.strip())
    clock = None if found is None else _clock_of(found[5] or "")
    if found is None or clock is None:
        return None
    try:
        moment = datetime.fromisoformat(f"{found[1]}-{found[3]}-{found[4]}{clock}")
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return (moment - _EPOCH).total_seconds() / 86400


def _clock_of(text: str) -> str | None:
    """A time of day as ISO writes it, with hours from 0 to 23; None if the hour is none."""
    found = _CLOCK.fullmatch(text.replace("Z", "+00:00"))
    if found is None:
        return text
    hour = int(found[1])
    if found[3]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found[3] in "pP" else 0)
    return f"T{hour:02d}:{found[2]}"


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    Args:
        name: In a sentence, after "read as".
        decimal: The decimal mark.
        mark: ``%`` or ``currency``, which every value has; empty for neither.

    Examples:
        >>> DECIMAL_COMMA.number("1.234,50"), DECIMAL_COMMA.number("1,5 apples")
        (1234.5, None)
        >>> PERCENTAGE.number("8,942 %"), PERCENTAGE.number("0,942 %")  # no thousands
        (89.42, None)
        >>> PERCENTAGE.number("40.099%")
        0.40099
    """

    name: str
    decimal: str = "."
    mark: str = ""

    def number(self, text: str) -> float | None:
        """The number in ``text``, or None if it is not in this format."""
        core = text.strip()
        if self.mark == "%":
            if not core.endswith("%"):
                return None
            core = core[:-1].rstrip()
        elif self.mark:
            core, found = re.subn(rf"^([-+]?)\s*{_CURRENCY}\s*|\s*{_CURRENCY}$", r"\1", core)
            if found != 1:
                return None
        thousands = "," if self.decimal == "." else "."
        groups = rf"[1-9]\d{{0,2}}([{thousands}{_SPACES}])\d{{3}}(?:\1\d{{3}})*"
        part = rf"\{self.decimal}\d+"
        power = r"[eE][-+]?\d+"  # computers write it, and no thousands
        if not re.fullmatch(rf"[-+]?(?:{groups}(?:{part})?|\d*(?:{part})?(?:{power})?)", core):
            return None
        plain = re.sub(f"[{thousands}{_SPACES}]", "", core).replace(self.decimal, ".")
        if self.mark == "%" and "e" not in plain.lower():
            return number_of(f"{plain}e-2")  # 40.099 % is 0.40099, which 40.099 / 100 is not
        value = number_of(plain)
        return value / 100 if value is not None and self.mark == "%" else value


class _Plain(NumberFormat):
    def number(self, text: str) -> float | None:
        """As Python reads it."""
        return number_of(text)


class _Date(NumberFormat):
    def number(self, text: str) -> float | None:
        """Days since 1970."""
        return days_of(text)


class _WrittenDate(NumberFormat):
    """A date with its year last; ``mark`` is ``d.m``, ``m/d`` or ``d/m``."""

    def number(self, text: str) -> float | None:
        """Days since 1970."""
        found = _YEAR_LAST.fullmatch(text.strip())
        if found is None or found[2] != self.mark[1]:
            return None
        day, month = (found[1], found[3]) if self.mark[0] == "d" else (found[3], found[1])
        return days_of(f"{found[4]}-{month:0>2}-{day:0>2}{found[5] or ''}")


class _NamedMonth(NumberFormat):
    """``3 Jan 2024``, ``3-Jan-2024``, ``Jan 3, 2024``: an English month, three letters at least."""

    def number(self, text: str) -> float | None:
        """Days since 1970."""
        found = _NAMED_MONTH.fullmatch(text.strip())
        if found is None:
            return None
        day, month = (found[1], found[2]) if found[1] else (found[4], found[3])
        number = _MONTHS.find(month[:3].lower()) // 3 + 1
        return days_of(f"{found[5]}-{number:02d}-{day:0>2}{found[6] or ''}")


PLAIN = _Plain("a number")
DATE = _Date("days since 1970-01-01", "")
DATE_ORDERS = {
    "month/day": _WrittenDate("days since 1970-01-01, written month/day/year", "", "m/d"),
    "day/month": _WrittenDate("days since 1970-01-01, written day/month/year", "", "d/m"),
}
"""Of dates with slashes, by which number is the month."""
DATE_FORMATS = (
    DATE,
    _WrittenDate("days since 1970-01-01, written day.month.year", "", "d.m"),
    *DATE_ORDERS.values(),
    _NamedMonth("days since 1970-01-01, the month by its name", ""),
)
"""In the order in which they are tried: with slashes the month comes first, if it can be one."""
THOUSANDS = NumberFormat("a number with thousands separators")
DECIMAL_COMMA = NumberFormat("a number with decimal comma", ",")
PERCENTAGE = NumberFormat("a percentage", mark="%")
FORMATS = (
    PLAIN,
    THOUSANDS,
    PERCENTAGE,
    NumberFormat("an amount of money", mark="currency"),
    DECIMAL_COMMA,
    NumberFormat("a percentage with decimal comma", ",", "%"),
    NumberFormat("an amount of money with decimal comma", ",", "currency"),
    *DATE_FORMATS,
)
"""In the order in which they are tried, those of the likelier decimal mark first."""
FORMAT_BY_NAME = {known.name: known for known in FORMATS}
MOST_SLIPS = 0.01
"""Up to this share of texts among numbers are slips; with more, the column is one of texts."""


def date_format(texts: Sequence[str]) -> NumberFormat:
    """The format of dates that reads the most of these texts, by preference all of them.

    Examples:
        >>> date_format(["01/02/2026", "01/31/2026"]).name.split(", ")[1]
        'written month/day/year'
        >>> date_format(["01/02/2026", "31/01/2026"]).number("01/02/2026") == days_of("2026-02-01")
        True
    """
    return min(DATE_FORMATS, key=lambda known: sum(known.number(text) is None for text in texts))


def find_format(column: NDArray[Any], decimal: str = ".") -> NumberFormat | None:
    """The first format in which every value is a number, else the best one if few are not.

    Args:
        column: Floats, or texts.
        decimal: What a mark is that may be a decimal mark or one of thousands, as in ``1.270``.
    """
    if column.dtype != object:
        return PLAIN
    texts = [text for text in column if text is not None]
    formats = sorted(FORMATS, key=lambda known: known.decimal != decimal)
    for known in formats:
        if all(known.number(text) is not None for text in texts):
            return known
    slips = {known: sum(known.number(text) is None for text in texts) for known in formats}
    best = min(formats, key=lambda known: slips[known])
    return best if slips[best] <= MOST_SLIPS * len(texts) else None


def numbers(column: NDArray[Any], known: NumberFormat = PLAIN) -> tuple[FloatColumn, int | None]:
    """A column as floats, NaN where a value is missing, and the place of the first non-number."""
    if column.dtype != object:
        return column, None
    found = np.empty(len(column))
    for place, text in enumerate(column):
        value = float("nan") if text is None else known.number(text)
        if value is None and known is PLAIN and DECIMAL_COMMA.number(text) is None:
            value = THOUSANDS.number(text)  # 3,019.59 behind many smaller numbers
        if value is None:
            return found, place
        found[place] = value
    return found, None


def coded(column: NDArray[Any]) -> tuple[list[str | None], Codes]:
    """The different values of a column as texts (None: missing), and the place of each row's."""
    if column.dtype != object:
        values, codes = np.unique(column, return_inverse=True)
        shown = [None if np.isnan(value) else number_text(float(value)) for value in values]
        return shown, codes.astype(np.int64)
    places: dict[str | None, int] = {}
    found = np.fromiter((places.setdefault(t, len(places)) for t in column), np.int64, len(column))
    return list(places), found


def missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows have no value."""
    if column.dtype == object:
        return np.fromiter((text is None for text in column), bool, len(column))
    absent: NDArray[np.bool_] = np.isnan(column)
    return absent


def number_text(value: float) -> str:
    """The shortest text that reads back as ``value``; 3.0 is ``3``, and NaN is empty."""
    if np.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def normal(text: str | None) -> str | None:
    """A label as it is compared: ``1``, ``1.0`` and `` 1`` are one; long ids stay exact."""
    if text is None:
        return None
    stripped = text.strip()
    value = number_of(stripped)
    if value is None or not np.isfinite(value) or abs(value) >= 2**53:
        return stripped
    return number_text(value)
