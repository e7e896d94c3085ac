"""Boosted trees: train for log-loss and certify the threshold; trees for the goal are an option.

pip install "setpoint[boosting]" && python examples/boosted_trees.py
"""

import numpy as np

from setpoint import certify, tpr_at_fpr
from setpoint.datasets import letter, split
from setpoint.integrations.boosting import Objective, boost, raw_scores

GOAL = tpr_at_fpr(0.01)


def main() -> None:
    train, validation, test = split(letter(), seed=0)
    params = {"learning_rate": 0.3, "num_leaves": 4, "num_threads": 1}
    for name, warm in (("log-loss", 1.0), ("log-loss, then the goal", 0.5)):
        booster = boost(
            Objective(GOAL),
            train.x,
            train.y,
            library="lightgbm",
            rounds=40,
            warm=warm,
            params=params,
        )
        certificate = certify(raw_scores(booster, validation.x), validation.y, GOAL)
        accept = np.asarray(certificate.decide(raw_scores(booster, test.x)))
        alarms, found = accept[test.y == 0].mean(), accept[test.y == 1].mean()
        print(f"{name}: {certificate.status}; on test fpr {alarms:.2%}, tpr {found:.1%}")


if __name__ == "__main__":
    main()
