"""fairlearn's two reductions on Adult, at several settings each."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from benchmarks.barrier.front_data import Adult
from setpoint.pareto.goals import decision_rates

SETTINGS = 5  # of ExponentiatedGradient: each is up to ten trainings
PEERS = ("fairlearn ExponentiatedGradient", "fairlearn GridSearch")


def fairlearn_points(name: str, data: Adult, points: int) -> list[dict[str, float]]:
    """Test measures of each setting."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient, GridSearch
    from sklearn.linear_model import LogisticRegression

    x, y, sex = (part.numpy() for part in (data.x, data.y, data.sex))
    estimator = LogisticRegression(C=1.0, max_iter=200)
    if name == PEERS[1]:
        search = GridSearch(estimator, DemographicParity(), grid_size=points)
        search.fit(x, y, sensitive_features=sex)
        return [_judged(one.predict(data.x_test.numpy()), data) for one in search.predictors_]
    found = []
    for bound in np.linspace(0.005, 0.2, SETTINGS):
        model = ExponentiatedGradient(
            estimator, DemographicParity(difference_bound=float(bound)), max_iter=10
        )
        model.fit(x, y, sensitive_features=sex)
        # the randomised classifier's mean decision on every row, as expected counts
        found.append(_expected(model._pmf_predict(data.x_test.numpy())[:, 1], data))
    return found


def _judged(decisions: Any, data: Adult) -> dict[str, float]:
    scores = torch.as_tensor(np.asarray(decisions, dtype=np.float32)) - 0.5
    groups = torch.stack([1 - data.sex_test, data.sex_test], dim=1)
    return decision_rates(scores, data.y_test, groups)


def _expected(shares: Any, data: Adult) -> dict[str, float]:
    """Accuracy and coverages when each row is accepted with its own probability."""
    p, y, sex = (np.asarray(a, dtype=np.float64) for a in (shares, data.y_test, data.sex_test))
    coverage = [p[sex == s].mean() for s in (0, 1)]
    recall = [p[(sex == s) & (y > 0)].mean() for s in (0, 1)]
    return {
        "accuracy": float(np.where(y > 0, p, 1 - p).mean()),
        "coverage gap": float(abs(coverage[0] - coverage[1])),
        "tpr gap": float(abs(recall[0] - recall[1])),
        "impact ratio": float(min(coverage) / max(coverage)) if max(coverage) > 0 else 1.0,
    }
