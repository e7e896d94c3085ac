"""Micro-batches give the loss, gradients and state of the batch they make."""

import numpy as np
import pytest
import torch
from solvers.plain_kernels import plain_kernels
from subjects import CRITERIA
from torch import nn
from torch.testing import assert_close

import setpoint as sp
from setpoint.solvers import Split

BOUND = sp.fnr_at_fpr(0.2)
SLICED = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.on(group="a") <= 0.2)
NAMES = ("implicit", "implicit, memory", "implicit, precision at k", "lagrangian", "balanced")
NAMES += ("pairwise", "program, misses", "any loss", "last layer", "last layer, penalty")
MAKE = {name: CRITERIA[name] for name in NAMES} | {"groups": lambda _: sp.Implicit(SLICED)}
SIZES = (20, 31, 1, 12)


def network(*between):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), *between, nn.Tanh(), nn.Linear(6, 1)).double()


def batch(step):
    r = torch.Generator().manual_seed(step)
    y = (torch.rand(sum(SIZES), generator=r) < 0.3).long()
    x = torch.randn(len(y), 4, generator=r, dtype=torch.float64) + y[:, None]
    return x, y, 0.5 + torch.rand(len(y), generator=r, dtype=torch.float64)


def pieces(step, name):
    x, y, weights = batch(step)
    more = {} if name in ("groups", "implicit") else {"weights": weights}
    if name == "groups":
        more["groups"] = np.where(y.numpy() + np.arange(len(y)) % 2, "a", "bee")
    ends = np.cumsum(SIZES)
    parts = [slice(end - size, end) for end, size in zip(ends, SIZES, strict=True)]
    return [(x[p], y[p], {k: v[p] for k, v in more.items()}) for p in parts], (x, y, more)


def state(model, criterion):
    gradients = {name: p.grad for name, p in model.named_parameters()}
    return {**gradients, **criterion.state_dict()}


@pytest.mark.parametrize("name", MAKE)
def test_micro_batches_are_the_batch(name):
    models = [Split(network()) if "last" in name else network() for _ in range(2)]
    one, whole = (MAKE[name](model) for model in models)
    accumulated = one.accumulate(len(SIZES))
    for step in range(2):
        parts, (x, y, more) = pieces(step, name)
        for model in models:
            model.zero_grad()
        losses = [accumulated.backward(models[0], px, py, **pm) for px, py, pm in parts]
        loss = whole(models[1](x), y, **more)
        loss.backward()
        assert losses[:-1] == [None] * (len(parts) - 1)
        assert_close(losses[-1], loss.detach(), rtol=1e-12, atol=1e-12)
        ours, theirs = state(models[0], one), state(models[1], whole)
        assert_close(ours, theirs, rtol=1e-10, atol=1e-12, equal_nan=True)


def test_chance_and_statistics_are_those_of_one_pass():
    """Dropout and batch norm: as if the graphs of all micro-batches had been kept."""
    parts, _ = pieces(0, "implicit")
    parts = [part for part in parts if len(part[0]) > 1]  # batch norm refuses a single row
    found = []
    for kept in (False, True):
        model = network(nn.BatchNorm1d(6), nn.Dropout(0.4))
        criterion = sp.Implicit(BOUND)
        torch.manual_seed(5)
        if kept:
            scores = torch.cat([model(x) for x, _, _ in parts])
            loss = criterion(scores, torch.cat([y for _, y, _ in parts]))
            loss.backward()
        else:
            accumulated = criterion.accumulate(len(parts))
            for x, y, _ in parts:
                loss = accumulated.backward(model, x, y)
        buffers = dict(model.named_buffers())
        found.append([loss.detach(), state(model, criterion), buffers, torch.rand(3)])
    assert_close(*found, rtol=1e-12, atol=1e-13, equal_nan=True)
    assert int(found[0][2]["1.num_batches_tracked"]) == len(parts)


def test_what_waits_at_the_end_can_be_flushed_and_adds_to_gradients():
    parts, _ = pieces(0, "implicit")
    model, criterion = network(), sp.Implicit(BOUND)
    accumulated = criterion.accumulate(3)
    for x, y, _ in parts[:2]:
        assert accumulated.backward(model, x, y) is None
    assert model[0].weight.grad is None
    loss = accumulated.flush(model)
    again = sp.Implicit(BOUND)(
        model(torch.cat([parts[0][0], parts[1][0]])), torch.cat([parts[0][1], parts[1][1]])
    )
    assert_close(loss, again.detach())
    assert accumulated.flush(model) is None
    once = model[0].weight.grad.clone()
    for x, y, _ in parts[:2]:
        accumulated.backward(model, x, y)
    accumulated.flush(model)
    assert_close(model[0].weight.grad, 2 * once)


def test_with_autocast_and_a_scaler_the_weights_are_reached():
    parts, (x, y, _) = pieces(0, "implicit")
    model = network().float()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    accumulated = sp.Implicit(BOUND).accumulate(len(parts))
    with (
        plain_kernels(),
        torch.autocast("cpu", dtype=torch.bfloat16),
    ):  # one cache for all
        for px, py, _ in parts:
            loss = accumulated.backward(model, px.float(), py, scaler=scaler)
        ours = [p.grad / 1024 for p in model.parameters()]
        model.zero_grad()
        expected = sp.Implicit(BOUND)(model(x.float()), y)
        expected.backward()
    assert_close(loss, expected.detach())
    assert_close(ours, [p.grad for p in model.parameters()], rtol=0.02, atol=2e-3)


def test_what_cannot_be_accumulated_says_so():
    model = network()
    with pytest.raises(NotImplementedError, match="graph of the whole batch"):
        sp.RateBarrier(BOUND, model.parameters()).accumulate(2)
    parts, _ = pieces(0, "implicit")
    options = {"correct_every": 2, "follow": model.parameters()}
    accumulated = sp.Implicit(
        sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.2)), **options
    ).accumulate(1)
    with pytest.raises(ValueError, match="exclude each other"):
        accumulated.backward(model, *parts[0][:2])
    with pytest.raises(ValueError, match="at least 1"):
        sp.Implicit(BOUND).accumulate(0)
    accumulated = sp.Implicit(BOUND).accumulate(2)
    accumulated.backward(model, *parts[0][:2])
    with pytest.raises(ValueError, match="given the same things"):
        accumulated.backward(model, *parts[1][:2], weights=torch.ones(31))


def test_weights_that_change_in_between_are_noticed():
    (first, second, *_), _ = pieces(0, "implicit")
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    accumulated = sp.Implicit(BOUND).accumulate(2)
    for _ in range(2):  # a step where it belongs is fine
        for x, y, _ in (first, second):
            accumulated.backward(model, x, y)
        optimizer.step()
        optimizer.zero_grad()
    accumulated.backward(model, *first[:2])
    sp.Implicit(BOUND)(model(second[0]), second[1]).backward()
    optimizer.step()
    with pytest.raises(
        RuntimeError, match=r"weights changed while 1 of 2 .*optimizer.step\(\) only"
    ):
        accumulated.backward(model, *second[:2])
    with pytest.raises(RuntimeError, match="weights changed"):
        accumulated.flush(model)


def test_micro_batches_that_are_given_different_things_are_told_with_both():
    model, x, y = nn.Linear(2, 1), torch.randn(8, 2), torch.arange(8) % 2
    accumulated = sp.Implicit(sp.fnr_at_fpr(0.2)).accumulate(2)
    accumulated.backward(model, x, y)
    with pytest.raises(ValueError, match=r"one has none, another \['weights'\]"):
        accumulated.backward(model, x, y, weights=torch.ones(8))
