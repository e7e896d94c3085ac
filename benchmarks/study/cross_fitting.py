"""Should the default model be cross-fitted on few rows, or judged by one validation part?

    python -m benchmarks study.cross_fitting --quick         # one sample of 400 rows
    python -m benchmarks study.cross_fitting --minutes 40
    python -m benchmarks study.cross_fitting --table

Both train linear models, networks and trees and add them up. "One part" trains on three of four
rows and chooses by the others; "crossed" is `setpoint.train.cross_fitting` on the same rows. First
samples of the three tables from which the default's rules were drawn, then of the nine of the
study, which decided nothing. Cross-fitting is the default up to the largest number of rows at
which the first three do not speak against it by two standard errors, at under 1.5 times the cost.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from time import monotonic, process_time
from typing import Any

import numpy as np
import torch

from benchmarks.common import results
from benchmarks.common.scratch import scratch
from benchmarks.study import tables
from benchmarks.study.default_rules import DRAWN_FROM, Cell, sample
from benchmarks.study.metrics import GOALS, judged, metrics
from benchmarks.study.model_choice import USED, crossed, fit
from setpoint.datasets import DataSplit, Table
from setpoint.train import Validation, score
from setpoint.train.boosted_trees import MODELS
from setpoint.train.stacking import stack

SIZES, STUDY = (400, 1600, 6400), "study"
FEWEST, FEWEST_TEST = 10, 20  # rows of the rarer class to learn from, positives to test on


def main() -> None:
    options = results.parser(
        __doc__, "table", "out", quick="one sample of 400 rows", seeds=2, minutes=40.0
    )
    chosen = options.parse_args()
    torch.set_num_threads(1)
    rows = results.RESULTS / "cross_fitting.jsonl"
    out = chosen.out or (scratch("cross_fitting") if chosen.quick else rows)
    if not chosen.table:
        end = monotonic() + 60 * chosen.minutes
        done = {(row["data"], row["rows"], row["seed"]) for row in results.read(out)}
        for cell in cells(chosen.seeds, chosen.quick):
            if cell[:3] not in done and monotonic() < end:
                results.append(out, *run(cell), packages=["lightgbm"])
                print(*cell[:3], flush=True)
    print(table(results.read(out)))


def cells(seeds: int, quick: bool) -> Iterator[Cell]:
    if quick:
        yield Cell(DRAWN_FROM[0], SIZES[0], 0, 0)
        return
    for names in (DRAWN_FROM, tables.NAMES):
        for seed, rows, data in product(range(seeds), SIZES, names):
            yield Cell(data, rows, seed, 0)


def run(cell: Cell) -> list[results.Row]:
    """For each goal both values on test rows, and their CPU seconds."""
    parts = sample(cell) if cell.data in DRAWN_FROM else sample_of_study(cell)
    x, y = (np.concatenate(pair)[: cell.rows] for pair in zip(*parts[:2], strict=True))
    if min(y.sum(), (1 - y).sum()) < FEWEST or parts.test.y.sum() < FEWEST_TEST:
        return [{**row_of(cell, goal), "why_not": "too few positives"} for goal in USED]
    own = torch.as_tensor(x), torch.as_tensor(y)
    cut, new = 3 * len(y) // 4, torch.as_tensor(parts.test.x)
    found = []
    for goal in (goal for goal in judged(parts.test.y) if goal in USED):
        row = row_of(cell, goal)
        for name, train in (("one part", one_part), ("crossed", in_folds)):
            start = process_time()
            model = train(Validation(GOALS[goal], *own), cut, cell.seed)
            row[f"{name}, seconds"] = round(process_time() - start, 3)
            scores = np.zeros(len(new)) if model is None else score(model, new).numpy().reshape(-1)
            row[name] = round(metrics(scores, parts.test.y)[goal], 3)
        found.append(row)
    return found


def row_of(cell: Cell, goal: str) -> results.Row:
    return {"data": cell.data, "rows": cell.rows, "seed": cell.seed, "goal": goal}


def sample_of_study(cell: Cell) -> DataSplit:
    """So many rows of a fold of the study."""
    parts, _ = tables.fold(cell.data, cell.seed)
    x, y = parts.train
    rows = np.random.default_rng(cell.seed).permutation(len(y))[: cell.rows]
    return DataSplit(Table(x[rows], y[rows]), Table(x[:0], y[:0]), parts.test)


def one_part(rows: Validation, cut: int, seed: int) -> Any:
    """Three of four rows train, the others choose."""
    train, held = rows.part(torch.arange(cut)), rows.part(torch.arange(cut, len(rows.y)))
    try:
        found = {kind: fit(kind, (train.x, train.y), held, seed) for kind in MODELS}
    except ValueError:  # the part to choose by lacks a class
        return None
    return stack(found, held)[1].model


def in_folds(rows: Validation, cut: int, seed: int) -> Any:
    """The same rows in three folds."""
    best = crossed(rows, seed)
    return one_part(rows, cut, seed) if best is None else best.model


def table(rows: list[results.Row]) -> str:
    """Points of the crossed model over the other, by kind of table and number of rows."""
    cells_: dict[tuple[str, int, str], list[results.Row]] = defaultdict(list)
    for row in rows:
        if "crossed" in row:
            kind = "drawn from" if row["data"] in DRAWN_FROM else STUDY
            for data in (row["data"], "all"):
                cells_[kind, row["rows"], data].append(row)
    lines = [
        "| tables | rows | table | one part | crossed | difference (standard error) | CPU |",
        "| --- | ---: | --- " + "| ---: " * 4 + "|",
    ]
    for (kind, size, data), mine in sorted(cells_.items()):
        first, second = (np.mean([row[n] for row in mine]) for n in ("one part", "crossed"))
        by_cell: dict[Any, list[float]] = defaultdict(list)
        for row in mine:
            place = row["data"] if data == "all" else row["seed"]
            by_cell[place].append(row["crossed"] - row["one part"])
        means = [np.mean(gains) for gains in by_cell.values()]
        error = np.std(means, ddof=1) / len(means) ** 0.5 if len(means) > 1 else float("nan")
        times = [sum(row[f"{n}, seconds"] for row in mine) for n in ("crossed", "one part")]
        shown = f"{first:.2f} | {second:.2f} | {np.mean(means):+.2f} ({error:.2f})"
        lines.append(f"| {kind} | {size:,} | {data} | {shown} | {times[0] / times[1]:.2f} x |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
