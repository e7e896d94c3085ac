"""The tables of docs/ranking.md from the rows: every method, means over folds, paired differences.

For each k the learning rate and the pass are chosen by validation precision at k, of every method
alike; of ours, the model trained for that k.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.ranking.metrics import KS, RESULTS

OURS = "setpoint"
Runs = Mapping[tuple[str, str, int], list[dict]]


def read(path: Path = RESULTS) -> Runs:
    """The rows by method, model and fold."""
    runs = defaultdict(list)
    for line in path.open():
        row = json.loads(line)
        name, kind, number, *_ = row["run"]
        runs[name, kind, number].append(row)
    return runs


def chosen(runs: Runs, name: str, kind: str, number: int, k: int) -> dict[str, float] | None:
    """The test metrics of the run that is best on validation data at ``k``."""
    key = f"{OURS} k={k}" if name == OURS else name
    found = runs.get((key, kind, number))
    if not found:
        return None
    best = max(found, key=lambda row: row[str(k)]["validation"])
    return best[str(k)]["test"]


def table(runs: Runs, kind: str) -> list[str]:
    """Metrics in points, means over folds; the last column is the mean of the precisions."""
    names = list(dict.fromkeys(OURS if n.startswith(OURS) else n for n, m, _ in runs if m == kind))
    folds = sorted({f for _, m, f in runs if m == kind})
    full = [f for f in folds if all(chosen(runs, n, kind, f, k) for n in names for k in KS)]
    columns = [f"{m}@{k}" for m in "PRN" for k in KS]
    lines = [
        f"**{kind}**, folds {', '.join(map(str, full))}",
        "",
        "| loss | " + " | ".join(c.replace("N@", "NDCG@") for c in columns) + " | mean P |",
        "| --- |" + " --- |" * (len(columns) + 1),
    ]
    means = {}
    for name in names:
        values = np.array(
            [[chosen(runs, name, kind, f, k)[f"{m}@{k}"] for m in "PRN" for k in KS] for f in full]
        )
        means[name] = 100 * values[:, :3].mean(1)
        cells = [f"{x:.1f}" for x in 100 * values.mean(0)]
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {means[name].mean():.2f} |")
    if OURS in means:
        lines += ["", "Mean precision, ours minus the other, fold by fold (points, se over folds):"]
        for name in [n for n in names if n != OURS]:
            gap = means[OURS] - means[name]
            error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else float("nan")
            lines.append(f"- {name}: {gap.mean():+.2f} ({error:.2f})")
    return [*lines, ""]


def main() -> None:
    runs = read()
    for kind in ("linear", "mlp", "trees"):
        if any(model == kind for _, model, _ in runs):
            print("\n".join(table(runs, kind)))


if __name__ == "__main__":
    main()
