"""What a step with the barrier costs, next to a plain step, on a small CNN; and the QP alone.

Run it: OMP_NUM_THREADS=1 python -m benchmarks barrier.cost [--quick]
Processor time of one thread, all variants in turns within one run, so that other work on the
machine hits all alike; the ratio is that of the medians, and of the fastest rounds. Rows are
appended to benchmarks/results/barrier_cost.jsonl.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from statistics import median, quantiles

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.common import results
from setpoint import Barrier
from setpoint.solvers import at_most
from setpoint.solvers.barrier.quadratic_program import solve_multipliers

RESULTS = Path(__file__).parents[1] / "results" / "barrier_cost.jsonl"


def network() -> nn.Module:
    """188 thousand parameters, for images of 32 by 32."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(512, 184), nn.ReLU(), nn.Linear(184, 10),
    )  # fmt: skip


def variants(batch: int) -> dict[str, Callable[[], object]]:
    """Each returns after one whole step, from the forward pass to the update."""
    x, y = torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))
    made: dict[str, Callable[[], object]] = {}

    def add(name: str, step: Callable[[Tensor, nn.Module], object]) -> None:
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        barrier = barriers[name](model.parameters()) if name in barriers else None

        def whole() -> None:
            optimizer.zero_grad()
            step(model(x), barrier) if barrier else step(model(x), model)
            optimizer.step()

        made[name] = whole

    def losses(scores: Tensor) -> tuple[Tensor, Tensor]:
        return scores.softmax(-1).square().mean(), cross_entropy(scores, y)

    def bounded(scores: Tensor, barrier: Barrier) -> object:
        side, fit = losses(scores)
        return barrier.backward(side, subject_to=at_most(fit, 2.0))

    def ordered(scores: Tensor, barrier: Barrier) -> object:
        side, fit = losses(scores)
        return barrier.backward(side, after=fit)

    barriers = {
        "barrier": Barrier,
        "barrier, every=5": lambda p: Barrier(p, every=5),
        "lexicographic": Barrier,
    }
    add("plain", lambda s, m: losses(s)[1].backward())
    add("linear combination", lambda s, m: sum(losses(s)).backward())
    add("barrier", bounded)
    add("barrier, every=5", bounded)
    add("lexicographic", ordered)
    return made


def time_steps(batch: int, rounds: int) -> list[dict[str, object]]:
    made = variants(batch)
    seconds: dict[str, list[float]] = {name: [] for name in made}
    for turn in range(rounds + 1):
        for name, step in made.items():
            start = time.process_time()
            for _ in range(5):  # a whole cycle of every=5
                step()
            if turn:  # the first is for warming up
                seconds[name].append((time.process_time() - start) / 5)
    plain, best = median(seconds["plain"]), min(seconds["plain"])
    rows = []
    for name, times in seconds.items():
        ratios = [t / p for t, p in zip(times, seconds["plain"], strict=True)]
        low, _, high = quantiles(ratios, n=4)
        rows.append(
            {
                "what": "step", "variant": name, "batch": batch, "rounds": rounds,
                "ms": round(1e3 * median(times), 3), "ratio": round(median(times) / plain, 3),
                "ratio_quartiles": [round(low, 3), round(high, 3)],
                "ratio_of_fastest": round(min(times) / best, 3),
            }
        )  # fmt: skip
    return rows


def time_program(rounds: int) -> Iterator[dict[str, object]]:
    rng = np.random.default_rng(0)
    for m in (1, 2, 4, 8, 16):
        times = []
        for _ in range(rounds * 20):
            g = rng.normal(size=(m, 30))
            needed, free = rng.normal(size=m), np.zeros(m, dtype=bool)
            gram = g @ g.T
            start = time.process_time()
            for _ in range(5):
                solve_multipliers(gram, needed, free)
            times.append((time.process_time() - start) / 5)
        yield {
            "what": "quadratic program",
            "constraints": m,
            "microseconds": round(1e6 * median(times), 1),
            "microseconds_95": round(1e6 * float(np.quantile(times, 0.95)), 1),
        }


def main() -> None:
    parser = results.parser(__doc__, quick="two minutes at most")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    rounds = 5 if options.quick else options.rounds
    machine = {"machine": platform.machine(), "threads": 1}
    torch.set_num_threads(1)
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    for row in chain(time_program(rounds), time_steps(options.batch, rounds)):
        print(row, flush=True)
        results.append(RESULTS, {**row, **machine})


if __name__ == "__main__":
    main()
