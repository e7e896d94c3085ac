"""Rows that are appended as they are made, and what is known about the run."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from benchmarks.common.folder import ROOT

RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("torch", "scipy", "cvxpy", "cvxpylayers", "clarabel", "qpth", "ap_perf", "libauc")


def facts() -> dict[str, Any]:
    """Versions and the state of the machine."""
    versions = {name: version(name) for name in ("setpoint", *PACKAGES)}
    return {
        "versions": {"python": platform.python_version(), **versions},
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }


def version(package: str) -> str:
    """What is installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def parser(text: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawTextHelpFormatter)
    made.add_argument("--quick", action="store_true", help="a look; its rows go to a scratch file")
    made.add_argument("--out", type=Path, default=None, help="where the rows go")
    made.add_argument("--fresh", action="store_true", help="start the file anew")
    return made


def opened(options: argparse.Namespace, name: str) -> Rows:
    """The file of a benchmark, with a line about this run; one thread from here on."""
    torch.set_num_threads(1)
    scratch = Path(tempfile.gettempdir())
    file = options.out or (scratch if options.quick else RESULTS) / f"programs_{name}.jsonl"
    rows = Rows(file, options.fresh or (options.quick and options.out is None))
    rows.note(facts=facts())
    return rows


class Rows:
    """A JSON-lines file: one row an outcome, written at once; rows already there are not remade."""

    def __init__(self, file: Path, fresh: bool) -> None:
        """``fresh`` starts the file anew."""
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            file.unlink(missing_ok=True)
        self.known = {key(row["cell"]) for row in read(file) if "cell" in row}

    def done(self, cell: dict[str, Any]) -> bool:
        """Whether this cell has its row."""
        return key(cell) in self.known

    def add(self, cell: dict[str, Any], **found: Any) -> None:
        """Write and show a row."""
        self.known.add(key(cell))
        with self.file.open("a") as out:
            out.write(json.dumps({"cell": cell, **found}) + "\n")
        shown = {k: v for k, v in found.items() if not isinstance(v, (list, tuple, dict))}
        print(*cell.values(), *(f"{k}={short(v)}" for k, v in shown.items()), flush=True)

    def note(self, **anything: Any) -> None:
        """A line about the run."""
        with self.file.open("a") as out:
            out.write(json.dumps(anything) + "\n")


def key(cell: dict[str, Any]) -> str:
    """A cell as text, for comparing."""
    return json.dumps(cell, sort_keys=True)


def short(value: Any) -> str:
    """A number in three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def read(file: Path) -> list[dict[str, Any]]:
    """All rows so far."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
