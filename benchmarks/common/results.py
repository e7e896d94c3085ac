"""One form for all results, and the options that benchmarks share.

A result file holds JSON lines. A line ``{"about": {...}}`` says what made the rows below it: the
benchmark, its command, the day, and the versions; every other line is a row. Results that are one
nested document are JSON with ``about`` as their first entry. ``python -m benchmarks --index`` lists
all files in ``benchmarks/README.md``.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

RESULTS = Path(__file__).resolve().parents[1] / "results"
PACKAGES = ("setpoint", "torch", "numpy", "scipy")
Row = dict[str, Any]
Cell = TypeVar("Cell")
FLAGS: dict[str, Row] = {
    "table": {"action": "store_true", "help": "run nothing, print the tables"},
    "docs": {"action": "store_true", "help": "write the tables into the page"},
    "fresh": {"action": "store_true", "help": "forget earlier rows"},
    "out": {"type": Path, "help": "where the rows go"},
}


def parser(
    text: str | None, *flags: str, quick: str = "", seeds: int = 0, minutes: float = 0.0
) -> argparse.ArgumentParser:
    """A parser with those of the usual options that a benchmark has; defaults are what is given.

    ``flags`` are some of "table", "docs", "fresh" and "out".
    """
    lines = (text or "").strip()
    made = argparse.ArgumentParser(
        description=lines, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if quick:
        made.add_argument("--quick", action="store_true", help=quick)
    if seeds:
        made.add_argument("--seeds", type=int, default=seeds)
    if minutes:
        made.add_argument("--minutes", type=float, default=minutes, help="start nothing after")
    for flag in flags:
        made.add_argument(f"--{flag}", **FLAGS[flag])
    return made


def about(*packages: str) -> Row:
    """What is known of this run: benchmark, command, day and versions."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    name = spec.name if spec else Path(sys.argv[0]).stem
    name = name.removeprefix("benchmarks.").removesuffix(".__main__")
    return {
        "benchmark": name,
        "command": command(name, sys.argv[1:]),
        "when": time.strftime("%Y-%m-%d"),
        "versions": {"python": platform.python_version()}
        | {package: version(package) for package in (*PACKAGES, *packages)},
    }


def command(name: str, arguments: list[str]) -> str:
    """The command of a benchmark, without ``--out`` to a folder that only this machine has."""
    given = shlex.join(["python", "-m", "benchmarks", name, *arguments])
    return re.sub(r" --out[ =]('/[^']*'|/\S*)", "", given)


def version(package: str) -> str:
    """What is installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def pending(
    cells: Iterable[Cell], is_done: Callable[[Cell], bool], minutes: float
) -> Iterator[Cell]:
    """The cells that are not done yet, until the time is up."""
    end = time.monotonic() + 60 * minutes
    for cell in cells:
        if is_done(cell):
            continue
        if time.monotonic() > end:
            print("Time is up; run again to go on.")
            return
        yield cell


_NOTED: set[Path] = set()


def append(file: Path, *rows: Mapping[str, Any], packages: Iterable[str] = ()) -> None:
    """Write rows at the end of a file; before the first of this run goes a line about it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        if file not in _NOTED:
            _NOTED.add(file)
            out.write(json.dumps({"about": about(*packages)}) + "\n")
        out.writelines(json.dumps(row) + "\n" for row in rows)


def rewrite(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """A file of these rows alone."""
    file.unlink(missing_ok=True)
    _NOTED.discard(file)
    append(file, *rows)


def write_document(file: Path, content: Mapping[str, Any]) -> None:
    """One nested result as JSON, with what made it first."""
    without = {name: value for name, value in content.items() if name != "about"}
    file.write_text(json.dumps({"about": about(), **without}, indent=1) + "\n")


def lines_of(file: Path) -> list[Row]:
    """All lines so far; one cut short by a crash is left out."""
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}\n")]


def read(file: Path) -> list[Row]:
    """The rows so far, without the lines about the runs."""
    return [row for row in lines_of(file) if "about" not in row]
