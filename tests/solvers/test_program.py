"""`Program` trains a problem by the loss that fits it, and refuses what it cannot."""

import pytest
import torch
from losses.draws import draw
from torch.testing import assert_close

import setpoint as sp
from setpoint.losses import (
    f_score_loss,
    jaccard_loss,
    partial_auc_loss,
    precision_at_recall_loss,
    structural_loss,
)
from setpoint.rates import jaccard, prevalence

FITS = {
    sp.roc_auc(fpr=(0, 0.3)): (partial_auc_loss, {"fpr": (0, 0.3)}),
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.over(0.1, 1)): (
        partial_auc_loss,
        {"fpr": (0.1, 1)},
    ),
    sp.Problem(maximize=sp.f_score(2)): (f_score_loss, {"beta": 2, "threshold": "best"}),
    sp.Problem(maximize=jaccard): (jaccard_loss, {"threshold": "best"}),
    sp.precision_at_recall(0.8): (precision_at_recall_loss, {"recall": 0.8}),
    sp.Problem(maximize=sp.precision, subject_to=sp.fnr <= 0.25): (
        precision_at_recall_loss,
        {"recall": 0.75},
    ),
    sp.Problem(maximize=sp.precision, subject_to=sp.recall.at(0.6)): (
        precision_at_recall_loss,
        {"recall": 0.6},
    ),
    sp.Problem(minimize=sp.fpr, subject_to=sp.recall >= 0.9): (
        precision_at_recall_loss,
        {"recall": 0.9, "objective": "fpr"},
    ),
    sp.Problem(minimize=sp.error): (structural_loss, {"metric": sp.error}),
    sp.Problem(minimize=0.3 * sp.fpr + 0.7 * sp.fnr): (
        structural_loss,
        {"metric": 0.3 * sp.fpr + 0.7 * sp.fnr},
    ),
}
REFUSED = [
    sp.pr_auc(recall=(0.9, 1)),
    sp.recall_at_precision(0.9),
    sp.precision_at_k(10),
    sp.Problem(maximize=sp.recall, subject_to=sp.coverage <= 0.1),
    sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.on(group=1) <= 0.1),
    sp.Problem(maximize=sp.precision, subject_to=[sp.recall >= 0.8, sp.fpr <= 0.1]),
    sp.Problem(maximize=sp.precision, subject_to=sp.recall <= 0.8),
    sp.Problem(minimize=sp.coverage),
    sp.Problem(minimize=prevalence),
    sp.Problem(maximize=sp.error),
    sp.Problem(minimize=sp.f_score(1)),
]


@pytest.mark.parametrize("problem", FITS, ids=str)
def test_a_problem_is_trained_by_the_loss_that_fits(problem):
    loss, options = FITS[problem]
    scores, labels, weights = draw("f1", n=40)
    criterion = sp.Program(problem, margin=0.7)
    expected = loss(scores, labels, weights=weights, margin=0.7, **options)
    assert_close(criterion(scores, labels, weights=weights), expected, rtol=1e-12, atol=0)
    assert str(problem) in repr(criterion)
    assert "margin=0.7" in repr(criterion)


@pytest.mark.parametrize("problem", REFUSED, ids=str)
def test_other_problems_are_refused_and_told_where_to_go(problem):
    with pytest.raises(ValueError, match=r"There is no program for .*Implicit\(problem\)"):
        sp.Program(problem)


def test_only_problems_are_problems():
    with pytest.raises(TypeError, match="Program takes a Problem, a sentence such as"):
        sp.Program(sp.f_score(1))


@pytest.mark.parametrize("target", [sp.fpr <= 0.2, sp.tnr >= 0.8, sp.fpr.at(0.2)], ids=str)
def test_misses_at_a_false_positive_rate_are_bounded(target):
    """The mirror image of false alarms at a recall; checked on its own, by the true values."""
    for seed in range(5):
        scores, labels, weights = draw("f1", n=80, seed=seed)
        loss = sp.Program(sp.Problem(minimize=sp.fnr, subject_to=target))(
            scores, labels, weights=weights
        )
        same = sp.Program(sp.tpr_at_fpr(0.2))(scores, labels.bool(), weights=weights)
        assert_close(loss, same, rtol=1e-12, atol=0)
        true = sp.fnr_at_fpr(0.2).evaluate(scores.numpy(), labels.numpy(), weights=weights.numpy())
        assert loss >= true - 1e-12
    separated = sp.Program(sp.fnr_at_fpr(0.2))(
        torch.tensor([3.0, 3, -3, -3]), torch.tensor([1, 1, 0, 0])
    )
    assert separated == 0


def test_every_index_of_tversky_is_a_ratio():
    """``TP / (TP + a FN + b FP)``: F scores and Jaccard are members of this family."""
    scores, labels, weights = draw("f1", n=40)
    for a, b, known in ((1, 1, jaccard), (0.5, 0.5, sp.f_score(1)), (0.8, 0.2, sp.f_score(2))):
        index = sp.Problem(maximize=sp.Rate(sp.TP, sp.TP + a * sp.FN + b * sp.FP))
        one, other = (sp.Program(p)(scores, labels) for p in (index, sp.Problem(maximize=known)))
        assert_close(one, other, rtol=1e-12, atol=0)
    other = sp.Problem(maximize=sp.Rate(3 * sp.TP, 3 * sp.TP + 5 * sp.FN + sp.FP))
    loss = sp.Program(other)(scores, labels, weights=weights)
    value = other.evaluate(scores.numpy(), labels.numpy(), weights=weights.numpy())
    assert loss >= 1 - value


