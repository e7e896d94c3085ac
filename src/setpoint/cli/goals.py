"""Goals as they are typed: errors in one line, without the carets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from setpoint.cli.common import UserError, one_line
from setpoint.tables.source import quoted

T = TypeVar("T")


def read_goal(text: str, read: Callable[[str], T]) -> T:
    """The goal in ``text``, or one line that says which word cannot be read."""
    try:
        return read(text)
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        why = one_line(ValueError(str(error).split("\n")[0]))
        raise UserError(f"--goal {quoted(text, 200)}: {why}") from None
