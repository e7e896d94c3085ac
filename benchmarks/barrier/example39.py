"""Example 3.9 of the paper: one number, a front that bends the wrong way, eight starts.

    min |x - 1|^a  subject to  |x|^a <= b^a        the answer is x = b for every a

    python -m benchmarks.barrier.example39            # 27 cases, 5 methods: ten minutes
    python -m benchmarks.barrier.example39 --quick    # nine cases, two minutes

The linear combination gets the true multiplier ((1 - b) / b)^(a - 1) as its weight. All take plain
gradient steps of the same rate in float64. Cooper is used if it is installed (cooper-optim).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD

from benchmarks.barrier import front_peers as peers
from benchmarks.barrier.front_rows import Rows, markdown
from benchmarks.common import results
from setpoint import Barrier
from setpoint.solvers import at_most

RATE, NEAR = 0.05, 1e-3
STARTS = (-1.9, -1.3, -0.75, -0.15, 0.25, 0.7, 1.35, 2.0)
POWERS = (0.5, 1.0, 2.0)
BOUNDS = tuple(round(0.1 * k, 1) for k in range(1, 10))
METHODS = ("barrier", "linear", "primal-dual", "Cooper", "Cooper, augmented")


def losses(power: float, x: Tensor) -> tuple[Tensor, Tensor]:
    return (x - 1).abs() ** power, x.abs() ** power


def barrier(
    x: Tensor, two: Callable[[Tensor], tuple[Tensor, Tensor]], c: float, steps: int
) -> None:
    """Ours: one start after the other, because a barrier holds one model."""
    for place in range(len(x)):
        one = x.detach()[place : place + 1].clone().requires_grad_()
        guard, optimizer = Barrier([one]), SGD([one], lr=RATE)
        for _ in range(steps):
            f, g = two(one)
            optimizer.zero_grad()
            guard.backward(f.sum(), subject_to=[at_most(g.sum(), c)])
            optimizer.step()
        x.data[place] = one.item()


def solve(method: str, power: float, bound: float, steps: int) -> dict[str, Any]:
    x = torch.tensor(STARTS, dtype=torch.float64, requires_grad=True)
    two, c = partial(losses, power), bound**power
    if method == "barrier":
        barrier(x, two, c, steps)
    elif method == "linear":
        peers.linear(x, two, c, ((1 - bound) / bound) ** (power - 1), steps, RATE)
    elif method == "primal-dual":
        peers.primal_dual(x, two, c, steps, RATE)
    else:
        peers.cooper(x, two, c, steps, RATE, 10.0 if method.endswith("augmented") else None)
    errors = (x.detach() - bound).abs().nan_to_num(nan=float("inf"))
    return {
        "method": method,
        "power": power,
        "bound": bound,
        "steps": steps,
        "solved": int((errors <= NEAR).sum()),
        "starts": len(STARTS),
        "worst": min(float(errors.max()), 1e9),
        "x": x.tolist(),
    }


def main() -> None:
    parser = results.parser(__doc__, "fresh", quick="three bounds, fewer steps")
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    given = parser.parse_args()
    steps = min(given.steps, 240) if given.quick else given.steps
    bounds = (0.2, 0.5, 0.8) if given.quick else BOUNDS
    rows = Rows(
        "barrier_example39_quick" if given.quick else "barrier_example39", fresh=given.fresh
    )
    known = METHODS if find_spec("cooper") else METHODS[:3]
    methods = [method for method in known if method in given.methods]
    for method in methods:
        for power in POWERS:
            for bound in bounds:
                if not rows.find(method=method, power=power, bound=bound, steps=steps):
                    rows.add(solve(method, power, bound, steps))
    table = []
    for method in methods:
        for power in POWERS:
            key = (method, power, steps)
            found = [r for r in rows.rows if (r["method"], r["power"], r["steps"]) == key]
            cells = [
                f"{r['solved']}/{r['starts']}" for r in sorted(found, key=lambda r: r["bound"])
            ]
            table.append([method, power, *cells, f"{max(r['worst'] for r in found):.1g}"])
    print(markdown(["method", "power", *bounds, "worst error"], table))


if __name__ == "__main__":
    main()
