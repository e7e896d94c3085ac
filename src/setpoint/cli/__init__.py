"""setpoint from a shell.

A command is a module with two functions: ``add_arguments`` adds its arguments to a parser, ``run``
returns an exit code (0 done, 1 not certified or infeasible, 2 bad usage or input). Only the module
of the command at hand is imported, and rooms that need torch only when it runs.
"""

from __future__ import annotations

import os
import signal
import sys

TYPE_CHECKING = False  # what is imported here is imported before Ctrl-C is answered
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

COMMANDS = {
    "certify": "A threshold that provably holds on new data, from scores and labels.",
    "report": "The page of a certificate or a run: curves, groups, what moving costs.",
    "decide": "Decide a file of scores with a certificate.",
    "watch": "Watch a certificate: file by file, as often as you like. Exit code 1: it broke.",
    "plan": "Which rows of an unlabelled table to label, so that few labels prove much.",
    "check": "Does a certificate still hold on new rows? Exit code 1: no.",
    "card": "The model card of a certificate or a run.",
    "train": "Train for a goal on a table, and certify the threshold.",
    "predict": "Score and decide new rows with a run, columns checked by name.",
    "front": "Models between two goals: what fairness, or fewer misses, cost.",
    "demo": "Cross-entropy against Implicit on real data, in a minute: a table and a picture.",
}
_TRACEBACK = "SETPOINT_TRACEBACK"

__all__ = ["COMMANDS", "main", "make_parser"]


class Terminated(KeyboardInterrupt):
    """SIGTERM: as Ctrl-C, with another exit code."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the ``setpoint`` command; returns the exit code.

    Ctrl-C and SIGTERM are answered from here on. Before, while Python itself starts (some 20 ms),
    it ends by the signal, or with Python's own words. After the last line they change nothing.

    Args:
        arguments: Instead of those of the process; signals are then the caller's again at the end.
    """
    handlers = _take_signals()
    stdout = sys.stdout
    try:
        _open_closed()
        for stream in (sys.stdout, sys.stderr):  # a window that cannot show ± still gets numbers
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        if stdout is not None:
            sys.stdout = _UntilBroken(stdout)
        return _run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt as stopped:
        _say("Stopped.")
        return 128 + (signal.SIGTERM if isinstance(stopped, Terminated) else signal.SIGINT)
    finally:
        sys.stdout = stdout
        for number, handler in handlers.items():
            signal.signal(number, signal.SIG_IGN if arguments is None else handler)


def _run(words: list[str]) -> int:
    from setpoint._extras import install_advice
    from setpoint.cli.common import (
        BAD_USAGE,
        UserError,
        check_outputs,
        in_flags,
        one_line,
        refuse_unknown,
    )

    try:
        parser = make_parser(words[0] if words else None)
        given, strange = parser.parse_known_args(words)
        if strange:
            refuse_unknown(given.parser or parser, strange[0])
        if given.run is None:
            parser.print_help(sys.stderr)
            return BAD_USAGE
        check_outputs(given)
        code: int = given.run(given)
        if sys.stdout is None:
            _say("setpoint: standard output is closed: what it was to show is lost.")
        else:
            sys.stdout.flush()
        return code
    except ModuleNotFoundError as missing:
        message = one_line(install_advice(missing))
    except (UserError, OSError, ValueError, TypeError, NotImplementedError) as error:
        message = in_flags(one_line(error))
    except MemoryError:
        message = "there is not enough memory for this file."
    except Exception as error:
        if os.environ.get(_TRACEBACK):
            raise
        what = f"{type(error).__name__}: {one_line(error)}"
        message = f"a mistake of ours, {what}; please report it, with what {_TRACEBACK}=1 shows."
    _say(f"setpoint: error: {message}")
    return BAD_USAGE


def _say(text: str) -> None:
    if sys.stderr is not None:
        print(text, file=sys.stderr)


def _open_closed() -> None:
    """Give closed standard streams a place, so that no other file gets their numbers."""
    handle = os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    while handle <= 2:
        handle = os.open(os.devnull, os.O_RDWR)
    os.close(handle)


class _UntilBroken:
    """Standard output whose reader (head, less) may leave: the rest is then thrown away."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            self._stream.write(text)
        except BrokenPipeError:
            self._leave()
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._leave()
        except OSError:  # a full disk: told once, not again when Python ends
            self._leave()
            raise

    def _leave(self) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _take_signals() -> dict[int, Any]:
    """Answer Ctrl-C and SIGTERM by one line; returns who answered before."""
    try:
        return {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread
        return {}


def _stop(number: int, frame: Any) -> None:
    """Leave at once during an import, where an exception may get lost; else by an exception."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            files = sys.modules.get("setpoint._files")
            getattr(files, "remove_temporary", bool)()  # what no exception will remove
            os.write(2, b"Stopped.\n")
            os._exit(128 + number)
        frame = frame.f_back
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands, with the arguments of ``command`` alone."""
    from importlib import import_module

    from setpoint._version import __version__
    from setpoint.cli.common import Parser

    parser = Parser(
        prog="setpoint",
        description="Train a classifier for the number you are judged by: the miss rate at 1 % "
        "false alarms, precision at 95 % recall.",
        epilog="Exit codes: 0 done, 1 not certified or infeasible, 2 bad usage or input. Files are "
        "csv (also .gz, .zst), parquet or feather; - is standard input.",
    )
    parser.add_argument("--version", action="version", version=f"setpoint {__version__}")
    parser.set_defaults(run=None, parser=None)
    commands = parser.add_subparsers(title="commands", metavar="command")
    for name, summary in COMMANDS.items():
        added = commands.add_parser(name, help=summary, description=summary)
        if name == command:
            module = import_module(f"setpoint.cli.{name}")
            module.add_arguments(added)
            added.set_defaults(run=module.run, parser=added)
    return parser
