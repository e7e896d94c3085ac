"""``setpoint demo``: cross-entropy against Implicit on real data."""

from __future__ import annotations

import argparse
from pathlib import Path

from setpoint.cli.common import DONE, Command, count, make_folder, require


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seeds", type=count, default=3, metavar="N", help="how many repetitions (default: 3)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("setpoint_demo"),
        metavar="FOLDER",
        help="where the picture and results.json go (default: setpoint_demo/)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few seconds: see that it runs, not what it learns"
    )


def _run(given: argparse.Namespace) -> int:
    require("rich", "matplotlib", extra="demo")
    make_folder(given.out)  # before training, not after
    from setpoint.comparison.demo import DemoPlan
    from setpoint.comparison.demo_output import run_demo
    from setpoint.reports import page

    plan = DemoPlan(seeds=given.seeds)
    run_demo(plan.quick() if given.quick else plan, given.out, page)
    return DONE


DEMO = Command(
    _arguments,
    _run,
    "Cross-entropy against Implicit on real data, in under a minute: a table and a picture.",
)
