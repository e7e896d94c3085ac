"""Every method gives the chance that each test row is accepted: 0 or 1 unless it throws dice."""

from collections.abc import Callable

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from benchmarks.fairness.data import Part
from setpoint import (
    Implicit,
    Infeasible,
    Lagrangian,
    Problem,
    demographic_parity,
    equal_opportunity,
    error,
    fit,
)
from setpoint.train import score

STEPS, BATCH, RATE = 300, 512, 0.03
RULES = {"demographic parity": demographic_parity, "equal opportunity": equal_opportunity}
Chances = np.ndarray


def problem(rule: str, tolerance: float, groups: list[str], thresholds: str) -> Problem:
    """The least error with rates of groups at most so far apart."""
    fair = RULES[rule](tolerance, group=groups)
    return Problem(minimize=error, subject_to=fair, thresholds=thresholds)


def per_group(train: Part, test: Part, rule: str, tolerance: float, seed: int) -> Chances:
    """Ours: implicit thresholds, one per group."""
    goal = problem(rule, tolerance, sorted(set(train.g)), "per group")
    model = trained(Implicit(goal, steps=STEPS), train, seed)
    before, after = (scores(model, part) for part in (train, test))
    return decided(goal, before, train, after, test)


def chosen(train: Part, test: Part, rule: str, tolerance: float, seed: int) -> Chances:
    """Logistic regression, then our thresholds per group."""
    goal = problem(rule, tolerance, sorted(set(train.g)), "per group")
    model = logistic().fit(train.x, train.y)
    before, after = (model.decision_function(part.x) for part in (train, test))
    return decided(goal, before, train, after, test)


def shared(train: Part, test: Part, rule: str, tolerance: float, seed: int) -> Chances:
    """Multipliers and one threshold for all: nobody's group is asked for afterwards."""
    goal = problem(rule, tolerance, sorted(set(train.g)), "shared")
    criterion = Lagrangian(goal)
    model = trained(criterion, train, seed)
    try:
        (cut,) = goal.choose(scores(model, train), train.y, groups=train.g).thresholds
    except Infeasible:
        cut = float(criterion.thresholds)
    return (scores(model, test) > cut).astype(float)


def unconstrained(train: Part, test: Part, rule: str, tolerance: float, seed: int) -> Chances:
    """Logistic regression at one half."""
    return logistic().fit(train.x, train.y).predict(test.x).astype(float)


def threshold_optimizer(train: Part, test: Part, rule: str, tolerance: float, seed: int) -> Chances:
    """fairlearn: logistic regression, then randomised thresholds per group."""
    from fairlearn.postprocessing import ThresholdOptimizer

    names = {"demographic parity": "demographic_parity"}
    model = ThresholdOptimizer(
        estimator=logistic(),
        constraints=names.get(rule, "true_positive_rate_parity"),
        objective="accuracy_score",
        predict_method="predict_proba",
    )
    model.fit(train.x.astype(float), train.y, sensitive_features=train.g)
    return model._pmf_predict(test.x.astype(float), sensitive_features=test.g)[:, 1]


def exponentiated_gradient(
    train: Part, test: Part, rule: str, tolerance: float, seed: int
) -> Chances:
    """fairlearn: a randomised mixture of reweighted logistic regressions."""
    from fairlearn.reductions import (
        DemographicParity,
        ExponentiatedGradient,
        TruePositiveRateParity,
    )

    made = {"demographic parity": DemographicParity}.get(rule, TruePositiveRateParity)
    model = ExponentiatedGradient(
        logistic(), made(difference_bound=tolerance / 2), eps=tolerance / 2, max_iter=15
    )  # it bounds each group's distance from everyone: half the gap
    model.fit(train.x.astype(float), train.y, sensitive_features=train.g)
    return np.asarray(model._pmf_predict(test.x.astype(float)))[:, 1]


def fairret(train: Part, test: Part, rule: str, tolerance: float, seed: int) -> Chances:
    """fairret: cross-entropy plus ``tolerance`` (here a weight) times the norm of violations."""
    from fairret.loss import NormLoss
    from fairret.statistic import PositiveRate, TruePositiveRate

    groups = sorted(set(train.g))
    norm = NormLoss((PositiveRate if rule == "demographic parity" else TruePositiveRate)())

    def loss(s: torch.Tensor, y: torch.Tensor, *, groups: torch.Tensor) -> torch.Tensor:
        target, s = y.float()[:, None], s[:, None]
        labels = () if rule == "demographic parity" else (target,)
        plain = torch.nn.functional.binary_cross_entropy_with_logits(s, target)
        return plain + tolerance * norm(s, groups, *labels)

    hot = torch.tensor(np.stack([train.g == k for k in groups], 1), dtype=torch.float32)
    torch.manual_seed(seed)
    model = torch.nn.Linear(train.x.shape[1], 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    random = np.random.default_rng(seed)
    x, y = torch.tensor(train.x), torch.tensor(train.y)
    for _ in range(STEPS):
        rows = torch.tensor(random.integers(0, len(y), min(BATCH, len(y))))
        optimizer.zero_grad()
        loss(model(x[rows])[:, 0], y[rows], groups=hot[rows]).backward()
        optimizer.step()
    return (scores(model, test) > 0).astype(float)


def tfco(train: Part, test: Part, rule: str, tolerance: float, seed: int) -> Chances:
    """TFCO: a Lagrangian, with one threshold for all."""
    from benchmarks.fairness.tfco import lagrangian

    return lagrangian(train, test, rule, tolerance, seed, STEPS)


METHODS: dict[str, tuple[Callable[..., Chances], tuple[float, ...]]] = {
    "logistic regression": (unconstrained, (1.0,)),
    "setpoint, per group": (per_group, (0.02, 0.05, 0.1)),
    "logistic + setpoint's thresholds": (chosen, (0.02, 0.05, 0.1)),
    "setpoint, shared (multipliers)": (shared, (0.02, 0.05)),
    "fairlearn ThresholdOptimizer": (threshold_optimizer, (0.0,)),
    "fairlearn ExponentiatedGradient": (exponentiated_gradient, (0.02, 0.05)),
    "fairret": (fairret, (0.3, 1.0)),
    "TFCO Lagrangian": (tfco, (0.02, 0.05)),
}
"""Every method, and its tolerances (fairret: weights)."""
DICE = ("fairlearn ThresholdOptimizer", "fairlearn ExponentiatedGradient")
WITH_GROUPS = (
    "setpoint, per group",
    "logistic + setpoint's thresholds",
    "fairlearn ThresholdOptimizer",
)


def logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=200)


def trained(criterion: torch.nn.Module, train: Part, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    model = torch.nn.Linear(train.x.shape[1], 1)
    x, y = torch.tensor(train.x), torch.tensor(train.y)
    options = {"steps": STEPS, "batch_size": BATCH, "learning_rate": RATE, "seed": seed}
    return fit(model, criterion, x, y, groups={"group": train.g}, **options).model


def scores(model: torch.nn.Module, part: Part) -> np.ndarray:
    return score(model, torch.tensor(part.x)).numpy().astype(float)


def decided(
    goal: Problem, before: np.ndarray, train: Part, after: np.ndarray, test: Part
) -> Chances:
    """Thresholds from the training rows, decisions on the test rows."""
    found = goal.choose(before, train.y, groups=train.g).thresholds
    return (after > np.array([found[k] for k in test.g])).astype(float)
