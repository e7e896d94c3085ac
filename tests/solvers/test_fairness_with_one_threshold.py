"""One threshold for all: multipliers and the barrier take the same constraints between groups."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from setpoint import Implicit, Lagrangian, Problem, RateBarrier, error, fairness, fnr

TWO = {"g": [0, 1]}
RULES = [
    fairness.demographic_parity(0.05, **TWO),
    fairness.equal_opportunity(0.05, **TWO),
    fairness.equalized_odds(0.05, **TWO),
    fairness.predictive_parity(0.1, **TWO),
    fairness.bounded_group_loss(0.3, **TWO),
    fairness.four_fifths(**TWO),
]


def draw(n: int = 600) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """The first feature is the group's and tempts; the second is fair and as good."""
    random = np.random.default_rng(0)
    g = random.integers(0, 2, n)
    y = (random.random(n) < 0.3 + 0.4 * g).astype(int)
    fair = y + 0.8 * random.normal(size=n)
    unfair = 2.0 * g + 0.5 * random.normal(size=n)
    return torch.tensor(np.stack([unfair, fair], 1)), torch.tensor(y), g


def gap(model: torch.nn.Module, x: torch.Tensor, g: np.ndarray, threshold: float) -> float:
    accepted = (model(x).detach().squeeze(-1) > threshold).numpy()
    return abs(accepted[g == 0].mean() - accepted[g == 1].mean())


def train(criterion: torch.nn.Module, model: torch.nn.Module, steps: int = 150) -> None:
    x, y, g = draw()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(steps):
        loss = criterion(model(x).squeeze(-1), y, groups=g)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("solver", ["implicit", "lagrangian", "proxy", "barrier"])
def test_every_rule_trains_with_every_solver(rule, solver: str) -> None:
    torch.manual_seed(0)
    x, y, g = draw()
    model = torch.nn.Linear(2, 1, dtype=torch.float64)
    problem = Problem(minimize=fairness.largest(fnr, **TWO) + error, subject_to=rule)
    criterion = {
        "implicit": lambda: Implicit(problem),
        "lagrangian": lambda: Lagrangian(problem),
        "proxy": lambda: Lagrangian(problem, proxy=True),
        "barrier": lambda: RateBarrier(problem, model.parameters()),
    }[solver]()
    loss = criterion(model(x).squeeze(-1), y, groups=g)
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    assert any(p.grad.abs().sum() > 0 for p in model.parameters())


@pytest.mark.parametrize("solver", ["lagrangian", "barrier"])
def test_the_weights_learn_to_be_fair(solver: str) -> None:
    x, y, g = draw()
    torch.manual_seed(0)
    free, fair = (torch.nn.Linear(2, 1, dtype=torch.float64) for _ in range(2))
    train(Lagrangian(Problem(minimize=error), threshold=0.0), free)
    problem = Problem(minimize=error, subject_to=fairness.demographic_parity(0.05, **TWO))
    if solver == "lagrangian":
        train(Lagrangian(problem, threshold=0.0, dual_rate=1.0), fair, steps=300)
    else:
        train(RateBarrier(problem, fair.parameters()), fair, steps=300)
    assert gap(free, x, g, 0.0) > 0.3
    assert gap(fair, x, g, 0.0) < 0.15
    wrong = float((((fair(x) > 0).squeeze(-1)).long() != y).double().mean())
    assert wrong < 0.4
