"""Is `model="auto"` as good as the best of linear, mlp and boosted, on every table of the study?

    python -m benchmarks study.model_choice --quick     # one fold of two small tables
    python -m benchmarks study.model_choice             # three folds, about half an hour
    python -m benchmarks study.model_choice --table

Each kind of model is trained as `Classifier` trains it; `auto` is their sum with weights that
validation rows decide, or on up to 10,000 rows the same cross-fitted. The target: on every table
`auto` is within one standard error (over folds and goals) of the single kind that is best on that
table's test folds.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.common import results
from benchmarks.common.scratch import scratch
from benchmarks.study import tables
from benchmarks.study.metrics import GOALS, metrics
from setpoint.solvers import methods_named
from setpoint.train import (
    LEARNING_RATES,
    STEPS,
    Best,
    Validation,
    fit_best,
    network,
    score,
    steps_for,
)
from setpoint.train.boosted_trees import MODELS, fit_trees
from setpoint.train.cross_fitting import STEPS_OF_FOLD, cross_fit, folds_for, pays
from setpoint.train.stacking import stack

USED, BATCH = ("fnr1", "pr95"), 512


def main() -> None:
    options = results.parser(__doc__, "table", "out", quick="one fold of two small tables")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    rows = results.RESULTS / "model_choice.jsonl"
    out = chosen.out or (scratch("model_choice") if chosen.quick else rows)
    if not chosen.table:
        done = {(row["data"], row["fold"]) for row in results.read(out)}
        for data, fold in cells(chosen.quick):
            if (data, fold) not in done:
                results.append(out, *run(data, fold), packages=["lightgbm"])
                print(data, fold, flush=True)
    print(table(results.read(out)))


def cells(quick: bool) -> Iterator[tuple[str, int]]:
    names = ("annthyroid", "webpage_phishing") if quick else tables.NAMES[::-1]
    yield from ((name, fold) for fold in range(1 if quick else tables.FOLDS) for name in names)


def run(data: str, fold: int) -> list[results.Row]:
    """For each goal the test value of every kind of model and of auto, and what auto is."""
    parts, _ = tables.fold(data, fold)
    train, seen, new = ((torch.as_tensor(p.x), torch.as_tensor(p.y)) for p in parts)
    found = []
    for goal in USED:
        judge = Validation(GOALS[goal], *seen)
        tried = {kind: fit(kind, train, judge, fold) for kind in MODELS}
        row: results.Row = {"data": data, "fold": fold, "goal": goal}
        row["kept"], joined = stack(tried, judge)
        rows = Validation(
            judge.problem, *(torch.cat(pair) for pair in zip(train, seen, strict=True))
        )
        if pays(len(rows.y), None) and (best := crossed(rows, fold)) is not None:
            row["kept"], joined = "crossed", best
        for kind, best in (tried | {"auto": joined}).items():
            scores = score(best.model, new[0]).numpy().reshape(-1)
            row[kind] = round(metrics(scores, parts.test.y)[goal], 3)
        found.append(row)
    return found


def crossed(rows: Validation, seed: int) -> Best | None:
    """All kinds of model cross-fitted, as few rows are; None if a fold could not judge the goal."""

    def one(kind: str, train: Validation, held: Validation, fold: int) -> Best:
        return fit(kind, (train.x, train.y), held, seed + fold, STEPS_OF_FOLD)

    folds = folds_for(rows, None, seed)
    return None if folds is None else cross_fit(MODELS, rows, folds, one).best


def fit(kind: str, train: Any, judge: Validation, seed: int, fewest: int = STEPS) -> Best:
    """One kind of model as `Classifier` trains it."""
    if kind == "boosted":
        return fit_trees(*train, validation=judge, seed=seed)
    torch.manual_seed(seed)
    return fit_best(
        network(kind, train[0].shape[1]),
        methods_named("implicit"),
        *train,
        validation=judge,
        steps=steps_for(len(train[1]), BATCH, fewest=fewest),
        batch_size=min(BATCH, len(train[1])),
        learning_rate=LEARNING_RATES[kind],
        seed=seed,
    )


def table(rows: list[results.Row]) -> str:
    """Means by table, how far auto is ahead of the best single kind, and of each on average."""
    by_table: dict[str, list[results.Row]] = defaultdict(list)
    for row in rows:
        by_table[row["data"]].append(row)
    lines = [
        f"| table | {' | '.join(MODELS)} | auto | auto minus the best kind (standard error) | |",
        "| --- " + "| ---: " * 4 + "| --- | --- |",
    ]
    for data, mine in by_table.items():
        means = {kind: np.mean([row[kind] for row in mine]) for kind in MODELS}
        best = max(means, key=lambda kind: means[kind])
        behind = [row["auto"] - row[best] for row in mine]
        error = np.std(behind, ddof=1) / len(behind) ** 0.5 if len(behind) > 1 else float("nan")
        auto = np.mean([row["auto"] for row in mine])
        met = "met" if np.mean(behind) >= -error or np.mean(behind) >= 0 else "not met"
        shown = " | ".join(f"{means[kind]:.1f}" for kind in MODELS)
        gap = f"{np.mean(behind):+.2f} ({error:.2f}, {len(behind)})"
        lines.append(f"| {data} | {shown} | {auto:.1f} | {gap} | {met} |")
    for kind in MODELS:
        ahead = [np.mean([row["auto"] - row[kind] for row in mine]) for mine in by_table.values()]
        error = np.std(ahead, ddof=1) / len(ahead) ** 0.5 if len(ahead) > 1 else float("nan")
        lines.append(f"auto minus {kind}, over tables: {np.mean(ahead):+.2f} ({error:.2f})")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
