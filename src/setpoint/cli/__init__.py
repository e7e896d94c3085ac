"""setpoint from a shell.

A command is a module with two functions: ``add_arguments`` adds its arguments to a parser, ``run``
returns an exit code (0 done, 1 not certified or infeasible, 2 bad usage or input). Only the module
of the command at hand is imported, and rooms that need torch only when it runs.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from setpoint._extras import install_advice
from setpoint._version import __version__
from setpoint.cli.common import BAD_USAGE, INTERRUPTED, UserError, one_line

COMMANDS = {
    "certify": "A threshold that provably holds on new data, from scores and labels.",
    "train": "Train for a goal on a table, and certify the threshold.",
    "predict": "Decide new rows with a run, columns checked by name.",
    "check": "Does a certificate still hold on new rows? Exit code 1: no.",
    "report": "Draw the report page of a run again.",
    "card": "Write the model card of a run.",
    "front": "Models between two goals: what fairness, or fewer misses, cost.",
    "demo": "Cross-entropy against Implicit on real data, in a minute: a table and a picture.",
}
_TRACEBACK = "SETPOINT_TRACEBACK"

__all__ = ["COMMANDS", "UserError", "main", "make_parser"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the ``setpoint`` command; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):  # a window that cannot show ± still gets the numbers
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        parser = make_parser(words[0] if words else None)
        given = parser.parse_args(words)
        if given.run is None:
            parser.print_help(sys.stderr)
            return BAD_USAGE
        code: int = given.run(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BAD_USAGE
    except ModuleNotFoundError as missing:
        return _fail(one_line(install_advice(missing)))
    except (UserError, OSError, ValueError, TypeError, NotImplementedError) as error:
        return _fail(one_line(error))
    except MemoryError:
        return _fail("there is not enough memory for this file.")
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if os.environ.get(_TRACEBACK):
            raise
        what = f"{type(error).__name__}: {one_line(error)}"
        cure = f"please report it, with what {_TRACEBACK}=1 shows"
        return _fail(f"a mistake of ours, {what}; {cure}.")


def _fail(message: str) -> int:
    print(f"setpoint: error: {message}", file=sys.stderr)
    return BAD_USAGE


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line, as every other error is reported."""

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_USAGE, f"{self.prog}: error: {one_line(message)} ({self.prog} --help)\n")


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands, with the arguments of ``command`` alone."""
    parser = _Parser(
        prog="setpoint",
        description="Train a classifier for the number you are judged by: the miss rate at 1 % "
        "false alarms, precision at 95 % recall.",
        epilog="Exit codes: 0 done, 1 not certified or infeasible, 2 bad usage or input.",
    )
    parser.add_argument("--version", action="version", version=f"setpoint {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="command")
    for name, summary in COMMANDS.items():
        added = commands.add_parser(name, help=summary, description=summary)
        if name == command:
            module = import_module(f"setpoint.cli.{name}")
            module.add_arguments(added)
            added.set_defaults(run=module.run)
    return parser
