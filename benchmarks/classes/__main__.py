"""Long-tailed CIFAR-10: balanced error and worst-class recall of every method.

Rows are appended as they are made; finished rows are not done again.
"""

import time
from pathlib import Path

import torch

from benchmarks.classes.data import long_tail
from benchmarks.classes.methods import METHODS
from benchmarks.classes.table import table
from benchmarks.classes.training import train
from benchmarks.common import results
from benchmarks.common.pages import DOCS, fill

RESULTS = Path(__file__).resolve().parents[1] / "results" / "classes.jsonl"


def main() -> None:
    parser = results.parser(
        __doc__,
        "table",
        "docs",
        quick="one seed, 60 steps, its own file",
        seeds=3,
        minutes=15.0,
    )
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rate", type=float, default=0.003)
    given = parser.parse_args()
    file = RESULTS.with_name("classes_quick.jsonl") if given.quick else RESULTS
    seeds, steps = (1, 60) if given.quick else (given.seeds, given.steps)
    torch.set_num_threads(1)
    rows = results.read(file)
    done = {(row["method"], row["seed"], row["steps"], row["rate"]) for row in rows}
    for seed in range(0 if given.table else seeds):
        for name in METHODS:
            if (name, seed, steps, given.rate) in done:
                continue
            if time.process_time() > 60 * given.minutes:
                break
            new = train(long_tail(seed), name, seed, steps, given.rate)
            rows += new
            results.append(file, *new)
            print(name, seed, {k: v for k, v in new[1].items() if "e" in k}, flush=True)
    if given.docs:
        fill(DOCS / "classes.md", "table", table(rows))
    print(table(rows))


if __name__ == "__main__":
    main()
