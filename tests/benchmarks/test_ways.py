"""The ways to treat an inequality that are compared with ours obey the laws they stand for."""

from functools import partial

import numpy as np
import pytest
import torch
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit
from torch import nn
from torchmetrics.functional import f1_score

from benchmarks.peers.soft import mean_difference, soft_f1, soft_precision_and_recall
from benchmarks.peers.ways import SoftInner
from setpoint import Implicit, Problem, f_score, fnr, fpr, precision, recall
from setpoint.solvers import SlackVariables

BOUNDS = {
    "active": Problem(maximize=precision, subject_to=recall >= 0.9),
    "slack": Problem(maximize=f_score(1), subject_to=recall >= 0.2),
    "cap": Problem(minimize=fnr, subject_to=fpr <= 0.1),
}


def draw(n=300, columns=1, seed=0):
    g = torch.Generator().manual_seed(seed)
    labels = (torch.rand(n, 1, generator=g) < 0.3).long().expand(-1, columns)
    noise = torch.randn(n, columns, generator=g, dtype=torch.float64)
    return (noise + 1.3 * labels).squeeze(-1), labels.squeeze(-1)


def soft_rates(scores, labels, threshold, width):
    step = expit((scores - threshold) / width)
    tp, fp = step[labels == 1].sum(), step[labels == 0].sum()
    positives, negatives = (labels == 1).sum(), (labels == 0).sum()
    return {
        "precision": tp / (tp + fp),
        "recall": tp / positives,
        "f": 2 * tp / (tp + fp + positives),
        "fpr": fp / negatives,
    }


def soft_value(name, scores, labels, width):
    """The inner problem solved independently: to minimize, with its bound."""

    def rates(t):
        return soft_rates(scores, labels, t, width)

    ends = scores.min() - 40 * width, scores.max() + 40 * width
    if name == "active":
        return -rates(brentq(lambda t: rates(t)["recall"] - 0.9, *ends, xtol=1e-13))["precision"]
    if name == "cap":
        return 1 - rates(brentq(lambda t: rates(t)["fpr"] - 0.1, *ends, xtol=1e-13))["recall"]
    grid = np.linspace(*ends, 2001)
    near = min(grid, key=lambda t: -rates(t)["f"])
    step = grid[1] - grid[0]
    found = minimize_scalar(
        lambda t: -rates(t)["f"], bounds=(near - step, near + step), options={"xatol": 1e-12}
    )
    return found.fun


@pytest.mark.parametrize("name", BOUNDS)
def test_the_soft_inner_optimum_and_its_gradient_are_those_of_the_inner_problem(name):
    scores, labels = draw()
    scores.requires_grad_()
    criterion = SoftInner(BOUNDS[name], share=0.0)
    loss = criterion(scores, labels)
    loss.backward()
    width = float(criterion.outcome.counts.width[0, 0])
    s, y = scores.detach().numpy(), labels.numpy()
    # grids end at 5e-6 of the range of the scores: that times the slope of the objective at a bound
    assert float(loss.detach()) == pytest.approx(soft_value(name, s, y, width), abs=1e-4)
    rows = np.argsort(-np.abs(scores.grad.numpy()))[:5]
    for row in rows:
        ends = []
        for move in (1e-4, -1e-4):
            moved = s.copy()
            moved[row] += move
            ends.append(soft_value(name, moved, y, width))
        expected = (ends[0] - ends[1]) / 2e-4
        assert float(scores.grad[row]) == pytest.approx(expected, rel=1e-2)


def test_the_bound_is_said_to_hold_where_it_stops_the_threshold():
    scores, labels = draw()
    held = {}
    for name in BOUNDS:
        criterion = SoftInner(BOUNDS[name], share=0.0)
        criterion(scores.clone().requires_grad_(), labels)
        held[name] = bool(criterion.outcome.placed.holding[0])
    assert held == {"active": True, "slack": False, "cap": True}


@pytest.mark.parametrize("name", BOUNDS)
def test_the_gradient_by_the_slack_is_that_of_the_held_objective(name):
    scores, labels = draw()
    criterion = SlackVariables(BOUNDS[name], slack_rate=0.0, share=0.0)
    criterion(scores.clone().requires_grad_(), labels)
    s, y = scores.numpy(), labels.numpy()
    counts = criterion.outcome.counts
    at, width = counts.at.item(), counts.width.item()
    rate, worth, sign = {
        "active": ("recall", "precision", 1),
        "slack": ("recall", "f", 1),
        "cap": ("fpr", "recall", -1),
    }[name]
    level = soft_rates(s, y, at, width)[rate]

    def objective(slack):
        def gap(t):
            return soft_rates(s, y, t, width)[rate] - level - sign * slack

        t = brentq(gap, at - 5 * width, at + 5 * width, xtol=1e-14)
        return -soft_rates(s, y, t, width)[worth]

    expected = (objective(1e-5) - objective(-1e-5)) / 2e-5
    assert float(criterion.by_slack()) == pytest.approx(expected, rel=1e-5)


