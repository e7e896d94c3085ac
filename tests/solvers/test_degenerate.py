"""Batches that nobody planned: nothing raises on data, nothing is NaN, and the status says why."""

import numpy as np
import pytest
import torch
from samples import HARD_BATCHES as BATCHES
from sklearn.linear_model import LogisticRegression

import setpoint as sp

PROBLEMS = [
    sp.fnr_at_fpr(0.05),
    sp.precision_at_recall(0.9),
    sp.recall_at_precision(0.9),
    sp.precision_at_k(3),
    sp.roc_auc((0, 0.2)),
    sp.pr_auc((0.9, 1.0), points=3),
    sp.Problem(maximize=sp.f_score(1)),
    sp.Problem(minimize=sp.error, subject_to=sp.fpr.at(0.3)),
]
RECIPES = {
    "default": lambda p: sp.Implicit(p, steps=10),
    "bare": lambda p: sp.Implicit(p, share=0.0),
    "memory": lambda p: sp.Implicit(p, memory=16),
    "flat": lambda p: sp.Implicit(p, flatness=0.5),
    "published": lambda p: sp.Implicit.as_published(p, correct_every=3, correction_batches=2),
}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_loss_and_gradient_are_finite_and_attached(problem, batch, recipe):
    scores, labels = BATCHES[batch]
    leaf = scores.clone().requires_grad_()
    criterion = RECIPES[recipe](problem)
    loss = criterion(leaf, labels)
    assert loss.isfinite()
    assert loss.shape == ()
    loss.backward()
    assert leaf.grad.shape == leaf.shape
    assert leaf.grad.isfinite().all()
    assert isinstance(criterion.status, str)
    if len(scores):
        assert all(k in criterion.stats() for k in ("threshold", "multiplier", "share"))


