"""Seconds of training until a method is as good as cross-entropy's best.

    peers/bin/python -m benchmarks.peers.reach            # fifteen minutes
    python -m benchmarks.peers.reach --quick              # ours alone
    python -m benchmarks.peers.reach --docs
    python -m benchmarks.peers.reach --method cross-entropy --method "ICO as published" --out FILE

FNR at FPR 5 % on validation, batches of 512, Adam at one rate for a model class (0.03 linear, 0.01
networks). Cross-entropy's best value over all its steps is the mark; the processor time of the
steps until another method first reaches it is the answer, "never" if it does not within the same
number of steps. Looking at validation is not counted, compiling TFCO is not counted.
"""

from time import monotonic, process_time
from typing import Any

import numpy as np
import torch

from benchmarks.common import tabular
from benchmarks.peers.figures import draw_reach
from benchmarks.peers.learners import network
from benchmarks.peers.page import table
from benchmarks.peers.roster import GOALS, METHODS, ONE, Task, expressing, rows_for
from benchmarks.peers.runs import Rows, finish, options
from setpoint import Infeasible

DATA = ("letter", "ijcnn1")
MODELS: dict[str, tuple[tuple[int, ...], float]] = {"linear": ((), 0.03), "mlp": ((64,), 0.01)}
STEPS, EVERY = 400, 10
SLOW = "eager"  # TFCO as its README runs it takes minutes: its step is in the table of costs


def path(name: str, data: str, model: str, seed: int, steps: int) -> list[tuple[float, float]]:
    """Seconds of processor time and the validation metric (TPR in points), look by look."""
    parts = tabular.parts(data, seed)
    x, y = torch.as_tensor(parts.train.x), torch.as_tensor(parts.train.y)
    hidden, rate = MODELS[model]
    task = Task(x, y, GOALS[ONE], 512, steps, rate)
    learner = METHODS[name](network(x.shape[1], hidden, seed), task)
    rows = list(rows_for(name, task, seed))
    if name.startswith("TFCO"):
        learner.step(rows[0])  # compiles
    seen, spent, found = torch.as_tensor(parts.validation.x), 0.0, []
    for step, batch in enumerate(rows, start=1):
        start = process_time()
        learner.step(batch)
        spent += process_time() - start
        if step % EVERY == 0:
            found.append((spent, _value(learner.scores(seen), parts.validation.y)))
    return found


def _value(scores: Any, labels: Any) -> float:
    try:
        return 100 * (1 - float(GOALS[ONE].evaluate(scores, labels)))
    except Infeasible:
        return 0.0


def run(chosen: Any, rows: Rows) -> None:
    """Every method of a cell before the next cell."""
    end = monotonic() + 60 * chosen.minutes
    names = [name for name in chosen.method or expressing(ONE) if SLOW not in name]
    for seed in range(1 if chosen.quick else chosen.seeds):
        for data in DATA[:1] if chosen.quick else DATA:
            for model in MODELS:
                for name in names:
                    cell = {"data": data, "model": model, "seed": seed, "method": name}
                    if rows.done(cell) or (name == "LastLayer" and model == "linear"):
                        continue
                    if monotonic() > end:
                        return
                    steps = 50 if chosen.quick else STEPS
                    found = path(name, data, model, seed, steps)
                    rows.add(cell, path=[[round(a, 4), round(b, 2)] for a, b in found])


def text(rows: list[dict[str, Any]]) -> str:
    """Seconds to the mark, or the best value of those that never reach it; one line a method."""
    paths = {tuple(row["cell"].values()): np.array(row["path"]) for row in rows}
    cells = list(dict.fromkeys(key[:2] for key in paths))
    names = [name for name in METHODS if any(key[3] == name for key in paths)]
    lines = [[name, *(_entry(paths, cell, name) for cell in cells)] for name in names]
    head = ["seconds to cross-entropy's best (trials that reach it); best TPR"]
    return table([*head, *(f"{data}, {model}" for data, model in cells)], lines)


def _entry(paths: dict[Any, Any], cell: tuple[str, str], name: str) -> str:
    seconds, best = [], []
    for (data, model, seed, method), own in paths.items():
        if (data, model, method) != (*cell, name) or (*cell, seed, "cross-entropy") not in paths:
            continue
        mark = paths[(*cell, seed, "cross-entropy")][:, 1].max()
        there = np.flatnonzero(own[:, 1] >= mark)
        seconds += [own[there[0], 0]] if len(there) else []
        best.append(own[:, 1].max())
    if not best:
        return ""
    time = f"{np.median(seconds):.2f} s ({len(seconds)}/{len(best)})" if seconds else "never"
    return f"{time}; {np.mean(best):.1f}"


def main() -> None:
    made = options(__doc__)
    made.add_argument("--seeds", type=int, default=3)
    made.add_argument("--method", action="append", choices=METHODS, help="default: all installed")
    chosen = made.parse_args()
    finish(chosen, "reach", run, text, draw_reach)


if __name__ == "__main__":
    main()
