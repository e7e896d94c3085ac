"""What a step on queries costs: 1,000 x 100 documents in time, 100,000 queries in memory.

Time is that of the process on one core, forward and backward, the least and the median of several;
memory is the highest resident set while the loss of 100,000 queries is taken in one pass.
"""

import json
import resource
import sys
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import torch

from benchmarks.common import results
from setpoint import Implicit, precision_at_k

RESULTS = Path(__file__).parents[1] / "results" / "ranking_cost.jsonl"


def draw(queries: int, length: int) -> tuple[torch.Tensor, ...]:
    """Scores, labels (a fifth relevant) and queries of one length."""
    torch.manual_seed(0)
    n = queries * length
    labels = (torch.rand(n) < 0.2).to(torch.int8)
    ids = torch.arange(queries, dtype=torch.int32).repeat_interleave(length)
    return torch.randn(n) + labels, labels, ids


def step(criterion: Implicit, data: tuple[torch.Tensor, ...]) -> None:
    """One forward and one backward pass."""
    scores, labels, queries = data
    leaf = scores.detach().requires_grad_()
    criterion(leaf, labels, queries=queries).backward()


def timed(queries: int, length: int, repeats: int) -> dict[str, float]:
    """Milliseconds of the process, and of the clock."""
    data, criterion = draw(queries, length), Implicit(precision_at_k(10).per("query"), steps=1000)
    step(criterion, data)
    cpu, wall = [], []
    for _ in range(repeats):
        start, clock = process_time(), perf_counter()
        step(criterion, data)
        cpu.append(1e3 * (process_time() - start))
        wall.append(1e3 * (perf_counter() - clock))
    return {
        "queries": queries,
        "documents": queries * length,
        "least_ms": min(cpu),
        "median_ms": float(np.median(cpu)),
        "least_clock_ms": min(wall),
    }


def peak() -> float:
    """The highest resident set so far, in megabytes."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    parser = results.parser(__doc__, quick="a look")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--length", type=int, default=100, help="documents of the long pass")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    row: dict[str, object] = {}
    row["time"] = timed(1_000, 100, 3 if options.quick else options.repeats)
    queries = 5_000 if options.quick else 100_000
    before, data = peak(), draw(queries, options.length)
    start = process_time()
    step(Implicit(precision_at_k(10).per("query"), steps=1000), data)
    row["memory"] = {
        "queries": queries,
        "documents": queries * options.length,
        "seconds": process_time() - start,
        "before_mb": before,
        "peak_mb": peak(),
    }
    print(json.dumps(row, indent=2))
    if not options.quick:
        results.rewrite(options.out, [row])


if __name__ == "__main__":
    main()
