"""What commands share: exit codes, checked options, goals, one-line errors."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from setpoint._checks import quoted, whole

DONE, NOT_PROVED, BAD_USAGE, INTERRUPTED = 0, 1, 2, 130
_T = TypeVar("_T")


class UserError(Exception):
    """A mistake that the user can mend: told in one line, without a traceback."""


def count(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    try:
        return whole(int(text), "the number", least=1)
    except ValueError:
        message = f"must be a whole number of at least 1; got {text!r}"
        raise argparse.ArgumentTypeError(message) from None


def seed(text: str) -> int:
    """A whole number from 0, for argparse."""
    if not text.isdecimal() or int(text) >= 2**63:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0; got {text!r}")
    return int(text)


def fraction(text: str) -> float:
    """A number between 0 and 1, ends excluded, for argparse."""
    value = _number(text)
    if not 0 < value < 1:
        slip = f"; for {value:g} % write {value / 100:g}" if 1 <= value < 100 else ""
        message = f"must be a share between 0 and 1, ends excluded; got {text!r}{slip}"
        raise argparse.ArgumentTypeError(message)
    return value


def positive_number(text: str) -> float:
    """A number above 0, for argparse."""
    value = _number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number; got {text!r}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def parse_goal(text: str, read: Callable[[str], _T]) -> _T:
    """The goal in ``text`` by ``read``; UserError with the first line of what is wrong."""
    try:
        return read(text)
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        why = one_line(str(error).split("\n")[0])
        raise UserError(f"--goal {quoted(text, 200)}: {why}") from None


def require(*packages: str, extra: str) -> None:
    """UserError that names the extra if one of its packages is not installed."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise UserError(f'{" and ".join(missing)} not found: pip install "setpoint[{extra}]"')


def make_folder(path: Path) -> None:
    """Make the folder ``path`` if it does not exist."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if path.is_file() else error.strerror
        raise UserError(f"--out {path} cannot be made a folder: {reason}.") from None


def check_file(path: Path) -> None:
    """UserError unless a file can be written at ``path``: in a folder that exists."""
    if path.is_dir():
        raise UserError(f"--out {path} is a folder; name a file.")
    if not path.parent.is_dir():
        raise UserError(f"--out {path}: the folder {path.parent} does not exist; make it first.")


def as_json(value: Any) -> str:
    """Indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def one_line(error: BaseException | str) -> str:
    """The message of an error without line breaks or control characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