@pytest.mark.parametrize("batch", ["no positives", "no negatives"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_a_missing_class_gives_a_zero_gradient_and_says_so(problem, batch):
    scores, labels = BATCHES[batch]
    leaf = scores.clone().requires_grad_()
    criterion = sp.Implicit(problem)
    criterion(leaf, labels).backward()
    assert torch.equal(leaf.grad, torch.zeros_like(leaf))
    assert criterion.status == batch + " in the batch"


def test_one_output_without_positives_leaves_the_others_alone():
    torch.manual_seed(0)
    scores, labels = torch.randn(40, 2, dtype=torch.float64), (torch.rand(40, 2) < 0.4).long()
    labels[:, 1] = 0
    leaf = scores.clone().requires_grad_()
    sp.Implicit(sp.fnr_at_fpr(0.1), share=0.0)(leaf, labels).backward()
    alone = scores[:, 0].clone().requires_grad_()
    sp.Implicit(sp.fnr_at_fpr(0.1), share=0.0)(alone, labels[:, 0]).backward()
    assert torch.equal(leaf.grad[:, 1], torch.zeros(40))
    torch.testing.assert_close(leaf.grad[:, 0] * 2, alone.grad)


def test_an_unreachable_target_is_said_to_be_infeasible():
    leaf = torch.tensor([3.0, 2.0, 1.0, 0.0], requires_grad=True)
    criterion = sp.Implicit(sp.recall_at_precision(0.9))
    criterion(leaf, torch.tensor([0, 1, 0, 0])).backward()
    assert criterion.status.startswith("infeasible (gap 0.4): precision >= 0.9 is not met")
    assert leaf.grad.abs().sum() > 0  # training goes on, towards it


def test_a_batch_too_small_for_the_rate_is_said_to_be_too_coarse():
    leaf = torch.linspace(-1, 1, 40, dtype=torch.float64).requires_grad_()
    criterion = sp.Implicit(sp.fnr_at_fpr(0.01))
    criterion(leaf, torch.arange(40) % 5 == 0).backward()
    assert criterion.status == "too coarse: one of 32 examples is a rate of 0.031, more than 0.01"
    assert leaf.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("labels", "word"),
    [([0, 0, 0, 0], "no positives"), ([0, 1, 0, 0], "infeasible")],
)
def test_strict_turns_a_status_into_an_error(labels, word):
    criterion = sp.Implicit(sp.recall_at_precision(0.9), strict=True)
    with pytest.raises(ValueError, match=f"Cannot hold .*{word}.*memory="):
        criterion(torch.tensor([3.0, 2.0, 1.0, 0.0], requires_grad=True), torch.tensor(labels))


def test_strict_is_silent_when_all_is_well():
    criterion = sp.Implicit(sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.5), strict=True)
    criterion(torch.tensor([3.0, 2.0, 1.0, 0.0], requires_grad=True), torch.tensor([1, 0, 1, 0]))
    assert criterion.status == "held"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_scores_that_are_no_numbers_are_refused_by_row(value):
    scores = torch.tensor([0.0, 1.0, value, 2.0])
    with pytest.raises(ValueError, match=r"must be finite; got .*(nan|inf) in row 2"):
        sp.Implicit(sp.fnr_at_fpr(0.1))(scores, torch.tensor([0, 1, 0, 1]))


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        (torch.zeros(4), torch.tensor([0, 1, 2, 0]), "Labels must be 0 or 1; got 2 in row 2"),
        (torch.zeros(4), torch.tensor([-1, 1, 1, -1]), "got -1 in row 0. If -1 marks negatives"),
        (torch.zeros(4), torch.zeros(3), r"labels must be one per example, \[4\]"),
        (torch.zeros(4, 3), torch.zeros(4), "look like classes"),
        (torch.zeros(4, 2), torch.zeros(4), r"difference, scores\[:, 1\] - scores\[:, 0\]"),
        (torch.zeros(4, 3), torch.zeros(4, 2), r"shape of the scores, \(4, 3\)"),
        (torch.zeros(4, 3, 2), torch.zeros(4, 3, 2), r"got the shape \(4, 3, 2\)"),
        (torch.zeros(4, dtype=torch.long), torch.zeros(4), "floating-point"),
    ],
)
def test_wrong_inputs_are_named(scores, labels, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sp.Implicit(sp.fnr_at_fpr(0.1))(scores, labels)


@pytest.mark.parametrize(
    "weights", [torch.tensor([1.0, -1, 1, 1]), torch.tensor([1.0, torch.nan, 1, 1])]
)
def test_wrong_weights_are_named(weights):
    with pytest.raises(ValueError, match=r"at least 0; got .* in row 1"):
        sp.Implicit(sp.fnr_at_fpr(0.1))(torch.zeros(4), torch.tensor([0, 1, 0, 1]), weights=weights)


def test_all_weights_zero_is_a_batch_of_nobody():
    leaf = torch.randn(5).requires_grad_()
    criterion = sp.Implicit(sp.fnr_at_fpr(0.1))
    criterion(leaf, torch.tensor([0, 1, 0, 1, 1]), weights=torch.zeros(5)).backward()
    assert torch.equal(leaf.grad, torch.zeros(5))
    assert criterion.status == "no positives in the batch"


def test_a_dead_start_has_a_gradient():
    """All positives 100 widths below the threshold: the kernel must not underflow to nothing."""
    torch.manual_seed(0)
    negatives = torch.randn(500) + 12
    leaf = torch.cat([torch.randn(12) * 0.01, negatives]).requires_grad_()
    labels = (torch.arange(512) < 12).long()
    criterion = sp.Implicit(sp.fnr_at_fpr(0.01), share=0.5)
    criterion(leaf, labels).backward()
    outcome = criterion.outcome
    implicit, width = outcome.gradient[0], outcome.counts.width.item()
    distance = (outcome.placed.marginal.item() - leaf[:12].detach()) / width
    assert distance.min() > 100
    assert (implicit[:12] < 0).all()
    assert leaf.grad[:12].sum() < 0


@pytest.mark.parametrize("problem", [sp.fnr_at_fpr(0.05), sp.precision_at_recall(0.9)], ids=str)
def test_a_zero_initialised_head_trains_under_plain_sgd(problem):
    """Constant scores at first: the bare loss's second step is enormous, the matched one is not."""
    torch.manual_seed(0)
    y = (torch.rand(2000) < 0.2).long()
    x = torch.randn(2000, 5) + 1.5 * y[:, None] * torch.tensor([1.0, 0, 0, -1, 0])
    head = torch.nn.Linear(5, 1)
    torch.nn.init.zeros_(head.weight)
    torch.nn.init.zeros_(head.bias)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    criterion = sp.Implicit(problem, steps=200)
    logistic = LogisticRegression().fit(x, y).decision_function(x)
    for _ in range(200):
        rows = torch.randint(2000, (256,))
        loss = criterion(head(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    end = problem.evaluate(head(x).detach(), y)
    behind = (problem.evaluate(logistic, y) - end) * (1 if problem.maximize else -1)
    assert behind < 0.03
    assert head.weight.abs().max() < 100


def test_objectives_can_be_measured_without_a_gradient():
    criterion = sp.Implicit(
        sp.Problem(maximize=sp.precision, subject_to=sp.recall >= 0.5), steps=10
    )
    scores, labels = torch.randn(50), torch.arange(50) % 4 == 0
    with torch.no_grad():
        first = criterion(scores.requires_grad_(), labels)
    with torch.inference_mode():
        second = criterion(scores, labels)
    assert not first.requires_grad
    assert first.item() == second.item()
    assert criterion.step_count == 0  # a look at validation data is not a step


def test_a_memory_makes_small_batches_fine_enough():
    """32 negatives cannot hold 1 % of them; with 500 remembered ones they can."""
    r = torch.Generator().manual_seed(0)
    criterion = sp.Implicit(sp.fnr_at_fpr(0.01), memory=1000)
    labels = torch.arange(64) % 2
    said = []
    for _ in range(12):
        criterion(torch.randn(64, generator=r).requires_grad_(), labels)
        said.append(str(criterion.status))
    assert said[0] == "too coarse: one of 32 examples is a rate of 0.031, more than 0.01"
    assert said[1].startswith("too coarse: one of 64 examples")
    assert said[-1].startswith("held")


def pairs(scores, labels, weights=None):
    """A main loss of the user's own."""
    return sp.solvers.cross_entropy(scores, labels, weights)


@pytest.mark.parametrize("main", [None, "focal", pairs])
@pytest.mark.parametrize("how", ["everyone", "groups", "queries", "weights"])
def test_rows_without_a_label_are_absent_whoever_shares_a_threshold(main, how):
    problem, more = sp.fnr_at_fpr(0.3), {}
    if how == "groups":
        fair = sp.fairness.demographic_parity(0.5, g=[0, 1])
        problem = sp.Problem(minimize=sp.error, subject_to=fair, thresholds="per group")
        more["groups"] = np.arange(42) % 2
    elif how == "queries":
        problem, more["queries"] = sp.precision_at_k(3).per("query"), np.arange(42) % 2
    elif how == "weights":
        more["weights"] = 1 + torch.arange(42.0).double() % 2
    scores = torch.randn(42, generator=torch.Generator().manual_seed(0)).double()
    labels = (scores + torch.arange(42) % 3 > 1).double()
    labels[40:] = torch.tensor([torch.nan, -1])
    found = []
    for count in (42, 40):
        leaf = scores[:count].clone().requires_grad_()
        criterion = sp.Implicit(problem, main=main, share=0.5)
        loss = criterion(leaf, labels[:count], **{name: x[:count] for name, x in more.items()})
        loss.backward()
        assert not leaf.grad[40:].any()
        found.append((loss.detach(), leaf.grad[:40], criterion.thresholds, criterion.status))
    torch.testing.assert_close(found[0][:3], found[1][:3])
    assert found[0][3] == found[1][3]


def test_a_status_rounds_what_weights_count():
    labels, weights = torch.tensor([1.0] * 4 + [0.0] * 60), torch.full((64,), 1.0364444171)
    criterion = sp.Implicit(sp.fnr_at_fpr(0.01))
    criterion(torch.linspace(1, -1, 64), labels, weights=weights)
    assert "one of 62.19 examples" in criterion.status
