"""Should few examples at the operating point stop the fade early?

    python -m benchmarks study.small_samples --quick     # one split, two minutes
    python -m benchmarks study.small_samples             # eight splits, about an hour
    python -m benchmarks study.small_samples --table

Training sets of 400, 1,600 and 6,400 rows are drawn from the three large tables by which defaults
were chosen, half as many rows validate, and up to 20,000 others test: so a small training set is
judged without the noise of a small test set. `Implicit` with a fade that ends at 0 (the default),
at 0.3 and at 0.6, and resampled cross-entropy, minus plain cross-entropy; learning rate,
checkpoint and averaging are picked on validation rows for everyone.
"""

from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from benchmarks.common import results, tabular
from benchmarks.common.scratch import scratch
from benchmarks.study import training
from benchmarks.study.methods import WAYS, Way
from benchmarks.study.metrics import GOALS, TITLES
from setpoint import Implicit, Stratified
from setpoint.datasets import DataSplit, Table
from setpoint.solvers import cross_entropy

SIZES, TABLES, USED = (400, 1600, 6400), ("letter", "ijcnn1", "adult"), ["fnr1", "pr95", "ap"]
STEPS, MOST_TESTS, FARTHEST = 600, 20_000, 20.0
REFERENCE = "cross-entropy"


def fading(end: float) -> Way:
    """The default but for the share of cross-entropy that the fade ends with."""
    return Way(
        lambda goal, steps, _: Implicit(GOALS[goal], steps=steps, end=end),
        Stratified,
        direct=True,
        takes="resampling",
    )


MEMBERS = {
    "fade to 0": fading(0.0),
    "fade to 0.3": fading(0.3),
    "fade to 0.6": fading(0.6),
    "resampled": WAYS["resampled"],
    REFERENCE: Way(lambda *_: cross_entropy),
}


def main() -> None:
    options = results.parser(__doc__, "table", "out", quick="one split", seeds=8)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    rows = results.RESULTS / "small_samples.jsonl"
    out = chosen.out or (scratch("small_samples") if chosen.quick else rows)
    if not chosen.table:
        run(out, 1 if chosen.quick else chosen.seeds, SIZES[:1] if chosen.quick else SIZES)
    print(table(results.read(out)))


def run(out: Path, seeds: int, sizes: tuple[int, ...]) -> None:
    """Every cell that is not there yet."""
    WAYS.update(MEMBERS)
    done = {(r["data"], r["rows"], r["seed"], r["hidden"]) for r in results.read(out)}
    for seed in range(seeds):
        for data in TABLES:
            for rows in sizes:
                parts = sample(data, rows, seed)
                for hidden in (0, 32):
                    if (data, rows, seed, hidden) in done:
                        continue
                    about = {"data": data, "rows": rows, "seed": seed, "hidden": hidden}
                    for way in MEMBERS:
                        found = training.train(parts, way, hidden, seed, STEPS, goals=USED)
                        results.append(out, *(about | row for row in found))
                    print(*about.values(), flush=True)


def sample(data: str, rows: int, seed: int) -> DataSplit:
    """So many training rows, half as many to validate, the others to test; standardised."""
    x, y = tabular.load(data)
    order = np.random.default_rng(seed).permutation(len(y))
    places = np.split(order, [rows, rows + rows // 2])
    train = x[places[0]]
    scale = train.std(0)
    x = ((x - train.mean(0)) / np.where(scale > 0, scale, 1)).clip(-FARTHEST, FARTHEST)
    x = x.astype(np.float32)
    return DataSplit(*(Table(x[p[:MOST_TESTS]], y[p[:MOST_TESTS]]) for p in places))


def table(rows: list[results.Row]) -> str:
    """Points over cross-entropy, with the standard error over tables and splits."""
    cells: dict[tuple[int, int, str], dict[str, dict[str, float]]] = defaultdict(dict)
    for row in rows:
        key = (row["hidden"], row["rows"], row["goal"])
        cells[key].setdefault(f"{row['data']} {row['seed']}", {})[row["method"]] = row["test"]
    names = [name for name in MEMBERS if name != REFERENCE]
    lines = [f"| model | rows | goal | {' | '.join(names)} |", "| --- " * 3 + "| ---: " * 4 + "|"]
    for (hidden, rows_, goal), found in sorted(cells.items()):
        model = f"{hidden} units" if hidden else "linear"
        shown = []
        for name in names:
            gains = [v[name] - v[REFERENCE] for v in found.values() if {name, REFERENCE} <= set(v)]
            error = np.std(gains, ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else float("nan")
            shown.append(f"{np.mean(gains):+.1f} ({error:.1f}, {len(gains)})")
        lines.append(f"| {model} | {rows_:,} | {TITLES[goal]} | {' | '.join(shown)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
