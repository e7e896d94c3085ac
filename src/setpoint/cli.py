"""setpoint from a shell.

A command is two functions: one adds its arguments to a parser, one runs it and returns an exit code
(0 done, 1 not certified or infeasible, 2 bad usage or input). Rooms that need torch are imported
only by the command that runs, so that ``setpoint --help`` answers at once.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from setpoint import __version__
from setpoint._checks import whole

DONE, BAD_USAGE, INTERRUPTED = 0, 2, 130

Run = Callable[[argparse.Namespace], int]


class UserError(Exception):
    """A mistake that the user can mend: told in one line, without a traceback."""


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
        return run(given)
    except (UserError, OSError) as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return BAD_USAGE
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return INTERRUPTED


def make_parser() -> argparse.ArgumentParser:
    """The parser with all its commands."""
    parser = argparse.ArgumentParser(
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


def demo_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``setpoint demo`` takes."""
    parser.add_argument(
        "--seeds", type=_count, default=3, metavar="N", help="how many repetitions (default: 3)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("setpoint_demo"),
        metavar="FOLDER",
        help="where the picture and results.json go (default: setpoint_demo/)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few seconds: see that it runs, not what it learns"
    )


def demo(given: argparse.Namespace) -> int:
    """Cross-entropy against Implicit on real data: a table, a picture."""
    _require("rich", "matplotlib", extra="demo")
    _make_folder(given.out)  # before training, not after
    from setpoint.demo import run_demo
    from setpoint.demo.plan import Plan

    plan = Plan(seeds=given.seeds)
    run_demo(plan.quick() if given.quick else plan, given.out)
    return DONE


COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], None], Run, str]] = {
    "demo": (
        demo_arguments,
        demo,
        "Cross-entropy against Implicit on real data, in under a minute: a table and a picture.",
    ),
}


def _count(text: str) -> int:
    try:
        return whole(int(text), "the number", least=1)
    except ValueError:
        message = f"must be a whole number of at least 1; got {text!r}"
        raise argparse.ArgumentTypeError(message) from None


def _require(*packages: str, extra: str) -> None:
    """Every optional package a command needs, or one line that says how to get it."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise UserError(f'{" and ".join(missing)} not found: pip install "setpoint[{extra}]"')


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if path.is_file() else error.strerror
        raise UserError(f"--out {path} cannot be made a folder: {reason}.") from None
