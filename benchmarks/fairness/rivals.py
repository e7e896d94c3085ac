"""The libraries people use for fairness, at their defaults, on the same rows and columns."""

import numpy as np
import torch

from benchmarks.fairness.data import Part
from benchmarks.fairness.ours import BATCH, RATE, STEPS, Chances, logistic, scores
from benchmarks.fairness.tfco import lagrangian

PARITY = "demographic parity"


def unconstrained(
    train: Part, test: Part, rule: str, tolerances: tuple[float, ...], seed: int
) -> Chances:
    """Logistic regression at one half."""
    return {tolerances[0]: logistic().fit(train.x, train.y).predict(test.x).astype(float)}


def threshold_optimizer(
    train: Part, test: Part, rule: str, tolerances: tuple[float, ...], seed: int
) -> Chances:
    """fairlearn: logistic regression, then randomised thresholds per group."""
    from fairlearn.postprocessing import ThresholdOptimizer

    found = {}
    for tolerance in tolerances:
        model = ThresholdOptimizer(
            estimator=logistic(),
            constraints="demographic_parity" if rule == PARITY else "true_positive_rate_parity",
            objective="accuracy_score",
            predict_method="predict_proba",
            **({"tol": tolerance} if tolerance else {}),
        )
        model.fit(train.x.astype(float), train.y, sensitive_features=train.g)
        chances = model._pmf_predict(test.x.astype(float), sensitive_features=test.g)
        found[tolerance] = np.asarray(chances)[:, 1]
    return found


def exponentiated_gradient(
    train: Part, test: Part, rule: str, tolerances: tuple[float, ...], seed: int
) -> Chances:
    """fairlearn: a randomised mixture of reweighted logistic regressions."""
    from fairlearn.reductions import (
        DemographicParity,
        ExponentiatedGradient,
        TruePositiveRateParity,
    )

    kind = DemographicParity if rule == PARITY else TruePositiveRateParity
    found = {}
    for tolerance in tolerances:
        half = tolerance / 2  # it bounds each group's distance from everyone: half the gap
        model = ExponentiatedGradient(logistic(), kind(difference_bound=half), eps=half)
        model.fit(train.x.astype(float), train.y, sensitive_features=train.g)
        found[tolerance] = np.asarray(model._pmf_predict(test.x.astype(float)))[:, 1]
    return found


def fairret(
    train: Part, test: Part, rule: str, tolerances: tuple[float, ...], seed: int
) -> Chances:
    """fairret: cross-entropy plus a weight (here ``tolerances``) times the norm of violations."""
    from fairret.loss import NormLoss
    from fairret.statistic import PositiveRate, TruePositiveRate

    norm = NormLoss((PositiveRate if rule == PARITY else TruePositiveRate)())
    groups = sorted(set(train.g))
    hot = torch.tensor(np.stack([train.g == k for k in groups], 1), dtype=torch.float32)
    x, y = torch.tensor(train.x), torch.tensor(train.y).float()[:, None]
    found = {}
    for weight in tolerances:
        torch.manual_seed(seed)
        model = torch.nn.Linear(train.x.shape[1], 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        random = np.random.default_rng(seed)
        for _ in range(STEPS):
            rows = torch.tensor(random.integers(0, len(y), min(BATCH, len(y))))
            logits, target = model(x[rows]), y[rows]
            labels = () if rule == PARITY else (target,)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, target)
            loss = loss + weight * norm(logits, hot[rows], *labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        found[weight] = (scores(model, test) > 0).astype(float)
    return found


def tfco(train: Part, test: Part, rule: str, tolerances: tuple[float, ...], seed: int) -> Chances:
    """TFCO: a Lagrangian, with one threshold for all."""
    return {t: lagrangian(train, test, rule, t, seed, STEPS) for t in tolerances}
