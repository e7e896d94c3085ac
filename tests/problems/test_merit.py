"""A score to compare models by: who breaks the targets never wins."""

import numpy as np
import pytest

from setpoint import Problem
from setpoint.problems import merit

LABELS = np.array([0, 0, 1, 1])
GOOD, BAD = np.array([0.0, 1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0, 0.0])


@pytest.mark.parametrize(
    "goal",
    [
        "maximize recall subject to precision >= 0.9",
        "minimize fnr subject to precision >= 0.9",
        "minimize 5 * fnr + fpr subject to precision >= 0.9 and coverage <= 0.3",
        "maximize recall - 9 * fnr subject to precision >= 0.9",
    ],
)
def test_a_model_that_misses_the_targets_is_never_better(goal):
    problem = Problem.parse(goal)
    reached, missed = merit(problem, GOOD, LABELS), merit(problem, BAD, LABELS)
    sign = 1 if problem.maximize else -1
    assert reached == sign * problem.evaluate(GOOD, LABELS)
    assert missed < reached
