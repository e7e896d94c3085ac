"""Every loss is the optimal value of its own linear program, and has its gradient."""

import itertools

import pytest
import torch
from losses.draws import BINARY, LOSSES, draw, value_and_gradient
from programs import by_highs
from torch.testing import assert_close

from setpoint.losses import (
    auc_loss,
    expected_f_decisions,
    expected_f_loss,
    f_score_loss,
    independent_joint,
)
from setpoint.programs import as_program, linear_program
from setpoint.solvers import focal

every_loss = pytest.mark.parametrize("name", LOSSES)
CLOSE = {"rtol": 1e-9, "atol": 1e-11}  # HiGHS' own tolerance is 1e-7; vertices come out exact


def program_of(loss, scores, labels, **keywords):
    return as_program(loss.func, scores, labels, **loss.keywords, **keywords)


@every_loss
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
@pytest.mark.parametrize("shift", [0.0, -2.5, 2.5])
def test_value_and_gradient_are_those_of_the_program(name, shift, weighted):
    scores, labels, weights = draw(name, shift=shift, seed=int(shift) % 7)
    keywords = {"weights": weights} if weighted else {}
    value, gradient = value_and_gradient(LOSSES[name], scores, labels, **keywords)
    scores.requires_grad_()
    program = program_of(LOSSES[name], scores, labels, **keywords)
    expected, expected_gradient = by_highs.value_and_gradient(program, scores)
    assert value.item() == pytest.approx(expected, rel=1e-9, abs=1e-11)
    assert_close(gradient, expected_gradient, **CLOSE)


@every_loss
@pytest.mark.parametrize("seed", range(4))
def test_with_ties_and_absent_examples_the_value_is_still_that_of_the_program(name, seed):
    scores, labels, weights = draw(name, seed=seed, ties=True)
    value, _ = value_and_gradient(LOSSES[name], scores, labels, weights=weights)
    program = program_of(LOSSES[name], scores, labels, weights=weights)
    assert value.item() == pytest.approx(by_highs.solved(program).fun + program.offset, abs=1e-9)


@every_loss
def test_a_program_is_sparse_and_of_the_scores(name):
    scores, labels, _ = draw(name, n=12)
    program = program_of(LOSSES[name], scores.requires_grad_(), labels)
    assert program.A.is_sparse
    assert program.A.shape == (len(program.b), len(program.c))
    assert (program.E is None) == (program.h is None)
    if program.E is not None:
        assert program.E.shape == (len(program.h), len(program.c))
    assert any(part.requires_grad for part in (program.c, program.A, program.b))
    assert {part.dtype for part in (program.c, program.A, program.b)} == {torch.float64}


@every_loss
@pytest.mark.parametrize("value_only", [False, True], ids=["solution", "value"])
def test_the_layer_gives_the_value_and_the_gradient_of_the_loss(name, value_only):
    scores, labels, weights = draw(name, n=16, seed=3)
    value, gradient = value_and_gradient(LOSSES[name], scores, labels, weights=weights)
    scores.requires_grad_()
    program = program_of(LOSSES[name], scores, labels, weights=weights)
    found, info = linear_program(*program[:6], value_only=value_only)
    assert info.status == ("optimal",)
    loss = found + program.offset if value_only else program.value(found)
    (through,) = torch.autograd.grad(loss, scores)
    assert loss.item() == pytest.approx(value.item(), rel=1e-8)
    assert_close(through, gradient, rtol=1e-7, atol=1e-9)


def test_a_constraint_of_ones_own_can_be_added():
    """The best F score among thresholds that miss 2 % of the positives: one more row."""
    scores, labels, _ = draw("f1", n=20, seed=1)
    program = as_program(f_score_loss, scores, labels, threshold="best")
    positives = int(labels.sum())
    row = torch.zeros(len(program.c), dtype=torch.float64)
    row[1 : 1 + positives] = 1.0  # t comes first, then the misses times t
    row[0] = -0.02 * positives
    stricter = program._replace(
        A=torch.cat([program.A, row[None].to_sparse()]),
        b=torch.cat([program.b, torch.zeros(1, dtype=torch.float64)]),
    )
    free, held = (by_highs.solved(p) for p in (program, stricter))
    assert row @ torch.tensor(free.x) > 1e-3
    assert row @ torch.tensor(held.x) < 1e-9
    assert held.fun > free.fun + 1e-3


@pytest.mark.parametrize("beta", [0.5, 1, 2])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_expected_f_is_that_of_its_program_and_of_all_decisions(n, beta):
    p = torch.rand(n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    p.requires_grad_()
    joint, none = independent_joint(p)
    loss = expected_f_loss(joint, none, beta=beta)
    (gradient,) = torch.autograd.grad(loss, p, retain_graph=True)
    program = as_program(expected_f_loss, joint, none, beta=beta)
    value, expected_gradient = by_highs.value_and_gradient(program, p)
    assert loss.item() == pytest.approx(value, abs=1e-10)
    assert_close(gradient, expected_gradient, rtol=1e-8, atol=1e-10)
    best = max(by_hand(p.tolist(), decided, beta) for decided in outcomes(n))
    assert 1 - loss.item() == pytest.approx(best, abs=1e-12)
    chosen = expected_f_decisions(joint, none, beta=beta).tolist()
    assert by_hand(p.tolist(), chosen, beta) == pytest.approx(best, abs=1e-12)


def outcomes(n):
    return list(itertools.product([0, 1], repeat=n))


def by_hand(p, decided, beta):
    """The expected F score of decisions, over all labels; nobody accepted, nobody positive is 1."""
    total = 0.0
    for labels in outcomes(len(p)):
        chance, hits = 1.0, 0
        for one, label, yes in zip(p, labels, decided, strict=True):
            chance *= one if label else 1 - one
            hits += label * yes
        below = beta**2 * sum(labels) + sum(decided)
        total += chance * ((1 + beta**2) * hits / below if below else 1.0)
    return total


def test_what_has_no_program_says_so():
    with pytest.raises(ValueError, match="No program is known for"):
        as_program(focal, torch.zeros(2), torch.tensor([0, 1]))


@pytest.mark.parametrize("name", BINARY)
def test_a_program_needs_both_classes_and_one_output(name):
    with pytest.raises(ValueError, match="needs both classes; got 0 positives and 3 negatives"):
        program_of(BINARY[name], torch.zeros(3), torch.zeros(3))
    with pytest.raises(ValueError, match="for one output; got 2"):
        program_of(BINARY[name], torch.zeros(3, 2), torch.tensor([[0, 1], [1, 0], [1, 1]]))


def test_training_through_the_layer_is_training_by_the_loss():
    """A row of the paper's Table 1 in small: the same weights after 30 steps, to rounding."""
    rng = torch.Generator().manual_seed(0)
    y = (torch.rand(40, generator=rng) < 0.4).long()
    x = torch.randn(40, 5, generator=rng, dtype=torch.float64) + y[:, None]

    def by_the_layer(scores, labels):
        return linear_program(*as_program(auc_loss, scores, labels)[:6], value_only=True)[0]

    trained = []
    for loss in (auc_loss, by_the_layer):
        torch.manual_seed(0)
        layers = (torch.nn.Linear(5, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
        model = torch.nn.Sequential(*layers).double()
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        for _ in range(30):
            optimizer.zero_grad()
            loss(model(x)[:, 0], y).backward()
            optimizer.step()
        trained.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert_close(trained[1], trained[0], rtol=1e-10, atol=1e-12)
