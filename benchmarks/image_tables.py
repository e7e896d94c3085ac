"""ICO's Tables 2 and 3, FICO's Table 1, on Fashion-MNIST, CelebA and CIFAR-10: methods by name.

    python -m benchmarks image_tables --quick                       # a minute, to a scratch file
    python -m benchmarks image_tables --data fashion --network 2k --folds 2 --minutes 40
    python -m benchmarks image_tables --method ico tfco --goal "FNR at FPR 1%"
    python -m benchmarks image_tables --docs                        # tables into docs/peers.md

Every method trains the same network from the same start with three learning rates; the rate and
when to stop are chosen on validation by the goal's own metric, and what is reported is the test
part. Losses that do not know the goal are trained anew for each goal all the same, as the
checkpoint is chosen by it. Rows are appended to benchmarks/results/image_tables.jsonl; cells that
are there are skipped, so that a run goes on where it stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from torch import nn

from benchmarks.common import results
from benchmarks.common.images import ImageParts
from benchmarks.common.networks import TINY, SmallCNN
from benchmarks.common.pages import fill
from benchmarks.common.scratch import scratch
from benchmarks.peers.faces import GOALS, TASKS, fold
from benchmarks.peers.page import PAGE, gain, spread, table
from setpoint import CrossEntropy, Implicit, Infeasible
from setpoint.solvers import METHODS
from setpoint.solvers.registry import Method
from setpoint.train import Validation, fit, score

RESULTS = Path(__file__).parent / "results" / "image_tables.jsonl"
WIDTHS = {"2k": TINY, "20k": (10, 18, 36, 36), "200k": (32, 64, 112, 112)}
RATES = (0.001, 0.003, 0.01)
STEPS, BATCH = 400, 256
PLAIN = "cross-entropy"


def _weight(positives: float) -> Method:
    return Method(lambda _problem, _steps: CrossEntropy(positives=positives))


def _published(temperature: float) -> Method:
    """ICO as the name ``ico`` runs it, with another temperature of its sigmoid."""

    def on(model: nn.Module, problem: Any, _steps: int) -> tuple[nn.Module, Any]:
        follow = model.parameters() if len(problem.points) == 1 else None
        made = Implicit.as_published(
            problem, temperature=temperature, correct_every=10, follow=follow
        )
        return model, made

    return Method(on=on)


ENTRIES: dict[str, tuple[Method, bool]] = {
    PLAIN: (METHODS["cross_entropy"], True),
    "Implicit": (METHODS["implicit"], True),
    "ico": (METHODS["ico"], True),
    "fico_2": (METHODS["fico_2"], True),
    "fico_1": (METHODS["fico_1"], True),
    "tfco": (METHODS["tfco"], True),
    "resampled": (METHODS["resampled"], True),
    "pairwise": (METHODS["pairwise"], True),
    "fico_ablation": (METHODS["fico_ablation"], True),
    "cross-entropy, last weights": (METHODS["cross_entropy"], False),
    **{f"cross-entropy, positives x {w:g}": (_weight(w), True) for w in (0.3, 3.0)},
    **{f"ico, temperature {t:g}": (_published(t), True) for t in (0.1, 10.0)},
}
"""Methods, the main ones first, and whether the average of the weights is judged."""


def trained(name: str, network: str, data: ImageParts, goal: str, seed: int, steps: int) -> dict:
    """The test metric of the learning rate that validation prefers, in points; more is better."""
    method, averaged = ENTRIES[name]
    judge = Validation(GOALS[goal], *data.validation)
    best, row = None, dict[str, Any]()
    start = monotonic()
    for rate in RATES:
        torch.manual_seed(seed)
        x, y = data.train
        net = SmallCNN(1, WIDTHS[network], channels=x.shape[1])
        model, criterion = method.build(net, GOALS[goal], steps)
        found = fit(
            model, criterion, x, y, steps=steps, batch_size=BATCH, learning_rate=rate, seed=seed,
            averaged=averaged, sampler=method.sampler(BATCH), validation=judge,
        )  # fmt: skip
        if judge.better(found.best, best):
            best = found.best
            row = {"validation": points(goal, best), "rate": rate}
            row["test"] = value(goal, score(found.model, data.test[0]), data.test[1])
    weights = sum(p.numel() for p in net.parameters())
    return {"test": 0.0, **row, "weights": weights, "seconds": round(monotonic() - start, 1)}


def value(goal: str, scores: Any, labels: Any) -> float:
    """A goal in points."""
    try:
        return points(goal, GOALS[goal].evaluate(scores.numpy(), labels.numpy()))
    except Infeasible:
        return 0.0


def points(goal: str, found: float) -> float:
    """Of 100, more is better: an FNR becomes the share that is found."""
    return 100 * (found if GOALS[goal].maximize else 1 - found)


def cells(chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All cells, in the order in which they are run: the first fold of every method first."""
    tasks = [f"{data}/{name}" for data in chosen.data for name in TASKS[data]]
    for number, network, name in product(range(chosen.folds), chosen.network, chosen.method):
        for task, goal in product(tasks, chosen.goal):
            if chosen.task in (None, task.partition("/")[2]):
                yield {"task": task, "network": network, "fold": number, "goal": goal,
                       "method": name}  # fmt: skip


