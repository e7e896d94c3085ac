"""``evaluate(scores, labels, goal)`` takes whatever a goal can be."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import setpoint
from setpoint import evaluate, fpr, recall


def test_goals_as_sentences_bounds_and_problems_agree():
    random = np.random.default_rng(0)
    y = random.random(500) < 0.3
    s = random.normal(size=500) + y
    problem = setpoint.Problem(maximize=recall, subject_to=fpr <= 0.1)
    found = {evaluate(s, y, goal) for goal in (problem, fpr <= 0.1, str(problem), "FPR <= 10 %")}
    assert found == {problem.evaluate(s, y)}
    assert evaluate(s, y, problem, thresholds=0.0) == (s[y] > 0).mean()
    area = evaluate(s, y, setpoint.roc_auc(points=2000))
    assert area == pytest.approx(roc_auc_score(y, s), abs=1e-3)  # 2,000 bins of width 0.0005
    with pytest.raises(TypeError, match="a Problem, a sentence such as"):
        evaluate(s, y, 3)
