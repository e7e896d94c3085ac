"""Does another rule protect where few examples decide, or where a small network begins badly?

    python -m benchmarks study.default_rules --quick     # one split of 400 rows, two minutes
    python -m benchmarks study.default_rules             # goes on where the last run stopped
    python -m benchmarks study.default_rules --table

Rules are compared on the seven tables by which the defaults of `Implicit` were chosen, never on
those of the study. Two of them are also thinned to 2 % positives, and training sets of 400 and
1,600 rows are drawn from three (half as many rows validate, up to 20,000 others test). Learning
rate, checkpoint and averaging are picked on validation rows for everyone. A rule becomes the
default only if it is not behind the present one, over all these tables and for each width.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.common import results, tabular
from benchmarks.common.scratch import scratch
from benchmarks.study import training
from benchmarks.study.methods import WAYS, Way
from benchmarks.study.metrics import GOALS, TITLES, judged
from setpoint import Implicit, Stratified
from setpoint.axes.everyone import Everyone, PlainOutcome, soft_counts
from setpoint.datasets import DataSplit, Table, split
from setpoint.solvers import cross_entropy
from setpoint.train import Shuffled

USED, WIDTHS = ("fnr1", "fnr01", "pr95", "ap"), (4, 32, 0)
SMALL, DRAWN_FROM = (400, 1600), ("letter", "ijcnn1", "adult")
RARE, THINNED = 0.02, {"adult, 2 %": "adult", "spambase, 2 %": "spambase"}
MOST_TESTS, FARTHEST = 20_000, 20.0
DEFAULT, REFERENCE = "fade to 0", "cross-entropy"
RESAMPLING = ("counted back", "as they come")
FEWEST, FACTORS = 10.0, (1.0, 1.5, 2.25, 3.4, 5.0)


class CountedBack(Implicit):
    """The main loss counts rows as rates do: it begins as cross-entropy of the whole data."""

    def value_and_gradient(self, scores: Any, labels: Any, learns: bool, columns: Any) -> Any:
        """As before, and remember how the batch was drawn."""
        self._drawn = columns.resampling
        return super().value_and_gradient(scores, labels, learns, columns)

    def _main_gradient(self, *batch: Any) -> Any:
        return super()._main_gradient(*batch[:-1], self._drawn)


class WideBand(Everyone):
    """Bands with few effective examples are widened until they have ten, at most fivefold."""

    def hold(
        self, whole: Any, own: Any, step: Any, widening: float, placed: Any = None
    ) -> PlainOutcome:
        """As before, each threshold with a width of its own."""
        found = self.choose(whole)
        counts = soft_counts(whole, own, found.marginal, step, widening)
        chosen = width = counts.width * np.ones_like(found.marginal)
        filled = np.zeros(width.shape, bool)
        for factor in FACTORS:
            chosen = np.where(filled, chosen, width * factor)
            filled |= replace(counts, width=chosen, _kernels=[]).examples_in_band() >= FEWEST
        return self.held(replace(counts, width=chosen, _kernels=[]), found)


def wide_band(goal: str, steps: int, _setting: float) -> Implicit:
    criterion = Implicit(GOALS[goal], steps=steps)
    criterion.axis = WideBand(criterion.problem)
    return criterion


def ours(make: Any, sampler: Any = Stratified) -> Way:
    return Way(make, sampler, direct=True, takes="resampling")


MEMBERS = {
    DEFAULT: ours(lambda goal, steps, _: Implicit(GOALS[goal], steps=steps)),
    "counted back": ours(lambda goal, steps, _: CountedBack(GOALS[goal], steps=steps)),
    "as they come": ours(lambda goal, steps, _: Implicit(GOALS[goal], steps=steps), Shuffled),
    "wide band": ours(wide_band),
    REFERENCE: Way(lambda *_: cross_entropy),
}


class Cell(NamedTuple):
    """What all rules share; ``rows`` is 0 for the whole table."""

    data: str
    rows: int
    seed: int
    hidden: int


def main() -> None:
    options = results.parser(
        __doc__, "table", "out", quick="400 rows of one split", seeds=4, minutes=60.0
    )
    chosen = options.parse_args()
    torch.set_num_threads(1)
    rows = results.RESULTS / "default_rules.jsonl"
    out = chosen.out or (scratch("default_rules") if chosen.quick else rows)
    if not chosen.table:
        run(out, cells(chosen.seeds, chosen.quick), 1.5 if chosen.quick else chosen.minutes)
    print(table(results.read(out)))


def cells(seeds: int, quick: bool) -> Iterator[Cell]:
    """Split by split: whole tables, then small samples."""
    for seed in range(1 if quick else seeds):
        for hidden in WIDTHS:
            for data in () if quick else (*THINNED, *tabular.NAMES):
                yield Cell(data, 0, seed, hidden)
        for hidden, rows in product(WIDTHS, SMALL[: 1 if quick else 2]):
            yield from (Cell(data, rows, seed, hidden) for data in DRAWN_FROM)


def run(out: Path, wanted: Iterator[Cell], minutes: float) -> None:
    """Every rule and cell that is not there yet, until the time is up."""
    WAYS.update(MEMBERS)
    end = monotonic() + 60 * minutes
    names = (*Cell._fields, "method")
    done = {tuple(row[name] for name in names) for row in results.read(out)}
    for cell in wanted:
        missing = [way for way in MEMBERS if (*cell, way) not in done]
        if not missing:
            continue
        if monotonic() > end:
            print("Time is up; run again to go on.")
            return
        parts = sample(cell) if cell.rows else whole(cell)
        goals = [goal for goal in judged(parts.test.y) if goal in USED]
        for way in missing:
            if way in RESAMPLING and parts.train.y.mean() >= 0.2:
                continue  # Stratified draws as the data are: nothing to count back
            steps = 600 if cell.rows else training.STEPS
            found = training.train(parts, way, cell.hidden, cell.seed, steps, goals=goals)
            results.append(out, *(cell._asdict() | row for row in found))
        print(*cell, flush=True)


def whole(cell: Cell) -> DataSplit:
    """50/25/25 of a table, or of one whose positives are thinned."""
    if cell.data not in THINNED:
        return tabular.parts(cell.data, cell.seed)
    x, y = tabular.load(THINNED[cell.data])
    positives, negatives = np.flatnonzero(y > 0), np.flatnonzero(y == 0)
    count = round(RARE / (1 - RARE) * len(negatives))
    kept = np.random.default_rng(cell.seed).permutation(positives)[:count]
    rows = np.sort(np.concatenate([kept, negatives]))
    found = split(Table(x[rows], y[rows]), cell.seed)
    return DataSplit(*(Table(part.x.clip(-FARTHEST, FARTHEST), part.y) for part in found))


def sample(cell: Cell) -> DataSplit:
    """So many training rows, half as many to validate, the others to test; standardised."""
    x, y = tabular.load(cell.data)
    order = np.random.default_rng(cell.seed).permutation(len(y))
    places = np.split(order, [cell.rows, cell.rows + cell.rows // 2])
    train = x[places[0]]
    scale = train.std(0)
    x = ((x - train.mean(0)) / np.where(scale > 0, scale, 1)).clip(-FARTHEST, FARTHEST)
    x = x.astype(np.float32)
    return DataSplit(*(Table(x[p[:MOST_TESTS]], y[p[:MOST_TESTS]]) for p in places))


def table(rows: list[results.Row]) -> str:
    """Points over the default: the mean over tables, with the standard error over tables."""
    found: dict[tuple[str, int, str], dict[tuple[Any, ...], dict[str, float]]] = defaultdict(dict)
    for row in rows:
        kind = f"{row['rows']:,} rows" if row["rows"] else "whole tables"
        for goal in (row["goal"], "all"):
            cell = (row["data"], row["seed"], row["goal"])
            found[kind, row["hidden"], goal].setdefault(cell, {})[row["method"]] = row["test"]
    names = [name for name in MEMBERS if name != DEFAULT]
    lines = [
        f"| rows | model | goal | {' | '.join(names)} |",
        "| --- " * 3 + "| ---: " * len(names) + "|",
    ]
    for (kind, hidden, goal), cells_ in sorted(found.items()):
        model = f"{hidden} units" if hidden else "linear"
        shown = " | ".join(_difference(cells_, name) for name in names)
        lines.append(f"| {kind} | {model} | {TITLES.get(goal, 'all')} | {shown} |")
    return "\n".join(lines)


def _difference(cells_: dict[tuple[Any, ...], dict[str, float]], name: str) -> str:
    by_table: dict[str, list[float]] = defaultdict(list)
    for (data, *_), tests in cells_.items():
        if {name, DEFAULT} <= set(tests):
            by_table[data].append(tests[name] - tests[DEFAULT])
    means = [float(np.mean(gains)) for gains in by_table.values()]
    if not means:
        return ""
    error = np.std(means, ddof=1) / len(means) ** 0.5 if len(means) > 1 else float("nan")
    return f"{np.mean(means):+.2f} ({error:.2f}, {sum(map(len, by_table.values()))})"


if __name__ == "__main__":
    main()
