"""The barrier in a loop: optimizers, checkpoints, reuse of multipliers."""

import copy

import pytest
import torch
from solvers.barrier.toys import losses, problem, train
from torch import nn
from torch.testing import assert_close

from setpoint import Barrier, at_most


def test_a_network_keeps_its_bound_with_any_optimizer_and_clipping():
    model, x, y = problem()
    barrier = Barrier(model.parameters())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    for _ in range(300):
        optimizer.zero_grad()
        side, fit = losses(model, x, y)
        barrier.backward(side, subject_to=[at_most(fit, 0.5)])
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    report = barrier.report()
    assert report["status"] == "held"
    assert abs(report["losses"][0] - 0.5) < 5e-3
    assert 0 < report["binding"][0] <= 1
    assert "noise_ratio" in str(report)


def test_gradients_accumulate_as_backward_does():
    model, x, y = problem()
    side, fit = losses(model, x, y)
    Barrier(model.parameters()).backward(side, subject_to=at_most(fit, 0.1))
    once = [p.grad.clone() for p in model.parameters()]
    side, fit = losses(model, x, y)
    Barrier(model.parameters()).backward(side, subject_to=at_most(fit, 0.1))
    for p, g in zip(model.parameters(), once, strict=True):
        assert_close(p.grad, 2 * g)


@pytest.mark.parametrize("every", [1, 3])
def test_resume_equals_never_stopped(every):
    model, x, y = problem()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    barrier = Barrier(model.parameters(), every=every)
    train(model, x, y, barrier, optimizer, 20)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict(), barrier.state_dict()))
    whole = train(model, x, y, barrier, optimizer, 20, seed=1)

    model, x, y = problem(seed=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    barrier = Barrier(model.parameters(), every=every)
    for part, state in zip((model, optimizer, barrier), saved, strict=True):
        part.load_state_dict(state)
    assert train(model, x, y, barrier, optimizer, 20, seed=1) == whole
    assert all(isinstance(value, torch.Tensor) for value in barrier.state_dict().values())


def test_a_state_with_a_part_missing_is_refused():
    weight = torch.ones(1, requires_grad=True)
    barrier = Barrier([weight])
    state = barrier.state_dict()
    del state["state.floor"]
    with pytest.raises(RuntimeError, match=r"Missing key.*state\.floor"):
        barrier.load_state_dict(state)


def test_multipliers_are_reused_between_refreshes():
    model, x, y = problem()
    barrier = Barrier(model.parameters(), every=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    records = train(model, x, y, barrier, optimizer, 8)
    multipliers = [r["multiplier"] for r in records]
    assert multipliers[0] == multipliers[3] != multipliers[4] == multipliers[7]
    # and the direction is the weighted sum of fresh gradients
    model.zero_grad()
    side, fit = losses(model, x, y)
    barrier.state.numbers["steps"] += 1
    step = barrier.backward(side, subject_to=at_most(fit, 0.5))
    side, fit = losses(model, x, y)
    total = step["weights"][0] * fit + step["weights"][1] * side
    for p, g in zip(
        model.parameters(), torch.autograd.grad(total, list(model.parameters())), strict=True
    ):
        assert_close(p.grad, g)


def test_the_loss_has_the_gradient_of_backward_and_the_objectives_value():
    model, x, y = problem()
    side, fit = losses(model, x, y)
    Barrier(model.parameters()).backward(side, subject_to=at_most(fit, 0.1))
    wanted = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    side, fit = losses(model, x, y)
    loss = Barrier(model.parameters()).loss(side, subject_to=at_most(fit, 0.1))
    loss.backward()
    assert_close(loss.detach(), side.detach())
    for p, g in zip(model.parameters(), wanted, strict=True):
        assert_close(p.grad, g)


def test_fraction_divides_by_the_present_learning_rate():
    """A tenth of the gap is closed in each step, whatever the learning rate."""
    for rate in (0.3, 0.01):
        weight = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=rate)
        barrier = Barrier([weight], fraction=0.1, optimizer=optimizer, beta=1e6)
        gaps = []
        for _ in range(5):
            optimizer.zero_grad()
            step = barrier.backward((weight - 3).square().sum(), subject_to=at_most(weight, 1.0))
            gaps.append(-step["slack"][0])
            optimizer.step()
        assert_close(gaps[1] / gaps[0], 0.9, rtol=1e-9, atol=0)
        assert_close(gaps[4] / gaps[3], 0.9, rtol=1e-9, atol=0)


def test_fraction_divides_by_the_largest_learning_rate():
    """No group of parameters may close more than its share."""
    one, two = (torch.tensor([2.0], requires_grad=True) for _ in range(2))
    optimizer = torch.optim.SGD([{"params": one, "lr": 0.05}, {"params": two, "lr": 0.5}])
    barrier = Barrier([one, two], fraction=0.1, optimizer=optimizer, beta=1e6)
    step = barrier.backward((one + two).sum(), subject_to=at_most(one + two, 3.0))
    assert_close(step["push"], [0.2])  # of a gap of 1


def test_gradients_that_share_memory_are_kept_apart():
    """Of a sum, automatic differentiation returns one tensor for both terms."""
    one, two = (torch.ones(3, requires_grad=True) for _ in range(2))
    held = (one + two).square().sum()
    barrier = Barrier([one, two])
    step = barrier.backward((-2 * (one + two)).sum(), subject_to=at_most(held, 0.5))
    wanted = -2 + step["multiplier"][0] * 4
    assert step["multiplier"][0] > 0
    for weight in (one, two):
        assert_close(weight.grad, torch.full((3,), wanted))


def test_what_no_loss_reaches_is_left_alone():
    used, unused = (torch.ones(1, requires_grad=True) for _ in range(2))
    only_f = torch.ones(1, requires_grad=True)
    barrier = Barrier([used, unused, only_f])
    barrier.backward(used.square().sum() + only_f.sum(), subject_to=at_most(used, 0.5))
    assert unused.grad is None
    assert_close(only_f.grad, torch.ones(1))
