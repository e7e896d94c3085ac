"""Lexicographic training in batches: noise, state, precision."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from setpoint import Barrier
from setpoint.solvers.barrier.lexicographic import MeanGradients


def network_and_rows():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
    x = torch.randn(256, 6)
    y = ((x[:, 0] + x[:, 1] + torch.randn(256)) > 0).float()
    return model, x, y


def train_in_batches(side, *, steps=150):
    """The main loss on all rows after training in batches of 8."""
    model, x, y = network_and_rows()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    barrier = Barrier(model.parameters())
    for _ in range(steps):
        rows = torch.randint(0, 256, (8,))
        optimizer.zero_grad()
        main = nn.functional.binary_cross_entropy_with_logits(model(x[rows])[:, 0], y[rows])
        if side:
            barrier.backward(sum(p.square().sum() for p in model.parameters()), after=main)
        else:
            main.backward()
        optimizer.step()
    with torch.no_grad():
        loss = nn.functional.binary_cross_entropy_with_logits(model(x)[:, 0], y).item()
        return loss, sum(p.square().sum() for p in model.parameters()).item(), barrier


def test_the_length_of_the_weights_after_a_noisy_loss_does_not_end_at_zero():
    """All weights zero is a stationary point: as printed, batches end there (a loss of 0.69)."""
    alone, long, _ = train_in_batches(False)
    loss, short, barrier = train_in_batches(True)
    assert loss < alone + 0.03
    assert short < 0.8 * long
    assert barrier.report()["noise_ratio"][0] > 2


def after_in_batches(barrier, model, optimizer, x, y, steps, seed):
    generator = torch.Generator().manual_seed(seed)
    records = []
    for _ in range(steps):
        rows = torch.randint(0, len(x), (16,), generator=generator)
        optimizer.zero_grad()
        scores = model(x[rows])[:, 0]
        first = nn.functional.binary_cross_entropy_with_logits(scores, y[rows])
        second = (scores * x[rows, 2]).mean().square()
        records.append(barrier.backward(scores.square().mean(), after=[first, second]))
        optimizer.step()
    return records


@pytest.mark.parametrize("every", [1, 2])
def test_resume_equals_never_stopped(every):
    model, x, y = network_and_rows()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    barrier = Barrier(model.parameters(), every=every)
    after_in_batches(barrier, model, optimizer, x, y, 7, seed=0)
    saved = copy.deepcopy((model.state_dict(), optimizer.state_dict(), barrier.state_dict()))
    whole = after_in_batches(barrier, model, optimizer, x, y, 7, seed=1)

    model, x, y = network_and_rows()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    barrier = Barrier(model.parameters(), every=every)
    for part, state in zip((model, optimizer, barrier), saved, strict=True):
        part.load_state_dict(state)
    assert after_in_batches(barrier, model, optimizer, x, y, 7, seed=1) == whole
    assert all(isinstance(value, torch.Tensor) for value in barrier.state_dict().values())
    with pytest.raises(RuntimeError, match=r"means\.0\.9"):
        barrier.load_state_dict(saved[2] | {"means.0.9": torch.zeros(1)})


def test_a_batch_that_is_not_finite_leaves_the_means_alone():
    x = torch.tensor([0.5, 1.0], requires_grad=True)
    barrier = Barrier([x])
    barrier.backward(x.square().sum(), after=x[0].square())
    before = copy.deepcopy(barrier.state_dict())
    for bad in (x[0] * float("nan"), (x[0] - x[0].detach()).sqrt()):
        with pytest.raises(FloatingPointError, match="of after is not finite in step 1"):
            barrier.backward(x.square().sum(), after=bad)
    assert all(torch.equal(value, before[name]) for name, value in barrier.state_dict().items())


def test_a_loss_scale_changes_nothing():
    found = []
    for scale in (None, 2.0**12):
        x = torch.tensor([0.5, -1.0], dtype=torch.float64, requires_grad=True)
        scaler = None if scale is None else torch.amp.GradScaler("cpu", init_scale=scale)
        barrier = Barrier([x])
        for _ in range(3):
            x.grad = None
            record = barrier.backward(x.square().sum(), after=(x[0] - x[1]).exp(), scaler=scaler)
        found.append((record["multiplier"], x.grad / (scale or 1.0)))
    assert_close(found[1], found[0])


def test_means_of_half_precision_are_wider():
    x = torch.ones(3, dtype=torch.bfloat16, requires_grad=True)
    unused = torch.ones(2, requires_grad=True)
    barrier = Barrier([x, unused])
    for factor in (1.0, 1.001):
        barrier.backward(x.float().sum() + unused.sum(), after=factor * x.float().square().sum())
    (mean, none), _ = barrier.priorities.means.rows
    assert mean.dtype == torch.float32
    assert none is None
    assert x.grad.dtype == torch.bfloat16
    barrier.reset()
    assert barrier.priorities.means.rows == []
    assert "means.0" not in barrier.state_dict()


def test_a_step_without_a_gradient_counts_as_a_gradient_of_zero():
    means = MeanGradients()
    means.follow([[torch.tensor([4.0]), None]], 1.0)
    means.follow([[None, torch.tensor([8.0])]], 0.25)
    assert_close(means.rows, [[torch.tensor([3.0]), torch.tensor([2.0])]])


def test_memory_is_checked():
    with pytest.raises(ValueError, match="memory"):
        Barrier([torch.ones(1, requires_grad=True)], memory=1.0)
    assert "memory=0.9" in repr(Barrier([torch.ones(1, requires_grad=True)], memory=0.9))
