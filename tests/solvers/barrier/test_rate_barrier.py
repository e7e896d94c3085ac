"""A problem of rates by the barrier: values are true rates, gradients those of soft ones."""

import runpy
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import setpoint as sp

PROBLEM = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.1)


def data(n=600, seed=0):
    torch.manual_seed(seed)
    y = (torch.rand(n) < 0.3).long()
    x = torch.randn(n, 4) + 1.2 * y[:, None] * torch.tensor([1.0, 0.5, 0.0, 0.0])
    return x, y


def test_values_are_true_rates_and_gradients_those_of_soft_ones():
    x, y = data(80)
    weight = torch.randn(4, dtype=torch.float64, requires_grad=True)
    x = x.double()
    step = sp.Sigmoid(temperature=0.5)
    criterion = sp.RateBarrier(PROBLEM, [weight], share=0.0, step=step)
    criterion(x @ weight, y).backward()
    record = criterion.stats()
    soft = torch.sigmoid((x @ weight) / 0.5)
    objective, held = (1 - soft[y == 1]).mean(), soft[y == 0].mean()
    assert_close(record["objective"], objective.item())
    assert_close(record["losses"], [((x @ weight)[y == 0] > 0).double().mean().item()])
    rows = [torch.autograd.grad(loss, weight, retain_graph=True)[0] for loss in (held, objective)]
    wanted = record["weights"][0] * rows[0] + record["weights"][1] * rows[1]
    assert_close(weight.grad, wanted)
    assert record["push"][0] <= record["losses"][0] - 0.1 + 1e-12


@pytest.mark.parametrize(
    ("problem", "rate"),
    [
        (PROBLEM, sp.fpr),
        (sp.Problem(maximize=sp.recall, subject_to=sp.coverage <= 0.2), sp.coverage),
        (sp.Problem(minimize=sp.error, subject_to=sp.recall >= 0.9), sp.recall),
        (sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.2)), sp.fpr),
    ],
    ids=str,
)
def test_fit_trains_it_and_the_bound_is_held_at_the_fixed_threshold(problem, rate):
    x, y = data()
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    criterion = sp.RateBarrier(problem, model.parameters())
    fitted = sp.fit(model, criterion, x, y, steps=250, batch_size=600, learning_rate=0.03, seed=0)
    scores = fitted.model(x).detach().squeeze(-1)
    held = sp.Problem(minimize=rate).evaluate(scores, y, thresholds=[0.0])
    level = problem.subject_to[0].level
    assert abs(held - level) <= 0.03
    assert fitted.history[-1]["status"]


def test_without_a_bound_it_is_the_soft_objective():
    x, y = data(50)
    weight = torch.zeros(4, requires_grad=True)
    criterion = sp.RateBarrier(sp.Problem(maximize=sp.f_score(1)), [weight])
    loss = criterion(x @ weight, y)
    loss.backward()
    assert loss.item() < 0  # the F score, negated
    assert weight.grad.abs().sum() > 0


@pytest.mark.parametrize("labels", [0, 1])
def test_a_batch_of_one_class_has_a_finite_loss_and_gradient(labels):
    weight = torch.ones(4, requires_grad=True)
    criterion = sp.RateBarrier(PROBLEM, [weight], share=0.0)
    loss = criterion(torch.randn(6, 4) @ weight, torch.full((6,), labels))
    loss.backward()
    assert loss.isfinite()
    assert weight.grad.isfinite().all()
    if labels == 1:  # nobody to raise a false alarm about: neither kept nor broken
        assert criterion.stats()["losses"] == [PROBLEM.subject_to[0].level]


def test_evaluation_does_not_learn():
    x, y = data(50)
    model = nn.Linear(4, 1)
    criterion = sp.RateBarrier(PROBLEM, model.parameters()).eval()
    assert not criterion(model(x), y).requires_grad
    assert criterion.stats()["steps"] == 0


def test_bad_input_says_what_to_do():
    weight = [torch.ones(2, requires_grad=True)]
    with pytest.raises(TypeError, match="takes a Problem"):
        sp.RateBarrier(sp.fnr, weight)
    with pytest.raises(NotImplementedError, match="one fixed threshold"):
        sp.RateBarrier(sp.pr_auc(), weight)
    per_group = sp.Problem(
        minimize=sp.error,
        subject_to=abs(sp.tpr.on(g="a") - sp.tpr.on(g="b")) <= 0.1,
        thresholds="per group",
    )
    with pytest.raises(NotImplementedError, match="one fixed threshold"):
        sp.RateBarrier(per_group, weight)
    with pytest.raises(TypeError, match="not both"):
        sp.RateBarrier(PROBLEM)
    with pytest.raises(TypeError, match="not both"):
        sp.RateBarrier(PROBLEM, weight, barrier=sp.Barrier(weight))
    assert "minimize fnr" in repr(sp.RateBarrier(PROBLEM, weight))


EXAMPLE = Path(__file__).parents[3] / "examples" / "barrier.py"


def test_the_example_holds_its_bounds_and_settles(capsys):
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.count("held") == 3
    assert "settled" in printed


def test_scores_far_on_one_side_of_the_threshold_leave_the_main_loss():
    """Found by the attack "arrays: models", case 20: soft counts of 1e-319, gradients NaN."""
    scores = (torch.linspace(0, 1e-3, 12, dtype=torch.float64) + 0.4).requires_grad_()
    labels = torch.arange(12) % 2
    sp.RateBarrier("maximize precision", [scores], share=0.3)(scores, labels).backward()
    assert scores.grad.isfinite().all()
    assert scores.grad.abs().sum() > 0
