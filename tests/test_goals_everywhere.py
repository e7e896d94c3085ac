"""Whatever takes a goal takes a problem, a bound or a sentence."""

import numpy as np
import pytest
import torch
from torch import nn

import setpoint as sp
from setpoint.certificates import certify_groups, certify_shifts, shifts_to_prove
from setpoint.integrations.boosting import Objective
from setpoint.integrations.huggingface import Goal
from setpoint.integrations.lightning import Recalibrate
from setpoint.integrations.metrics import GoalMetric
from setpoint.integrations.skorch import GoalScoring, OperatingNet
from setpoint.results import diagnose
from setpoint.solvers import Iterates
from setpoint.solvers.slack_variables import SlackVariables

SENTENCE = "Maximise sensitivity s.t. false positive rate at most 10 %"
SAME = [SENTENCE, sp.fpr <= 0.1, "fpr <= 10 %"]
PROBLEM = sp.Problem(maximize=sp.recall, subject_to=sp.fpr <= 0.1)


def head():
    return nn.Linear(2, 1)


def net(goal):
    sizes = {"module__in_features": 2, "module__out_features": 1}
    made = OperatingNet(nn.Linear, criterion=sp.Implicit, criterion__problem=goal, **sizes)
    return made.initialize()


TAKERS = {
    "Implicit": sp.Implicit,
    "Lagrangian": sp.Lagrangian,
    "CrossEntropy": sp.CrossEntropy,
    "LastLayer": lambda goal: sp.LastLayer(goal, head()),
    "RateBarrier": lambda goal: sp.RateBarrier(goal, head().parameters()),
    "SlackVariables": SlackVariables,
    "Iterates": Iterates,
    "boosting": Objective,
    "Hugging Face": Goal,
    "metrics": GoalMetric,
    "Lightning": Recalibrate,
    "skorch": lambda goal: net(goal).criterion_,
}


@pytest.mark.parametrize("goal", SAME, ids=str)
@pytest.mark.parametrize("taker", TAKERS)
def test_a_sentence_and_a_bound_are_problems(taker, goal):
    assert TAKERS[taker](goal).problem == PROBLEM


def test_areas_by_their_names():
    assert sp.Pairwise("maximize auc").problem == sp.roc_auc()
    assert sp.Program("maximize f1").problem == sp.Problem(maximize=sp.f_score(1))


def test_skorch_scores_by_any_goal():
    x = np.random.default_rng(0).normal(size=(200, 2)).astype("float32")
    fitted = net(PROBLEM)
    found = {GoalScoring(goal).value(fitted, x, x[:, 0] > 0) for goal in (*SAME, PROBLEM)}
    assert len(found) == 1
    assert GoalScoring("cost(miss=5, false_alarm=1)").lower_is_better
    assert not GoalScoring("f1").lower_is_better


def test_a_loop_with_a_sentence_is_a_loop_with_its_problem():
    random = np.random.default_rng(0)
    labels = torch.tensor(random.random(200) < 0.3)
    scores = torch.tensor(random.normal(size=200)) + labels
    losses = [
        sp.Implicit(goal)(scores.clone().requires_grad_(), labels) for goal in (*SAME, PROBLEM)
    ]
    assert len({loss.item() for loss in losses}) == 1
    assert diagnose(scores, labels, SENTENCE).value == diagnose(scores, labels, PROBLEM).value


def test_certificates_of_classes_and_of_gaps_take_sentences():
    random = np.random.default_rng(0)
    labels, sex = random.integers(0, 3, 2000), random.choice(["f", "m"], 2000)
    scores = random.normal(size=(2000, 3)) + 3 * np.eye(3)[labels]
    goal = "maximize accuracy subject to recall of 1 >= 0.8"
    problem = sp.Problem.parse(goal)
    shifts, _ = shifts_to_prove(goal, scores, labels, confidence=0.95, classes=[0, 1, 2])
    one, other = (
        certify_shifts(scores, labels, each, shifts, classes=[0, 1, 2]) for each in (goal, problem)
    )
    assert one == other
    gap = "minimize error subject to demographic_parity(0.2, sex=[f, m]) with thresholds per group"
    rows = [(scores[half, 1], labels[half] == 1, sex[half]) for half in (sex != "x", sex != "y")]
    one, other = (
        certify_groups(each, *rows, column="sex") for each in (gap, sp.Problem.parse(gap))
    )
    assert one == other
