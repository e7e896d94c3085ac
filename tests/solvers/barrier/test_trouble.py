"""Trouble inside a training loop: parameters stay where they are, and the words say why."""

import copy
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from setpoint import Barrier, at_most, equal_to

OPTIMIZERS = {
    "adam": lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.1),
}


def loop(barrier, model, optimizer, poisoned, *, order=False, scaler=None, steps=8):
    """The usual loop; returns the weights before each step, and after the last one."""
    generator = torch.Generator().manual_seed(0)
    path = []
    for step in range(steps):
        path.append(copy.deepcopy(model.state_dict()))
        x = torch.randn(16, 3, generator=generator)
        if step in poisoned:
            x[3, 1] = float("nan")
        out = model(x)
        side, fit = out.square().mean(), (out - x.sum(1, keepdim=True)).square().mean()
        how = {"after": fit} if order else {"subject_to": at_most(fit, 0.5)}
        barrier.backward(side, scaler=scaler, **how)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        optimizer.zero_grad()
    return [*path, copy.deepcopy(model.state_dict())]


def alike(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("order", [False, True], ids=["bound", "order"])
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("scaled", ["no scaler", "scaler", "scaler that is switched off"])
def test_a_batch_with_a_nan_never_moves_the_parameters(name, scaled, order):
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = OPTIMIZERS[name](model.parameters())
    barrier = Barrier(model.parameters(), nonfinite="skip")
    enabled = scaled == "scaler"
    scaler = None if scaled == "no scaler" else torch.amp.GradScaler("cpu", enabled=enabled)
    path = loop(barrier, model, optimizer, {3, 4}, order=order, scaler=scaler)
    moved = [not alike(before, after) for before, after in pairwise(path)]
    assert moved == [step not in (3, 4) for step in range(8)]
    assert barrier.report()["skipped"] == 2
    assert barrier.report()["steps"] == 6
    assert all(value.isfinite().all() for value in path[-1].values())


def test_a_switched_off_scaler_does_not_hide_the_error():
    model = nn.Linear(3, 1)
    optimizer = OPTIMIZERS["adam"](model.parameters())
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    with pytest.raises(FloatingPointError, match="of bound 0 is not finite in step 2"):
        loop(Barrier(model.parameters()), model, optimizer, {2}, scaler=scaler)


@pytest.mark.parametrize("make", [at_most, equal_to])
def test_a_broken_bound_without_a_gradient_is_called_flat(make):
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    barrier = Barrier([weight])
    held = (weight[0] - 1).square() + 1  # a minimum of 1, where we stand
    step = barrier.backward(weight.square().sum(), subject_to=make(held, 0.5, name="fit"))
    assert step["status"] == "fit is flat: broken by 0.5 with a zero gradient; start elsewhere"
    assert_close(weight.grad, torch.tensor([2.0, 4.0]))


def test_a_bound_that_reaches_no_parameter_is_named():
    weight, other = (torch.ones(2, requires_grad=True) for _ in range(2))
    with pytest.raises(ValueError, match="fit does not depend on any of the 1 parameters"):
        Barrier([weight]).backward(weight.sum(), subject_to=at_most(other.sum(), 1.0, name="fit"))
    with pytest.raises(ValueError, match=r"after\[1\] does not depend"):
        Barrier([weight]).backward(weight.sum(), after=[weight.square().sum(), other.sum()])


def test_between_refreshes_only_the_sum_is_known_to_be_broken():
    weight = torch.tensor([0.0, 2.0], requires_grad=True)
    barrier = Barrier([weight], every=2)
    barrier.backward(weight[1], subject_to=at_most(weight[1] ** 2, 1.0))
    with pytest.raises(FloatingPointError, match="gradient of the weighted sum of all losses"):
        barrier.backward(weight[0].sqrt(), subject_to=at_most(weight[1] ** 2, 1.0))


def test_sparse_gradients_are_combined_like_dense_ones():
    found = []
    for sparse in (False, True):
        torch.manual_seed(0)
        table = nn.Embedding(6, 2, sparse=sparse)
        barrier = Barrier(table.parameters())
        rows = table(torch.tensor([0, 2, 2]))
        barrier.backward(rows.sum(), subject_to=at_most(rows.square().sum(), 0.1))
        found.append(table.weight.grad)
    assert_close(found[1], found[0])
    assert found[0][2].abs().sum() > 0
