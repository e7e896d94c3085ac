"""ICO's Table 5 with all methods: PR-AUC for recall in [0.95, 1], linear models, full batches.

    peers/bin/python -m benchmarks.peers.table5            # five trials, an hour at most
    peers/bin/python -m benchmarks.peers.table5 --starts   # Figure 3: other starts of the range
    python -m benchmarks.peers.table5 --quick              # ours alone need no peer
    python -m benchmarks.peers.table5 --docs               # tables and figures into docs/peers.md

All methods share splits, starts, steps and the rule of selection: grid point and checkpoint by the
goal's metric on validation. The grids of the published methods are the paper's; `Implicit` has one
setting. Cells that are done are not run again.
"""

from collections.abc import Iterator
from time import monotonic
from typing import Any

import torch

from benchmarks.common import results, tabular
from benchmarks.peers import table5_text
from benchmarks.peers.learners import train
from benchmarks.peers.published import GOAL, columns, register
from benchmarks.peers.readings import STARTS, at_anchors, curve, under_curve
from benchmarks.peers.roster import installed
from benchmarks.peers.runs import Rows, finish, options
from benchmarks.peers.table5_peers import PEERS
from benchmarks.points import goals
from benchmarks.points.design import PAPER
from benchmarks.points.judging import Cell, Judge
from benchmarks.points.methods import READINGS, RUNS, Column
from benchmarks.points.training import LOOKS, train_stack
from setpoint import pr_auc
from setpoint.datasets import DataSplit
from setpoint.train import Shuffled

STEPS = 500
DRAWN = ("letter", "ijcnn1")  # the sets of Figures 2 and 3


def trial(data: str, seed: int, steps: int, peers: list[str]) -> Judge:
    """One split of one set: everything trained, the best of each method kept by the judge."""
    parts, judge = _judged(data, seed, GOAL)
    for optimizer, mine in columns().items():
        cell = Cell(data, optimizer=optimizer, batch=0, seed=seed)
        train_stack(cell, parts, mine, Shuffled, steps, judge)
    for name in peers:
        for column in PEERS[name][0]:
            _train_peer(name, column, parts, steps, seed, judge)
    return judge


def _judged(data: str, seed: int, goal: str) -> tuple[DataSplit, Judge]:
    parts = tabular.parts(data, seed)
    return parts, Judge({name: getattr(parts, name).y for name in parts._fields}, [goal])


def _train_peer(
    name: str, column: Column, parts: DataSplit, steps: int, seed: int, judge: Judge
) -> None:
    x, y = torch.as_tensor(parts.train.x), torch.as_tensor(parts.train.y)
    features = {part: torch.as_tensor(getattr(parts, part).x) for part in parts._fields}
    learner, rows = PEERS[name][1](x, y, column, steps, seed)

    def look(step: int) -> None:
        judge.look(step, [column], lambda part, _: learner.scores(features[part])[:, None])

    train(learner, rows, look, max(1, steps // LOOKS))


def found(judge: Judge, goal: str, start: float = 0.95) -> Iterator[tuple[str, dict[str, Any]]]:
    """For each method the setting that validation prefers, by both readings of the metric."""
    labels = judge.labels["test"]
    for name in READINGS:
        mine = {c: b for (n, g, c), b in judge.best.items() if (n, g) == (name, goal)}
        if mine:
            pick, best = max(mine.items(), key=lambda item: item[1].validation)
            scores = best.scores["test"]
            yield (
                name,
                {
                    "anchors": round(at_anchors(scores, labels, start), 3),
                    "curve": round(under_curve(scores, labels, start), 3),
                    "validation": round(best.validation, 3),
                    "setting": {**RUNS[pick.run].settings[pick.setting], "rate": pick.rate},
                    "step": best.step,
                    "precision": curve(scores, labels),
                },
            )


def run(chosen: Any, rows: Rows) -> None:
    """All trials that are not there yet, every set before the next trial."""
    peers = [] if chosen.quick else [name for name in PEERS if installed(name)]
    steps = 40 if chosen.quick else STEPS
    cells = [
        {"data": data, "seed": seed, "steps": steps, "start": 0.95}
        for seed in ([0] if chosen.quick else range(chosen.first, chosen.first + chosen.seeds))
        for data in (DRAWN[:1] if chosen.quick else chosen.data or PAPER)
    ]
    for cell in results.pending(cells, rows.done, chosen.minutes):
        begun = monotonic()
        methods = dict(found(trial(cell["data"], cell["seed"], steps, peers), GOAL))
        rows.add(cell, methods=methods, seconds=monotonic() - begun)


def run_starts(chosen: Any, rows: Rows) -> None:
    """Figure 3: train for other ranges [start, 1], one setting of each method."""
    end = monotonic() + 60 * chosen.minutes
    for seed in range(chosen.first, chosen.first + chosen.seeds):
        for data in chosen.data or DRAWN:
            for start in STARTS:
                cell = {"data": data, "seed": seed, "steps": STEPS, "start": start, "few": True}
                if rows.done(cell) or monotonic() > end:
                    continue
                goal = f"PR-AUC from {start}"
                goals.GOALS[goal] = pr_auc(recall=(start, 1.0), points=5)
                parts, judge = _judged(data, seed, goal)
                for optimizer, mine in columns(goal, few=True).items():
                    named = Cell(data, optimizer=optimizer, batch=0, seed=seed)
                    train_stack(named, parts, mine, Shuffled, STEPS, judge)
                rows.add(cell, methods=dict(found(judge, goal, start)))


def main() -> None:
    made = options(__doc__)
    made.add_argument("--seeds", type=int, default=5)
    made.add_argument("--first", type=int, default=0, help="the number of the first trial")
    made.add_argument("--data", action="append", choices=PAPER, help="default: all of them")
    made.add_argument("--starts", action="store_true", help="the ranges of Figure 3")
    chosen = made.parse_args()
    register()
    runs = run_starts if chosen.starts else run
    finish(chosen, "table5", runs, table5_text.text, table5_text.draw)


if __name__ == "__main__":
    main()
