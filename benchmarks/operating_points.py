"""Does direct training pay, where, and which default never loses?

Every method on the same splits, starts and batches; learning rate and checkpoint of each are picked
on validation by the goal's own metric; what is reported is the test part.

    python -m benchmarks.operating_points --quick           # two minutes
    python -m benchmarks.operating_points                   # all stages, two hours at most
    python -m benchmarks.operating_points --stage main --seeds 5 --minutes 40
    python -m benchmarks.operating_points --table           # the tables of what has been run so far
    python -m benchmarks.operating_points --docs            # the same into docs/operating_points.md

Rows are appended to benchmarks/results/operating_points.jsonl; cells already there are skipped, so
a run that was stopped goes on.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from benchmarks.common import results, tabular
from benchmarks.common.pages import fill
from benchmarks.common.scratch import scratch
from benchmarks.points import pictures, training
from benchmarks.points.design import SEEDS, STAGES, STEPS, Job
from benchmarks.points.judging import Cell
from benchmarks.points.methods import READINGS
from benchmarks.points.plots import draw
from benchmarks.points.report import SCREENING, text

RESULTS = Path(__file__).parent / "results" / "operating_points.jsonl"
FILES = "operating_points*.jsonl"  # two runs at the same time write to two files
DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "operating_points.md"
PLOT = DOCS / "images" / "when_does_it_pay.png"


def main() -> None:
    options = results.parser(
        __doc__, "table", "docs", "out", quick="one corner, to a scratch file", minutes=120.0
    )
    options.add_argument("--stage", choices=STAGES, action="append", help="default: all")
    options.add_argument("--seeds", type=int, help="splits a cell")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    looks = chosen.table or chosen.docs
    if chosen.out is None:
        chosen.out = scratch("operating_points") if chosen.quick and not looks else RESULTS
    if not looks:
        run(chosen)
    rows = _known(chosen.out)
    if chosen.docs:
        fill(PAGE, "tables", text(rows))
        draw([row for row in rows if row["seed"] < SCREENING], PLOT)
    print(text(rows if chosen.table else results.read(chosen.out)))


def run(chosen: argparse.Namespace) -> None:
    """Run what is not there yet, until the time is up."""
    end = monotonic() + 60 * (1.5 if chosen.quick else chosen.minutes)
    for job, steps in jobs(chosen):
        done = _known(chosen.out)
        trained = {
            READINGS[row["method"]].run
            for row in done
            if _cell(row) == job.cell and row["goal"] in job.goals
        }
        job = job._replace(runs=[name for name in job.runs if name not in trained])
        if not job.runs:
            continue
        if monotonic() > end:
            print("Time is up; run again to go on.")
            return
        rows = train(job, steps, done)
        results.append(chosen.out, *rows)
        print(*job.cell, *(f"{row['goal']} {row['method']} {row['test']:.1f};" for row in rows))


def jobs(chosen: argparse.Namespace) -> Iterator[tuple[Job, int]]:
    """All jobs of the stages, each with its number of steps."""
    if chosen.quick:
        yield from ((job, 200) for job in STAGES["main"](1) if job.cell.data != "adult")
        return
    for stage in chosen.stage or STAGES:
        for job in STAGES[stage](chosen.seeds or SEEDS[stage]):
            yield job, STEPS.get(job.cell.batch, 0)


def train(job: Job, steps: int, done: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All rows of one cell."""
    if "/" in job.cell.data:
        shown = pictures.parts(job.cell.data, job.cell.seed)
        return pictures.train(job.cell, shown, job.goals, job.runs, done)
    parts = tabular.parts(job.cell.data, job.cell.seed)
    return training.train(job.cell, parts, job.goals, job.runs, steps)


def _known(out: Path) -> list[dict[str, Any]]:
    """The rows of all files beside ``out``, and its own."""
    return [row for file in sorted({*out.parent.glob(FILES), out}) for row in results.read(file)]


def _cell(row: dict[str, Any]) -> Cell:
    return Cell(*(row[name] for name in Cell._fields))


if __name__ == "__main__":
    main()
