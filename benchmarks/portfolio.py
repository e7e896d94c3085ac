"""Is `method="auto"` as good as the better of its two losses, at the cost of one run?

    python -m benchmarks.portfolio             # about an hour on one core
    python -m benchmarks.portfolio --quick     # two minutes
    python -m benchmarks.portfolio --table     # what has been run so far

Every cell is appended to benchmarks/results/portfolio.jsonl; cells already there are skipped.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from benchmarks.common import results, tabular
from benchmarks.common.scratch import scratch
from benchmarks.points.goals import GOALS, points
from setpoint import compare
from setpoint.comparison import Comparison

RESULTS = Path(__file__).parent / "results" / "portfolio.jsonl"
METHODS = ["auto", "implicit", "cross_entropy"]
DATA = ("letter", "ijcnn1", "adult", "spambase", "crime", "compas", "heart")
USED = ("fnr1", "pr95", "f1")


def main() -> None:
    options = results.parser(
        __doc__, "table", "out", quick="one corner, to a scratch file", seeds=3
    )
    chosen = options.parse_args()
    torch.set_num_threads(1)
    if chosen.out is None:
        chosen.out = scratch("portfolio") if chosen.quick else RESULTS
    if not chosen.table:
        run(chosen)
    print(table(results.read(chosen.out)))


def run(chosen: argparse.Namespace) -> None:
    done = {(r["data"], r["model"], r["goal"]) for r in results.read(chosen.out)}
    data, goals = (("spambase",), ("fnr1",)) if chosen.quick else (DATA, USED)
    for name in data:
        for model in ("linear", "mlp"):
            for goal in goals:
                if (name, model, goal) in done:
                    continue
                found = compare(
                    GOALS[goal],
                    lambda seed, name=name: tabular.parts(name, seed),
                    METHODS,
                    seeds=1 if chosen.quick else chosen.seeds,
                    model=model,
                    steps=300 if chosen.quick else 1000,
                )
                cell = {"data": name, "model": model, "goal": goal}
                results.append(chosen.out, {**cell, "comparison": found.to_json()})
                print(name, model, found, sep="\n")


def table(cells: list[dict]) -> str:
    """Points of the portfolio minus each member, paired; and what it cost."""
    lines = ["| model | against | points (standard error, pairs) |", "|---|---|---|"]
    for model in ("linear", "mlp"):
        mine = [
            (c["goal"], Comparison.from_json(c["comparison"])) for c in cells if c["model"] == model
        ]
        for member in METHODS[1:]:
            d = [
                points(goal, ours.value) - points(goal, theirs.value)
                for goal, found in mine
                for ours in found.trials
                for theirs in found.trials
                if (ours.method, theirs.method) == ("auto", member) and ours.seed == theirs.seed
            ]
            if d:
                error = np.std(d, ddof=1) / len(d) ** 0.5 if len(d) > 1 else float("nan")
                lines.append(f"| {model} | {member} | {np.mean(d):+.2f} ({error:.2f}, {len(d)}) |")
    trials = [t for c in cells for t in Comparison.from_json(c["comparison"]).trials]
    steps = {m: np.mean([t.steps for t in trials if t.method == m]) for m in METHODS if trials}
    cost = steps["auto"] / steps["implicit"] if steps else float("nan")
    return "\n".join([*lines, "", f"Steps of the portfolio: {cost:.2f} times those of one run."])


if __name__ == "__main__":
    main()
