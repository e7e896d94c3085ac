"""ICO's Tables 2 and 3, FICO's Table 1, on Fashion-MNIST, CelebA and CIFAR-10: methods by name.

    python -m benchmarks image_tables --quick                       # a minute, to a scratch file
    python -m benchmarks image_tables --data fashion --network 2k --folds 2 --minutes 40
    python -m benchmarks image_tables --method ico tfco --goal "FNR at FPR 1%"
    peers/bin/python -m benchmarks image_tables --method LibAUC     # requirements-peers.txt
    python -m benchmarks image_tables --docs                        # tables into docs/peers.md

Every method trains the same network from the same start with three learning rates; the rate and
when to stop are chosen on validation by the goal's own metric, and what is reported is the test
part. Losses that do not know the goal are trained once and judged by all goals. Rows are appended
to benchmarks/results/image_tables.jsonl; cells that are there are skipped, so that a run goes on
where it stopped. Cells come in rounds (:func:`round_of`), each a whole table: all data, classes and
main methods at the first goal and fold, then one step more of one kind, and so on.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.common import results
from benchmarks.common.images import ImageParts
from benchmarks.common.networks import TINY, SmallCNN
from benchmarks.common.pages import fill
from benchmarks.common.scratch import scratch
from benchmarks.peers import learners
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
Cell = dict[str, Any]


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
LIBAUC = "LibAUC"
"""Its partial area, optimizer and sampler, in the environment of the peers."""
NAMES = (*ENTRIES, LIBAUC)
PASSES = 10  # how often LibAUC's run is judged: a pass of the others is about as long
MAIN = 7
FIRST = ("FNR at FPR 1%", "ROC-AUC to 5%", "FNR at FPR 5%")


BLIND = frozenset(name for name in ENTRIES if name.startswith(("cross", "resampled")))
"""Losses that do not know the goal."""


class Judge(Validation):
    """The best pass and learning rate on validation for each of several goals, and its test."""

    def __init__(self, data: ImageParts, goals: Sequence[str]) -> None:
        super().__init__(GOALS[goals[0]], *data.validation)
        best = {goal: {"validation": 0.0, "rate": 0.0, "test": 0.0} for goal in goals}
        vars(self).update(test=data.test, best=best, rate=0.0, scores={})

    def metric(self, model: nn.Module) -> tuple[float | None, str]:
        """Judge by all goals; returns nothing, as the model need not be kept."""
        held, test = score(model, self.x), None
        for goal, best in self.best.items():
            found = value(goal, held, self.y)
            if found > best["validation"]:
                test = score(model, self.test[0]) if test is None else test
                best.update(validation=found, rate=self.rate)
                best["test"] = value(goal, test, self.test[1])
                self.scores[goal] = test
        return None, ""


def judged(
    name: str, network: str, data: ImageParts, goals: Sequence[str], seed: int, steps: int
) -> tuple[Judge, Cell]:
    """Train a method with all rates; its judge, the number of weights and the CPU time."""
    judge = Judge(data, goals)
    start = process_time()
    for rate in RATES:
        torch.manual_seed(seed)
        net = SmallCNN(1, WIDTHS[network], channels=data.train[0].shape[1])
        vars(judge)["rate"] = rate
        if name == LIBAUC:
            _train_libauc(net, judge, data, goals[0], rate, seed, steps)
        else:
            _train(name, net, judge, data, goals[0], rate, seed, steps)
    more = {
        "weights": sum(p.numel() for p in net.parameters()),
        "cpu_seconds": round(process_time() - start, 1),
    }
    return judge, more


def _train(
    name: str, net: nn.Module, judge: Judge, data: ImageParts, goal: str, rate: float, seed: int,
    steps: int,
) -> None:  # fmt: skip
    """A method by name, judged after every pass."""
    method, averaged = ENTRIES[name]
    model, criterion = method.build(net, GOALS[goal], steps)
    fit(
        model, criterion, *data.train, steps=steps, batch_size=BATCH, learning_rate=rate, seed=seed,
        averaged=averaged, sampler=method.sampler(BATCH), validation=judge,
    )  # fmt: skip


def _train_libauc(
    net: nn.Module, judge: Judge, data: ImageParts, goal: str, rate: float, seed: int, steps: int
) -> None:
    """The partial area up to the goal's rate; it has no average of the weights."""
    from benchmarks.peers import with_libauc  # the other environment

    x, y = data.train
    made = with_libauc.learner("pAUC-CVaR + SOPA", net, x, y, rate, beta=_limit(goal))
    rows = with_libauc.batches(y, BATCH, steps, seed)
    learners.train(made, rows, lambda _: judge.metric(net), max(1, steps // PASSES))


def _limit(goal: str) -> float:
    """The FPR of a goal, which its name ends with."""
    return float(goal.rstrip("%").split()[-1]) / 100


def value(goal: str, scores: Tensor, labels: Tensor) -> float:
    """A goal in points of 100, more is better: an FNR becomes the share that is found."""
    if not bool(torch.isfinite(scores).all()):
        return 0.0
    try:
        found = GOALS[goal].evaluate(scores.numpy(), labels.numpy())
    except Infeasible:
        return 0.0
    return 100 * (found if GOALS[goal].maximize else 1 - found)


def round_of(cell: Cell) -> int:
    """When a cell comes: how many steps it is away from the table that comes first."""
    return (
        cell["fold"]
        + (FIRST.index(cell["goal"]) if cell["goal"] in FIRST else len(FIRST))
        + (cell["network"] != "2k")
        + (NAMES.index(cell["method"]) >= MAIN)
    )


def cells(chosen: argparse.Namespace) -> list[Cell]:
    """All cells, in the order in which they are run."""
    tasks = [f"{data}/{name}" for data in chosen.data for name in TASKS[data]]
    made = [
        {"task": task, "network": network, "fold": number, "goal": goal, "method": name}
        for number, goal, network, name, task in product(
            range(chosen.folds), chosen.goal, chosen.network, chosen.method, tasks
        )
        if chosen.task in (None, task.partition("/")[2])
    ]
    return sorted(made, key=round_of)


def run(chosen: argparse.Namespace) -> None:
    """Every cell that has no row, until the time is up."""
    known = {tuple(row[k] for k in KEY) for row in results.read(chosen.out)}
    for cell in results.pending(
        cells(chosen), lambda cell: tuple(cell.values()) in known, chosen.minutes
    ):
        goals = list(chosen.goal) if cell["method"] in BLIND else [cell["goal"]]
        made = [{**cell, "goal": goal} for goal in goals]
        data = fold(cell["task"], cell["fold"])
        judge, more = judged(
            cell["method"], cell["network"], data, goals, cell["fold"], chosen.steps
        )
        for each in made:
            if tuple(each.values()) not in known:
                best = judge.best[each["goal"]]
                results.append(chosen.out, {**each, "steps": chosen.steps, **best, **more})
                known.add(tuple(each.values()))
        print(*cell.values(), *(f"{best['test']:.2f}" for best in judge.best.values()), flush=True)


KEY = ("task", "network", "fold", "goal", "method")


Tests = dict[tuple[Any, ...], float]
"""Test values by task, network, fold, goal and method."""


def text(rows: list[dict[str, Any]]) -> str:
    """A table of the main methods, then one for each data set, network and goal with all tasks."""
    tests = {tuple(row[k] for k in KEY): row["test"] for row in rows}
    parts = [summary(tests)] if tests else []
    for data, network, goal in product(TASKS, WIDTHS, GOALS):
        here = {
            k: v
            for k, v in tests.items()
            if (k[0].split("/")[0], k[1], k[3]) == (data, network, goal)
        }
        tasks = list(dict.fromkeys(k[0] for k in here if k[4] == "Implicit"))
        if len(tasks) < len(TASKS[data]):
            continue  # a part of it stands in the table of the main methods, or in the rows alone
        plain = [[v for k, v in here.items() if k[4] == PLAIN and k[0] == t] for t in tasks]
        lines = [[PLAIN, *map(spread, plain), ""]]
        for name in NAMES:
            found = gains(here, name)
            if found:
                by_task = [gain([v for k, v in found.items() if k[0] == t]) for t in tasks]
                lines.append([name, *by_task, gain(list(found.values()))])
        head = [f"{goal}, {network}", *(t.partition("/")[2] for t in tasks), "all"]
        parts.append(table(head, lines))
    return "\n\n".join(parts) or "No rows yet."


def gains(tests: Tests, name: str) -> Tests:
    """A method minus cross-entropy in the same task, network, fold and goal."""
    plain = {k[:4]: v for k, v in tests.items() if k[4] == PLAIN}
    return {
        k[:4]: v - plain[k[:4]]
        for k, v in tests.items()
        if k[4] == name != PLAIN and k[:4] in plain
    }


def summary(tests: Tests) -> str:
    """The methods of papers at the first goal: mean gains over classes and folds."""
    first = {k: v for k, v in tests.items() if k[3] == FIRST[0]}
    both = gains(first, "Implicit")
    places = [p for p in product(TASKS, WIDTHS) if sum(_at(k, p) for k in both) > 1]
    lines = []
    for name in (*NAMES[1 : MAIN - 1], LIBAUC):
        found = gains(first, name)
        lines.append([name, *(gain([v for k, v in found.items() if _at(k, p)]) for p in places)])
    return table([f"{FIRST[0]}, gain on {PLAIN}", *(", ".join(p) for p in places)], lines)


def _at(key: tuple[Any, ...], place: tuple[str, str]) -> bool:
    """Whether a key is of this data set and network."""
    return (key[0].partition("/")[0], key[1]) == place


def main() -> None:
    made = results.parser(__doc__, "table", "docs", "out", quick="one corner", minutes=120.0)
    made.add_argument("--data", nargs="+", choices=TASKS, default=list(TASKS))
    made.add_argument("--task", help="one class or attribute, such as Shirt")
    made.add_argument("--network", nargs="+", choices=WIDTHS, default=list(WIDTHS))
    made.add_argument("--goal", nargs="+", choices=GOALS, default=list(GOALS))
    made.add_argument("--method", nargs="+", choices=NAMES, default=list(ENTRIES))
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
        main_methods, _, by_class = found.partition("\n\n")
        fill(PAGE, "image_tables", main_methods, cells=36)
        fill(PAGE, "image_tables by class", by_class, cells=0)
    print(found)


if __name__ == "__main__":
    main()
