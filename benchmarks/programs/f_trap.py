"""The all-positive trap of the F score, and what escapes it.

    python -m benchmarks.programs.f_trap            # the table of docs/metric_losses.md
    python -m benchmarks.programs.f_trap --quick    # under two minutes

Accepting everybody has an F1 of ``2 p / (1 + p)`` with a share ``p`` of positives: 0.67 if classes
are balanced. Where the signal is weak, a network trained for the F score finds that first, and may
stay. Every way of training sees the same splits, first weights, batches and number of steps; a run
counts as caught if it accepts more than 98 % of the test set at its own threshold.

Rows are appended to results/f_trap.jsonl as they come, and a finished row is not run again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import make_classification
from torch import Tensor, nn

from benchmarks.common import results
from benchmarks.common.pages import DOCS, fill
from benchmarks.common.tabular import parts
from benchmarks.programs.trap_table import METHODS, table
from setpoint import Implicit, Problem, __version__, f_score
from setpoint.datasets import DataSplit, Table, split
from setpoint.losses import f_score_loss, structural_loss
from setpoint.solvers import cross_entropy

RESULTS = Path(__file__).parents[1] / "results" / "f_trap.jsonl"
GOAL = Problem(maximize=f_score(1))
SETS = ("weak", "compas", "heart", "adult")
STEPS, BATCH = 600, 128
Loss = Callable[[Tensor, Tensor], Tensor]


def stages(method: str) -> list[tuple[int, Loss]]:
    """The losses of a method, each with its number of steps."""
    bound = {
        "f1": partial(f_score_loss, threshold=0.0),
        "f1, no lift": partial(f_score_loss, threshold=0.0, lift=False),
        "f1, best threshold": partial(f_score_loss, threshold="best"),
        "structural f1": partial(structural_loss, metric=f_score(1)),
    }
    warm = STEPS // 3
    return {
        "cross-entropy": [(STEPS, cross_entropy)],
        **{name: [(STEPS, loss)] for name, loss in bound.items()},
        "f1, warm start": [(warm, cross_entropy), (STEPS - warm, bound["f1"])],
        "f1, best threshold, warm start": [
            (warm, cross_entropy),
            (STEPS - warm, bound["f1, best threshold"]),
        ],
        "Implicit": [(STEPS, Implicit(GOAL, steps=STEPS))],
    }[method]


FREE = ("f1, best threshold", "f1, best threshold, warm start", "Implicit")
"""Methods whose scores have no threshold at 0: theirs is the best on the training part."""


def data(name: str, seed: int) -> DataSplit:
    """A split of a table, or of one with little signal: an AUC of about 0.65 is possible."""
    if name != "weak":
        return parts(name, seed)
    x, y = make_classification(
        4000, 20, n_informative=4, class_sep=0.3, flip_y=0.5, random_state=100 + seed
    )
    return split(Table(x.astype(np.float32), y.astype(np.int64)), seed)


def train(method: str, seed: int, train_set: Table) -> nn.Module:
    x, y = torch.as_tensor(train_set.x), torch.as_tensor(train_set.y)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(x.shape[1], 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    rng = torch.Generator().manual_seed(seed)
    for steps, loss in stages(method):
        for _ in range(steps):
            rows = torch.randint(0, len(x), (BATCH,), generator=rng)
            optimizer.zero_grad()
            loss(model(x[rows])[:, 0], y[rows]).backward()
            optimizer.step()
    return model


def trial(name: str, method: str, seed: int) -> dict[str, object]:
    found, start = data(name, seed), time.process_time()
    model = train(method, seed, found.train)
    seconds = time.process_time() - start
    with torch.no_grad():
        scores = [model(torch.as_tensor(part.x))[:, 0].numpy() for part in found]
    known = [GOAL.choose(s, part.y).thresholds[0] for s, part in zip(scores, found, strict=True)]
    own = known[0] if method in FREE else 0.0
    test = found.test.y
    return {
        "set": name,
        "method": method,
        "seed": seed,
        "f1": GOAL.evaluate(scores[2], test, [own]),
        "tuned": GOAL.evaluate(scores[2], test, [known[1]]),
        "accepted": float((scores[2] > own).mean()),
        "all": GOAL.evaluate(scores[2], test, [-np.inf]),
        "seconds": seconds,
        "steps": STEPS,
        "setpoint": __version__,
        "torch": torch.__version__,
    }


def finished() -> dict[tuple[str, str, int], dict[str, object]]:
    rows = results.read(RESULTS)
    return {(r["set"], r["method"], r["seed"]): r for r in rows if r["steps"] == STEPS}


def main() -> None:
    parser = results.parser(
        __doc__, "docs", quick="two seeds of the weak set", seeds=10, minutes=30
    )
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    given = parser.parse_args()
    sets, seeds = (("weak",), 2) if given.quick else (given.sets, given.seeds)
    torch.set_num_threads(1)
    done, start = finished(), time.monotonic()
    for seed in range(seeds):  # seeds outermost: a run cut short is still a fair table
        for name in sets:
            for method in METHODS:
                late = time.monotonic() - start > 60 * given.minutes
                if (name, method, seed) not in done and not late:
                    row = trial(name, method, seed)
                    done[name, method, seed] = row
                    results.append(RESULTS, row)
    shown = table([row for row in done.values() if row["set"] in sets and row["seed"] < seeds])
    if given.docs:
        fill(DOCS / "metric_losses.md", "trap", shown)
    print(shown)


if __name__ == "__main__":
    main()
