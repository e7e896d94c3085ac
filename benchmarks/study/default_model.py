"""Which model should `Classifier` and `setpoint train` take if none is named?

    python -m benchmarks study.default_model --quick     # one split of 400 rows of three tables
    python -m benchmarks study.default_model             # four splits, about half an hour
    python -m benchmarks study.default_model --table

Linear models, networks and trees are trained as `Classifier` trains them, and joined by rules that
see validation rows alone: the kind that is best by the goal's metric; the mean of standardised
scores; a stack. Tables: the seven by which the defaults of `Implicit` were chosen, two of them
thinned to 2 % positives too, and 400 and 1,600 rows of three; never those of the study. A rule
becomes the default if it is ahead of the present one on average over all these tables, and not
behind by two standard errors on whole tables, on 1,600 rows or on 400.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from time import monotonic
from typing import Any

import numpy as np
import torch

from benchmarks.common import results, tabular
from benchmarks.common.scratch import scratch
from benchmarks.study.default_rules import DRAWN_FROM, SMALL, THINNED, Cell, sample, whole
from benchmarks.study.metrics import GOALS, judged, metrics
from benchmarks.study.model_choice import USED, fit
from setpoint.datasets import DataSplit
from setpoint.train import Best, Validation, score
from setpoint.train.boosted_trees import MODELS
from setpoint.train.stacking import stacking_weights

PICK, MEAN, STACK = "best on validation", "mean", "stack"


def main() -> None:
    options = results.parser(
        __doc__, "table", "out", quick="400 rows of one split", seeds=4, minutes=60.0
    )
    chosen = options.parse_args()
    torch.set_num_threads(1)
    rows = results.RESULTS / "default_model.jsonl"
    out = chosen.out or (scratch("default_model") if chosen.quick else rows)
    if not chosen.table:
        end = monotonic() + 60 * chosen.minutes
        done = {(row["data"], row["rows"], row["seed"]) for row in results.read(out)}
        for cell in cells(chosen.seeds, chosen.quick):
            if cell[:3] not in done and monotonic() < end:
                results.append(out, *run(cell), packages=["lightgbm"])
                print(*cell[:3], flush=True)
    print(table(results.read(out)))


def cells(seeds: int, quick: bool) -> Iterator[Cell]:
    """Split by split: small samples, then whole tables."""
    for seed in range(1 if quick else seeds):
        for rows, data in product(SMALL[: 1 if quick else 2], DRAWN_FROM):
            yield Cell(data, rows, seed, 0)
        for data in () if quick else (*THINNED, *tabular.NAMES):
            yield Cell(data, 0, seed, 0)


def run(cell: Cell) -> list[results.Row]:
    """For each goal the test value of every kind and of every rule."""
    parts: DataSplit = sample(cell) if cell.rows else whole(cell)
    train, seen, new = ((torch.as_tensor(p.x), torch.as_tensor(p.y)) for p in parts)
    trees = fit("boosted", train, Validation(GOALS["fnr1"], *seen), cell.seed)  # by log-loss
    found = []
    for goal in (goal for goal in judged(parts.test.y) if goal in USED):
        judge = Validation(GOALS[goal], *seen)
        tried = [trees if k == "boosted" else fit(k, train, judge, cell.seed) for k in MODELS]
        old, tests = (np.stack([scores_of(one, x) for one in tried], 1) for x in (seen[0], new[0]))
        values = judged_by(goal, old, parts.validation.y, tests, parts.test.y)
        row = {"data": cell.data, "rows": cell.rows, "seed": cell.seed, "goal": goal}
        found.append(row | values)
    return found


def judged_by(goal: str, old: Any, seen: Any, new: Any, truth: Any) -> dict[str, float]:
    """Test values of all kinds and rules, from the scores of validation and test rows."""
    best = max(range(len(MODELS)), key=lambda k: metrics(old[:, k], seen)[goal])
    standardised = (new - old.mean(0)) / np.maximum(old.std(0), 1e-12)
    odds = np.stack([np.zeros_like(old), old], axis=2).astype(np.float64)
    weights, _ = stacking_weights(odds, seen)
    scores = dict(zip(MODELS, new.T, strict=True))
    scores |= {PICK: new[:, best], MEAN: standardised.mean(1), STACK: new @ weights}
    return {name: round(metrics(mine, truth)[goal], 3) for name, mine in scores.items()}


def scores_of(best: Best, x: torch.Tensor) -> Any:
    return score(best.model, x).numpy().reshape(-1)


def table(rows: list[results.Row]) -> str:
    """The mean over tables of every kind and rule, and the stack's points over each of them."""
    found: dict[str, dict[Any, list[results.Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        size = f"{row['rows']:,} rows" if row["rows"] else "whole tables"
        found[size][row["data"]].append(row)
        found["all"][row["data"], row["rows"]].append(row)
    names = (*MODELS, PICK, MEAN, STACK)
    lines = [f"| | {' | '.join(names)} |", "| --- " + "| ---: " * len(names) + "|"]
    for size, by_table in found.items():
        means = {
            k: np.array([np.mean([r[k] for r in t]) for t in by_table.values()]) for k in names
        }
        shown = (f"{means[name].mean():.1f}" for name in names)
        lines.append(f"| {size}, {len(by_table)} tables | {' | '.join(shown)} |")
        gains = (means[STACK] - means[name] for name in names)
        shown = (f"{g.mean():+.2f} ({g.std(ddof=1) / len(g) ** 0.5:.2f})" for g in gains)
        lines.append(f"| points of the stack over it | {' | '.join(shown)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
