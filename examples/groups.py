"""Equal opportunity between two groups: a threshold for each, and a certificate for the gap.

python examples/groups.py
"""

import numpy as np
import torch

from setpoint import Implicit, Problem, certify, error, fit
from setpoint.fairness import equal_opportunity
from setpoint.train import score

GROUPS = {"group": ["a", "b"]}


def draw(count: int, seed: int) -> tuple[torch.Tensor, np.ndarray, np.ndarray]:
    """Group b's features say less about it: its positives are found less often."""
    random = np.random.default_rng(seed)
    group = random.choice(["a", "b"], count, p=[0.7, 0.3])
    truth = random.normal(size=count)
    noise = np.where(group == "a", 0.5, 1.2)
    x = truth[:, None] + noise[:, None] * random.normal(size=(count, 4))
    return torch.tensor(x, dtype=torch.float32), (truth > 0.5).astype(int), group


def found(decisions: np.ndarray, y: np.ndarray, group: np.ndarray) -> dict[str, float]:
    """The share of positives accepted in each group."""
    return {g: float(decisions[(group == g) & (y == 1)].mean()) for g in GROUPS["group"]}


def main() -> None:
    fair = equal_opportunity(0.03, **GROUPS)
    problem = Problem(minimize=error, subject_to=fair, thresholds="per group")
    x, y, group = draw(6000, seed=0)
    torch.manual_seed(0)
    model = fit(
        torch.nn.Linear(4, 1),
        Implicit(problem, steps=200),
        x,
        torch.tensor(y),
        groups={"group": group},
        steps=200,
        batch_size=512,
        learning_rate=0.03,
        seed=0,
    ).model

    scores = score(model, x).numpy()
    plain = Problem(minimize=error).choose(scores, y).thresholds[0]
    print("one threshold for all:", found(scores > plain, y, group))
    thresholds = problem.choose(scores, y, groups=group).thresholds
    print("one for each group:   ", thresholds)

    new_x, new_y, new_group = draw(6000, seed=1)
    promised = Problem(
        minimize=error, subject_to=equal_opportunity(0.1, **GROUPS), thresholds="per group"
    )
    certificate = certify(
        score(model, new_x).numpy(),
        new_y,
        promised,
        groups={"group": new_group},
        thresholds=thresholds,
    )
    print(certificate)


if __name__ == "__main__":
    main()