def run(chosen: argparse.Namespace) -> None:
    """Every cell that has no row, until the time is up."""
    known = {tuple(row[k] for k in KEY) for row in results.read(chosen.out)}
    end = monotonic() + 60 * chosen.minutes
    for cell in cells(chosen):
        if tuple(cell.values()) in known:
            continue
        if monotonic() > end:
            print("Time is up; run again to go on.")
            return
        data = fold(cell["task"], cell["fold"])
        found = trained(cell["method"], cell["network"], data, cell["goal"], cell["fold"],
                        chosen.steps)  # fmt: skip
        results.append(chosen.out, {**cell, "steps": chosen.steps, **found})
        print(*cell.values(), f"{found['test']:.2f}", f"{found['seconds']:.0f} s", flush=True)


KEY = ("task", "network", "fold", "goal", "method")


def text(rows: list[dict[str, Any]]) -> str:
    """One table for each data set, network and goal: cross-entropy, and gains on it by fold."""
    tests = {tuple(row[k] for k in KEY): row["test"] for row in rows}
    parts = []
    for data, network, goal in product(TASKS, WIDTHS, GOALS):
        here = {
            k: v
            for k, v in tests.items()
            if (k[0].split("/")[0], k[1], k[3]) == (data, network, goal)
        }
        tasks = list(dict.fromkeys(k[0] for k in here))
        if not tasks:
            continue
        plain = {k[:4]: v for k, v in here.items() if k[4] == PLAIN}
        lines = [[PLAIN, *(spread([v for k, v in plain.items() if k[0] == t]) for t in tasks), ""]]
        for name in ENTRIES:
            gains = {
                k[:4]: v - plain[k[:4]]
                for k, v in here.items()
                if k[4] == name != PLAIN and k[:4] in plain
            }
            if gains:
                by_task = [gain([v for k, v in gains.items() if k[0] == t]) for t in tasks]
                lines.append([name, *by_task, gain(list(gains.values()))])
        head = [f"{goal}, {network}", *(t.partition("/")[2] for t in tasks), "all"]
        parts.append(table(head, lines))
    return "\n\n".join(parts) or "No rows yet."


def main() -> None:
    made = results.parser(__doc__, "table", "docs", "out", quick="one corner", minutes=120.0)
    made.add_argument("--data", nargs="+", choices=TASKS, default=list(TASKS))
    made.add_argument("--task", help="one class or attribute, such as Shirt")
    made.add_argument("--network", nargs="+", choices=WIDTHS, default=list(WIDTHS))
    made.add_argument("--goal", nargs="+", choices=GOALS, default=list(GOALS))
    made.add_argument("--method", nargs="+", choices=ENTRIES, default=list(ENTRIES))
    made.add_argument("--folds", type=int, default=5)
    made.add_argument("--steps", type=int, default=STEPS)
    chosen = made.parse_args()
    torch.set_num_threads(1)
    if chosen.quick:
        chosen.data, chosen.task, chosen.network = ["celeba"], "Smiling", ["2k"]
        chosen.goal, chosen.folds, chosen.steps = ["FNR at FPR 5%"], 1, 4
    if chosen.out is None:
        chosen.out = scratch("image_tables") if chosen.quick else RESULTS
    if not (chosen.table or chosen.docs):
        run(chosen)
    found = text(results.read(chosen.out))
    if chosen.docs:
        fill(PAGE, "image_tables", found)
    print(found)


if __name__ == "__main__":
    main()
