"""Slack variables of an inequality (ICO, section 6.1)."""

import pytest
import torch
from torch.testing import assert_close

from setpoint import Implicit, Problem, f_score, fnr, fnr_at_fpr, fpr, precision, recall, roc_auc
from setpoint.solvers import SlackVariables


def draw(count=400):
    random = torch.Generator().manual_seed(2)
    y = (torch.rand(count, generator=random) < 0.3).long()
    return torch.randn(count, generator=random, dtype=torch.float64) + 1.5 * y, y


def gradient(criterion, scores, y):
    leaf = scores.clone().requires_grad_()
    criterion(leaf, y).backward()
    return leaf.grad


@pytest.mark.parametrize("bound", [fpr <= 0.2, recall >= 0.7], ids=str)
def test_without_slack_it_is_the_equality(bound):
    scores, y = draw()
    goal = {"minimize": fnr} if bound.expression == fpr else {"maximize": precision}
    equality = Problem(**goal, subject_to=bound.expression.at(bound.level))
    ours = gradient(SlackVariables(Problem(**goal, subject_to=bound), share=0.0), scores, y)
    assert_close(ours, gradient(Implicit(equality, share=0.0), scores, y), rtol=1e-12, atol=0)


def test_a_bound_that_does_not_bind_gets_the_slack_of_the_best_threshold():
    """F1 of fixed scores is best at a recall well above 0.1, and the slack finds it."""
    scores, y = draw()
    goal = Problem(maximize=f_score(1), subject_to=recall >= 0.1)
    criterion = SlackVariables(goal, share=0.0, slack_rate=0.05)
    for _ in range(300):
        gradient(criterion, scores, y)
    best = goal.choose(scores, y)
    at = criterion.thresholds.tolist()
    assert float(criterion.slack) > 0.4
    # soft counts are smoothed over a band of scores, so the optimum is not the same score
    assert goal.evaluate(scores, y, thresholds=at) > best.value - 0.02


def test_a_bound_that_binds_gets_none_and_a_validation_batch_moves_nothing():
    scores, y = draw()
    criterion = SlackVariables(Problem(minimize=fnr, subject_to=fpr <= 0.1))
    for _ in range(20):
        gradient(criterion, scores, y)
    assert criterion.slack.tolist() == [0.0]
    with torch.no_grad():
        before = criterion.state_dict()
        criterion(scores + 1, y)
    assert_close(criterion.state_dict(), before, equal_nan=True)


def test_outputs_have_slacks_of_their_own():
    scores, y = draw()
    criterion = SlackVariables(
        Problem(maximize=f_score(1), subject_to=recall >= 0.1), share=0.0, slack_rate=0.05
    )
    two = torch.stack([scores, -scores], 1)
    for _ in range(30):
        gradient(criterion, two, torch.stack([y, 1 - y], 1))
    assert criterion.slack.shape == (2,)
    assert float(criterion.slack[0] - criterion.slack[1]) != 0


@pytest.mark.parametrize("problem", [roc_auc(fpr=(0, 0.1)), Problem(maximize=f_score(1))], ids=str)
def test_it_takes_one_bound(problem):
    with pytest.raises(ValueError, match="takes one bound and one threshold"):
        SlackVariables(problem)
    with pytest.raises(TypeError, match="takes a Problem"):
        SlackVariables(3)
    assert SlackVariables(fnr_at_fpr(0.1)).slack_rate == 0.01
