"""Rows that are appended as they are made, and what is known about the run."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import results

RESULTS = results.RESULTS
PACKAGES = ("torch", "scipy", "cvxpy", "cvxpylayers", "clarabel", "qpth", "ap_perf", "libauc")


def facts(*packages: str) -> dict[str, Any]:
    """What made the rows, and the state of the machine."""
    machine = {"threads": torch.get_num_threads(), "cores": os.cpu_count()}
    return {**results.about(*PACKAGES, *packages), **machine, "load": os.getloadavg()[0]}


def parser(text: str | None, *flags: str, **more: Any) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    quick = "a look; its rows go to a scratch file"
    return results.parser(text, "fresh", "out", *flags, quick=quick, **more)


def opened(options: argparse.Namespace, name: str) -> Rows:
    """The file of a benchmark, with a line about this run; one thread from here on."""
    torch.set_num_threads(1)
    scratch = Path(tempfile.gettempdir())
    file = options.out or (scratch if options.quick else RESULTS) / f"programs_{name}.jsonl"
    rows = Rows(file, options.fresh or (options.quick and options.out is None))
    rows.note(about=facts())
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
    return results.read(file)
