"""What a step costs: `Implicit` and `LastLayer` against TFCO, Cooper and LibAUC.

    peers/bin/python -m benchmarks.peers.cost            # five minutes
    peers/bin/python -m benchmarks.peers.cost --quick    # one minute, to a scratch file
    peers/bin/python -m benchmarks.peers.cost --docs     # the tables into docs/peers.md

Steps of all methods are taken in turn within one run, on one thread; medians and quartiles of
processor time, and ratios to cross-entropy's step of the same round. The criterion alone is a step
of a model with a single feature: loss, gradient and the method's own optimizer, little else.
"""

import gc
import time
from itertools import product
from typing import Any

import numpy as np
import torch

from benchmarks.peers import fair
from benchmarks.peers.figures import draw_cost
from benchmarks.peers.learners import network
from benchmarks.peers.page import table
from benchmarks.peers.roster import GOALS, METHODS, Task, expressing
from benchmarks.peers.runs import Rows, finish, options
from benchmarks.programs.rows import facts

MODELS = {
    "criterion alone": (1, ()),
    "linear, 122 features": (122, ()),
    "network 122-256-256-1": (122, (256, 256)),
}
SIZES = (512, 4096)


def measure(model: str, goal: str, size: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of processor time of every method's steps, taken in turn."""
    inputs, hidden = MODELS[model]
    drawn = torch.Generator().manual_seed(0)
    y = (torch.rand(4 * size, generator=drawn) < 0.2).long()
    x = torch.randn(4 * size, inputs, generator=drawn) + 0.5 * y[:, None]
    task = Task(x, y, GOALS.get(goal, fair.PROBLEM), size, 1000, 0.01)
    makers = fair.methods() if goal == fair.FAIR else {n: METHODS[n] for n in expressing(goal)}
    if not hidden:  # a linear model is all last layer: Implicit
        makers.pop("LastLayer", None)
    learners = {name: make(network(inputs, hidden), task) for name, make in makers.items()}
    seconds: dict[str, list[float]] = {name: [] for name in learners}
    order = list(learners)
    for place in range(rounds + 2):
        gc.collect()  # or eager TensorFlow's garbage is collected at the cost of whoever comes next
        rows = torch.randperm(len(y), generator=drawn)[:size]
        for name in order:
            start = time.process_time()
            learners[name].step(rows)
            if place > 1:  # the first rounds compile and warm up
                seconds[name].append(time.process_time() - start)
        order = order[1:] + order[:1]
    return seconds


def text(rows: list[dict[str, Any]]) -> str:
    """One table a goal and batch: the methods down, the models across."""
    found: dict[tuple[str, int], dict[str, dict[str, str]]] = {}
    for row in rows:
        if "cell" not in row:
            continue
        cell = row["cell"]
        place = found.setdefault((cell["goal"], cell["size"]), {})
        plain = np.array(row["seconds"]["cross-entropy"])
        for name, own in row["seconds"].items():
            ratio = np.median(np.array(own) / plain)
            low, middle, high = 1e3 * np.percentile(own, [25, 50, 75])
            shown = f"{middle:.2f} ({low:.2f}-{high:.2f}), {ratio:.1f} x"
            place.setdefault(name, {})[cell["model"]] = shown
    parts = []
    for (goal, size), methods in found.items():
        lines = [[name, *(by.get(m, "") for m in MODELS)] for name, by in methods.items()]
        head = [f"{goal}, batch {size:,}: ms (quartiles), to cross-entropy", *MODELS]
        parts.append(table(head, lines))
    return "\n\n".join(parts) or "No rows yet."


def run(chosen: Any, rows: Rows) -> None:
    """All cells that have no row."""
    sizes = SIZES[:1] if chosen.quick else SIZES
    for goal, size, model in product((*GOALS, fair.FAIR), sizes, MODELS):
        cell = {"goal": goal, "size": size, "model": model}
        if not rows.done(cell):
            seconds = measure(model, goal, size, 5 if chosen.quick else 20)
            rows.add(cell, facts=facts(), seconds=seconds)


def main() -> None:
    chosen = options(__doc__).parse_args()
    gc.disable()
    finish(chosen, "cost", run, text, draw_cost, cells=0)


if __name__ == "__main__":
    main()
