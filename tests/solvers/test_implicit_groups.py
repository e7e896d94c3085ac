"""One threshold per group in training: the gradient, and the laws it obeys."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest
import torch
from samples import draw_groups as draw
from subjects import PER_GROUP as PROBLEMS
from subjects import TWO, per_group
from torch import Tensor

from setpoint import Implicit, Problem, coverage, error, f_score, fnr, fpr, precision, recall, tpr
from setpoint.axes.groups import Groups
from setpoint.fairness import demographic_parity, equal_opportunity, gap


def groups_in(problem: Problem) -> int:
    return sum(1 for where in problem.slices if where)


def loss_and_gradient(
    problem: Problem, s: Tensor, y: Tensor, g: Any, weights: Tensor | None = None, **options: Any
) -> tuple[float, Tensor]:
    leaf = s.clone().requires_grad_()
    criterion = Implicit(problem, share=0.0, **options)
    loss = criterion(leaf, y, groups=g, weights=weights)
    loss.backward()
    assert leaf.grad is not None
    return loss.item(), leaf.grad


def test_some_problems_couple_their_groups() -> None:
    """Or the laws would not test what it is there for."""
    found = {}
    for problem in PROBLEMS:
        s, y, g = draw(240, groups_in(problem), seed=1)
        criterion = Implicit(problem, share=0.0)
        criterion(s.clone().requires_grad_(), y, groups=g)
        found[str(problem)] = [str(e) for e in criterion.outcome.placed.equations]
    assert any(" - " in e for e in found[str(PROBLEMS[1])])
    assert "coverage" in found[str(PROBLEMS[7])]
    assert "recall" in found[str(PROBLEMS[8])]


@pytest.mark.parametrize(
    "problem",
    [
        Problem(minimize=fnr, subject_to=fpr <= 0.1),
        Problem(maximize=precision, subject_to=recall >= 0.7),
        Problem(minimize=error, subject_to=coverage.at(0.3)),
        Problem(maximize=f_score(1)),
    ],
    ids=str,
)
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_one_group_is_the_plain_problem(problem: Problem, share: float) -> None:
    s, y, _ = draw(200, 1)
    named = Problem.parse(f"{problem} and error on g=0 <= 0.999 with thresholds per group".replace(
        "f_score(1) and", "f_score(1) subject to"))  # fmt: skip
    results = []
    for one, groups in ((problem, None), (named, np.zeros(200))):
        leaf = s.clone().requires_grad_()
        criterion = Implicit(one, share=share)
        loss = criterion(leaf, y, groups=groups)
        loss.backward()
        results.append((loss.detach(), leaf.grad, criterion.thresholds))
    for plain, grouped in zip(*results, strict=True):
        torch.testing.assert_close(plain, grouped, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if groups_in(p) == 2], ids=str)
def test_the_order_of_groups_changes_nothing(problem: Problem) -> None:
    s, y, g = draw(240, 2)
    text = str(problem).replace("g=0", "g=2").replace("g=1", "g=0").replace("g=2", "g=1")
    value, gradient = loss_and_gradient(problem, s, y, g)
    swapped, other = loss_and_gradient(Problem.parse(text), s, y, 1 - g)
    assert value == pytest.approx(swapped, abs=1e-12)
    torch.testing.assert_close(gradient, other, rtol=1e-9, atol=1e-12)


def test_copies_of_groups_leave_everything_unchanged() -> None:
    s, y, g = draw(200, 2)
    four = {"g": [0, 1, 2, 3]}
    for rule in (demographic_parity, equal_opportunity):
        one = per_group(minimize=error, subject_to=rule(0.02, **TWO))
        two = per_group(minimize=error, subject_to=rule(0.02, **four))
        value, gradient = loss_and_gradient(one, s, y, g)
        again, twice = loss_and_gradient(
            two, torch.cat([s, s]), torch.cat([y, y]), np.concatenate([g, g + 2])
        )
        assert value == pytest.approx(again, abs=1e-12)
        torch.testing.assert_close(gradient / 2, twice[:200], rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(gradient / 2, twice[200:], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("problem", PROBLEMS[:7], ids=str)
def test_training_makes_the_objective_better_and_holds_the_rates(problem: Problem) -> None:
    torch.manual_seed(0)
    count = groups_in(problem)
    random = np.random.default_rng(3)
    g = random.integers(0, count, 600)
    x = torch.tensor(random.normal(size=(600, 4)))
    noise = torch.tensor(random.normal(size=600))
    y = (x[:, 0] + 0.5 * x[:, 1] + 0.4 * torch.tensor(g) + noise > 0.5).long()
    model = torch.nn.Linear(4, 1, dtype=torch.float64)
    criterion = Implicit(problem, steps=60)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    values = []
    for _ in range(60):
        loss = criterion(model(x).squeeze(-1), y, groups=g)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(criterion.stats()["hard_objective"])
    assert criterion.status == "held"
    assert values[-1] > values[0] if problem.maximize else values[-1] < values[0]


def test_a_missing_group_is_named_and_the_rest_is_trained_on() -> None:
    s, y, g = draw(200, 3)
    leaf = s[g < 2].clone().requires_grad_()
    criterion = Implicit(PROBLEMS[0])
    criterion(leaf, y[g < 2], groups=g[g < 2]).backward()
    assert criterion.status == "no examples of g=2 in the batch"
    assert leaf.grad.abs().sum() > 0
    assert torch.isnan(criterion.thresholds).tolist() == [False, False, True]


@pytest.mark.parametrize("problem", [PROBLEMS[1], PROBLEMS[5]], ids=str)
def test_a_group_without_positives_is_left_out_of_what_counts_them(problem: Problem) -> None:
    s, y, g = draw(300, 3)
    kept = (y.numpy() == 0) | (g != 1)
    leaf = s[kept].clone().requires_grad_()
    criterion = Implicit(problem)
    loss = criterion(leaf, y[kept], groups=g[kept])
    loss.backward()
    assert loss.isfinite()
    assert leaf.grad.isfinite().all()
    assert leaf.grad.abs().sum() > 0


def test_memory_remembers_groups_that_are_missing() -> None:
    s, y, g = draw(400, 3)
    criterion = Implicit(PROBLEMS[0], memory=400)
    for part in (slice(0, 200), slice(200, 400)):
        rows = np.arange(400)[part]
        rows = rows if part.start == 0 else rows[g[rows] != 2]
        leaf = s[rows].clone().requires_grad_()
        criterion(leaf, y[rows], groups=g[rows]).backward()
    assert criterion.status == "held"
    assert not criterion.thresholds.isnan().any()
    assert leaf.grad.isfinite().all()


def test_a_memory_of_the_same_batch_changes_nothing() -> None:
    s, y, g = draw(200, 3)
    for problem in (PROBLEMS[0], PROBLEMS[1]):
        criterion, plain = Implicit(problem, share=0.5, memory=200), Implicit(problem, share=0.5)
        gradients = []
        for one in (criterion, criterion, plain):
            leaf = s.clone().requires_grad_()
            one(leaf, y, groups=g).backward()
            gradients.append(leaf.grad)
        torch.testing.assert_close(gradients[1], gradients[2], rtol=1e-6, atol=1e-9)


def test_what_is_remembered_of_a_group_counts_for_it_alone() -> None:
    """A memory of one group is that group twice: its examples stand for both."""
    s, y, g = draw(200, 3)
    for problem in (PROBLEMS[0], PROBLEMS[6]):
        criterion, plain = Implicit(problem, share=0.5, memory=200), Implicit(problem, share=0.5)
        criterion(s[g == 0].requires_grad_(), y[g == 0], groups=g[g == 0])
        one, other = (s.clone().requires_grad_() for _ in range(2))
        criterion(one, y, groups=g).backward()
        plain(other, y, groups=g, resampling=1.0 + torch.tensor(g == 0)).backward()
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("rate", "kind"), [(fpr, 0), (tpr, 1)], ids=str)
def test_a_group_that_is_held_to_a_rate_of_one_class_sits_on_a_score_of_it(rate, kind) -> None:
    problem = per_group(minimize=error, subject_to=gap(rate, **TWO) <= 0.02)
    held = 0
    for seed in range(5):
        scores, labels, groups = draw(80, 2, seed)
        criterion = Implicit(problem, share=0.0)
        criterion(scores.requires_grad_(), labels, groups=groups)
        seats = criterion.outcome.placed
        for group, marginal in zip((0, 1), seats.marginal, strict=True):
            own = (groups == group) & (labels.numpy() == kind)
            held += bool(seats.equations)
            assert not seats.equations or marginal in scores.detach()[own].numpy()
    assert held  # a rate of positives has no slope among negatives


def test_equal_scores_are_one_step() -> None:
    """No threshold lies between equal scores: three of four are accepted together."""
    s = torch.tensor([1.0, 1.0, 1.0, 0.0] * 2, requires_grad=True)
    fair = per_group(minimize=error, subject_to=demographic_parity(0.1, **TWO))
    criterion = Implicit(fair)
    criterion(s, torch.tensor([1, 1, 0, 0] * 2), groups=[0] * 4 + [1] * 4)
    assert criterion.status.startswith("too coarse")
    assert criterion.status.endswith("by 0.75")


def test_several_columns_and_their_intersections() -> None:
    s, y, _ = draw(400, 1)
    random = np.random.default_rng(0)
    columns = {"sex": random.choice(["f", "m"], 400), "race": random.choice(["b", "w"], 400)}
    both = demographic_parity(0.05, sex=["f", "m"], race=["b", "w"])
    one_by_one = [demographic_parity(0.05, sex=["f", "m"]), equal_opportunity(0.1, race=["b", "w"])]
    for goal in (both, one_by_one):
        criterion = Implicit(per_group(minimize=error, subject_to=goal), share=0.0)
        leaf = s.clone().requires_grad_()
        criterion(leaf, y, groups=columns).backward()
        assert criterion.status == "held"
        assert set(criterion.groups) == {("b", "f"), ("b", "m"), ("w", "f"), ("w", "m")}
        assert leaf.grad.isfinite().all()


def test_state_survives_checkpoints_and_copies() -> None:
    s, y, g = draw(200, 3)
    criterion = Implicit(PROBLEMS[0], steps=10, memory=100)
    criterion(s.clone().requires_grad_(), y, groups=g)
    file = io.BytesIO()
    torch.save(criterion.state_dict(), file)
    file.seek(0)
    again = Implicit(PROBLEMS[0], steps=10, memory=100)
    again.load_state_dict(torch.load(file))
    copied = copy.deepcopy(criterion)
    losses = [float(c(s, y, groups=g)) for c in (criterion, again, copied)]
    assert losses[0] == losses[1] == losses[2]
    assert torch.equal(again.thresholds, criterion.thresholds)
    assert isinstance(copied.axis, Groups)


def test_thresholds_decide_as_on_the_batch() -> None:
    s, y, g = draw(300, 3)
    criterion = Implicit(PROBLEMS[0])
    leaf = s.float().requires_grad_()
    criterion(leaf, y, groups=g).backward()
    accepted = s.float() > criterion.thresholds[torch.tensor(g)]
    shares = [accepted[g == k].double().mean() for k in range(3)]
    assert max(shares) - min(shares) <= 0.02 + 1e-9


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: Implicit(PROBLEMS[0], correct_every=5), "leave correct_every= out"),
        (lambda: Implicit(PROBLEMS[0], flatness=0.1), "leave flatness= out"),
        (
            lambda: Implicit(Problem.parse("minimize error with thresholds per group")),
            r"names no group to train a threshold for.*largest\(fpr, sex=\[f, m\]\) <= 0.01",
        ),
        (
            lambda: Implicit(PROBLEMS[0])(torch.zeros(4, 2), torch.zeros(4, 2), groups=[0] * 4),
            "one score per example; got 2 outputs",
        ),
        (
            lambda: Implicit(PROBLEMS[0])(torch.randn(4), torch.ones(4), groups=[0, 1, 2, 7]),
            "Row 3 has g = 7, a group that the problem names nowhere",
        ),
        (lambda: Implicit(PROBLEMS[0])(torch.randn(4), torch.ones(4)), "pass groups="),
    ],
)
def test_slips_are_named(make, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        make()


def test_degenerate_batches_are_no_accidents() -> None:
    criterion = Implicit(PROBLEMS[2])
    batches = [
        (torch.zeros(6), [0, 1, 0, 1, 0, 1], [0, 0, 0, 1, 1, 1]),  # constant scores
        (torch.arange(6.0), [1] * 6, [0, 0, 0, 1, 1, 1]),  # one class
        (torch.arange(6.0), [0, 1] * 3, [0] * 6),  # one group
        (torch.arange(2.0), [0, 1], [0, 1]),  # one example of each
        (torch.arange(6.0) * 1e10, [0, 1] * 3, [0, 0, 0, 1, 1, 1]),
        (torch.arange(6.0) * 1e-10, [0, 1] * 3, [0, 0, 0, 1, 1, 1]),
    ]
    for scores, labels, groups in batches:
        leaf = scores.clone().requires_grad_()
        loss = criterion(leaf, torch.tensor(labels), groups=groups)
        loss.backward()
        assert loss.isfinite()
        assert leaf.grad.isfinite().all()
        assert isinstance(criterion.status, str)
        assert criterion.stats()["status"] == criterion.status
    nobody = criterion(leaf, torch.tensor(labels), groups=groups, weights=torch.zeros(6))
    assert nobody.item() == 0
    strict = Implicit(PROBLEMS[0], strict=True)
    with pytest.raises(ValueError, match="no examples of g=2"):
        strict(torch.randn(6, requires_grad=True), torch.tensor([0, 1] * 3), groups=[0, 1] * 3)
    assert "tpr" not in repr(strict)
    assert "coverage on g=0" in repr(strict)
    assert tpr is not None
