"""What the benchmarks of this folder share: options, and a file of rows that a run goes on with."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.common.pages import CELLS, fill
from benchmarks.peers.page import PAGE
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
    return stored.parser(text, "table", "docs", minutes=60.0)


def opened(chosen: argparse.Namespace, name: str) -> Rows:
    """The file of a benchmark; a line about the run goes first, one thread from here on."""
    torch.set_num_threads(1)
    folder = Path(tempfile.gettempdir()) if chosen.quick else RESULTS
    fresh = chosen.fresh or (chosen.quick and chosen.out is None)
    rows = Rows(chosen.out or folder / f"peers_{name}.jsonl", fresh)
    if not (chosen.table or chosen.docs):
        rows.note(about=stored.facts(*PACKAGES))
    return rows


def finish(
    chosen: argparse.Namespace,
    name: str,
    run: Callable[[argparse.Namespace, Rows], None],
    text: Callable[[list[dict[str, Any]]], str],
    draw: Callable[[list[dict[str, Any]]], object] | None = None,
    cells: int = CELLS,
) -> None:
    """Run a benchmark unless only its table is wanted, and print it; --docs: write the page."""
    rows = opened(chosen, name)
    if not (chosen.table or chosen.docs):
        run(chosen, rows)
    found = text(rows.read())
    if chosen.docs:
        fill(PAGE, name, found, cells=cells)
        if draw is not None:
            draw(rows.read())
    print(found)