def test_without_slack_the_bound_is_held_as_an_equality():
    scores, labels = draw()
    for problem, equal in (
        (BOUNDS["active"], recall.at(0.9)),
        (BOUNDS["slack"], recall.at(0.2)),
    ):
        mine, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
        SlackVariables(problem, slack_rate=0.0, steps=10)(mine, labels).backward()
        Implicit(Problem(maximize=problem.objective, subject_to=equal), steps=10)(
            theirs, labels
        ).backward()
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-12, atol=0)


@pytest.mark.parametrize(("name", "level"), [("active", 0.95), ("cap", 0.05)])
def test_slack_moves_the_level_to_the_safe_side(name, level):
    scores, labels = draw()
    criterion = SlackVariables(BOUNDS[name], slack_rate=0.0)
    criterion.slack.fill_(0.05)
    criterion(scores.clone().requires_grad_(), labels)
    assert criterion.stats()["held_rate"] == pytest.approx(level, abs=0.01)  # one of 90 positives


def test_slack_grows_where_the_bound_is_slack_and_stays_zero_where_it_is_not():
    scores, labels = draw()
    slack = {}
    for name in BOUNDS:
        criterion = SlackVariables(BOUNDS[name], slack_rate=0.05)
        for _ in range(200):
            criterion(scores.clone().requires_grad_(), labels)
        slack[name] = float(criterion.slack)
    assert slack["active"] == slack["cap"] == 0
    best = BOUNDS["slack"].choose(scores, labels)
    found = float((scores[labels == 1] > best.thresholds[0]).double().mean())
    assert 0.2 + slack["slack"] == pytest.approx(found, abs=0.1)  # soft and hard optimum are near


@pytest.mark.parametrize(("way", "more"), [(SoftInner, {}), (SlackVariables, {"slack_rate": 0.1})])
def test_outputs_beside_each_other_are_trained_as_if_alone(way, more):
    scores, labels = draw(columns=3)
    made = partial(way, BOUNDS["slack"], share=0.0, **more)
    together, together_scores = made(), scores.clone().requires_grad_()
    for _ in range(3):
        together_scores.grad = None
        together(together_scores, labels).backward()
    for column in range(3):
        own, mine = made(), scores[:, column].clone().requires_grad_()
        for _ in range(3):
            mine.grad = None
            own(mine, labels[:, column]).backward()
        torch.testing.assert_close(3 * together_scores.grad[:, column], mine.grad)


@pytest.mark.parametrize("way", [SoftInner, SlackVariables])
@pytest.mark.parametrize(
    "problem",
    [
        Problem(maximize=f_score(1)),
        Problem(maximize=precision, subject_to=recall.at(0.9)),
        Problem(maximize=precision, subject_to=[recall >= 0.2, fpr <= 0.5]),
    ],
    ids=str,
)
def test_other_problems_are_refused(way, problem):
    with pytest.raises(ValueError, match="one bound and one threshold"):
        way(problem)


def test_the_published_softplus_is_the_difference_of_class_means():
    scores, labels = draw()
    published = Implicit.as_published(
        Problem(minimize=fnr, subject_to=fpr.at(0.01)), surrogate="softplus", temperature=0.001
    )
    gradients = []
    for loss in (published, mean_difference):
        leaf = scores.clone().requires_grad_()
        loss(leaf, labels).backward()
        gradients.append(leaf.grad)
    assert float(nn.functional.cosine_similarity(*gradients, dim=0)) > 1 - 1e-6


def test_the_difference_of_class_means():
    scores, labels = torch.tensor([4.0, 2.0, 1.0, 0.0]), torch.tensor([1, 1, 0, 0])
    assert mean_difference(scores, labels) == -2.5
    assert mean_difference(scores[:2], labels[:2]) == -3.0  # a class that is not there adds nothing


def test_soft_metrics_of_sure_probabilities_are_the_metrics():
    scores, labels = draw()
    sure = 1e3 * scores.sign()
    expected = f1_score((scores > 0).long(), labels, task="binary")
    assert float(soft_f1(sure, labels)) == pytest.approx(1 - float(expected), rel=1e-6)
    tp = float(((scores > 0) & (labels == 1)).sum())
    fp, fn = float((scores > 0).sum()) - tp, float(labels.sum()) - tp
    expected = 1 - 17 * tp / (17 * tp + 16 * fn + fp)
    assert float(soft_precision_and_recall(sure, labels)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", [mean_difference, soft_f1, soft_precision_and_recall])
def test_a_weight_of_two_is_two_copies(loss):
    scores, labels = draw(40)
    weights = torch.tensor([1.0, 2.0] * 20, dtype=torch.float64)
    twice = torch.arange(40).repeat_interleave(weights.long())
    torch.testing.assert_close(loss(scores, labels, weights), loss(scores[twice], labels[twice]))
