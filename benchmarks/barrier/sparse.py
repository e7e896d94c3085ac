"""Sparse codes (Figure 1 of the paper): data loss against an L_0.5 penalty, as a front.

    python -m benchmarks.barrier.sparse            # three data sets, four methods, five seeds
    python -m benchmarks.barrier.sparse --quick    # simulated data, one seed: two minutes
    python -m benchmarks.barrier.sparse --plot     # docs/images/pareto_sparse.png from the rows

All methods share the ends, the budget and the walk from neighbour to neighbour. Rows are kept in
benchmarks/results/barrier_sparse.jsonl as they are made, and not made again.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.barrier import front_data
from benchmarks.barrier.front_rows import Rows, markdown, spread
from benchmarks.barrier.front_sparse import SparseCode, judged, losses
from benchmarks.barrier.front_study import METHODS, below, measured
from benchmarks.common import results
from setpoint import pareto_front

DATA = ("simulated", "newsgroups20", "imdb")
FEATURES, POINTS, RATE = 6, 10, 0.01
STEPS, END_STEPS = 150, 500
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "pareto_sparse.png"


def study(name: str, seed: int, method: Any) -> dict[str, Any]:
    data = front_data.simulated(seed) if name == "simulated" else front_data.texts(name, seed)
    front = pareto_front(
        partial(SparseCode, data.x.shape[1], FEATURES, data.classes),
        losses,
        (data.x, data.y),
        points=POINTS,
        steps=STEPS,
        end_steps=END_STEPS,
        learning_rate=RATE,
        method=method,
        seed=seed,
        measure=partial(judged, x=data.x_test, y=data.y_test),
    )
    return {"data": name, "seed": seed, "method": method, **measured(front)}


def table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for method, name in product(METHODS, DATA):
        found = [r for r in rows if (r["data"], r["method"]) == (name, method)]
        if not found:
            continue
        gaps = [r["largest_gap"] for r in found if r["largest_gap"] is not None]
        largest = f" (largest {max(gaps):.2g})" if gaps else ""
        cells = [spread([r[key] for r in found]) for key in ("range", "unevenness")]
        others = [spread([r[key] for r in found]) for key in ("area", "clear_of_ends")]
        ours = [r for r in rows if (r["data"], r["method"]) == (name, METHODS[0])]
        others.append(spread(below(found, ours)) if found != ours else "")
        lines.append([name, method, len(found), *cells, spread(gaps) + largest, *others])
    header = ["data", "method", "seeds", "range of the penalty", "CV of gaps"]
    header += ["largest abs(g - c)", "area", "points clear of the ends", "below the barrier"]
    return markdown(header, lines)


def draw(rows: list[dict[str, Any]]) -> None:
    from benchmarks.barrier.front_pictures import panels

    chosen = [[r for r in rows if r["data"] == name and r["seed"] == 0] for name in DATA]
    panels(PICTURE, DATA, chosen, ("penalty E|z|^0.5", "data loss"), METHODS)


def main() -> None:
    parser = results.parser(__doc__, "fresh", quick="simulated data, one seed", seeds=5, minutes=25)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--plot", action="store_true", help="draw what there is, train nothing")
    given = parser.parse_args()
    rows = Rows("barrier_sparse_quick" if given.quick else "barrier_sparse", fresh=given.fresh)
    seeds, data = (1, DATA[:1]) if given.quick else (given.seeds, DATA)
    end = time.monotonic() + 60 * given.minutes
    wanted = [(n, s, m) for m in given.methods for n in data for s in range(seeds)]
    for name, seed, method in [] if given.plot else wanted:
        late = time.monotonic() > end
        if not late and not rows.find(data=name, seed=seed, method=method):
            rows.add(study(name, seed, method))
    if given.plot:
        draw(rows.rows)
    print(table(rows.rows))


if __name__ == "__main__":
    main()
