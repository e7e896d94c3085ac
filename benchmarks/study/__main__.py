"""Where does it pay? The study of docs/study.md, named before it was run.

    python -m benchmarks study --quick       # two minutes, to a scratch file
    python -m benchmarks study --minutes 60  # goes on where the last run stopped
    python -m benchmarks study --docs        # tables and picture into docs/study.md

Rows are appended to benchmarks/results/study.jsonl; cells that are there are skipped. Two runs may
work at the same time: --share 0/2 and --share 1/2 take every other table.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import torch

from benchmarks.common import results
from benchmarks.common.scratch import scratch
from benchmarks.study import boosted, report, tables, training
from benchmarks.study.methods import WAYS

RESULTS = results.RESULTS / "study.jsonl"
NARROW = (0, 2, 4, 8)
NOISES = (0.02, 0.05)
BLOCKS: tuple[tuple[int, tuple[int, ...], tuple[float, ...]], ...] = (
    (0, (*NARROW, 32), (0.0,)),
    (1, NARROW, (0.0,)),
    (0, (0,), NOISES),
    (0, (128,), (0.0,)),
    (0, (8,), NOISES),
    (1, (32, 128), (0.0,)),
    (1, (0, 8), NOISES),
    (2, (*NARROW, 32, 128), (0.0,)),
    (2, (0, 8), NOISES),
)
"""Folds, widths and noises in the order in which they are run."""


class Cell(NamedTuple):
    """What all methods share."""

    data: str
    fold: int
    hidden: int
    contaminated: float


def main() -> None:
    options = results.parser(
        __doc__, "table", "docs", "out", quick="two small tables, 200 steps", minutes=60.0
    )
    options.add_argument("--share", default="0/1", help="which of how many shares of the tables")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    looks = chosen.table or chosen.docs
    out = chosen.out or (scratch("study") if chosen.quick and not looks else RESULTS)
    if not looks:
        run(out, chosen.quick, chosen.minutes, chosen.share)
    if chosen.docs:
        report.write(results.read(out))
    print(report.text(results.read(out)))


def run(out: Path, quick: bool, minutes: float, share: str) -> None:
    """Train what is not there yet, until the time is up."""
    end = monotonic() + 60 * (1.5 if quick else minutes)
    for cell in cells(quick, share):
        known = {row["method"] for row in results.read(out) if same(row, cell)}
        wanted = [way for way in WAYS if way not in known]
        trees = cell.hidden == 0 and boosted.NAME not in known
        if not wanted and not trees:
            continue
        parts, noise = tables.fold(cell.data, cell.fold, cell.contaminated)
        about = cell._asdict() | {"moved": noise.moved, "positives": int(parts.train.y.sum())}
        for way in wanted:
            if monotonic() > end:
                print("Time is up; run again to go on.")
                return
            steps = 200 if quick else training.STEPS
            rows = training.train(parts, way, cell.hidden, cell.fold, steps)
            results.append(out, *(about | row for row in rows), packages=["lightgbm"])
        if trees:
            results.append(out, *(about | row for row in boosted.train(parts, cell.fold)))
        print(*cell, flush=True)


def cells(quick: bool, share: str) -> Iterator[Cell]:
    """Block by block; within a block the narrow models first, all tables of one width together."""
    mine, of = map(int, share.split("/"))
    names = ("annthyroid", "webpage_phishing") if quick else tables.NAMES[mine::of]
    for fold, widths, noises in ((0, (0, 8), (0.0,)),) if quick else BLOCKS:
        for hidden, noise in product(widths, noises):
            yield from (Cell(name, fold, hidden, noise) for name in names)


def same(row: results.Row, cell: Cell) -> bool:
    """Is the row of this cell?"""
    return all(row[name] == value for name, value in cell._asdict().items())


if __name__ == "__main__":
    main()
