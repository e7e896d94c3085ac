"""Batches of 60 x 20 programs, forward and backward: the layer, a loop over HiGHS, and peers.

    python -m benchmarks.programs.batches               # 1 to 256 programs, three minutes
    python -m benchmarks.programs.batches --quick       # 1, 16 and 64

Solutions are differentiated by A and b (HiGHS in a loop solves only: it gives no gradient).
Writes benchmarks/results/programs_batches.jsonl.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from benchmarks.programs.instances import random_batch
from benchmarks.programs.rows import Rows, opened, parser
from setpoint.programs import linear_program

Solve = Callable[[Tensor, Tensor, Tensor], Tensor]


def loop(c: Tensor, A: Tensor, b: Tensor) -> Tensor:
    """HiGHS, one program after the other."""
    found = [
        linprog(*(x.detach().numpy() for x in one), bounds=(None, None), method="highs").x
        for one in zip(c, A, b, strict=True)
    ]
    return torch.as_tensor(np.stack(found))


def layer(**options: Any) -> Solve:
    """Our layer."""
    return lambda c, A, b: linear_program(c, A, b, **options)[0]


def peers() -> dict[str, Solve]:
    """Whoever is installed."""
    found: dict[str, Solve] = {}
    try:
        from benchmarks.programs.peers import cvx

        found["cvxpylayers"] = cvx.batch(60, 20, cvx.CHOSEN)
        found["cvxpylayers + Clarabel"] = cvx.batch(60, 20, cvx.CLARABEL)
    except ImportError as error:
        print(f"without cvxpylayers: {error}")
    try:
        from benchmarks.programs.peers import qp

        found["qpth"] = qp.batch
    except ImportError as error:
        print(f"without qpth: {error}")
    from benchmarks.programs.peers import published

    found["published recipe"] = lambda c, A, b: published.solve(c.float(), A.float(), b.float())
    return found


def main() -> None:
    options = arguments()
    rows = opened(options, "batches")
    ways: dict[str, Solve] = {
        "layer": layer(),
        "layer, value_only": layer(value_only=True),
        "layer, highs": layer(solver="highs"),
        "layer, newton": layer(solver="newton"),
        "HiGHS loop": loop,
        **peers(),
    }
    for size in [1, 16, 64] if options.quick else options.sizes:
        run(rows, size, ways, options.rounds)


def run(rows: Rows, size: int, ways: dict[str, Solve], rounds: int) -> None:
    """All ways at one size, taking turns; the first round warms up."""
    c, A, b = random_batch(size)
    true = loop(c, A, b)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    worst: dict[str, float] = {}
    lost: dict[str, str] = {}
    for round_ in range(rounds + 1):
        for name, solve in ways.items():
            if name in lost:
                continue
            given = [c, A.clone().requires_grad_(), b.clone().requires_grad_()]
            try:
                start = time.process_time()
                z = solve(*given)
                middle = time.process_time()
                if z.requires_grad:
                    z.sum().backward()
                end = time.process_time()
            except Exception as error:  # somebody else's code: any error is a result
                lost[name] = f"{type(error).__name__}: {error}"[:200]
                continue
            if round_:
                times[name].append((middle - start, end - middle))
            worst[name] = off(z.detach().double(), true, c)
    for name in ways:
        cell = {"batch": size, "method": name}
        if name in lost:
            rows.add(cell, skipped=f"failed: {lost[name]}")
            continue
        forward, backward = zip(*times[name], strict=True)
        rows.add(
            cell,
            forward_s=statistics.median(forward),
            backward_s=statistics.median(backward),
            error=worst[name],
            forward=forward,
            backward=backward,
        )


def off(z: Tensor, true: Tensor, c: Tensor) -> float:
    """The worst relative error of the objective; ``z`` may be the objective itself."""
    wanted = (c * true).sum(-1)
    value = z if z.ndim == 1 else (c * z).sum(-1)
    return float(((value - wanted).abs() / wanted.abs().clamp(min=1)).max())


def arguments() -> argparse.Namespace:
    asked = parser(__doc__)
    asked.add_argument("--sizes", type=int, nargs="+", default=[1, 4, 16, 64, 256])
    asked.add_argument("--rounds", type=int, default=3)
    return asked.parse_args()


if __name__ == "__main__":
    main()
