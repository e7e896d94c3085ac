"""When should boosted trees stop: by log-loss, or by the goal's own metric?

    python -m benchmarks trees --quick    # one small table
    python -m benchmarks trees            # about five minutes

On the seven tables by which the defaults were chosen. Other rules that were tried (the goal's
metric smoothed over five looks, or no fewer than half of the trees of log-loss) lie between
these two.
"""

from collections import defaultdict
from typing import Any

import lightgbm
import numpy as np

from benchmarks.common import results, tabular
from benchmarks.common.scratch import scratch
from benchmarks.points.judging import value
from setpoint.train.boosted_trees import STALE_TREES, TREES

GOALS = ("fnr1", "pr95", "f1")
LOOK = 10  # the goal is measured after every so many trees
SHAPES = ((0.05, 31), (0.05, 15), (0.1, 31))  # learning rate, leaves


def main() -> None:
    options = results.parser(__doc__, "table", "out", quick="one small table", seeds=3)
    chosen = options.parse_args()
    out = chosen.out or (scratch("trees") if chosen.quick else results.RESULTS / "trees.jsonl")
    if not chosen.table:
        out.unlink(missing_ok=True)
        for data in ("heart",) if chosen.quick else tabular.NAMES:
            for seed in range(chosen.seeds):
                results.append(out, *run(data, seed), packages=["lightgbm"])
    print(table(results.read(out)))


def run(data: str, seed: int) -> list[results.Row]:
    """A row for every shape, goal and rule."""
    parts = tabular.parts(data, seed)
    return [
        {"data": data, "seed": seed, "rate": rate, "leaves": leaves, "goal": goal} | found
        for rate, leaves in SHAPES
        for goal, found in _stopped(parts, seed, rate, leaves)
    ]


def _stopped(parts: Any, seed: int, rate: float, leaves: int) -> list[tuple[str, results.Row]]:
    first = lightgbm.Dataset(parts.train.x, parts.train.y)
    second = lightgbm.Dataset(parts.validation.x, parts.validation.y, reference=first)
    settings = {"objective": "binary", "learning_rate": rate, "num_leaves": leaves, "seed": seed}
    settings |= {"verbosity": -1, "num_threads": 1}
    stop = lightgbm.early_stopping(STALE_TREES, verbose=False)
    grown = lightgbm.train(settings, first, TREES, valid_sets=[second], callbacks=[stop])
    total, by_loss = grown.current_iteration(), grown.best_iteration
    counts = sorted({*range(LOOK, total, LOOK), total, by_loss})
    seen = {k: grown.predict(parts.validation.x, num_iteration=k, raw_score=True) for k in counts}
    found = []
    for goal in GOALS:
        judged = {k: value(goal, seen[k], parts.validation.y) for k in counts}
        by_goal = max(counts, key=lambda k: (judged[k], -k))
        for rule, kept in (("log-loss", by_loss), ("goal", by_goal)):
            scores = grown.predict(parts.test.x, num_iteration=kept, raw_score=True)
            row = {"rule": rule, "trees": kept, "test": round(value(goal, scores, parts.test.y), 3)}
            found.append((goal, row))
    return found


def table(rows: list[results.Row]) -> str:
    """The mean over tables, goals and splits of every shape and rule."""
    found: dict[tuple[float, int, str], list[float]] = defaultdict(list)
    for row in rows:
        found[row["rate"], row["leaves"], row["rule"]].append(row["test"])
    lines = ["| learning rate | leaves | stopped by | points |", "| --- | --- | --- | ---: |"]
    lines += [f"| {a} | {b} | {rule} | {np.mean(v):.2f} |" for (a, b, rule), v in found.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
