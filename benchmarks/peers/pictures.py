"""ICO's Tables 2 and 3 and FICO's Table 1 on small images: misses at few false alarms.

    peers/bin/python -m benchmarks.peers.pictures --minutes 60        # goes on where it stopped
    python -m benchmarks.peers.pictures --task celeba/Smiling --goal "FNR at FPR 1%" --folds 2
    python -m benchmarks.peers.pictures --quick                       # a few steps of everything
    python -m benchmarks.peers.pictures --docs

A small network on 32 x 32 images; 6,400 faces train, 1,600 validate, 2,000 test, in five folds.
The learning rate, of three, last or averaged weights and when to stop are chosen on validation by
the goal's metric, for everybody. Head re-training takes cross-entropy's network and teaches its
head on the validation images.
"""

from copy import deepcopy
from itertools import product
from time import monotonic
from typing import Any

import torch
from torch import nn

from benchmarks.common.images import ImageParts
from benchmarks.peers.faces import DIRECT, FOLDS, GOALS, SHARED, TASKS, batches, fold, learner
from benchmarks.peers.figures import draw_pictures
from benchmarks.peers.pictures_text import PLAIN, RETRAINED, text
from benchmarks.peers.roster import installed
from benchmarks.peers.runs import Rows, finish, options
from setpoint import Infeasible
from setpoint.train import Averaged, retarget, score

STEPS, LOOKS = 200, 8
RATES = (0.001, 0.003, 0.01)
Best = dict[str, tuple[float, float, nn.Module]]
"""For each goal: its metric on validation, the learning rate, the network."""


def value(goal: str, scores: Any, labels: Any) -> float:
    """In points, more is better."""
    try:
        found = float(GOALS[goal].evaluate(scores, labels))
    except Infeasible:
        return 0.0
    return 100 * (found if GOALS[goal].maximize else 1 - found)


def trained(name: str, data: ImageParts, goals: list[str], seed: int, steps: int) -> Best:
    """The networks that validation prefers."""
    best: Best = {}
    for rate in RATES:
        made = learner(name, data, goals[0], steps, rate, seed)
        average = Averaged(made.model)
        for step, rows in enumerate(batches(name, data.train[1], steps, seed), start=1):
            made.model.train()
            made.step(rows)
            average.update()
            if step % max(1, steps // LOOKS) == 0:
                for model in (made.model, average.module):
                    _look(model, data, rate, goals, best)
    return best


def _look(model: nn.Module, data: ImageParts, rate: float, goals: list[str], best: Best) -> None:
    """Keep the network for every goal it is the best yet for."""
    x, y = data.validation
    seen = score(model, x).numpy()
    for goal in goals:
        found = value(goal, seen, y.numpy())
        if goal not in best or found > best[goal][0]:
            best[goal] = (found, rate, deepcopy(model))


def run(chosen: Any, rows: Rows) -> None:
    """Every cell that has no row, until the time is up."""
    end = monotonic() + 60 * (2 if chosen.quick else chosen.minutes)
    goals = chosen.goal or list(GOALS)
    tasks = chosen.task or [f"{data}/{name}" for data, names in TASKS.items() for name in names]
    names = [n for n in (*SHARED, *DIRECT) if installed(n) and n in (chosen.method or [n])]
    for number in range(chosen.first, chosen.first + chosen.folds):
        for some in [goals, *([goal] for goal in goals)]:  # what is trained once goes first
            mine = [n for n in names if (n in SHARED) == (some is goals)]
            for task, name in product(tasks, mine):
                cells = {g: _cell(task, number, g, name) for g in some}
                if all(map(rows.done, cells.values())):
                    continue
                if monotonic() > end:
                    print("Time is up; run again to go on.")
                    return
                data = _few(fold(task, number)) if chosen.quick else fold(task, number)
                _run_one(name, data, cells, number, 2 if chosen.quick else STEPS, rows)


def _cell(task: str, number: int, goal: str, name: str) -> dict[str, Any]:
    return {"task": task, "fold": number, "goal": goal, "method": name}


def _few(data: ImageParts) -> ImageParts:
    return ImageParts(*((x[:512], y[:512]) for x, y in data))


def _run_one(
    name: str, data: ImageParts, cells: dict[str, Any], seed: int, steps: int, rows: Rows
) -> None:
    start = monotonic()
    found = trained(name, data, list(cells), seed, steps)
    seconds = monotonic() - start
    x, y = data.test
    for goal, (validation, rate, model) in found.items():
        test = value(goal, score(model, x).numpy(), y.numpy())
        rows.add(cells[goal], test=test, validation=validation, rate=rate, seconds=seconds)
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
    made.add_argument("--first", type=int, default=0, help="the number of the first fold")
    made.add_argument("--folds", type=int, default=FOLDS)
    chosen = made.parse_args()
    if chosen.quick:
        chosen.task, chosen.goal = chosen.task or ["celeba/Smiling"], ["FNR at FPR 10%"]
        chosen.folds = 1
    finish(chosen, "pictures", run, text, draw_pictures)


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
