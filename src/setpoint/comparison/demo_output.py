"""From trials to the rows of the table: means, spreads, paired gains."""

from __future__ import annotations

import json
import math
import os
import platform
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

from setpoint._version import __version__
from setpoint.comparison.demo import (
    CORNER,
    CROSS_ENTROPY,
    GOALS,
    HELD_FPR,
    IMPLICIT,
    MODELS,
    DemoPlan,
    DemoTrial,
    certify_one,
    count_steps,
    run_on_cores,
)
from setpoint.comparison.pictures import RocPanel, RocSeries, draw_roc
from setpoint.results import RunResult, Summary, gain, mean_curve, summarize


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

    @property
    def lost(self) -> bool:
        """Whether cross-entropy is the better one on average."""
        return self.gain.mean < 0

    @property
    def clear(self) -> bool:
        """Whether the gain, or the loss, is more than two standard errors."""
        return abs(self.gain.mean) > 2 * self.gain.standard_error


def to_rows(trials: Sequence[DemoTrial]) -> list[DemoRow]:
    """One row for each goal and model, in the order of the plan."""
    rows = []
    for goal in GOALS:
        for model in MODELS:
            theirs, ours = (
                [
                    t
                    for t in trials
                    if (t.goal, t.model, t.method) == (goal.name, model.name, method)
                ]
                for method in (CROSS_ENTROPY, IMPLICIT)
            )
            values = [[t.percent for t in group] for group in (ours, theirs)]
            rows.append(
                DemoRow(
                    goal.name,
                    model.name,
                    summarize(values[1]),
                    summarize(values[0]),
                    gain(*values, higher_is_better=goal.higher_is_better),
                    summarize([t.ms_per_step for t in theirs]).mean,
                    summarize([t.ms_per_step for t in ours]).mean,
                )
            )
    return rows


# ------------------------------------------------------------------------------------------------
# The one table the demo prints. Rows where we lose stay in, and are marked.


LEGEND = (
    "Percent on the held-out test part, mean ± standard deviation over the seeds. Gain: points in\n"
    "favour of Implicit, paired by seed, ± standard error; with a question mark: less than two of\n"
    "them. Both: same initial weights, batches, Adam rate, number of steps, weight averaging."
)


def make_table(rows: Sequence[DemoRow], plan: DemoPlan) -> RichTable:
    """The rows, a section for each goal."""
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
    for goal in GOALS:
        arrow = "higher" if goal.higher_is_better else "lower"
        for place, row in enumerate(r for r in rows if r.goal == goal.name):
            first = (goal.name, f"[dim]{arrow} is better[/dim]")
            table.add_row(first[place] if place < len(first) else "", *_cells(row))
        table.add_section()
    return table


def _cells(row: DemoRow) -> tuple[str, ...]:
    style = "red" if row.lost else "green"
    change = f"{row.gain.mean:+.1f}{_plus_minus(row.gain.standard_error)}"
    return (
        row.model,
        _percent(row.cross_entropy),
        f"[bold]{_percent(row.implicit)}[/bold]",
        f"[{style}]{change}[/{style}]",
        f"[{style}]{_verdict(row)}[/{style}]",
        f"{_short(row.cross_entropy_ms)} → {_short(row.implicit_ms)}",
    )


def _verdict(row: DemoRow) -> str:
    if round(row.gain.mean, 1) == 0:  # as it is printed
        return "level"
    return ("worse" if row.lost else "better") + ("" if row.clear else " ?")


def _percent(summary: Summary) -> str:
    return f"{summary.mean:.1f}{_plus_minus(summary.spread)}"


def _short(milliseconds: float) -> str:
    """One digit after the point while it matters: a busy machine must not widen the table."""
    return f"{milliseconds:.1f}" if milliseconds < 10 else f"{milliseconds:.0f}"


