"""What the benchmarks of this folder share: options, and a file of rows that a run goes on with."""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.programs import rows as stored

RESULTS = Path(__file__).parents[1] / "results"
PACKAGES = ("tensorflow", "tensorflow-constrained-optimization", "cooper-optim", "fairret")


class Rows(stored.Rows):
    """Rows appended as they are made; a cell that has its row is not run again."""

    def read(self) -> list[dict[str, Any]]:
        """The rows so far, without the lines about the runs."""
        return [row for row in stored.read(self.file) if "cell" in row]


def options(text: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark here has."""
    made = stored.parser(text)
    made.add_argument("--minutes", type=float, default=60.0, help="start no cell after")
    made.add_argument("--table", action="store_true", help="run nothing, print the tables")
    made.add_argument("--docs", action="store_true", help="write the tables into docs/peers.md")
    return made


def opened(chosen: argparse.Namespace, name: str) -> Rows:
    """The file of a benchmark; a line about the run goes first, one thread from here on."""
    torch.set_num_threads(1)
    folder = Path(tempfile.gettempdir()) if chosen.quick else RESULTS
    fresh = chosen.fresh or (chosen.quick and chosen.out is None)
    rows = Rows(chosen.out or folder / f"peers_{name}.jsonl", fresh)
    if not (chosen.table or chosen.docs):
        facts = stored.facts()
        facts["versions"] |= {package: stored.version(package) for package in PACKAGES}
        rows.note(facts=facts)
    return rows
