"""Lexicographic problems with known answers: ours and Algorithm 1 as printed.

    python -m benchmarks.barrier.priorities            # ten minutes of one idle core
    python -m benchmarks.barrier.priorities --quick    # one minute

Rows are appended to benchmarks/results/barrier_priorities.jsonl as they are made; the tables of
docs/barrier.md are printed at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD, Adam, Optimizer

from benchmarks.barrier.front_rows import Rows, markdown
from benchmarks.common import results
from setpoint import Barrier
from setpoint.solvers.barrier import lexicographic_residual

Losses = Callable[[Tensor], tuple[Tensor, ...]]
RULES = ("corrected", "printed")
STARTS = ((3, -1), (-2, 1), (0, 0), (1, 1), (5, 5), (2, 0.5), (-4, -1), (0.2, 0.9))
ON_THE_LINE = ((1, 0), (-3, 4))
OPTIMIZERS: dict[str, Callable[[Iterable[Tensor]], Optimizer]] = {
    "SGD 0.2": lambda p: SGD(p, lr=0.2),
    "SGD 0.05": lambda p: SGD(p, lr=0.05),
    "SGD 0.01": lambda p: SGD(p, lr=0.01),
    "momentum 0.02": lambda p: SGD(p, lr=0.02, momentum=0.9),
    "Adam 0.02": lambda p: Adam(p, lr=0.02),
}
SIZES = ((1, 2), (1, 3), (2, 5), (3, 9), (5, 15), (10, 30), (20, 60))
RATES = (0.1, 0.5, 1.0)


def descend(
    start: Sequence[float] | Tensor,
    losses: Losses,
    optimizer: Callable[[Iterable[Tensor]], Optimizer],
    rule: Any,
    steps: int,
) -> tuple[Tensor, Barrier]:
    """Train the last loss after all others."""
    x = torch.as_tensor(start, dtype=torch.float64).clone().requires_grad_()
    barrier, stepper = Barrier([x], rule=rule), optimizer([x])
    for _ in range(steps):
        stepper.zero_grad()
        *first, last = losses(x)
        barrier.backward(last, after=first)
        stepper.step()
    return x, barrier


def line(x: Tensor) -> tuple[Tensor, Tensor]:
    """The point of x1 + x2 = 1 that is nearest to the origin: (0.5, 0.5)."""
    return (x.sum() - 1).square(), x.square().sum()


def three(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """x1 = 1, then x2 = 2, then the least norm: (1, 2, 0)."""
    return (x[0] - 1).square(), (x[0] + x[1] - 3).square(), x.square().sum()


def on_the_line(optimizer: str, start: Sequence[float], rule: str, steps: int) -> dict[str, Any]:
    x, barrier = descend(start, line, OPTIMIZERS[optimizer], rule, steps)
    main, side = line(x)
    found = lexicographic_residual(side, main, [x])
    return {"error": (x - 0.5).abs().max().item(), "status": barrier.status, "residual": found}


def least_squares(
    rows: int,
    columns: int,
    rate: float,
    seed: int,
    rule: str,
    steps: int,
    batch: int | None = None,
    slow: bool = False,
) -> dict[str, Any]:
    """Relative error to the solution of least norm; the rate in units of 1 / curvature."""
    torch.manual_seed(seed)
    matrix = torch.randn(rows, columns, dtype=torch.float64)
    wanted = matrix @ torch.randn(columns, dtype=torch.float64)
    start, best = torch.randn(columns, dtype=torch.float64), torch.linalg.pinv(matrix) @ wanted
    steepest = torch.linalg.eigvalsh(matrix @ matrix.T)[-1].item() / rows
    if slow:  # a curvature of 0.12 next to that of the second loss, 1; the rate as it is
        matrix, wanted, steepest = matrix / columns**0.5, wanted / columns**0.5, 1.0

    def losses(x: Tensor) -> tuple[Tensor, Tensor]:
        some = torch.randperm(rows)[:batch] if batch else slice(None)
        return (matrix[some] @ x - wanted[some]).square().mean() / 2, x.square().sum() / 2

    x, barrier = descend(start, losses, lambda p: SGD(p, lr=rate / steepest), rule, steps)
    return {"error": ((x - best).norm() / best.norm()).item(), "status": barrier.status}


def three_levels(optimizer: str, rule: str, steps: int) -> dict[str, Any]:
    x, barrier = descend((0, 0, 3), three, OPTIMIZERS[optimizer], rule, steps)
    error = (x - torch.tensor([1.0, 2.0, 0.0])).abs().max().item()
    return {"error": error, "status": barrier.status}


def cases(quick: bool, rules: Sequence[str]) -> Iterable[dict[str, Any]]:
    """All cases, the cheapest first."""
    starts = STARTS[::4] if quick else (*STARTS, *ON_THE_LINE)
    for rule in rules:
        for name in OPTIMIZERS:
            yield {"case": "three levels", "optimizer": name, "rule": rule}
            for start in starts:
                yield {"case": "line", "optimizer": name, "start": list(start), "rule": rule}
        for rows, columns in SIZES[::3] if quick else SIZES:
            for rate in RATES:
                for seed in range(1 if quick or rule == "printed" else 3):
                    yield {"case": "least squares", "rows": rows, "columns": columns,
                           "rate": rate, "seed": seed, "rule": rule}  # fmt: skip
        for rate in RATES:
            for seed in range(1 if quick else 2):
                yield {"case": "slow", "rows": 20, "columns": 60, "rate": rate, "seed": seed,
                       "slow": True, "rule": rule}  # fmt: skip
        for batch in (5, 2, 1):
            yield {"case": "a few equations", "rows": 10, "columns": 40, "rate": 0.1, "seed": 0,
                   "batch": batch, "rule": rule}  # fmt: skip


def trial(case: dict[str, Any], steps: int) -> dict[str, Any]:
    """The row of a case; the error is infinite where training diverges."""
    try:
        return found(case, steps)
    except FloatingPointError:
        return {"error": float("inf"), "status": "diverged"}


def found(case: dict[str, Any], steps: int) -> dict[str, Any]:
    given = {key: value for key, value in case.items() if key not in ("case", "steps")}
    if case["case"] == "line":
        return on_the_line(**given, steps=steps)
    if case["case"] == "three levels":
        return three_levels(**given, steps=steps)
    return least_squares(**given, steps=steps)


def tables(rows: Sequence[dict[str, Any]]) -> str:
    """Largest errors of each rule: over starts, over rates and draws."""

    def worst(**key: Any) -> list[str]:
        errors = [
            [
                r["error"]
                for r in rows
                if all(r.get(k) == v for k, v in {**key, "rule": rule}.items())
            ]
            for rule in RULES
        ]
        return [f"{max(found):.4f}" if found else "" for found in errors]

    by_optimizer = [
        [name, *worst(case="line", optimizer=name), *worst(case="three levels", optimizer=name)]
        for name in OPTIMIZERS
    ]
    by_size = [[f"{r} x {c}", *worst(case="least squares", rows=r, columns=c)] for r, c in SIZES]
    by_size.append(["20 x 60, slow", *worst(case="slow")])
    by_batch = [[batch, *worst(case="a few equations", batch=batch)] for batch in (5, 2, 1)]
    starts = f"{len(STARTS) + len(ON_THE_LINE)} starts"
    heads = [f"{what}, {rule}" for what in (starts, "three levels") for rule in RULES]
    return "\n\n".join(
        [
            markdown(["optimizer", *heads], by_optimizer),
            markdown(["equations x unknowns, 3 rates", *RULES], by_size),
            markdown(["equations per step, of 10", *RULES], by_batch),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = results.parser(__doc__, "fresh", quick="one minute")
    parser.add_argument("--rule", nargs="+", choices=RULES, default=RULES)
    parser.add_argument("--again", action="store_true", help="forget earlier rows of these rules")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    steps = 1000 if given.quick else 5000
    name = "barrier_priorities_quick" if given.quick else "barrier_priorities"
    rows = Rows(name, fresh=given.fresh)
    if given.again:
        kept = [row for row in rows.rows if row["rule"] not in given.rule]
        results.rewrite(rows.path, kept)
        rows = Rows(name, fresh=False)
    some, all_ = cases(True, given.rule), cases(given.quick, given.rule)
    for case in (*some, *all_):  # a run that is cut short has rows of every kind
        key = {**case, "steps": steps}
        if not rows.find(**key):
            rows.add({**key, **trial(case, steps)})
            print(rows.rows[-1], flush=True)
    print(tables(rows.rows))


if __name__ == "__main__":
    main()
