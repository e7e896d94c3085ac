"""What ``setpoint demo`` prints and writes: table, numbers as JSON, picture, report page."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from setpoint.comparison.demo import (
    CROSS_ENTROPY,
    DRAWN,
    GOALS,
    HELD_FPR,
    IMPLICIT,
    MODELS,
    Comparisons,
    DemoPlan,
    certify_one,
    run_plan,
    versions,
)
from setpoint.comparison.pictures import RocPanel, RocSeries, draw_roc
from setpoint.comparison.tables import Comparison, verdict
from setpoint.results import Curve, RunResult, Summary, mean_curve, roc_curve

LEGEND = (
    "Percent on the held-out test part, mean ± standard deviation over the seeds. Gain: points in\n"
    "favour of Implicit, paired by seed, ± standard error; with a question mark: less than two of\n"
    "them. Both: same initial weights, batches, Adam rate, number of steps, weight averaging."
)
SHOWN_FPR = (0.001, 0.1)
PLAIN_WIDTH = 100  # for files and pipes, where there is no window to fit


def run_demo(plan: DemoPlan, out: Path, page: Callable[[RunResult], str]) -> None:
    """Train, print the table, write picture, numbers and report page.

    Args:
        plan: How many seeds and steps.
        out: A folder that exists.
        page: Turns the finished run into HTML (:func:`setpoint.reports.page`).
    """
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    start = perf_counter()
    with _one_thread():
        found = _train(plan)
        rows = demo_rows(found)
        picture, results = out / "roc.png", out / "results.json"
        write_results(results, plan, found, rows)
    write_picture([picture, picture.with_suffix(".svg")], plan, found, rows)
    certificate, finished = certify_one(found)
    (out / "report.html").write_text(page(finished), encoding="utf-8")
    console.print(make_table(rows, plan))
    console.print(LEGEND, style="dim", highlight=False)
    if plan.steps < DemoPlan.steps:
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


def _train(plan: DemoPlan) -> Comparisons:
    """Two processes if there are two cores; a quick look takes less than starting one."""
    processes = 1 if plan.steps < DemoPlan.steps else min(2, os.cpu_count() or 1)
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("training", total=plan.total_steps)
        return run_plan(plan, processes, lambda steps: progress.advance(task, steps))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Models this small lose more by waking a second thread than it helps them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class DemoRow:
    """One goal and one model: both methods in percent, and what Implicit gains in points."""

    goal: str
    model: str
    cross_entropy: Summary
    implicit: Summary
    gain: Summary
    cross_entropy_ms: float
    implicit_ms: float


def demo_rows(found: Comparisons) -> list[DemoRow]:
    """One row per goal and model, in the order of the plan."""
    return [_demo_row(goal, model, one) for (goal, model), one in found.items()]


def _demo_row(goal: str, model: str, found: Comparison) -> DemoRow:
    theirs, ours = found.rows
    if theirs.value is None or ours.value is None or ours.gain is None:
        raise RuntimeError(f"The demo has no value for {goal}: {theirs.trouble or ours.trouble}")
    return DemoRow(
        goal,
        model,
        _percent(theirs.value),
        _percent(ours.value),
        _percent(ours.gain),
        theirs.ms_per_step,
        ours.ms_per_step,
    )


def _percent(share: Summary) -> Summary:
    return Summary(100 * share.mean, 100 * share.spread, 100 * share.standard_error, share.count)


def make_table(rows: Sequence[DemoRow], plan: DemoPlan) -> RichTable:
    """The one table of the demo, a section per goal; rows where Implicit loses are marked."""
    table = RichTable(
        title=f"Letter (UCI): find the U among 26 letters · {plan.steps:,} steps of "
        f"{plan.batch_size} · {plan.seeds} seed{'s' if plan.seeds > 1 else ''}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("goal", no_wrap=True)
    table.add_column("model", no_wrap=True)
    for name in ("cross-entropy", "Implicit", "gain"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("ms/step", justify="right", no_wrap=True)
    for goal, problem in GOALS.items():
        arrow = "higher" if problem.maximize else "lower"
        for place, row in enumerate(r for r in rows if r.goal == goal):
            first = (goal, f"[dim]{arrow} is better[/dim]")
            table.add_row(first[place] if place < len(first) else "", *_cells(row))
        table.add_section()
    return table


def _cells(row: DemoRow) -> tuple[str, ...]:
    style = "red" if row.gain.mean < 0 else "green"
    change = f"{row.gain.mean:+.1f}{_plus_minus(row.gain.standard_error)}"
    told = verdict(row.gain, level=round(row.gain.mean, 1) == 0)  # as it is printed
    return (
        row.model,
        f"{row.cross_entropy.mean:.1f}{_plus_minus(row.cross_entropy.spread)}",
        f"[bold]{row.implicit.mean:.1f}{_plus_minus(row.implicit.spread)}[/bold]",
        f"[{style}]{change}[/{style}]",
        f"[{style}]{told}[/{style}]",
        f"{_short(row.cross_entropy_ms)} → {_short(row.implicit_ms)}",
    )


def _short(milliseconds: float) -> str:
    """One digit after the point below ten: a busy machine must not widen the table."""
    return f"{milliseconds:.1f}" if milliseconds < 10 else f"{milliseconds:.0f}"


def _plus_minus(size: float) -> str:
    """Nothing for a single seed, which says nothing about its spread."""
    return "" if size != size else f" ± {size:.1f}"


def write_results(path: Path, plan: DemoPlan, found: Comparisons, rows: Sequence[DemoRow]) -> None:
    """Versions, settings, every single trial, and the rows of the table."""
    content = {
        "versions": versions(),
        "data": "Letter (UCI, D. Slate 1991, CC BY 4.0), U against the other letters, 50/25/25",
        "seeds": list(range(plan.seeds)),
        "steps": plan.steps,
        "batch_size": plan.batch_size,
        "threads": torch.get_num_threads(),
        "learning_rates": {name: model.learning_rate for name, model in MODELS.items()},
        "problems": {goal: str(problem) for goal, problem in GOALS.items()},
        "trials": [
            {
                "goal": goal,
                "model": model,
                "method": trial.method,
                "seed": trial.seed,
                "percent": None if trial.value is None else 100 * trial.value,
                "ms_per_step": trial.ms_per_step,
            }
            for (goal, model), one in found.items()
            for trial in one.trials
        ],
        "rows": [_plain(row) for row in rows],
    }
    path.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _plain(row: DemoRow) -> dict[str, Any]:
    """A row as JSON knows it: what is undefined for a single seed is null."""
    plain = asdict(row)
    for part in (value for value in plain.values() if isinstance(value, dict)):
        part.update({k: None for k, v in part.items() if not math.isfinite(v)})
    return plain


def write_picture(
    paths: Sequence[Path], plan: DemoPlan, found: Comparisons, rows: Sequence[DemoRow]
) -> None:
    """The ROC curves of the first goal, zoomed at the rate that is held."""
    gains = {row.model: row.gain.mean for row in rows if row.goal == DRAWN}
    curves = {model: demo_curves(found[DRAWN, model]) for model in MODELS}
    starts = [
        float(mean_curve([curve], SHOWN_FPR[0]).tpr[0])
        for by_method in curves.values()
        for listed in by_method.values()
        for curve in listed
    ]
    draw_roc(
        paths,
        [
            RocPanel(
                f"{MODELS[model].title}: {_in_words(gains[model])}",
                (_series(CROSS_ENTROPY, by_method), _series(IMPLICIT, by_method)),
            )
            for model, by_method in curves.items()
        ],
        held=HELD_FPR,
        title="Judged at 1 % false alarms, trained for 1 % false alarms",
        note=f"UCI Letter, U against the other letters, test part. Thin lines: {plan.seeds} seeds; "
        f"bold: their mean. {plan.steps:,} steps of {plan.batch_size} for both.",
        fpr=SHOWN_FPR,
        lowest_tpr=min(math.floor(10 * min(starts)) / 10, 0.9),  # below the lowest curve
    )


def demo_curves(found: Comparison) -> dict[str, list[Curve]]:
    """The ROC curve of every trial on the test part, by method."""
    curves: dict[str, list[Curve]] = {CROSS_ENTROPY: [], IMPLICIT: []}
    for trial in found.trials:
        curves[trial.method].append(roc_curve(trial.scores["test"], found.labels[trial.seed]))
    return curves


def _series(method: str, curves: dict[str, list[Curve]]) -> RocSeries:
    mine, levels = curves[method], np.geomspace(*SHOWN_FPR, 500)
    held = mean_curve(mine, HELD_FPR)
    return RocSeries(method, mine, mean_curve(mine, levels), float(held.tpr[0]))


def _in_words(points: float) -> str:
    text = f"{points:+.1f}".replace("-", "\N{MINUS SIGN}")
    return "level" if round(points, 1) == 0 else f"{text} points"
