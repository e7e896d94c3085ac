"""Does an objective for the operating point help boosted trees, at equal numbers of trees?

Log-loss throughout, against log-loss for the first half of the trees and the goal for the rest.
Log-loss's learning rate and how many of the trees are used are picked on validation for every
method alike; reported is the test part. Fifteen core-minutes in all:

    python -m benchmarks.boosting --quick          # two minutes, another file
    python -m benchmarks.boosting --minutes 15
    python -m benchmarks.boosting --table          # of what has been run so far
    python -m benchmarks.boosting --docs           # the same into docs/recipes/boosting.md

Rows are appended to benchmarks/results/boosting.jsonl; those already there are skipped, so a run
that was stopped goes on.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import lightgbm
import numpy as np
import xgboost

from benchmarks.common import results, tabular
from benchmarks.common.boosting_table import table
from benchmarks.common.pages import fill
from setpoint import fnr_at_fpr, precision_at_recall
from setpoint.integrations.boosting import Objective, boost

ROOT = Path(__file__).parent
RESULTS = ROOT / "results" / "boosting.jsonl"
PAGE = ROOT.parent / "docs" / "recipes" / "boosting.md"
DATA = ("spambase", "letter", "ijcnn1", "adult", "compas", "crime")
GOALS = {"FNR at FPR 1 %": fnr_at_fpr(0.01), "precision at recall 95 %": precision_at_recall(0.95)}
SIZES = {"200 x 31": (200, 5, 31), "40 x 4": (40, 2, 4)}
"""Trees x leaves: how many trees, how deep, and with how many leaves."""
WARM = {"log-loss": 1.0, "goal": 0.5}
"""The share of trees for log-loss."""
GRID = (0.25, 0.5, 0.75, 1.0)
RATES = (0.1, 0.3)
VERSIONS = {"lightgbm": lightgbm.__version__, "xgboost": xgboost.__version__}


class Cell(NamedTuple):
    """One trained booster."""

    data: str
    seed: int
    library: str
    size: str
    method: str
    rate: float
    goal: str  # log-loss serves every goal, and is trained once


def main() -> None:
    options = results.parser(
        __doc__, "table", "docs", "out", quick="one seed of two sets", seeds=5, minutes=15.0
    )
    chosen = options.parse_args()
    out = chosen.out or (RESULTS.with_stem("boosting_quick") if chosen.quick else RESULTS)
    if not (chosen.table or chosen.docs):
        run(out, list(cells(chosen)), 2.0 if chosen.quick else chosen.minutes)
    rows = results.read(out)
    if chosen.docs:
        fill(PAGE, "tables", table(rows))
    print(table(rows))


def cells(chosen: argparse.Namespace) -> Iterator[Cell]:
    """Every booster to train, seed by seed, so that a cut run is an even one."""
    for seed in range(1 if chosen.quick else chosen.seeds):
        for data in ("spambase", "crime") if chosen.quick else DATA:
            for library in ("lightgbm", "xgboost"):
                for size in SIZES:
                    for rate in RATES:
                        yield Cell(data, seed, library, size, "log-loss", rate, "all")
                        for goal in GOALS:
                            yield Cell(data, seed, library, size, "goal", rate, goal)


def run(out: Path, todo: list[Cell], minutes: float) -> None:
    done = {Cell(*(row["cell"][name] for name in Cell._fields)) for row in results.read(out)}
    for cell in results.pending(todo, done.__contains__, minutes):
        row = {"cell": cell._asdict(), **train(cell)}
        results.append(out, row, packages=("lightgbm", "xgboost"))
        print(*cell, {name: round(v["test"], 2) for name, v in row["values"].items()}, flush=True)


def train(cell: Cell) -> dict[str, Any]:
    """The goals' values on the test part, in per cent, with trees picked on validation."""
    train, validation, test = tabular.parts(cell.data, cell.seed)
    trees, depth, leaves = SIZES[cell.size]
    goals = GOALS if cell.goal == "all" else {cell.goal: GOALS[cell.goal]}
    params = {"learning_rate": cell.rate, "max_depth": depth, "seed": cell.seed}
    if cell.library == "lightgbm":
        params |= {"num_leaves": leaves, "num_threads": 1}
    else:
        params |= {"nthread": 1, "tree_method": "hist", "max_leaves": leaves}
    start = process_time()
    model = boost(
        Objective(next(iter(goals.values()))),
        train.x,
        train.y,
        library=cell.library,
        rounds=trees,
        warm=WARM[cell.method],
        params=params,
    )
    seconds = process_time() - start
    counts = [round(part * trees) for part in GRID]
    before, after = (scored(model, part.x, counts) for part in (validation, test))
    values = {}
    for name, goal in goals.items():
        shown = [goal.evaluate(s, validation.y) for s in before]
        picked = int(np.argmax(shown) if goal.maximize else np.argmin(shown))
        reached = [100 * goal.evaluate(s, test.y) for s in after]
        values[name] = {
            "validation": 100 * shown[picked],
            "test": reached[picked],
            "trees": counts[picked],
        }
    return {"values": values, "seconds": seconds}


def scored(model: Any, x: np.ndarray, counts: list[int]) -> list[np.ndarray]:
    """The margins with only the first so many trees."""
    if isinstance(model, xgboost.Booster):
        rows = xgboost.DMatrix(x)
        return [model.predict(rows, output_margin=True, iteration_range=(0, n)) for n in counts]
    return [model.predict(x, raw_score=True, num_iteration=n) for n in counts]


if __name__ == "__main__":
    main()
