"""Goals as users write them: sentences, problems, or only what must hold."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from setpoint import CertifiedThreshold, Problem, fpr, precision, recall
from setpoint.estimators.inputs import as_problem


@pytest.mark.parametrize(
    ("goal", "sentence"),
    [
        ("fpr <= 0.01", "maximize recall subject to fpr <= 0.01"),
        ("recall >= 0.95", "minimize fpr subject to recall >= 0.95"),
        (fpr <= 0.01, "maximize recall subject to fpr <= 0.01"),
        ((recall >= 0.5, precision >= 0.9), "maximize recall subject to recall >= 0.5 and "),
        ("minimize fnr subject to fpr <= 0.1", "minimize fnr subject to fpr <= 0.1"),
        ("maximize f_score(1)", "maximize f_score(1)"),
    ],
)
def test_bounds_alone_are_a_goal(goal, sentence):
    assert str(as_problem(goal)).startswith(sentence)


def test_a_goal_that_cannot_be_read_says_how_goals_start():
    with pytest.raises(ValueError, match="This can be read: minimize fnr"):
        as_problem("minimze fnr")
    with pytest.raises(TypeError, match=r"takes a Problem.*got 3"):
        as_problem(3)


def data(n=4000):
    random = np.random.default_rng(0)
    y = random.random(n) < 0.4
    return random.normal(size=(n, 2)) + y[:, None], y


def test_a_bound_is_certified_as_its_problem_is():
    fitted = [
        CertifiedThreshold(LogisticRegression(), goal=goal, random_state=0).fit(*data())
        for goal in ("fpr <= 0.05", Problem(maximize=recall, subject_to=fpr <= 0.05))
    ]
    assert fitted[0].certificate_.certified
    assert fitted[0].threshold_ == fitted[1].threshold_


def test_decisions_stay_finite_and_ordered_where_everybody_is_accepted():
    x, y = data(600)
    model = CertifiedThreshold(LogisticRegression(), goal="fpr <= 0.3", random_state=0).fit(x, y)
    before = model.decision_function(x)
    model.threshold_ = -np.inf
    after = model.decision_function(x)
    assert np.isfinite(after).all()
    assert (after > 0).all()
    assert (np.argsort(before, kind="stable") == np.argsort(after, kind="stable")).all()
