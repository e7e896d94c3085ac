"""``setpoint front``: models that trade misses for false alarms, or loss for fairness."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from setpoint.cli.common import DONE, Command, UserError, count, seed

MODELS = ("linear", "mlp")


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", type=Path, metavar="data.csv", help="csv or parquet, one row an example")
    add("--label", required=True, metavar="COLUMN", help="the true class, two different values")
    add("--out", required=True, type=Path, metavar="FOLDER", help="where the points go")
    add("--group", metavar="COLUMN", help="two groups: loss against unfairness between them")
    add("--points", type=count, default=11, metavar="N", help="models on the front (default: 11)")
    add("--steps", type=count, default=300, metavar="N", help="batches for each (default: 300)")
    add("--model", choices=MODELS, default="linear", help="default: linear")
    add("--positive", metavar="VALUE", help="which label is the positive one")
    add("--drop", action="append", default=[], metavar="COLUMN", help="do not learn from it")
    add("--batch-size", type=count, default=512, metavar="N", help="default: 512")
    add("--seed", type=seed, default=0, metavar="N", help="default: 0")


def _run(given: argparse.Namespace) -> int:
    if given.points < 3:
        raise UserError(f"--points {given.points}: a front has two ends and a middle, 3 at least.")
    if given.out.exists() and not given.out.is_dir():
        raise UserError(f"--out {given.out} is in the way: not a folder. Choose another.")
    from setpoint.runs.fronting import FrontSession

    front = FrontSession(
        file=given.file,
        out=given.out,
        label=given.label,
        group=given.group,
        positive=given.positive,
        drop=tuple(given.drop),
        model=given.model,
        points=given.points,
        steps=given.steps,
        batch_size=given.batch_size,
        seed=given.seed,
        progress=sys.stderr.isatty(),
    ).run()
    print(front)
    written = [given.out / "front.json"]
    if find_spec("matplotlib") is not None:
        front.plot(given.out / "front.png")
        written.append(given.out / "front.png")
    print(f"\nWritten: {', '.join(map(str, written))}; rates are at a score of 0 on held-out rows.")
    return DONE


FRONT = Command(_arguments, _run, "Models between two wishes: misses and false alarms, or groups.")
