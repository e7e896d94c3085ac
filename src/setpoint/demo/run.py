"""Run the demo: train under a progress bar, print the table, write what was found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from setpoint.demo.files import write_picture, write_results
from setpoint.demo.plan import Plan
from setpoint.demo.promise import certify_one, write_page
from setpoint.demo.rows import to_rows
from setpoint.demo.table import LEGEND, make_table
from setpoint.demo.trials import Trial, count_steps
from setpoint.demo.workers import run_on_cores

PLAIN_WIDTH = 100  # for files and pipes, where there is no window to fit


def run_demo(plan: Plan, out: Path) -> None:
    """Train, print, write; ``out`` must be a folder that exists."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    start = perf_counter()
    with _one_thread():
        trials = _train(plan)
        rows = to_rows(trials)
        picture, results = out / "roc.png", out / "results.json"
        write_results(results, plan, trials, rows)
    write_picture([picture, picture.with_suffix(".svg")], plan, trials, rows)
    certificate, finished = certify_one(trials)
    write_page(out / "report.html", finished)
    console.print(make_table(rows, plan))
    console.print(LEGEND, style="dim", highlight=False)
    if plan.steps < Plan.steps:
        console.print(f"\nOnly {plan.steps} steps: this shows that it runs, not what it learns.")
    seconds = perf_counter() - start
    console.print(
        f"\nThe linear model of seed 0, its threshold set on data that nothing else has seen:\n\n"
        f"{certificate}\n\nReport: {out / 'report.html'}\n"
        f"ROC curves at the operating point: {picture} (and .svg)\n"
        f"Every single number: {results}\n{seconds:.0f} seconds.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def _train(plan: Plan) -> list[Trial]:
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("training", total=count_steps(plan))
        return run_on_cores(plan, lambda steps: progress.advance(task, steps), _cores(plan))


def _cores(plan: Plan) -> int:
    """Two if there are two; for a quick look starting a process takes longer than it saves."""
    return 1 if plan.steps < Plan.steps else min(2, os.cpu_count() or 1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Models this small lose more by waking a second thread than it helps them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
