"""The tables of docs/ranking.md from the rows: every method, means over folds, paired differences.

For each k and seed the learning rate and the pass are chosen by validation precision at k, of every
method alike; of ours, the model trained for that k. ``--docs`` writes them into the page.
"""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.common import results
from benchmarks.common.pages import fill
from benchmarks.ranking.metrics import KS, RESULTS

OURS = "setpoint"
ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "ranking.md"
Runs = Mapping[tuple[str, str, int, int], list[dict]]


def read(path: Path = RESULTS) -> Runs:
    """The rows by method, model, fold and seed."""
    runs = defaultdict(list)
    for row in results.read(path):
        name, kind, number, _, _, seed = row["run"]
        runs[name, kind, number, seed].append(row)
    return runs


def chosen(
    runs: Runs, name: str, kind: str, number: int, seed: int, k: int
) -> dict[str, float] | None:
    """The test metrics of the run that is best on validation data at ``k``."""
    key = f"{OURS} k={k}" if name == OURS else name
    found = runs.get((key, kind, number, seed))
    if not found:
        return None
    best = max(found, key=lambda row: row[str(k)]["validation"])
    return best[str(k)]["test"]


def measured(runs: Runs, name: str, kind: str, number: int, seeds: list[int]) -> dict[str, float]:
    """The test metrics of a method on a fold, means over seeds."""
    found = {}
    for k in KS:
        rows = [chosen(runs, name, kind, number, seed, k) for seed in seeds]
        found |= {f"{m}@{k}": float(np.mean([row[f"{m}@{k}"] for row in rows])) for m in "PRN"}
    return found


def table(runs: Runs, kind: str) -> list[str]:
    """Metrics in points, means over folds; the last column is the mean of the precisions."""
    own = [(n, f, s) for n, m, f, s in runs if m == kind]
    names = list(dict.fromkeys(OURS if n.startswith(OURS) else n for n, _, _ in own))
    cells = sorted({(f, s) for _, f, s in own})
    full = [c for c in cells if all(chosen(runs, n, kind, *c, k) for n in names for k in KS)]
    seeds = {f: [s for g, s in full if g == f] for f, _ in full}
    counts = sorted({len(own) for own in seeds.values()})
    columns = [f"{m}@{k}" for m in "PRN" for k in KS]
    lines = [
        f"**{kind}**, folds {', '.join(map(str, seeds))}, seeds per fold: "
        f"{' to '.join(map(str, counts[:1] + counts[1:][-1:]))}",
        "",
        "| loss | " + " | ".join(c.replace("N@", "NDCG@") for c in columns) + " | mean P |",
        "| --- |" + " --- |" * (len(columns) + 1),
    ]
    means = {}
    for name in names:
        found = [measured(runs, name, kind, f, own) for f, own in seeds.items()]
        values = np.array([[row[column] for column in columns] for row in found])
        means[name] = 100 * values[:, :3].mean(1)
        shown = [f"{x:.1f}" for x in 100 * values.mean(0)]
        lines.append(f"| {name} | " + " | ".join(shown) + f" | {means[name].mean():.2f} |")
    if OURS in means:
        line = "Mean precision, ours minus the other, fold by fold (points, se over folds):"
        lines += ["", line, ""]
        for name in [n for n in names if n != OURS]:
            gap = means[OURS] - means[name]
            error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else float("nan")
            lines.append(f"- {name}: {gap.mean():+.2f} ({error:.2f})")
    return [*lines, ""]


def main() -> None:
    options = results.parser(__doc__, "docs")
    given = options.parse_args()
    runs = read()
    kinds = [kind for kind in ("linear", "mlp", "trees") if any(m == kind for _, m, *_ in runs)]
    shown = "\n".join("\n".join(table(runs, kind)) for kind in kinds)
    if given.docs:
        fill(PAGE, "table", shown)
    print(shown)


if __name__ == "__main__":
    main()
