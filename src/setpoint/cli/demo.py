"""``setpoint demo``: cross-entropy against Implicit on real data."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from setpoint._files import check_output_folder, only_one
from setpoint.cli.common import DONE, as_json, count, require

_FILES = ("roc.png", "roc.svg", "results.json", "report.html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How many seeds, and where the picture goes."""
    add = parser.add_argument
    add("--seeds", type=count, default=3, metavar="N", help="how many repetitions (default: 3)")
    where = "where the picture and results.json go (default: setpoint_demo/)"
    add("--out", type=Path, default=Path("setpoint_demo"), metavar="FOLDER", help=where)
    add("--force", action="store_true", help="replace what an earlier demo left in --out")
    add("--json", action="store_true", help="print all numbers as JSON instead of the table")
    add("--quick", action="store_true", help="a few seconds: see that it runs, not what it learns")


def run(given: argparse.Namespace) -> int:
    """Train, print the table, draw the picture."""
    require("rich", "matplotlib", extra="demo")
    out = Path(os.path.realpath(given.out))
    check_output_folder(out, _FILES, force=given.force)  # before training, not after
    from setpoint.comparison.demo import DemoPlan, run_demo
    from setpoint.reports import page

    plan = DemoPlan(seeds=given.seeds)
    with only_one(given.out, "--out"):
        plan = plan.quick() if given.quick else plan
        told = run_demo(plan, given.out, page, force=given.force, quiet=given.json)
    if given.json:
        print(as_json(told))
    return DONE
