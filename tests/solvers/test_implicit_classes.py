"""The criterion of classes: names, rules, trouble as values, compiled steps, checkpoints."""

import copy
import gc
import pickle

import numpy as np
import pytest
import torch
from samples import draw_classes as draw
from samples import loss_and_gradient

from setpoint import Implicit, Problem, Program, coverage, macro, recall
from setpoint.axes.classes import by_entry, chance_of, chances
from setpoint.losses.log_likelihood import CLASS_LOSSES
from setpoint.rates import auc_mu, top_k
from setpoint.solvers.main_loss import score_gradient
from setpoint.steps import Softplus

MACRO = Problem(maximize=macro(recall))


def test_one_hot_labels_are_named():
    with pytest.raises(ValueError, match=r"one-hot labels pass labels.argmax\(1\)"):
        Implicit(MACRO)(torch.randn(6, 3), torch.eye(3).repeat(2, 1))


def test_a_class_that_the_goal_asks_for_and_the_batch_lacks_is_named():
    scores, labels = draw()
    labels = torch.where(labels == 2, 0, labels)
    for goal, status in ((recall.of(2), "no examples of 2 in the batch"), (recall.of(1), "held")):
        criterion = Implicit(Problem(maximize=goal))
        criterion(scores, labels)
        assert criterion.status == status


def test_slopes_by_right_and_wrong_decisions_stand_where_these_are():
    right, slope = np.eye(3), np.full((3, 3), 2.0)
    places = (right, 0 * right, 1 - right, 0 * right)  # TP, FP, FN, TN
    for kind, expected in enumerate(places):
        assert by_entry(kind, slope, 3).tolist() == (2 * expected).tolist()


def test_classes_are_called_by_name_or_by_column():
    scores, labels = draw()
    names = ["ant", "bee", "cat", "dog"]
    by_name = Implicit(Problem(maximize=recall.of("cat")), classes=names)
    by_number = Implicit(Problem(maximize=recall.of(2)))
    assert (
        loss_and_gradient(by_name, scores, labels)[0]
        == loss_and_gradient(by_number, scores, labels)[0]
    )
    with pytest.raises(ValueError, match="no class 'cow'"):
        Implicit(Problem(maximize=recall.of("cow")), classes=names)
    with pytest.raises(ValueError, match=r"classes=\[\.\.\.\]"):
        loss_and_gradient(Implicit(Problem(maximize=recall.of("cat"))), scores, labels)


def test_weighted_argmax_is_a_shift_of_logarithms():
    scores, labels = draw(seed=3)
    problem = Problem(maximize=macro(recall), subject_to=coverage.of(0).at(0.3))
    shifted = Implicit(problem)
    weighted = Implicit(problem, rule="weight")
    loss, gradient = loss_and_gradient(shifted, scores, labels)
    same, slopes = loss_and_gradient(weighted, scores.exp(), labels)
    assert torch.allclose(loss, same, rtol=0, atol=1e-12)
    assert torch.allclose(slopes * scores.exp(), gradient, rtol=0, atol=1e-10)
    decided = (scores.exp() * (-weighted.thresholds).exp()).argmax(1)
    assert (decided == 0).double().mean() == pytest.approx(0.3)
    with pytest.raises(ValueError, match="must be positive"):
        weighted(scores, labels)


def test_a_class_that_the_batch_does_not_have_is_said_and_the_rest_is_trained_on():
    scores, labels = draw()
    labels = torch.where(labels == 3, 0, labels)
    criterion = Implicit(MACRO, share=0.0)
    loss, gradient = loss_and_gradient(criterion, scores, labels)
    assert criterion.status == "no examples of 3 in the batch"
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert gradient.abs().sum() > 0
    loss, gradient = loss_and_gradient(
        Implicit(Problem(maximize=recall.of(3)), share=0.0), scores, labels
    )
    assert (loss, gradient.abs().sum()) == (0, 0)
    _, gradient = loss_and_gradient(
        Implicit(Problem(maximize=recall.of(3)), share=0.5), scores, labels
    )
    assert gradient.abs().sum() > 0  # the main loss goes on
    with pytest.raises(ValueError, match="no examples of 3"):
        loss_and_gradient(Implicit(MACRO, strict=True), scores, labels)


@pytest.mark.parametrize(
    "sentence",
    [
        "maximize macro(precision)",
        "minimize error subject to coverage of 1 at 0.2",
        "maximize lowest(recall) subject to recall of 0 >= 0.9",
        "maximize top_k(2)",
    ],
)
@pytest.mark.parametrize(
    "scores",
    [
        torch.zeros(6, 3),
        torch.zeros(1, 3),
        torch.full((6, 3), 1e10),
        1e-30 * torch.eye(3),
        1e8 * torch.eye(3).repeat(3, 1),
    ],
    ids=["constant", "one", "high", "tiny", "separated"],
)
def test_odd_batches_give_finite_losses_and_gradients(sentence, scores):
    labels = torch.arange(len(scores)) % 3
    criterion = Implicit(Problem.parse(sentence))
    loss, gradient = loss_and_gradient(criterion, scores.double(), labels)
    assert loss.isfinite()
    assert gradient.isfinite().all()
    assert isinstance(criterion.stats()["status"], str)


