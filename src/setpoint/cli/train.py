"""``setpoint train``: from a file to a certified model in a folder."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from setpoint.cli.common import DONE, NOT_CERTIFIED, Command, UserError, count, seed, share

MODELS = ("linear", "mlp")
GO_ON = "The last finished pass is kept: the same command, with any number of processes, goes on."
METHODS = "implicit (the default), cross_entropy, focal, weighted, resampled, ..., or auto"


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", type=Path, metavar="data.csv", help="csv, parquet, or a folder of parquet files")
    add("--label", required=True, metavar="COLUMN", help="the true class")
    add(
        "--goal",
        required=True,
        help='"maximize recall subject to fpr <= 0.01"; of several '
        'classes "maximize macro(recall)"',
    )
    add("--out", required=True, type=Path, metavar="FOLDER", help="where the run goes")
    add("--model", choices=MODELS, default="mlp", help="default: mlp")
    add("--method", default="implicit", metavar="NAME", help=METHODS)
    add("--group", metavar="COLUMN", help="its values are groups: for the goal and the report")
    add("--test", type=Path, metavar="FILE", help="rows to judge by, used for nothing else")
    add("--positive", metavar="VALUE", help="which label is the positive one")
    add("--drop", action="append", default=[], metavar="COLUMN", help="do not learn from it")
    add("--keep", action="append", default=[], metavar="COLUMN", help="no identifier: use it")
    add("--confidence", type=share, default=0.95, metavar="SHARE", help="default: 0.95")
    add("--epochs", type=count, metavar="N", help="passes (default: 1,500 steps, 10 at least)")
    add("--batch-size", type=count, default=512, metavar="N", help="default: 512")
    add("--learning-rate", type=_rate, metavar="R", help="default: linear 0.03, mlp 0.01")
    add("--seed", type=seed, default=0, metavar="N", help="default: 0")
    add("--no-baseline", action="store_true", help="do not train cross-entropy to compare with")
    add("--force", action="store_true", help="replace a run that is in --out already")
    add("--quiet", action="store_true", help="print only the certificate")


def _run(given: argparse.Namespace) -> int:
    from setpoint.cli.goals import read_goal
    from setpoint.cli.promises import check_goal
    from setpoint.problems import Problem
    from setpoint.runs import check_free
    from setpoint.runs.training import check_columns

    problem = read_goal(given.goal, Problem.parse)
    check_goal(given.goal, problem, given.group, given.positive)
    if given.out.name in ("", ".."):
        raise UserError(f"--out {given.out}: name the folder itself, as in --out run.")
    check_free(given.out, force=given.force)  # before training, not after
    check_columns(given.file, given.label, given.group, given.test)
    from setpoint.distributed import RankLost, is_launched, join_launched

    unfinished = given.out.with_name(f".{given.out.name}.unfinished")
    first = not is_launched() or os.environ["RANK"] == "0"
    tell = _say if first and not given.quiet else _hush
    session = _session(given, problem, unfinished, tell)
    try:
        with join_launched(GO_ON) if is_launched() else nullcontext():
            finished = session.run()
            if first:
                _write(given, finished, unfinished)
    except KeyboardInterrupt:
        if unfinished.exists():
            tell("The same command goes on from the last pass.")
        raise
    except RankLost as lost:
        raise UserError(str(lost)) from None
    return NOT_CERTIFIED if finished.certificate.exit_code else DONE


def _session(given: argparse.Namespace, problem: Any, unfinished: Path, tell: Any) -> Any:
    """The run that was asked for, of a kind that fits its goal."""
    from setpoint.runs.classes import ClassSession
    from setpoint.runs.session import Session
    from setpoint.runs.training import Watch
    from setpoint.solvers import methods_named

    methods_named(given.method, problem.kind)
    kind = ClassSession if problem.kind == "classes" else Session
    return kind(
        file=given.file,
        out=given.out,
        label=given.label,
        problem=problem,
        model=given.model,
        method=given.method,
        group=given.group,
        test=given.test,
        positive=given.positive,
        drop=tuple(given.drop),
        keep=tuple(given.keep),
        confidence=given.confidence,
        epochs=given.epochs,
        batch_size=given.batch_size,
        learning_rate=given.learning_rate,
        seed=given.seed,
        baseline=not given.no_baseline and given.method != "cross_entropy",
        watch=Watch(unfinished, tell, progress=tell is _say and sys.stderr.isatty()),
    )


def _write(given: argparse.Namespace, finished: Any, unfinished: Path) -> None:
    """The folder, and what is in it in short."""
    from setpoint.cli.pages import page_of
    from setpoint.runs.writing import write_run

    write_run(given.out, finished, page_of(finished.result), force=given.force)
    shutil.rmtree(unfinished, ignore_errors=True)
    print(finished.certificate)
    print(f"\nWritten to {given.out}: {given.out / 'report.html'} shows it.")


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _hush(text: str) -> None:
    """Say nothing."""


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number; got {text!r}")
    return value


TRAIN = Command(_arguments, _run, "Train for a goal on a table, and certify the threshold.")
