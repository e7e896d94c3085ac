"""AP-Perf's game through our layer (adversary.py), beside AP-Perf itself.

    python -m benchmarks.programs.game               # n = 8 and 16, a minute; --sizes 32 for more
    python -m benchmarks.programs.game --quick       # fewer iterations of AP-Perf

AP-Perf 0.1.1 sums one too few when it reports the value (of size k the k - 1 largest), so its
gradients agree with ours and its value does not; ``repaired`` is its value with the right sum.

Writes benchmarks/results/programs_game.jsonl.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from torch import Tensor

from benchmarks.programs.adversary import game_loss
from benchmarks.programs.instances import draw
from benchmarks.programs.rows import opened, parser

ITERATIONS = (100, 1000, 4000)  # of AP-Perf's ADMM; 100 is its default


def payoff(Q: np.ndarray) -> float:
    """What the best answer to a distribution ``q_il`` wins: the right sum of the largest."""
    k = np.arange(1, len(Q) + 1)
    gains = -np.sort(-(Q @ (2.0 / (k[:, None] + k[None, :]))), axis=0)
    sums = np.cumsum(gains, axis=0).diagonal()
    return float(max(sums.max(), 1 - (Q / k).sum()))


def adversarial(scores: Tensor, labels: Tensor, iterations: int) -> dict[str, Any]:
    """AP-Perf: its loss as reported, the same with the right sum, its gradient, its CPU seconds."""
    from benchmarks.programs.peers.adversarial import build, distribution

    loss = build("f1", labels, max_iter=iterations)
    x = scores.clone().requires_grad_()
    start = time.process_time()
    value = loss(x)
    value.backward()
    seconds = time.process_time() - start
    Q = distribution(scores, labels, max_iter=iterations)
    tied = float((scores * labels).sum()) - float(scores.numpy() @ Q.sum(1))
    return {
        "loss": float(value.detach()),
        "repaired": -(payoff(Q) + tied),
        "seconds": seconds,
        "gradient": x.grad,
    }


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--sizes", type=int, nargs="+", default=[8, 16])
    options = asked.parse_args()
    rows = opened(options, "game")
    game_loss(*draw(4))  # whatever is imported on first use
    for n in [8, 16] if options.quick else options.sizes:
        scores, labels = draw(n, seed=1)
        scores = 0.1 * scores  # of the size at which the game is undecided
        x = scores.clone().requires_grad_()
        start = time.process_time()
        value = game_loss(x, labels)
        middle = time.process_time()
        value.backward()
        ended = time.process_time()
        assert x.grad is not None
        rows.add(
            {"n": n, "method": "layer"},
            loss=float(value.detach()),
            seconds=middle - start,
            backward_s=ended - middle,
        )
        for iterations in ITERATIONS[: 2 if options.quick else 3]:
            found = adversarial(scores, labels, iterations)
            off = float((found.pop("gradient") - x.grad).abs().max())
            cell = {"n": n, "method": f"AP-Perf, {iterations} iterations"}
            rows.add(cell, gradient_off=off, **found)


if __name__ == "__main__":
    main()
