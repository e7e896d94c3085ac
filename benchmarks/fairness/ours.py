"""Our methods: thresholds per group with a trained or a plain model, and one threshold for all.

Each gives, for every tolerance, the chance that each test row is accepted: 0 or 1.
"""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from benchmarks.fairness.data import Part
from setpoint import Implicit, Infeasible, Lagrangian, Problem, error, fit
from setpoint.fairness import demographic_parity, equal_opportunity
from setpoint.train import score

STEPS, BATCH, RATE = 150, 512, 0.03
TRAINED_FOR = 0.02
RULES = {"demographic parity": demographic_parity, "equal opportunity": equal_opportunity}
Chances = dict[float, np.ndarray]


def problem(rule: str, tolerance: float, groups: list[str], thresholds: str) -> Problem:
    """The least error with rates of groups at most so far apart."""
    fair = RULES[rule](tolerance, group=groups)
    return Problem(minimize=error, subject_to=fair, thresholds=thresholds)


def per_group(
    train: Part, test: Part, rule: str, tolerances: tuple[float, ...], seed: int
) -> Chances:
    """Implicit thresholds, one per group: trained for 2 %, then chosen for every tolerance."""
    goal = problem(rule, TRAINED_FOR, sorted(set(train.g)), "per group")
    model = trained(Implicit(goal, steps=STEPS), train, seed)
    return decided(rule, tolerances, *(scores(model, part) for part in (train, test)), train, test)


def chosen(train: Part, test: Part, rule: str, tolerances: tuple[float, ...], seed: int) -> Chances:
    """Logistic regression, then our thresholds per group."""
    model = logistic().fit(train.x, train.y)
    both = (model.decision_function(part.x) for part in (train, test))
    return decided(rule, tolerances, *both, train, test)


def shared(train: Part, test: Part, rule: str, tolerances: tuple[float, ...], seed: int) -> Chances:
    """Multipliers and one threshold for all: nobody's group is asked for afterwards."""
    found = {}
    for tolerance in tolerances:
        goal = problem(rule, tolerance, sorted(set(train.g)), "shared")
        criterion = Lagrangian(goal)
        model = trained(criterion, train, seed)
        try:
            (cut,) = goal.choose(scores(model, train), train.y, groups=train.g).thresholds
        except Infeasible:
            cut = float(criterion.thresholds)
        found[tolerance] = (scores(model, test) > cut).astype(float)
    return found


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
    rule: str,
    tolerances: tuple[float, ...],
    before: np.ndarray,
    after: np.ndarray,
    train: Part,
    test: Part,
) -> Chances:
    """Thresholds from the training rows, decisions on the test rows."""
    found = {}
    for tolerance in tolerances:
        goal = problem(rule, tolerance, sorted(set(train.g)), "per group")
        cuts = goal.choose(before, train.y, groups=train.g).thresholds
        found[tolerance] = (after > np.array([cuts[k] for k in test.g])).astype(float)
    return found
