"""Fig. 2b of the paper: how the loss and the unfairness fall together on Adult.

    python -m benchmarks.barrier.trajectory            # about a minute of one idle core
    python -m benchmarks.barrier.trajectory --quick    # half a minute

Lexicographic: the squared covariance of the score with sex, after the loss; beside it the linear
combination with a large weight of the loss. Plain gradient descent on all of 5,000 rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from statistics import fmean
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy
from torch.optim import SGD

from benchmarks.barrier import rules
from benchmarks.barrier.front_data import Adult, adult
from benchmarks.barrier.front_rows import markdown
from benchmarks.barrier.study import Found, by_seed, conduct, options
from benchmarks.common.tables import mean_and_deviation

RATE, LOOKS = 0.1, 50
WEIGHTS = {f"weight {weight} of the loss": weight for weight in (1, 10)}
METHODS = ("loss only", *WEIGHTS, "lexicographic", "printed")
CASES = [{"method": method} for method in METHODS]


@lru_cache(maxsize=1)
def rows_of(seed: int, synthetic: bool) -> Adult:
    """Adult, or rows somewhat like it to try the code without the data."""
    if not synthetic:
        return adult(seed)
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(200, 8, generator=random)
    y, sex = (x[:, 0] > 0).float(), (x[:, 1] + x[:, 0] > 0).float()
    return Adult(x, y, sex, x, y, sex)


def network(x: Tensor) -> nn.Sequential:
    return nn.Sequential(nn.Linear(x.shape[1], 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))


def unfairness(scores: Tensor, sex: Tensor) -> Tensor:
    """The squared covariance of the score with sex."""
    return (scores * (sex - sex.mean())).mean().square()


def combination(method: str, model: nn.Module) -> rules.Rule:
    if method == "loss only":
        return rules.main_only
    if method in WEIGHTS:
        return rules.weighted(1 / WEIGHTS[method])
    return rules.named(method, model.parameters())


def trial(method: str, seed: int, steps: int, synthetic: bool) -> dict[str, Any]:
    data = rows_of(seed, synthetic)
    model = network(data.x)
    rule = combination(method, model)
    optimizer = SGD(model.parameters(), lr=RATE)
    curve = []
    for step in range(steps + 1):
        scores = model(data.x)
        main, side = cross_entropy(scores, data.y), unfairness(scores, data.sex)
        if step % max(1, steps // LOOKS) == 0:
            curve.append([step, side.item(), main.item()])
        optimizer.zero_grad()
        weight = rule(main, side, step / steps)
        optimizer.step()
    found = model(data.x_test).detach()
    return {
        "unfairness": curve[-1][1],
        "loss": curve[-1][2],
        "weight": min(weight, 1e9),
        "test": 100 * float(((found > 0) == data.y_test.bool()).double().mean()),
        "impact": impact(found > 0, data.sex_test.bool()),
        "curve": curve,
    }


def impact(accepted: Tensor, women: Tensor) -> float:
    """Disparate impact: the share of accepted women over that of accepted men."""
    share = [float(accepted[group].double().mean()) for group in (women, ~women)]
    return share[0] / share[1] if share[1] else float("nan")


def at_equal_loss(rows: Found) -> Found:
    """Rows with the first look at a loss as low as that which the loss alone ends with."""
    ends = by_seed(rows, "loss", method="loss only")
    for row in rows:
        low = [look for look in row["curve"] if look[2] <= ends.get(row["seed"], 0.0)]
        row |= {"equal_step": low[0][0], "equal_unfairness": low[0][1]} if low else {}
    return rows


def table(rows: Found) -> str:
    """One line a method; five seeds unless its name says otherwise."""
    lines = []
    for method in METHODS:
        here = [row for row in at_equal_loss(rows) if row["method"] == method]
        if not here:
            continue
        columns = {"loss": 4, "unfairness": 4, "test": 2, "impact": 3}
        values = [mean_and_deviation([r[name] for r in here], n) for name, n in columns.items()]
        equal = "not reached"
        if all("equal_step" in row for row in here):
            equal = mean_and_deviation([row["equal_unfairness"] for row in here], 4)
            equal += f" (step {fmean(row['equal_step'] for row in here):.0f})"
        name = method if len(here) == 5 else f"{method}, {len(here)} seeds"
        lines.append([name, *values[:2], equal, *values[2:]])
    equal = "unfairness at the last loss of the loss only"
    return markdown(
        ["method", "loss", "unfairness", equal, "test accuracy, %", "disparate impact"], lines
    )


def main(arguments: Sequence[str] | None = None) -> None:
    given = options(__doc__, 600, arguments)
    print(table(conduct("trajectory", CASES, trial, given)))


if __name__ == "__main__":
    main()
