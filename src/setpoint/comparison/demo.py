"""``setpoint demo``, a plan of the comparison: three goals, two models, two methods.

Both methods have one budget: split, initial weights, batches, rate of Adam, steps, averaging.
Nothing is chosen on the validation part, so a threshold may be certified there. The demo prints a
table and writes the picture, every number as JSON, and the report page of one run.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from setpoint._checks import plural
from setpoint._files import write_folder
from setpoint._version import versions
from setpoint.certificates import Certificate, certify
from setpoint.comparison.pictures import draw_corner, scored_parts
from setpoint.comparison.tables import Comparison, MethodRow, verdict
from setpoint.comparison.trials import Bench, ComparisonPlan, MethodTrial
from setpoint.datasets import DataSplit, letter, split
from setpoint.distributed import Processes, open_pool
from setpoint.problems import Problem, fnr_at_fpr, pr_auc, precision_at_recall
from setpoint.results import RunResult, roc_curve
from setpoint.solvers import Implicit, Method, cross_entropy
from setpoint.solvers.implicit import StarvedBatchWarning
from setpoint.train import LEARNING_RATES, Shuffled

HELD_FPR = 0.01
DRAWN = "FNR at FPR 1 %"
"""The goal whose curves are drawn and whose threshold is certified."""
DEMO_GOALS: dict[str, Problem] = {
    DRAWN: fnr_at_fpr(HELD_FPR),
    "precision at recall 95 %": precision_at_recall(0.95),
    "PR-AUC, recall 95-100 %": pr_auc(recall=(0.95, 1.0)),
}
CROSS_ENTROPY, IMPLICIT = "cross-entropy", "Implicit"
DEMO_METHODS = {
    CROSS_ENTROPY: Method(lambda _problem, _steps: cross_entropy, Shuffled),
    IMPLICIT: Method(lambda problem, steps: Implicit(problem, steps=steps), Shuffled),
}
DEMO_MODELS = {"linear": "linear", "MLP 64": "mlp"}
"""By their name in the table; the kind decides the learning rate."""
TITLES = {"linear": "Linear model", "MLP 64": "MLP, 64 hidden units"}
Comparisons = Mapping[tuple[str, str], Comparison]
"""One comparison of the two methods per goal and model, in the order of the table."""
DATA = "Letter (UCI, D. Slate 1991, CC BY 4.0), U against the other letters, 50/25/25"
LEGEND = (
    "Percent on the held-out test part, mean ± standard deviation over the seeds. Gain: points in\n"
    "favour of Implicit, paired by seed, ± standard error; with a question mark: less than two of\n"
    "them. Both: same initial weights, batches, Adam rate, number of steps, weight averaging."
)
PLAIN_WIDTH = 100  # for files and pipes, where there is no window to fit


@dataclass(frozen=True)
class DemoPlan:
    """How much is trained."""

    seeds: int = 3
    steps: int = 1000  # under a minute on two cores
    batch_size: int = 512

    def quick(self) -> DemoPlan:
        """Enough steps to see that everything runs, too few to learn from."""
        return replace(self, steps=30)

    @property
    def total_steps(self) -> int:
        """All steps of the demo: cross-entropy once for all goals, Implicit once for each."""
        return self.seeds * len(DEMO_MODELS) * (1 + len(DEMO_GOALS)) * self.steps

    def bench(self, model: str, seed: int) -> Bench:
        """What both methods share on one split."""
        kind = DEMO_MODELS[model]
        given = (kind, self.steps, self.batch_size, [LEARNING_RATES[kind]])
        return Bench(ComparisonPlan(DEMO_GOALS[DRAWN], letter_split, *given), seed)


def letter_split(seed: int) -> DataSplit:
    """The letters in three parts, 50/25/25."""
    return split(letter(), seed)


def run_plan(
    plan: DemoPlan, processes: Processes = 1, on_steps: Callable[[int], None] = lambda _: None
) -> dict[tuple[str, str], Comparison]:
    """Train and judge everything; ``on_steps`` is called with the number of steps just done."""
    seeds = range(plan.seeds)
    cells = [(model, seed) for seed in seeds for model in DEMO_MODELS]
    with open_pool(processes, on_steps=on_steps) as pool:
        tasks = [pool.submit(run_cell, plan, *cell) for cell in cells]
        found = {cell: pool.result(task) for cell, task in zip(cells, tasks, strict=True)}
    labels = {seed: letter_split(seed).test.y for seed in seeds}
    return {
        (goal, model): Comparison(
            problem, tuple(trial for seed in seeds for trial in found[model, seed][goal]), labels
        )
        for goal, problem in DEMO_GOALS.items()
        for model in DEMO_MODELS
    }


def run_cell(plan: DemoPlan, model: str, seed: int) -> dict[str, list[MethodTrial]]:
    """One model on one split by both methods; the trials by goal, cross-entropy first."""
    bench = plan.bench(model, seed)
    # cross-entropy does not know the goal, so one training serves all three
    usual = bench.train(DEMO_METHODS[CROSS_ENTROPY], DEMO_GOALS[DRAWN])
    trials = {}
    for goal, problem in DEMO_GOALS.items():
        with warnings.catch_warnings():  # small batches are part of the comparison
            warnings.simplefilter("ignore", StarvedBatchWarning)
            ours = bench.train(DEMO_METHODS[IMPLICIT], problem)
        fitted = {CROSS_ENTROPY: usual, IMPLICIT: ours}
        trials[goal] = [bench.judge(name, problem, one) for name, one in fitted.items()]
    return trials


def run_demo(
    plan: DemoPlan,
    out: Path,
    page: Callable[[RunResult], str],
    *,
    force: bool = False,
    quiet: bool = False,
) -> dict[str, Any]:
    """Train, print the table, write picture, numbers and report page.

    Args:
        plan: How many seeds and steps.
        out: A folder; all of them get there in one step.
        page: Turns the finished run into HTML (:func:`setpoint.reports.page`).
        force: Whether an older demo there may be replaced.
        quiet: Print nothing.

    Returns:
        All numbers and the certificate, as JSON knows them, and the files that were written.
    """
    console = Console(quiet=quiet)
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH, quiet=quiet)
    start, threads = perf_counter(), torch.get_num_threads()
    torch.set_num_threads(1)  # models this small lose more by waking a second thread
    try:
        found = _run_with_bar(plan)
    finally:
        torch.set_num_threads(threads)
    certificate, finished = certify_one(found)
    results = results_of(plan, found)
    text = json.dumps(results, indent=1, allow_nan=False) + "\n"
    files = {"results.json": text, "report.html": page(finished)}
    with TemporaryDirectory() as folder:
        pictures = [Path(folder) / "roc.png", Path(folder) / "roc.svg"]
        write_picture(pictures, plan, found)
        drawn = {path.name: path.read_bytes() for path in pictures}
    whole = drawn | {name: content.encode() for name, content in files.items()}
    write_folder(Path(os.path.realpath(out)), whole, force=force)
    console.print(make_table(found, plan))
    console.print(LEGEND, style="dim", highlight=False)
    if plan.steps < DemoPlan.steps:
        console.print(f"\nOnly {plan.steps} steps: this shows that it runs, not what it learns.")
    console.print(
        f"\nThe linear model of seed 0, its threshold set on data that nothing else has seen:\n\n"
        f"{certificate}\n\nReport: {out / 'report.html'}\n"
        f"ROC curves at the operating point: {out / 'roc.png'} (and .svg)\n"
        f"Every single number: {out / 'results.json'}\n{perf_counter() - start:.0f} seconds.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    written = {name: str(out / name) for name in ("report.html", "roc.png", "results.json")}
    return {**results, "certificate": json.loads(certificate.to_json()), "written": written}


def _run_with_bar(plan: DemoPlan) -> Comparisons:
    """Two processes if there are two cores; a quick look takes less than starting one."""
    processes = 1 if plan.steps < DemoPlan.steps else min(2, os.cpu_count() or 1)
    columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("training", total=plan.total_steps)
        return run_plan(plan, processes, lambda steps: progress.advance(task, steps))


def make_table(found: Comparisons, plan: DemoPlan) -> RichTable:
    """The one table of the demo, a section per goal; rows where Implicit loses are marked."""
    table = RichTable(
        title=f"Letter (UCI): find the U among 26 letters · {plan.steps:,} steps of "
        f"{plan.batch_size} · {plural(plan.seeds, 'seed')}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for name in ("goal", "model"):
        table.add_column(name, no_wrap=True)
    for name in ("cross-entropy", "Implicit", "gain"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("ms/step", justify="right", no_wrap=True)
    for goal, problem in DEMO_GOALS.items():
        better = f"[dim]{'higher' if problem.maximize else 'lower'} is better[/dim]"
        for model, first in zip(DEMO_MODELS, (goal, better), strict=True):
            table.add_row(first, model, *_demo_cells(*found[goal, model].rows))
        table.add_section()
    return table


def _demo_cells(theirs: MethodRow, ours: MethodRow) -> tuple[str, ...]:
    if theirs.value is None or ours.value is None or ours.gain is None:
        raise RuntimeError(f"The demo has no value: {theirs.trouble or ours.trouble}")
    points = 100 * ours.gain.mean
    style = "red" if points < 0 else "green"
    told = verdict(ours.gain, level=round(points, 1) == 0)  # as it is printed
    return (
        _percent_and_spread(theirs.value.mean, theirs.value.spread),
        f"[bold]{_percent_and_spread(ours.value.mean, ours.value.spread)}[/bold]",
        f"[{style}]{_percent_and_spread(ours.gain.mean, ours.gain.standard_error, '+')}[/{style}]",
        f"[{style}]{told}[/{style}]",
        f"{theirs.ms_per_step:.1f} → {ours.ms_per_step:.1f}",
    )


def _percent_and_spread(mean: float, size: float, sign: str = "") -> str:
    """Without a spread for a single seed, which says nothing about it."""
    return f"{100 * mean:{sign}.1f}" + ("" if size != size else f" ± {100 * size:.1f}")


def results_of(plan: DemoPlan, found: Comparisons) -> dict[str, Any]:
    """Versions, settings, and every comparison with all its trials."""
    return {
        "versions": versions(),
        "data": DATA,
        "seeds": list(range(plan.seeds)),
        "steps": plan.steps,
        "batch_size": plan.batch_size,
        "comparisons": [
            {"goal": goal, "model": model, **json.loads(one.to_json())}
            for (goal, model), one in found.items()
        ],
    }


def write_picture(paths: list[Path], plan: DemoPlan, found: Comparisons) -> None:
    """The ROC curves of the first goal, zoomed at the rate that is held."""
    panels = {}
    for model, title in TITLES.items():
        drawn = found[DRAWN, model]
        gain = drawn.rows[1].gain
        points = 0.0 if gain is None else 100 * gain.mean
        level = round(points, 1) == 0
        told = "level" if level else f"{points:+.1f} points".replace("-", "\N{MINUS SIGN}")
        parts = scored_parts(drawn.trials, drawn.labels)
        panels[f"{title}: {told}"] = {
            method: [roc_curve(*pair) for pair in pairs] for method, pairs in parts.items()
        }
    draw_corner(
        paths,
        panels,
        held=HELD_FPR,
        title="Judged at 1 % false alarms, trained for 1 % false alarms",
        note=f"UCI Letter, U against the other letters, test part. Thin lines: {plan.seeds} seeds; "
        f"bold: their mean. {plan.steps:,} steps of {plan.batch_size} for both.",
    )


def certify_one(found: Comparisons) -> tuple[Certificate, RunResult]:
    """The linear model of the first seed: its certificate, and the run as the report takes it."""
    model = next(iter(DEMO_MODELS))
    first = {t.method: t.scores for t in found[DRAWN, model].trials if t.seed == 0}
    ours, theirs = first[IMPLICIT], first[CROSS_ENTROPY]
    parts = letter_split(0)
    names = {"train": "train", "validation": "calibration", "test": "test"}
    labels = {part: getattr(parts, part).y for part in names}
    certificate = certify(ours["validation"], labels["validation"], DEMO_GOALS[DRAWN])
    run = RunResult(
        goal=str(DEMO_GOALS[DRAWN]),
        splits={name: (ours[part], labels[part]) for part, name in names.items()},
        threshold=certificate.threshold_or_none,
        certificate=json.loads(certificate.to_json()),
        label="letter",
        positive="U",
        method=IMPLICIT,
        model=TITLES[model].lower(),
        seed=0,
        versions=versions(),
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        baseline={name: theirs[part] for part, name in names.items()},
        notes=[
            "UCI Letter (D. Slate, 1991, CC BY 4.0): half to train, a quarter to certify, rest."
        ],
    )
    return certificate, run
