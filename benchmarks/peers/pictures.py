"""ICO's Tables 2 and 3 and FICO's Table 1 on small images: misses at few false alarms.

    peers/bin/python -m benchmarks.peers.pictures --minutes 60        # goes on where it stopped
    python -m benchmarks.peers.pictures --task celeba/Smiling --goal "FNR at FPR 1%" --folds 2
    python -m benchmarks.peers.pictures --quick                       # a few steps of everything
    python -m benchmarks.peers.pictures --docs

A small network on 32 x 32 images; 6,400 faces train, 1,600 validate, 2,000 test, in five folds.
Last or averaged weights and the epoch are chosen on validation by the goal's metric, for everybody.
Head re-training takes cross-entropy's network and teaches its head on the validation images.
"""

from copy import deepcopy
from time import monotonic
from typing import Any

import torch
from torch import nn

from benchmarks.peers.faces import DIRECT, FOLDS, GOALS, SHARED, TASKS, Fold, batches, fold, learner
from benchmarks.peers.page import fill
from benchmarks.peers.pictures_text import PLAIN, RETRAINED, text
from benchmarks.peers.roster import installed
from benchmarks.peers.runs import Rows, opened, options
from setpoint import Averaged, Infeasible, retarget
from setpoint.train import score

EPOCHS, RATE = 8, 0.002


def value(goal: str, scores: Any, labels: Any) -> float:
    """In points, more is better."""
    try:
        found = float(GOALS[goal].evaluate(scores, labels))
    except Infeasible:
        return 0.0
    return 100 * (found if GOALS[goal].maximize else 1 - found)


def trained(
    name: str, data: Fold, goals: list[str], seed: int, epochs: int
) -> dict[str, tuple[float, nn.Module]]:
    """For each goal the network that validation prefers, and its metric there."""
    each = max(1, len(data.train[1]) // 256)
    made = learner(name, data, goals[0], each * epochs, RATE, seed)
    average = Averaged(made.model)
    best: dict[str, tuple[float, nn.Module]] = {}
    x, y = data.validation
    for step, rows in enumerate(batches(name, data.train[1], each * epochs, seed), start=1):
        made.model.train()
        made.step(rows)
        average.update()
        if step % each:
            continue
        for model in (made.model, average.module):
            seen = score(model, x).numpy()
            for goal in goals:
                found = value(goal, seen, y.numpy())
                if goal not in best or found > best[goal][0]:
                    best[goal] = (found, deepcopy(model))
    return best


def run(chosen: Any, rows: Rows) -> None:
    """Every cell that has no row, until the time is up."""
    end = monotonic() + 60 * (2 if chosen.quick else chosen.minutes)
    goals = chosen.goal or list(GOALS)
    tasks = chosen.task or [f"{data}/{name}" for data, names in TASKS.items() for name in names]
    names = [n for n in (*SHARED, *DIRECT) if installed(n) and n in (chosen.method or [n])]
    for number in range(chosen.folds):
        for task in tasks:
            data = _few(fold(task, number)) if chosen.quick else fold(task, number)
            for name in names:
                for some in [goals] if name in SHARED else [[goal] for goal in goals]:
                    cells = {g: _cell(task, number, g, name) for g in some}
                    if all(map(rows.done, cells.values())):
                        continue
                    if monotonic() > end:
                        print("Time is up; run again to go on.")
                        return
                    _run_one(name, data, cells, number, 1 if chosen.quick else EPOCHS, rows)


def _cell(task: str, number: int, goal: str, name: str) -> dict[str, Any]:
    return {"task": task, "fold": number, "goal": goal, "method": name}


def _few(data: Fold) -> Fold:
    return Fold(*((x[:512], y[:512]) for x, y in data))


def _run_one(
    name: str, data: Fold, cells: dict[str, Any], seed: int, epochs: int, rows: Rows
) -> None:
    start = monotonic()
    found = trained(name, data, list(cells), seed, epochs)
    seconds = monotonic() - start
    x, y = data.test
    for goal, (validation, model) in found.items():
        test = value(goal, score(model, x).numpy(), y.numpy())
        rows.add(cells[goal], test=test, validation=validation, seconds=seconds)
        if name == PLAIN:
            head = retarget(model, "fc", GOALS[goal], [data.validation])
            test = value(goal, score(model, x).numpy(), y.numpy())
            cell = {**cells[goal], "method": RETRAINED}
            rows.add(cell, test=test, seconds=head.seconds, improved=head.improved)


def main() -> None:
    made = options(__doc__)
    made.add_argument("--task", action="append", help="such as celeba/Smiling; default: all")
    made.add_argument("--goal", action="append", choices=GOALS, help="default: all")
    made.add_argument("--method", action="append", choices=(*SHARED, *DIRECT))
    made.add_argument("--folds", type=int, default=FOLDS)
    chosen = made.parse_args()
    if chosen.quick:
        chosen.task, chosen.goal = chosen.task or ["celeba/Smiling"], ["FNR at FPR 10%"]
        chosen.folds = 1
    rows = opened(chosen, "pictures")
    if not (chosen.table or chosen.docs):
        run(chosen, rows)
    if chosen.docs:
        fill("pictures", text(rows.read()))
    print(text(rows.read()))


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
