"""``setpoint front``: models between two goals: loss and fairness, or misses and false alarms."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._checks import quoted_list
from setpoint._files import check_output_folder, only_one, write_file
from setpoint.cli.common import DONE, UserError, add_decimal, as_json, count, seed
from setpoint.tables import TableError, need_column, open_table
from setpoint.tables.training_file import Shares, Survey, TablePart, read_parts, survey

LOSSES = ("loss", "misses", "false_alarms")
GAPS = ("coverage_gap", "tpr_gap", "fpr_gap", "covariance")
_WHOLE = 8192  # rows up to which every step takes all of them
_HIDDEN, _LEARNING_RATES = 32, {"linear": 0.03, "mlp": 0.01}
_COLUMNS, _PICTURE = "columns.json", "front.png"
_FRONT, _POINTS = "front.json", "point-[0-9][0-9][0-9]*/"
_FILES = (_FRONT, _COLUMNS, _PICTURE, _POINTS)
_WEIGHTS = ("checkpoint.safetensors",)
_HELD_OUT = 0.3  # of the rows, to judge by
_LEAST_ROWS = 10  # of each class and group in either part, below which rates say nothing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A file, its columns, the two goals, and how to train."""
    add = parser.add_argument
    add("file", type=Path, metavar="data.csv", help="csv or parquet, one row per example")
    add("--label", required=True, metavar="COLUMN", help="the true class, two different values")
    add("--group", metavar="COLUMN", help="whose values are to be treated alike")
    both = "trained for (default: loss and coverage_gap with --group, else misses and false_alarms)"
    add("--minimize", choices=(*LOSSES, *GAPS), help=both)
    add("--hold", choices=(*LOSSES, *GAPS), help="what the points are evenly spaced along")
    add("--points", type=count, default=12, metavar="N", help="models, ends included (default: 12)")
    add("--out", required=True, type=Path, metavar="FOLDER", help="where they go")
    add("--model", choices=tuple(_LEARNING_RATES), default="linear", help="of all points (linear)")
    add("--positive", metavar="VALUE", help="which label is the positive one")
    columns: dict[str, Any] = {"action": "extend", "nargs": "+", "default": [], "metavar": "COLUMN"}
    add("--drop", **columns, help="do not learn from these")
    add("--keep", **columns, help="no identifiers: use them")
    add("--learn-from-group", action="store_true", help="let the models see the group")
    add("--steps", type=count, default=200, metavar="N", help="of each model (default: 200)")
    add("--processes", type=count, default=1, metavar="N", help="at a time (1)")
    add("--seed", type=seed, default=0, metavar="N", help="of the start (0)")
    add("--quiet", action="store_true", help="print only the table")
    add_decimal(parser)
    add("--json", action="store_true", help="print every number as JSON")


def run(given: argparse.Namespace) -> int:
    """Read the file, train the front, print and write it."""
    minimize, hold = _goals(given)
    if given.points < 3:
        raise UserError(
            f"--points must be at least 3, two ends and one between; got {given.points}."
        )
    begun = sorted(given.out.glob(_POINTS)) if given.out.is_dir() else []
    for point in begun:
        check_output_folder(point, _WEIGHTS, force=None, continued=True)
    # another front is refused later
    known = _FILES if begun and (given.out / _FRONT).is_file() else (_POINTS,)
    check_output_folder(given.out, known, force=None, continued=bool(begun), inputs=[given.file])
    source = open_table(given.file, given.decimal)
    if given.group is not None:
        need_column(source, given.group, "--group")
    shares = Shares(given.seed, validation=_HELD_OUT, calibration=0.0)
    unseen = [] if given.group is None or given.learn_from_group else [given.group]
    drop = (*given.drop, *unseen)
    seen = survey(source, given.label, shares, positive=given.positive, drop=drop, keep=given.keep)
    if not given.quiet:
        for note in (f"{given.file}: {seen.rows:,} rows.", *seen.notes):
            print(note, file=sys.stderr)
    columns = (given.label, seen.classes, seen.encoder)
    reading = read_parts(source, *columns, shares.dealer(), seen.rows, given.group)
    with reading as (train, held_out, _), only_one(given.out, "--out"):
        groups = _groups(given, train, held_out)
        given.out.mkdir(parents=True, exist_ok=True)
        front = _train(given, groups, train, held_out, minimize, hold)
        _write(given, seen, groups, front)
    written = f"Written to {given.out}: front.json has every number, point-*/ the weights."
    print(front.to_json() if given.json else f"{front}\n\n{written}")
    return DONE


