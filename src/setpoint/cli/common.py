"""What commands share: exit codes, checked options, goals, one-line errors, JSON."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from setpoint._checks import quoted, whole
from setpoint._files import check_output, finish_moves
from setpoint.tables.decimal_marks import DECIMALS
from setpoint.tables.values import PERCENTAGE, number_of

if TYPE_CHECKING:
    from setpoint.problems import Problem
    from setpoint.tables import TableSource

DONE, NOT_PROVED, BAD_USAGE, INTERRUPTED, TERMINATED = 0, 1, 2, 130, 143
LONGEST_MESSAGE = 500
_T = TypeVar("_T")
_FLAGS = {"groups": "--group", "times": "--time", "ids": "--id", "outputs": "a second --score"}
"""Options that are called otherwise than in Python."""
_OPTION = re.compile(
    r"\b(groups|times|ids|clusters|amounts|largest_amount|prevalence|unlabelled|old_threshold"
    r"|candidates)=(?![\w{\[(\"']|\.\.)"
)
"""An option of Python in a message, without a value."""


class UserError(Exception):
    """A mistake that the user can mend: told in one line, without a traceback."""


class Parser(argparse.ArgumentParser):
    """Reports a mistake in one line, as every other error is reported."""

    def error(self, message: str) -> NoReturn:
        """Leave with the exit code of bad usage."""
        unknown = re.fullmatch(
            r"argument command: invalid choice: '(.*)' \(choose from (.*)\)", message
        )
        if unknown:
            known = re.findall(r"\w+", unknown[2])
            near = get_close_matches(unknown[1].lower(), known, n=1)
            meant = f"Did you mean {near[0]}?" if near else f"Commands are {', '.join(known)}."
            message = f"there is no command {quoted(unknown[1])}. {meant}"
        self.exit(BAD_USAGE, f"{self.prog}: error: {one_line(message)} ({self.prog} --help)\n")


def refuse_unknown(parser: argparse.ArgumentParser, word: str) -> NoReturn:
    """Leave with the exit code of bad usage, and with the option that was meant, if one is near."""
    options = [name for action in parser._actions for name in action.option_strings]
    files = [str(a.metavar or a.dest) for a in parser._actions if not a.option_strings]
    near = get_close_matches(word.partition("=")[0], options, n=1, cutoff=0.7)
    kind = "option" if word.startswith("-") else "place for"
    meant = f" Did you mean {near[0]}?" if near else ""
    takes = f" Without an option it takes {' '.join(files)}." if files and not near else ""
    parser.error(f"there is no {kind} {quoted(word)}.{meant}{takes}")


@dataclass(frozen=True)
class OutputFile:
    """The type of an option that names a file to write: checked before the command starts."""

    path: Path


def output_file(text: str) -> OutputFile:
    """A file to write, for argparse."""
    return OutputFile(Path(text))


def add_output(parser: argparse.ArgumentParser, name: str, help_text: str, **how: Any) -> None:
    """Add ``--out``, a file to write, and ``--force``."""
    parser.add_argument("--out", type=output_file, metavar=name, help=help_text, **how)
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


class LabelColumns(NamedTuple):
    """The columns of several labels: their scores, and the labels themselves if they are known."""

    scores: list[str]
    labels: list[str]


def add_columns(parser: argparse.ArgumentParser, help_text: str, **how: Any) -> None:
    """Add ``--score`` and ``--label``, each once, or once for every label of a row."""
    add = parser.add_argument
    add("--score", action="append", metavar="COLUMN", help=f"{help_text}; again for more", **how)
    add("--label", action="append", metavar="COLUMN", help="the true class; one for each --score")


def add_decimal(parser: argparse.ArgumentParser) -> None:
    """Add ``--decimal``."""
    what = "what 1.270 is written with, where the file does not tell"
    parser.add_argument("--decimal", choices=tuple(DECIMALS), help=what)


def several_columns(given: argparse.Namespace, *, one_label: bool = False) -> LabelColumns | None:
    """The columns of several labels; with one score its name and its label's stay in ``given``.

    Several classes have several scores and ``one_label``.
    """
    scores, labels = given.score or [], getattr(given, "label", None) or []
    if len(scores) < 2 and len(labels) < 2:
        given.score, given.label = (names[0] if names else None for names in (scores, labels))
        return None
    if one_label and len(labels) <= 1:
        return LabelColumns(scores, labels)
    if labels and len(scores) != len(labels):
        raise UserError(
            f"{len(scores)} --score and {len(labels)} --label: name one of each for every label."
        )
    return LabelColumns(scores, labels)


def related_to_rows(source: TableSource, score: str, given: argparse.Namespace) -> dict[str, Any]:
    """Groups, clusters and times of rows whose scores and labels stand in several columns."""
    names = {"clusters": given.clusters, "times": given.time}
    if given.group is None and not any(names.values()):
        return {"groups": None, "clusters": None, "times": None}
    from setpoint.tables import read_scores

    data = read_scores(source, score, group=given.group, **names)
    tell(data.notes)
    groups = None if given.group is None else {given.group: data.groups}
    return {"groups": groups, "clusters": data.clusters, "times": data.times}


def read_text(path: Path, what: str) -> str:
    """The text of a file; UserError if it is a pipe or a device, which may have no end."""
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is no plain file, as a {what} is; name another.")
    return path.read_text(encoding="utf-8")


def refuse_options(given: argparse.Namespace, names: Iterable[str], why: str) -> None:
    """UserError for the first option that was given and does not go with the others."""
    odd = next((name for name in names if getattr(given, name) not in (None, False)), None)
    if odd is not None:
        raise UserError(f"--{odd.replace('_', '-')} goes {why}.")


def check_outputs(given: argparse.Namespace) -> None:
    """Check every file to write, and put its path where its option was.

    Raises:
        OutputError: It is there already, without ``--force``, or it is one of the files to read.
        UserError: Two options name the same file.
    """
    written: set[str] = set()
    inputs = [value for value in vars(given).values() if isinstance(value, Path)]
    for path in inputs:
        finish_moves(Path(os.path.realpath(path)))
    if hasattr(given, "also_reads"):  # a file that no option names
        inputs.append(given.also_reads(given))
    for name, value in vars(given).items():
        if isinstance(value, OutputFile):
            force = getattr(given, "force", False)
            check_output(value.path, force=force, inputs=inputs, option=f"--{name}")
            setattr(given, name, value.path)
            if os.path.realpath(value.path) in written:
                raise UserError(f"--{name} {value.path} is another output, too; name two files.")
            written.add(os.path.realpath(value.path))


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
    """A number between 0 and 1, ends excluded, or per cent (``95%``), for argparse."""
    value = PERCENTAGE.number(text) if "%" in text else number_of(text)
    if value is None or not 0 < value < 1:
        slip = ""
        if value is not None and 1 <= value < 100:
            slip = f"; for {value:g} % write {value / 100:g}"
        message = f"must be a share between 0 and 1, ends excluded; got {text!r}{slip}"
        raise argparse.ArgumentTypeError(message)
    return value


def positive_number(text: str) -> float:
    """A number above 0, for argparse."""
    value = number_of(text)
    if value is None or not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number; got {text!r}")
    return value


def add_page_arguments(parser: argparse.ArgumentParser) -> None:
    """The words and costs of the task, for the page."""
    add = parser.add_argument
    name = "what the positive class is called on the page, as in fraud (default: its label)"
    add("--positive-name", metavar="NAME", help=name)
    others = 'what the others are called, in the plural, as in "legitimate payments"'
    add("--negative-name", metavar="NAME", help=others)
    action = "what is done above the threshold, as a verb: block, review, approve (default: flag)"
    add("--action", metavar="VERB", help=action)
    cost = "what a miss and a false alarm cost, as in --costs 500 5"
    add("--costs", nargs=2, type=positive_number, metavar=("MISS", "ALARM"), help=cost)
    add("--no-script", action="store_true", help="a page whose threshold cannot be moved")


def page_words(given: argparse.Namespace, label_names: Sequence[str] = ()) -> dict[str, Any]:
    """The options of :func:`add_page_arguments` that were given, by field."""
    words = {
        "positive": given.positive_name or given.positive or next(iter(label_names[1:]), None),
        "negative": given.negative_name,
        "action": given.action,
        "costs": None if given.costs is None else tuple(given.costs),
    }
    return {name: value for name, value in words.items() if value is not None}


PERIOD_UNITS = ("day", "week", "month", "quarter", "year")
"""What --by shows rates by."""


def parse_goal(text: str, read: Callable[[str], _T]) -> _T:
    """The goal in ``text`` by ``read``; UserError with the first line of what is wrong."""
    try:
        return read(text)
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        why = one_line(str(error).split("\n")[0])
        raise UserError(f"--goal {quoted(text, 200)}: {why}") from None


def gap_goal(text: str) -> Problem | None:
    """The problem in ``text`` if it has thresholds per group and a gap between groups, else None.

    Such thresholds cannot be found group by group: they are chosen on rows of their own.
    """
    from setpoint.problems import as_problem

    problem = as_problem(text)
    if problem.kind != "groups":
        return None
    from setpoint.axes.windows import window_of

    gaps = any(window_of(target) is not None for target in problem.subject_to)
    return problem if gaps else None


def require(*packages: str, extra: str) -> None:
    """UserError that names the extra if one of its packages is not installed."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise UserError(f'{" and ".join(missing)} not found: pip install "setpoint[{extra}]"')


def as_json(value: Any) -> str:
    """Indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def tell(notes: Iterable[str]) -> None:
    """Print sentences on what was done to the data, on standard error."""
    for note in notes:
        print(note, file=sys.stderr)


def flag_of(name: str) -> str:
    """What an option of Python is called in the shell: ``--group`` for ``groups``."""
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")


def in_flags(text: str) -> str:
    """A message of Python with the options of the shell: ``--group`` for ``groups=``.

    Examples:
        >>> in_flags("pass clusters=, or leave times= out")
        'pass --clusters, or leave --time out'
        >>> in_flags("pass groups=."), in_flags("amounts=...")
        ('pass --group.', 'amounts=...')
    """
    return _OPTION.sub(lambda found: flag_of(found[1]), text)


def one_line(error: BaseException | str) -> str:
    """The message of an error without line breaks or control characters, cut if it is long."""
    text = " ".join(str(error).split()) or type(error).__name__
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"
