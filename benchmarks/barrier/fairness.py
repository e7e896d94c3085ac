"""Fairness on Adult (Figure 2 of the paper): covariance with sex against the loss.

    python -m benchmarks.barrier.fairness            # fronts and fairlearn, five seeds
    python -m benchmarks.barrier.fairness --quick    # one seed, fewer points: two minutes
    python -m benchmarks.barrier.fairness --plot     # docs/images/pareto_fairness.png from the rows

5,000 training rows drawn by the seed, the official test part of 16,281; sex is not a feature. Our
fronts minimise |cov| where the loss is at most c (the paper minimises its square, which has the
same front). fairlearn gets a logistic regression, and five bounds of the parity difference or a
grid of as many points as our front; its randomised classifiers are judged by their mean decision.
Rows are kept in benchmarks/results/barrier_fairness.jsonl as they are made, and not made again.
"""

from __future__ import annotations

import time
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.barrier.front_data import Adult, adult
from benchmarks.barrier.front_fairlearn import PEERS, fairlearn_points
from benchmarks.barrier.front_rows import Rows, markdown, spread
from benchmarks.barrier.front_study import METHODS, below, measured
from benchmarks.common import results
from setpoint import pareto_front
from setpoint.pareto.goals import Judge, TableLosses

RATE, STEPS, END_STEPS, POINTS = 0.03, 80, 500, 8
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "pareto_fairness.png"
RATIOS = (0.5, 0.7, 0.8, 0.9)
"""Ratios of coverage (disparate impact) at which accuracies are compared; 0.8 is the usual rule."""


def network(inputs: int, hidden: int) -> nn.Module:
    if not hidden:
        return nn.Linear(inputs, 1)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, 1))


def one_hot(sex: Tensor) -> Tensor:
    return torch.stack([1 - sex, sex], dim=1)


def front_row(data: Adult, seed: int, method: Any, hidden: int, points: int) -> dict[str, Any]:
    front = pareto_front(
        partial(network, data.x.shape[1], hidden),
        TableLosses(minimize="covariance", hold="loss"),
        (data.x, data.y, one_hot(data.sex)),
        points=points,
        steps=STEPS,
        end_steps=END_STEPS,
        learning_rate=RATE,
        method=method,
        seed=seed,
        measure=Judge(data.x_test, data.y_test, one_hot(data.sex_test)),
    )
    return {"method": method, "hidden": hidden, "seed": seed, **measured(front)}


def make(name: str, seed: int, hidden: int, points: int) -> dict[str, Any]:
    data = adult(seed)
    if name in METHODS:
        return front_row(data, seed, name, hidden, points)
    started = time.perf_counter()
    found = fairlearn_points(name, data, points)
    seconds = time.perf_counter() - started
    return {"method": name, "hidden": 0, "seed": seed, "measures": found, "seconds": seconds}


def best_accuracy(row: dict[str, Any], ratio: float) -> float | None:
    """The best test accuracy of a point whose coverages differ by at most this factor."""
    allowed = [m["accuracy"] for m in row["measures"] if m["impact ratio"] >= ratio]
    return max(allowed, default=None)


def table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for hidden in (0, 16):
        for method in (*METHODS, *PEERS):
            found = [r for r in rows if (r["method"], r["hidden"]) == (method, hidden)]
            if not found:
                continue
            cells = []
            for ratio in RATIOS:
                values = [v for v in (best_accuracy(r, ratio) for r in found) if v is not None]
                missing = f" ({len(values)} of {len(found)})" if len(values) < len(found) else ""
                cells.append(spread([100 * v for v in values]) + missing)
            even = spread([r["unevenness"] for r in found if "unevenness" in r])
            gaps = spread([r["largest_gap"] for r in found if r.get("largest_gap") is not None])
            area = spread([r["area"] for r in found if "area" in r])
            model = f"hidden {hidden}" if hidden else "linear"
            ours = [r for r in rows if (r["method"], r["hidden"]) == (METHODS[0], hidden)]
            lower = spread(below(found, ours)) if "pairs" in found[0] and found != ours else "-"
            lines.append([model, method, len(found), even, gaps, area, lower, *cells])
    ratios = [f"at ratio {ratio}" for ratio in RATIOS]
    header = [
        "model",
        "method",
        "seeds",
        "CV of gaps",
        "largest abs(g - c)",
        "area",
        "below the barrier",
    ]
    return markdown([*header, *ratios], lines)


def main() -> None:
    parser = results.parser(__doc__, "fresh", quick="one seed, six points", seeds=5, minutes=25)
    parser.add_argument("--plot", action="store_true", help="draw what there is, train nothing")
    given = parser.parse_args()
    rows = Rows("barrier_fairness_quick" if given.quick else "barrier_fairness", fresh=given.fresh)
    seeds, points = (1, 6) if given.quick else (given.seeds, POINTS)
    peers = PEERS if find_spec("fairlearn") else ()
    wanted = [(m, 0) for m in METHODS[:2]] + [(m, 0) for m in peers]
    wanted += [] if given.quick else [(m, 16) for m in METHODS[:2]] + [(m, 0) for m in METHODS[2:]]
    end = time.monotonic() + 60 * given.minutes
    for name, hidden in [] if given.plot else wanted:
        for seed in range(seeds):
            known = rows.find(method=name, hidden=hidden, seed=seed)
            if not known and time.monotonic() < end:
                rows.add(make(name, seed, hidden, points))
    if given.plot:
        from benchmarks.barrier.front_pictures import fairness

        fairness(PICTURE, rows.rows)
    print(table(rows.rows))


if __name__ == "__main__":
    main()
