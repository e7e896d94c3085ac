"""``setpoint front``: models between two goals: loss and fairness, or misses and false alarms."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from setpoint.cli.common import DONE, Command, UserError, count, seed
from setpoint.cli.grouped import Grouped, read_grouped

LOSSES = ("loss", "misses", "false_alarms")
GAPS = ("coverage_gap", "tpr_gap", "fpr_gap", "covariance")
MODELS = ("linear", "mlp")
WHOLE = 8192  # rows up to which every step takes all of them
HIDDEN, RATES = 32, {"linear": 0.03, "mlp": 0.01}
COLUMNS, PICTURE = "columns.json", "front.png"


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", type=Path, metavar="data.csv", help="csv or parquet, one row an example")
    add("--label", required=True, metavar="COLUMN", help="the true class, two different values")
    add("--group", metavar="COLUMN", help="whose values are to be treated alike")
    both = "default: loss and coverage_gap with --group, else misses and false_alarms"
    add("--minimize", choices=(*LOSSES, *GAPS), help=both)
    add("--hold", choices=(*LOSSES, *GAPS), help="what the points are evenly spaced along")
    add("--points", type=count, default=12, metavar="N", help="models, ends included (default: 12)")
    add("--out", required=True, type=Path, metavar="FOLDER", help="where they go")
    add("--model", choices=MODELS, default="linear", help="default: linear")
    add("--positive", metavar="VALUE", help="which label is the positive one")
    add("--drop", action="append", default=[], metavar="COLUMN", help="do not learn from it")
    add("--keep", action="append", default=[], metavar="COLUMN", help="no identifier: use it")
    add("--learn-from-group", action="store_true", help="let the models see the group")
    add("--steps", type=count, default=200, metavar="N", help="of each model (default: 200)")
    add("--processes", type=count, default=1, metavar="N", help="default: 1")
    add("--seed", type=seed, default=0, metavar="N", help="default: 0")
    add("--quiet", action="store_true", help="print only the table")


def _run(given: argparse.Namespace) -> int:
    minimize, hold = _goals(given)
    if given.points < 3:
        raise UserError(
            f"--points must be at least 3, two ends and one between; got {given.points}."
        )
    if given.out.exists() and not given.out.is_dir():
        raise UserError(f"--out {given.out} is a file; name a folder.")
    parts = read_grouped(given)
    given.out.mkdir(parents=True, exist_ok=True)
    front = _train(given, parts, minimize, hold)
    columns = {"label": given.label, "positive": parts.positive, "group": given.group}
    columns |= {"groups": parts.groups, "columns": parts.columns, "model": given.model}
    text = json.dumps(columns, indent=2, ensure_ascii=False)
    (given.out / COLUMNS).write_text(text + "\n", encoding="utf-8")
    if find_spec("matplotlib") is not None:
        front.plot(given.out / PICTURE)
    print(front)
    print(f"\nWritten to {given.out}: front.json has every number, point-*/ the weights.")
    return DONE


def _goals(given: argparse.Namespace) -> tuple[str, str]:
    """What was asked for, or what is usual with and without groups."""
    usual = ("misses", "false_alarms") if given.group is None else ("loss", "coverage_gap")
    goals = (given.minimize or usual[0], given.hold or usual[1])
    if goals[0] == goals[1]:
        raise UserError(f"--minimize and --hold are both {goals[0]}; a front needs two goals.")
    for name in goals:
        if name in GAPS and given.group is None:
            raise UserError(f"{name} is between groups; name their column: --group COLUMN.")
    return goals


def _train(given: argparse.Namespace, parts: Grouped, minimize: str, hold: str) -> Any:
    from functools import partial

    from setpoint.pareto import pareto_front
    from setpoint.pareto.goals import Judge, TableLosses
    from setpoint.runs.model import build_model

    x, y, groups = parts.train
    return pareto_front(
        partial(build_model, given.model, x.shape[1], HIDDEN, given.seed),
        TableLosses(minimize, hold),
        (x, y, groups),
        points=given.points,
        steps=given.steps,
        batch_size=None if len(x) <= WHOLE else WHOLE // 2,
        learning_rate=RATES[given.model],
        seed=given.seed,
        measure=Judge(*parts.held_out),
        folder=given.out,
        processes=given.processes,
        order="inward",
        progress=not given.quiet and sys.stderr.isatty(),
    )


FRONT = Command(_arguments, _run, "Models between two goals: what fairness, or fewer misses, cost.")
