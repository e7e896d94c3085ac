"""The main loss of classes leans as the goal does."""

from itertools import product

import numpy as np
import pytest
import torch
from samples import draw_classes as draw
from samples import loss_and_gradient
from torch.nn.functional import cross_entropy

from setpoint import Implicit, Problem
from setpoint.axes.class_data import members_of
from setpoint.solvers.logit_adjustment import UNSEEN, Adjusted, log_weights

SHARES = np.array([0.6, 0.3, 0.1])
EVEN = [
    "maximize macro(recall)",
    "minimize macro(fnr) subject to coverage of 0 at 0.2",
    "maximize lowest(recall)",
    "minimize highest(fnr)",
    "maximize macro(precision)",
    "maximize macro(f_score(1)) subject to recall of 1 >= 0.5",
    "maximize recall of 0 + recall of 1 + recall of 2",
    "maximize min(recall of 0, recall of 1, recall of 2)",
    "maximize macro(recall on side=1)",
]
PLAIN = [
    "minimize error subject to recall of 1 >= 0.9",
    "maximize accuracy subject to coverage of 0 at 0.2",
    "maximize top_k(2) subject to coverage of 0 at 0.2",
    "minimize cost([[0, 1, 1], [1, 0, 1], [1, 1, 0]])",
    "maximize recall of 1 subject to coverage of 1 at 0.2",
    "maximize f_score(1) of 2",
    "maximize recall of 0 or 1",
    "minimize cost([[0, 1, 1], [-1, 0, 1], [1, 1, 0]])",
]


def weights_of(sentence, shares=SHARES):
    problem = Problem.parse(sentence)
    return log_weights(problem, members_of(problem, tuple(range(len(shares)))), shares)


@pytest.mark.parametrize("sentence", EVEN)
def test_goals_that_treat_classes_evenly_weigh_them_by_one_over_their_share(sentence):
    expected = -np.log(SHARES)
    assert np.allclose(weights_of(sentence), expected - expected.mean(), atol=1e-12)


@pytest.mark.parametrize("sentence", PLAIN)
def test_other_goals_keep_plain_cross_entropy(sentence):
    assert np.array_equal(weights_of(sentence), np.zeros(3))


def test_costs_of_a_row_are_weights_and_two_classes_have_none():
    costs = "minimize cost([[0, 1, 1], [5, 0, 5], [2, 2, 0]])"
    expected = np.log([1, 5, 2])
    assert np.allclose(weights_of(costs), expected - expected.mean(), atol=1e-12)
    one = weights_of("minimize fnr of 0 + fpr of 0")  # two of the three pairs are looked at
    assert np.allclose(one[0] - one[1:], np.log(0.4 / 0.6), atol=1e-12)
    assert np.array_equal(weights_of("maximize macro(recall)", np.array([0.9, 0.1])), np.zeros(2))


@pytest.mark.parametrize(
    "sentence",
    [
        "maximize macro(recall)",
        "minimize cost([[0, 1, 1], [5, 0, 5], [2, 2, 0]])",
        "minimize cost([[0, 1, 1], [1, 0, 1], [1, 1, 0]])",
    ],
)
def test_the_best_scores_of_the_adjusted_loss_decide_as_the_goal_wants(sentence):
    problem = Problem.parse(sentence)
    joint = np.random.default_rng(3).dirichlet(np.ones(15)).reshape(5, 3)  # x by class
    joint = joint * [4, 1, 0.25] / (joint * [4, 1, 0.25]).sum()
    best = np.log(joint) + weights_of(sentence, joint.sum(0))
    labels, weights = np.tile(np.arange(3), 5), joint.reshape(-1)

    def value(decided):
        scores = np.eye(3)[np.repeat(decided, 3)]
        return problem.evaluate(scores, labels, np.zeros(3), weights=weights)

    every = [value(np.array(rule)) for rule in product(range(3), repeat=5)]
    found = max(every) if problem.maximize else min(every)
    assert value(best.argmax(1)) == pytest.approx(found, abs=1e-12)


def test_the_default_main_loss_is_logit_adjustment_by_all_batches_so_far():
    criterion = Implicit(Problem.parse("maximize macro(recall)"), share=1.0)
    seen = np.full(4, UNSEEN)
    for seed in range(2):
        scores, labels = draw(50, 4, seed=seed)
        weights = torch.linspace(0.5, 2, 50).double()
        seen += np.bincount(labels, weights, 4)
        _, gradient = loss_and_gradient(criterion, scores, labels, weights=weights)
        leaf = scores.clone().requires_grad_()
        offsets = torch.from_numpy(np.log(seen / seen.sum()))
        loss = cross_entropy(leaf + offsets, labels, reduction="none") @ weights / weights.sum()
        loss.backward()
        assert torch.allclose(gradient, leaf.grad, atol=1e-12)
    with torch.no_grad():
        criterion(scores, labels)
    criterion.eval()(scores, labels)
    assert np.allclose(criterion.adjusted.seen, seen - UNSEEN)  # a look does not count
    again = Implicit(Problem.parse("maximize macro(recall)"), share=1.0)
    again.load_state_dict(criterion.state_dict())
    assert torch.equal(again.adjusted.seen, criterion.adjusted.seen)


def test_the_loss_by_itself_is_the_same_and_halves_do_not_round_its_counts():
    problem = Problem.parse("maximize macro(recall)")
    scores, labels = draw(40, 3, seed=2)
    alone, inside = Adjusted(problem).half(), Implicit(problem, share=1.0)
    _, gradient = loss_and_gradient(alone, scores, labels)
    assert torch.allclose(gradient, loss_and_gradient(inside, scores, labels)[1], atol=1e-12)
    assert alone.seen.dtype == torch.float64
    assert alone.seen.sum() == 40
    assert str(problem) in repr(alone)
    fresh = Adjusted(problem).eval()
    assert torch.allclose(fresh(scores, labels), cross_entropy(scores, labels), atol=1e-12)


@pytest.mark.parametrize("sentence", [*EVEN, *PLAIN])
def test_a_main_loss_that_leans_stays_and_another_fades_out(sentence):
    criterion = Implicit(Problem.parse(sentence), steps=2)
    assert criterion.end == (0.3 if sentence in EVEN else 0.0)
    held = sentence + (" and" if "subject" in sentence else " subject to")
    for more in ("fpr of 99999 <= 0.5", 'fpr of "cat" <= 0.5'):  # classes that only targets name
        if "cost" not in sentence and "of 0" not in sentence:
            assert Implicit(Problem.parse(f"{held} {more}")).end == criterion.end
    assert Implicit(Problem.parse(sentence), steps=2, main="cross_entropy").end == 0
    assert Implicit(Problem.parse(sentence), steps=2, end=0.7).end == 0.7


def test_two_classes_fade_out_as_one_threshold_does():
    scores, labels = draw(40, 2, seed=1)
    both = Implicit(Problem.parse("minimize macro(fnr)"), steps=2)
    one = Implicit(Problem.parse("minimize balanced_error"), steps=2)
    for share in (1.0, 0.0):
        _, slopes = loss_and_gradient(both, scores, labels)
        _, gradient = loss_and_gradient(one, scores[:, 1] - scores[:, 0], labels)
        assert both.stats()["share"] == share
        assert torch.allclose(slopes[:, 1], gradient, rtol=0, atol=1e-12)
    many = Implicit(Problem.parse("minimize macro(fnr)"), steps=2)
    for share in (1.0, 0.3):
        loss_and_gradient(many, *draw(40, 3, seed=1))
        assert many.stats()["share"] == pytest.approx(share)