def test_bad_input_is_refused_with_the_row():
    scores, labels = draw(6)
    with pytest.raises(ValueError, match=r"from 0 to 3.*got 7 in row 2"):
        Implicit(MACRO)(scores, torch.tensor([0, 1, 7, 2, 3, 0]))
    with pytest.raises(ValueError, match="finite"):
        Implicit(MACRO)(scores * float("nan"), labels)
    with pytest.raises(ValueError, match=r"scores are \[n, K\]"):
        Implicit(MACRO)(scores[:, 0], labels)
    with pytest.raises(ValueError, match="leave memory= out"):
        Implicit(MACRO, memory=5)
    with pytest.raises(ValueError, match="softmax"):
        Implicit(MACRO, step=Softplus())
    with pytest.raises(ValueError, match="Program"):
        Implicit(Problem(maximize=auc_mu))


def test_a_compiled_step_is_the_plain_one():
    scores, labels = draw(40)
    plain, other = Implicit(MACRO, steps=10), Implicit(MACRO, steps=10)
    torch._dynamo.reset()
    compiled = torch.compile(other, fullgraph=True, backend="aot_eager")
    for _ in range(2):
        loss, gradient = loss_and_gradient(plain, scores, labels)
        same, slopes = loss_and_gradient(compiled, scores, labels)
        assert torch.allclose(loss, same, rtol=0, atol=1e-12)
        assert torch.allclose(gradient, slopes, rtol=0, atol=1e-12)
    assert torch.allclose(plain.thresholds, other.thresholds)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_a_copy_is_found_by_its_own_number(copied):
    """Not by that of the original, which may have learned since, or be gone."""
    scores, labels = draw(40)
    first = Implicit(MACRO, steps=10)
    loss_and_gradient(first, scores, labels)
    second, same = copied(first), copied(first)
    assert len({first.number, second.number, same.number}) == 3
    expected = loss_and_gradient(same, scores, labels)
    del first, same
    gc.collect()
    torch._dynamo.reset()
    compiled = torch.compile(second, fullgraph=True, backend="aot_eager")
    for one, other in zip(loss_and_gradient(compiled, scores, labels), expected, strict=True):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


def test_a_checkpoint_restores_shifts_and_the_fade():
    scores, labels = draw(40)
    first, second = Implicit(MACRO, steps=10), Implicit(MACRO, steps=10)
    loss_and_gradient(first, scores, labels)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.thresholds, second.thresholds)
    for one, other in zip(
        *(loss_and_gradient(c, scores, labels) for c in (first, second)), strict=True
    ):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", CLASS_LOSSES)
@pytest.mark.parametrize("weighted", [False, True])
def test_main_losses_have_the_gradient_of_automatic_differentiation(name, weighted):
    scores, labels = draw(20, seed=1)
    weights = torch.linspace(0, 2, 20).double() if weighted else None
    leaf = scores.clone().requires_grad_()
    (expected,) = torch.autograd.grad(CLASS_LOSSES[name](leaf, labels, weights), leaf)
    assert torch.allclose(
        score_gradient(CLASS_LOSSES[name], scores, labels, weights), expected, atol=1e-12
    )


def test_the_chance_to_be_among_k_is_a_softmax_for_one_and_tends_to_the_first_k():
    z = draw(30, 5)[0].numpy()
    labels = draw(30, 5)[1].numpy()
    powers = np.exp(z)
    assert np.allclose(chances(z, 1), powers / powers.sum(1, keepdims=True), atol=1e-12)
    assert np.allclose(chances(z, 3).sum(1), 3, atol=1e-12)
    ranks = (-z).argsort(1).argsort(1)
    assert np.allclose(chances(1e5 * z, 2), ranks < 2, atol=1e-3)
    own, slopes = chance_of(z, labels, 2)
    step = 1e-6 * np.random.default_rng(0).normal(size=z.shape)
    moved = (chance_of(z + step, labels, 2)[0] - chance_of(z - step, labels, 2)[0]) / 2
    assert np.allclose((slopes * step).sum(1), moved, atol=1e-12)
    assert np.all((own > 0) & (own < 1))


def test_areas_of_classes_are_trained_by_sorting():
    scores, labels = draw()
    criterion = Program(Problem(maximize=auc_mu))
    loss, gradient = loss_and_gradient(criterion, scores, labels)
    assert loss > 0
    assert gradient.abs().sum() > 0
    assert criterion.stats()["hard_objective"] == Problem(maximize=auc_mu).evaluate(scores, labels)
    assert float(loss) >= 1 - criterion.stats()["hard_objective"]
    with pytest.raises(ValueError, match="auc_mu and one_vs_all_auc"):
        Program(Problem(maximize=top_k(2)))


def test_a_setpoint_of_a_class_that_is_too_coarse():
    """One of ten examples is 10 %: 9 % and 91 % cannot be held, 10 % and 90 % can."""
    scores = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    for level, coarse in ((0.09, True), (0.91, True), (0.1, False), (0.9, False)):
        problem = Problem(maximize=macro(recall), subject_to=recall.of(0).at(level))
        criterion = Implicit(problem)
        criterion(scores.requires_grad_(), torch.arange(30) % 3)
        assert str(criterion.status).startswith("too coarse: one of 10 examples") == coarse
