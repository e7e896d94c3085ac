"""The study's methods on small convolutional networks of three sizes: pictures of clothes.

    python -m benchmarks study.convolutions --quick       # one size, 100 steps, to a scratch file
    python -m benchmarks study.convolutions --minutes 60  # goes on where the last run stopped
    python -m benchmarks study.convolutions --docs        # the table into docs/study.md

Shirts, pullovers and coats of Fashion-MNIST, 14 x 14 grey values, each against all other clothes.
Two layers of 3 x 3 filters with stride 2 and a linear head; batches, steps, rates, looks and
baselines are those of :mod:`benchmarks.study`.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from time import monotonic
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from benchmarks.common import results
from benchmarks.common.pages import fill
from benchmarks.common.scratch import scratch
from benchmarks.study import report, tables, training
from benchmarks.study.methods import OURS, PLAIN, WAYS
from benchmarks.study.metrics import TITLES
from setpoint.datasets import DataSplit, Table

RESULTS = results.RESULTS / "study_convolutions.jsonl"
SIDE, TASKS = 14, {"pullover": 2, "coat": 4, "shirt": 6}
CHANNELS = (2, 4, 8)
FOLDS = 2


class Cell(NamedTuple):
    """What all methods share; ``hidden`` is the number of filters of the first layer."""

    data: str
    fold: int
    hidden: int


class Convolutions(nn.Module):
    """``columns`` networks of two convolutions; the scores of pictures ``[n, 196]`` by each.

    Weights have their columns last, as :class:`benchmarks.points.stack.Stepper` expects.
    """

    def __init__(self, inputs: int, hidden: int, columns: int, seed: int, zero_head: bool) -> None:
        super().__init__()
        assert inputs == SIDE**2
        assert not zero_head
        self.columns = columns
        torch.manual_seed(seed)
        first = nn.Conv2d(1, hidden, 3, stride=2, padding=1)
        second = nn.Conv2d(hidden, 2 * hidden, 3, stride=2, padding=1)
        head = nn.Linear(2 * hidden * 16, 1)
        self.first, self.first_bias = self._repeated(first.weight), self._repeated(first.bias)
        self.second, self.second_bias = self._repeated(second.weight), self._repeated(second.bias)
        self.head, self.shift = self._repeated(head.weight), self._repeated(head.bias)

    def _repeated(self, weight: Tensor) -> nn.Parameter:
        """The same for every column: the dimension of the outputs comes last, column by column."""
        return nn.Parameter(
            weight.detach().movedim(0, -1).repeat(*[1] * (weight.ndim - 1), self.columns)
        )

    def forward(self, x: Tensor) -> Tensor:
        """The scores of all columns."""
        pictures = x.view(len(x), 1, SIDE, SIDE)
        found = conv2d(pictures, self.first.movedim(-1, 0), self.first_bias, 2, 1).relu()
        weight = self.second.movedim(-1, 0)
        found = conv2d(found, weight, self.second_bias, 2, 1, groups=self.columns).relu()
        features = found.view(len(x), self.columns, -1)
        return torch.einsum("ncf,fc->nc", features, self.head) + self.shift


def main() -> None:
    options = results.parser(
        __doc__, "table", "docs", "out", quick="two filters, 100 steps", minutes=60.0
    )
    options.add_argument("--share", default="0/1", help="which of how many shares of the cells")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    looks = chosen.table or chosen.docs
    out = chosen.out or (scratch("convolutions") if chosen.quick and not looks else RESULTS)
    if not looks:
        run(out, chosen.quick, chosen.minutes, chosen.share)
    if chosen.docs:
        fill(report.PAGE, "convolutions", table(results.read(out)))
    print(table(results.read(out)))


def run(out: Path, quick: bool, minutes: float, share: str) -> None:
    """Train what is not there yet, until the time is up."""
    end = monotonic() + 60 * (1.5 if quick else minutes)
    for cell in cells(quick, share):
        known = {row["method"] for row in results.read(out) if about(row) == cell}
        parts = pictures(cell)
        for way in WAYS:
            if way in known:
                continue
            if monotonic() > end:
                print("Time is up; run again to go on.")
                return
            steps = 100 if quick else training.STEPS
            found = training.train(parts, way, cell.hidden, cell.fold, steps, stack=Convolutions)
            results.append(out, *(cell._asdict() | row for row in found))
        print(*cell, flush=True)


def cells(quick: bool, share: str) -> Iterator[Cell]:
    """Fold by fold, the small networks first."""
    mine, of = map(int, share.split("/"))
    sizes = CHANNELS[:1] if quick else CHANNELS
    every = product(range(1 if quick else FOLDS), sizes, TASKS)
    yield from [Cell(data, fold, size) for fold, size, data in every][mine::of]


def about(row: results.Row) -> Cell:
    """The cell of a row."""
    return Cell(*(row[name] for name in Cell._fields))


def pictures(cell: Cell) -> DataSplit:
    """The folds of the study with other labels; grey values are centred and scaled together."""
    x, kinds = tables.clothes()
    parts = tables.dealt(len(x), cell.fold)
    train = parts[0]
    y = (kinds == TASKS[cell.data]).astype(np.int64)
    x = ((x - x[train].mean()) / x[train].std()).astype(np.float32)
    return DataSplit(*(Table(x[rows], y[rows]) for rows in parts))


def table(rows: list[results.Row]) -> str:
    """By size and goal: the metrics, and the gain over the best baseline, mean over cells.

    Folds that were run whole. In brackets the standard error over cells: pictures of one set.
    """
    found: dict[Cell, dict[str, dict[str, results.Row]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        found[about(row)][row["goal"]][row["method"]] = row
    lines = [
        "| filters | weights | goal | `Implicit` | cross-entropy | best baseline | gain |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    of_fold = {
        fold: [Cell(*rest) for rest in product(TASKS, [fold], CHANNELS)] for fold in range(FOLDS)
    }
    folds = [fold for fold, own in of_fold.items() if all(_is_whole(found[cell]) for cell in own)]
    for size in CHANNELS:
        cells_ = [Cell(data, fold, size) for fold in folds for data in TASKS]
        whole = [found[cell] for cell in cells_ if _is_whole(found[cell])]
        if not whole:
            continue
        every = [{goal: _tests(tried) for goal, tried in goals.items()} for goals in whole]
        shown = {
            title: [tests[goal] for tests in every]
            for goal, title in TITLES.items()
            if goal in every[0]
        }
        shown["all goals"] = [np.mean(list(tests.values()), axis=0) for tests in every]
        for title, tests in shown.items():
            ours, plain, best = np.mean(tests, axis=0)
            gain = np.array([one[0] - one[2] for one in tests])
            error = f" ({gain.std(ddof=1) / len(gain) ** 0.5:.1f})" if len(gain) > 1 else ""
            lines.append(
                f"| {size} | {weights(size):,} | {title} | {ours:.1f} | {plain:.1f} | {best:.1f} "
                f"| {gain.mean():+.1f}{error} |"
            )
    return "\n".join(lines)


def _is_whole(goals: dict[str, dict[str, results.Row]]) -> bool:
    """Whether all methods of a cell have been run: ours is the last."""
    return bool(goals) and all(OURS in tried for tried in goals.values())


def _tests(tried: dict[str, results.Row]) -> tuple[float, float, float]:
    """The test metric of ours, of plain cross-entropy and of the baseline validation prefers."""
    return tried[OURS]["test"], tried[PLAIN]["test"], _best(tried)["test"]


def weights(size: int) -> int:
    """How many weights a network of this size has."""
    return sum(p.numel() for p in Convolutions(SIDE**2, size, 1, 0, False).parameters())


def _best(found: dict[str, results.Row]) -> results.Row:
    """The baseline that validation prefers; plain cross-entropy is one of the weighted."""
    others = [row for name, row in found.items() if name not in (OURS, PLAIN)]
    return max(others, key=lambda row: row["validation"])


if __name__ == "__main__":
    main()
