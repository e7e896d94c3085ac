"""Optuna: search by the goal's own value, prune what cannot reach it, then promise honestly.

    pip install "setpoint[sklearn]" optuna && python examples/optuna_search.py

The rows that chose the best of many trials look better on it than they should. The certificate
comes from rows that no trial has seen.
"""

import optuna
import torch
from torch import nn

from setpoint import Implicit, Infeasible, certify, fit, tpr_at_fpr
from setpoint.datasets import letter, split

GOAL = tpr_at_fpr(0.01)
TRIALS = 6


def main() -> None:
    train, rest, _ = split(letter(), seed=0)
    x, y = torch.tensor(train.x), torch.tensor(train.y)
    half = len(rest.x) // 2
    choose = torch.tensor(rest.x[:half]), rest.y[:half]
    promise = torch.tensor(rest.x[half:]), rest.y[half:]
    models = {}

    def trial_value(trial: optuna.Trial) -> float:
        """The recall at 1 % false alarms on the rows that choose."""
        torch.manual_seed(0)
        width = trial.suggest_int("width", 4, 32, log=True)
        rate = trial.suggest_float("learning_rate", 1e-3, 1e-1, log=True)
        model = nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 1))
        fit(
            model,
            Implicit(GOAL, steps=60),
            x,
            y,
            steps=60,
            batch_size=512,
            learning_rate=rate,
            seed=0,
        )
        models[trial.number] = model.eval()
        with torch.no_grad():
            scores = model(choose[0])[:, 0]
        try:
            return GOAL.evaluate(scores, choose[1])
        except Infeasible as error:
            raise optuna.TrialPruned from error

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(0))
    study.optimize(trial_value, n_trials=TRIALS)
    print(f"best of {TRIALS}: {study.best_params}, tpr {study.best_value:.1%} where it was chosen")
    with torch.no_grad():
        scores = models[study.best_trial.number](promise[0])[:, 0]
    print(certify(scores, promise[1], GOAL))  # on the rows that chose: candidates=TRIALS


if __name__ == "__main__":
    main()