@pytest.mark.parametrize(
    "problem",
    [sp.roc_auc(fpr=(0, 0.2)), sp.fnr_at_fpr(0.1), sp.Problem(maximize=sp.f_score(1))],
    ids=str,
)
def test_training_by_a_program_gets_where_training_by_implicit_gets(problem):
    """A linear problem with a known answer: both find the direction that tells classes apart."""
    rng = torch.Generator().manual_seed(0)
    y = (torch.rand(500, generator=rng) < 0.3).long()
    x = torch.randn(500, 5, generator=rng)
    x[:, 0] += 1.5 * y
    reached = []
    for criterion in (sp.Program(problem), sp.Implicit(problem, steps=60)):
        torch.manual_seed(0)
        model = torch.nn.Linear(5, 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(60):
            optimizer.zero_grad()
            criterion(model(x)[:, 0], y).backward()
            optimizer.step()
        reached.append(problem.evaluate(model(x)[:, 0].detach().numpy(), y.numpy()))
    best = problem.evaluate(x[:, 0].numpy(), y.numpy())
    sign = 1 if problem.maximize else -1
    assert sign * (reached[0] - best) > -0.05
    assert abs(reached[0] - reached[1]) < 0.05


def test_the_last_batch_is_told_with_the_threshold_of_the_problem():
    criterion = sp.Program(sp.fnr_at_fpr(0.2))
    assert criterion.status == "not started"
    scores, labels, _ = draw("f1", n=40)
    loss = criterion(scores, labels)
    told, choice = criterion.stats(), sp.fnr_at_fpr(0.2).choose(scores.numpy(), labels.numpy())
    assert told["loss"] == loss.item()
    assert (told["threshold"],) == choice.thresholds
    assert criterion.status == "held"
    criterion(scores, torch.zeros(40))
    assert criterion.status == "no positives in the batch"


def test_it_works_in_the_training_loop():
    rng = torch.Generator().manual_seed(1)
    y = (torch.rand(200, generator=rng) < 0.3).long()
    x = torch.randn(200, 3, generator=rng)
    x[:, 0] += y
    criterion = sp.Program(sp.roc_auc(fpr=(0, 0.5)))
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    before = criterion(model(x)[:, 0], y)
    sp.fit(model, criterion, x, y, steps=60, batch_size=50, learning_rate=0.05, seed=0)
    assert criterion(model(x)[:, 0], y) < 0.8 * before


@pytest.mark.parametrize("problem", [sp.fnr_at_fpr(0.2), sp.roc_auc(fpr=(0, 0.3))], ids=str)
@pytest.mark.parametrize("absent", [-1, float("nan")])
def test_a_row_without_a_label_is_absent(problem, absent):
    scores = torch.tensor([0.3, -0.2, 0.9, 0.5])
    found = sp.Program(problem)(scores, torch.tensor([0, 1, absent, 1.0]))
    assert found == sp.Program(problem)(scores[[0, 1, 3]], torch.tensor([0, 1, 1.0]))


@pytest.mark.parametrize("problem", [sp.fnr_at_fpr(0.2), sp.roc_auc(fpr=(0, 0.3))], ids=str)
@pytest.mark.parametrize("wrong", [2, 0.3, float("inf")])
def test_a_wrong_label_is_told_as_it_was_given(problem, wrong):
    """The miss rate at a false positive rate swaps the classes, but not what it says of labels."""
    labels = torch.tensor([0, 1, wrong, 1.0])
    with pytest.raises(ValueError, match=rf"Labels must be 0 or 1; got {wrong:g} in row 2"):
        sp.Program(problem)(torch.randn(4), labels)


@pytest.mark.parametrize("criterion", [sp.Program, sp.Pairwise])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("problem", [sp.fnr_at_fpr(0.3), sp.roc_auc(fpr=(0, 0.5))], ids=str)
def test_scores_at_the_limit_of_their_precision_give_finite_numbers(criterion, dtype, problem):
    largest = torch.finfo(dtype).max
    labels = torch.tensor([1, 0, 1, 0, 0, 1])
    scores = (torch.tensor([-1.0, 1, -1, 1, 0.5, -0.2]) * largest).to(dtype).requires_grad_()
    loss = criterion(problem)(scores, labels)
    loss.backward()
    assert loss.isfinite()
    assert scores.grad.isfinite().all()
    assert scores.grad.any()


@pytest.mark.parametrize("criterion", [sp.Program, sp.Pairwise])
def test_scores_that_overflow_float64_are_named(criterion):
    scores = torch.tensor([0.1, -3e155, 1.0, 0.0], dtype=torch.float64)
    with pytest.raises(ValueError, match=r"overflows: the largest is 3e\+155 in row 1"):
        criterion(sp.fnr_at_fpr(0.3))(scores, torch.tensor([1, 1, 0, 0]))
