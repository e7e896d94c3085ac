"""Four ways to treat an inequality: which one should train?

    python -m benchmarks.inequalities --quick        # a corner, two minutes
    python -m benchmarks.inequalities                # four tables, three splits, 15 minutes at most
    python -m benchmarks.inequalities --bare         # the same without a main loss
    python -m benchmarks.inequalities --table        # run nothing; --docs: into docs/peers.md

Equality holds the bound's rate at its level; "choose, then hold" is the library's rule; the soft
inner optimum is in benchmarks/peers/ways.py, slack variables are `SlackVariables`. All share main
loss, batches, starts and widths; rates and checkpoints are picked on validation by the goal's own
metric (with its inequality), and the test part is reported. Cells that are done are not run again.
"""

import argparse
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch

from benchmarks.common import results, tabular
from benchmarks.common.pages import fill
from benchmarks.peers.page import PAGE, gain, spread, table
from benchmarks.peers.soft import mean_difference
from benchmarks.peers.ways import SoftInner
from benchmarks.points import goals as known
from benchmarks.points.judging import Cell, Judge
from benchmarks.points.methods import READINGS, RUNS, Reading, Run, columns_of
from benchmarks.points.training import train_stack
from setpoint import Implicit, Problem, Stratified, f_score, precision, recall
from setpoint.solvers import SlackVariables
from setpoint.train import Shuffled

RESULTS = Path(__file__).parent / "results" / "inequalities.jsonl"
DATA = ("letter", "ijcnn1", "spambase", "adult")
RATES = {"linear": (0.03, 0.1), "mlp": (0.003, 0.01)}
STEPS = 400
GOALS = {
    "recall >= 0.95": Problem(maximize=precision, subject_to=recall >= 0.95),
    "recall >= 0.5": Problem(maximize=precision, subject_to=recall >= 0.5),
    "F1, recall >= 0.5": Problem(maximize=f_score(1), subject_to=recall >= 0.5),
}
"""Precision where the bound is active; where it nearly is; and F1, where it is slack."""
OURS = "choose, then hold"


def _equality(problem: Problem, **options: Any) -> Implicit:
    (bound,) = problem.subject_to
    held = bound.expression.at(bound.level)
    return Implicit(Problem(maximize=problem.objective, subject_to=held), **options)


WAYS: dict[str, Callable[..., Implicit]] = {
    OURS: Implicit,
    "equality": _equality,
    "soft inner optimum": SoftInner,
    "slack variables": SlackVariables,
}
BASELINES = {"focal, averaged": "focal", "mean difference": "mean difference"}


def bare(name: str) -> str:
    """The name of a way without a main loss."""
    return f"{name}, bare"


def register() -> None:
    """Make the goals and ways known to the judge and the trainer of operating_points.py."""
    known.GOALS.update(GOALS)
    known.TITLES.update({name: name for name in GOALS})
    for name, way in WAYS.items():
        RUNS[name] = Run(lambda g, n, *_, w=way: w(g, steps=n), Stratified, direct=True)
        RUNS[bare(name)] = Run(lambda g, *_, w=way: w(g, share=0.0), Stratified, direct=True)
        READINGS.update({run: Reading(run, averaged=True) for run in (name, bare(name))})
    RUNS["mean difference"] = Run(lambda *_: mean_difference, Shuffled)
    READINGS["mean difference"] = Reading("mean difference", averaged=True)


def main() -> None:
    options = results.parser(
        __doc__,
        "table",
        "docs",
        "out",
        quick="one corner, to a scratch file",
        seeds=3,
        minutes=15.0,
    )
    options.add_argument("--bare", action="store_true", help="without a main loss, linear only")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    register()
    scratch = Path(tempfile.gettempdir()) / "inequalities_quick.jsonl"
    file = chosen.out or (scratch if chosen.quick else RESULTS)
    if chosen.quick:
        file.unlink(missing_ok=True)
    if not (chosen.table or chosen.docs):
        run(chosen, file)
    found = text(results.read(file))
    if chosen.docs:
        fill(PAGE, "inequalities", found)
    print(found)


def run(chosen: argparse.Namespace, file: Path) -> None:
    """Run the cells that have no rows yet, until the time is up."""
    models = ("linear",) if chosen.bare or chosen.quick else ("linear", "mlp")
    names = [bare(way) for way in WAYS] if chosen.bare else [*WAYS, *set(BASELINES.values())]
    first = [row for row in results.read(file) if row["method"] == names[0]]
    done = {(row["seed"], row["model"], row["data"]) for row in first}
    seeds = range(1 if chosen.quick else chosen.seeds)
    cells = product(seeds, models, DATA[:1] if chosen.quick else DATA)
    for seed, model, data in results.pending(cells, done.__contains__, chosen.minutes):
        rows = train(Cell(data, model, seed=seed), names, 60 if chosen.quick else STEPS)
        results.append(file, *rows)
        print(data, model, seed, *(f"{r['method']} {r['test']:.1f};" for r in rows))


def train(cell: Cell, names: list[str], steps: int) -> list[dict[str, Any]]:
    """All ways and goals of one split, trained as columns of one stack."""
    parts = tabular.parts(cell.data, cell.seed)
    judge = Judge({name: getattr(parts, name).y for name in parts._fields}, list(GOALS))
    start = monotonic()
    for sampler in (Stratified, Shuffled):
        mine = [name for name in names if RUNS[name].sampler is sampler]
        columns = list(columns_of(mine, judge.goals, RATES[cell.model]))
        if columns:
            train_stack(cell, parts, columns, sampler, steps, judge)
    seconds = round(monotonic() - start, 1)
    return [{**row, "steps": steps, "seconds": seconds} for row in judge.rows(cell)]


def text(rows: list[dict[str, Any]]) -> str:
    """Ours in points, and what the others gain on it on the same splits."""
    if not rows:
        return "No rows yet."
    value = {(r["data"], r["model"], r["goal"], r["seed"], r["method"]): r["test"] for r in rows}
    parts = []
    for ours, others in (
        (OURS, [*list(WAYS)[1:], *BASELINES]),
        (bare(OURS), [bare(way) for way in list(WAYS)[1:]]),
    ):
        if any(key[-1] == ours for key in value):
            parts.append(_table(value, ours, others))
    return "\n\n".join(parts)


def _table(value: dict[tuple[Any, ...], float], ours: str, others: list[str]) -> str:
    cells = list(dict.fromkeys(key[:3] for key in value if key[-1] == ours))
    lines, pooled = [], {other: [] for other in others}
    for cell in sorted(cells, key=lambda c: (list(GOALS).index(c[2]), c[1])):
        mine = {key[3]: v for key, v in value.items() if key[:3] == cell and key[-1] == ours}
        line = [cell[2], cell[1], cell[0], spread(list(mine.values()))]
        for other in others:
            d = [
                value[(*cell, s, other)] - v for s, v in mine.items() if (*cell, s, other) in value
            ]
            pooled[other] += [np.mean(d)] if d else []
            line.append(gain(d))
        lines.append(line)
    last = ["**mean over cells**", "", "", "", *(gain(found) for found in pooled.values())]
    head = ["goal", "model", "data", f"{ours}, points", *(f"{other}, minus it" for other in others)]
    return table(head, [*lines, last])


if __name__ == "__main__":
    main()