def _plus_minus(size: float) -> str:
    """Nothing for a single seed, which says nothing about its spread."""
    return "" if size != size else f" ± {size:.1f}"


# ------------------------------------------------------------------------------------------------
# What the demo leaves behind: every number as JSON, and the picture.


SHOWN_FPR = (0.001, 0.1)


def write_results(
    path: Path, plan: DemoPlan, trials: Sequence[DemoTrial], rows: Sequence[DemoRow]
) -> None:
    """Versions, settings, every single trial, and the rows of the table."""
    content = {
        "versions": {
            "setpoint": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "data": "Letter (UCI, D. Slate 1991, CC BY 4.0), U against the other letters, 50/25/25",
        "seeds": list(range(plan.seeds)),
        "steps": plan.steps,
        "batch_size": plan.batch_size,
        "threads": torch.get_num_threads(),
        "learning_rates": {model.name: model.learning_rate for model in MODELS},
        "problems": {goal.name: str(goal.problem) for goal in GOALS},
        "trials": [
            {k: v for k, v in asdict(t).items() if k not in ("curve", "scores")} for t in trials
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
    paths: Sequence[Path], plan: DemoPlan, trials: Sequence[DemoTrial], rows: Sequence[DemoRow]
) -> None:
    """The ROC curves of the first goal, zoomed at the rate that is held."""
    drawn = [t for t in trials if t.goal == CORNER.name]
    gains = {row.model: row.gain.mean for row in rows if row.goal == CORNER.name}
    draw_roc(
        paths,
        [
            RocPanel(
                f"{model.title}: {_in_words(gains[model.name])}",
                (_series(CROSS_ENTROPY, model.name, drawn), _series(IMPLICIT, model.name, drawn)),
            )
            for model in MODELS
        ],
        held=HELD_FPR,
        title="Judged at 1 % false alarms, trained for 1 % false alarms",
        note=f"UCI Letter, U against the other letters, test part. Thin lines: {plan.seeds} seeds; "
        f"bold: their mean. {plan.steps:,} steps of {plan.batch_size} for both.",
        fpr=SHOWN_FPR,
        lowest_tpr=_lowest(drawn),
    )


def _series(method: str, model: str, trials: Sequence[DemoTrial]) -> RocSeries:
    curves = [t.curve for t in trials if (t.method, t.model) == (method, model) and t.curve]
    levels = np.geomspace(*SHOWN_FPR, 500)
    held = mean_curve(curves, HELD_FPR)
    return RocSeries(method, curves, mean_curve(curves, levels), float(held.tpr[0]))


def _lowest(trials: Sequence[DemoTrial]) -> float:
    """The round figure below the lowest curve at the left end."""
    starts = [float(mean_curve([t.curve], SHOWN_FPR[0]).tpr[0]) for t in trials if t.curve]
    return min(math.floor(10 * min(starts)) / 10, 0.9)


def _in_words(points: float) -> str:
    text = f"{points:+.1f}".replace("-", "\N{MINUS SIGN}")
    return "level" if round(points, 1) == 0 else f"{text} points"


# ------------------------------------------------------------------------------------------------
# Run the demo: train under a progress bar, print the table, write what was found.


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
        trials = _train(plan)
        rows = to_rows(trials)
        picture, results = out / "roc.png", out / "results.json"
        write_results(results, plan, trials, rows)
    write_picture([picture, picture.with_suffix(".svg")], plan, trials, rows)
    certificate, finished = certify_one(trials)
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


def _train(plan: DemoPlan) -> list[DemoTrial]:
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("training", total=count_steps(plan))
        return run_on_cores(plan, lambda steps: progress.advance(task, steps), _cores(plan))


def _cores(plan: DemoPlan) -> int:
    """Two if there are two; for a quick look starting a process takes longer than it saves."""
    return 1 if plan.steps < DemoPlan.steps else min(2, os.cpu_count() or 1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Models this small lose more by waking a second thread than it helps them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
