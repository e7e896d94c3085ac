"""setpoint from a shell.

A command is two functions: one adds its arguments to a parser, one runs it and returns an exit code
(0 done, 1 not certified or infeasible, 2 bad usage or input). Rooms that need torch are imported
only by the command that runs, so that ``setpoint --help`` answers at once.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from setpoint._version import __version__
from setpoint.cli.card import CARD
from setpoint.cli.certify import CERTIFY
from setpoint.cli.check import CHECK
from setpoint.cli.common import BAD_USAGE, INTERRUPTED, Command, Run, UserError, one_line
from setpoint.cli.demo import DEMO
from setpoint.cli.front import FRONT
from setpoint.cli.predict import PREDICT
from setpoint.cli.report import REPORT
from setpoint.cli.train import TRAIN

COMMANDS: dict[str, Command] = {
    "certify": CERTIFY,
    "train": TRAIN,
    "predict": PREDICT,
    "check": CHECK,
    "report": REPORT,
    "card": CARD,
    "front": FRONT,
    "demo": DEMO,
}

TRACEBACK = "SETPOINT_TRACEBACK"

__all__ = ["COMMANDS", "UserError", "main", "make_parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the ``setpoint`` command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):  # a window that cannot show ± still gets the numbers
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    parser = make_parser()
    given = parser.parse_args(arguments)
    if given.run is None:
        parser.print_help(sys.stderr)
        return BAD_USAGE
    try:
        run: Run = given.run
        code = run(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BAD_USAGE
    except (UserError, OSError, ValueError, TypeError, NotImplementedError) as error:
        print(f"{parser.prog}: error: {one_line(error)}", file=sys.stderr)
        return BAD_USAGE
    except MemoryError:
        print(f"{parser.prog}: error: there is not enough memory for this file.", file=sys.stderr)
        return BAD_USAGE
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        what = f"{type(error).__name__}: {one_line(error)}"
        advice = f"please report it, with what {TRACEBACK}=1 shows"
        print(f"{parser.prog}: error: a mistake of ours, {what}; {advice}.", file=sys.stderr)
        return BAD_USAGE


class _Parser(argparse.ArgumentParser):
    """Tells a mistake in one line, as every other error is told."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_USAGE, f"{self.prog}: error: {one_line(message)} ({self.prog} --help)\n")


def make_parser() -> argparse.ArgumentParser:
    """The parser with all its commands."""
    parser = _Parser(
        prog="setpoint",
        description="Train a classifier for the number you are judged by: the miss rate at 1 % "
        "false alarms, precision at 95 % recall.",
        epilog="Exit codes: 0 done, 1 not certified or infeasible, 2 bad usage or input.",
    )
    parser.add_argument("--version", action="version", version=f"setpoint {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="command")
    for name, (add_arguments, run, summary) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        add_arguments(command)
        command.set_defaults(run=run)
    return parser