def _goals(given: argparse.Namespace) -> tuple[str, str]:
    """What was asked for, or the defaults with and without groups."""
    usual = ("misses", "false_alarms") if given.group is None else ("loss", "coverage_gap")
    goals = (given.minimize or usual[0], given.hold or usual[1])
    if goals[0] == goals[1]:
        raise UserError(f"--minimize and --hold are both {goals[0]}; a front needs two goals.")
    for name in goals:
        if name in GAPS and given.group is None:
            raise UserError(f"{name} is between groups; name their column: --group COLUMN.")
    return goals


def _groups(given: argparse.Namespace, *parts: TablePart) -> list[str]:
    """The names of the groups; TableError unless every part has enough rows of each."""
    names = sorted({str(g) for part in parts for g in ([] if part.groups is None else part.groups)})
    if given.group is not None and len(names) < 2:
        problem = f"a group column has two values at least; this one has only {quoted_list(names)}."
        raise TableError(given.file, problem, column=given.group)
    for part in parts:
        for name in names or [""]:
            mine = part.y[part.groups == name] if names else part.y
            few = min(int(mine.sum()), int(len(mine) - mine.sum()))
            if few < _LEAST_ROWS:
                whose = f" of the group {name!r}" if names else ""
                problem = f"too few rows: a part has {few} of a class{whose}; "
                problem += f"{_LEAST_ROWS} is the least."
                raise TableError(given.file, problem, column=given.group)
    return names


def _train(
    given: argparse.Namespace,
    groups: list[str],
    train: TablePart,
    held_out: TablePart,
    minimize: str,
    hold: str,
) -> Any:
    from setpoint.pareto import pareto_front
    from setpoint.pareto.goals import Judge, TableLosses
    from setpoint.runs.model import build_model

    columns = _tensors(train, groups)
    return pareto_front(
        partial(build_model, given.model, train.x.shape[1], _HIDDEN, given.seed),
        TableLosses(minimize, hold),
        columns,
        points=given.points,
        steps=given.steps,
        batch_size=None if len(train) <= _WHOLE else _WHOLE // 2,
        learning_rate=_LEARNING_RATES[given.model],
        seed=given.seed,
        measure=Judge(*_tensors(held_out, groups)),
        folder=given.out,
        processes=given.processes,
        order="inward",
        progress=not given.quiet and sys.stderr.isatty(),
    )


def _tensors(part: TablePart, groups: list[str]) -> tuple[Any, Any, Any]:
    """Features, labels and one-hot groups (a column of ones without groups)."""
    import torch

    members = [part.groups == name for name in groups] or [np.ones(len(part))]
    return (
        torch.from_numpy(np.ascontiguousarray(part.x)),
        torch.from_numpy(part.y),
        torch.from_numpy(np.stack(members, axis=1).astype(np.float32)),
    )


def _write(given: argparse.Namespace, seen: Survey, groups: list[str], front: Any) -> None:
    """What the columns of the features are, and a picture if matplotlib is there."""
    columns = {"label": given.label, "positive": seen.classes.names[1], "group": given.group}
    columns |= {"groups": groups, "columns": seen.encoder.to_json(), "model": given.model}
    write_file(given.out / _COLUMNS, f"{as_json(columns)}\n".encode())
    if find_spec("matplotlib") is not None:
        front.plot(given.out / _PICTURE)
