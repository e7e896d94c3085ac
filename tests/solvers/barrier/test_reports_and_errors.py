"""What the barrier says: reports, bad input, batches that are not finite."""

import copy
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from setpoint import Barrier
from setpoint.solvers import at_least, at_most, equal_to
from setpoint.solvers.barrier.state import BarrierReport

W = torch.ones(2, requires_grad=True)


@pytest.mark.parametrize("poison", ["value", "gradient"])
def test_a_batch_that_is_not_finite_changes_nothing(poison):
    weight = torch.tensor([0.0, 1.0], requires_grad=True)
    barrier = Barrier([weight])
    step = barrier.backward(weight.square().sum(), subject_to=at_most(weight[1], 0.5))
    state = copy.deepcopy(barrier.state_dict())
    gradient = weight.grad.clone()
    # sqrt(0) has an infinite slope; 0 / 0 is NaN
    bad = weight[0].sqrt() if poison == "gradient" else weight[1] * float("nan")
    with pytest.raises(FloatingPointError, match="of fit is not finite in step 1"):
        barrier.backward(weight.square().sum(), subject_to=at_most(bad, 0.5, name="fit"))
    assert torch.equal(weight.grad, gradient)
    assert all(torch.equal(a, state[n]) for n, a in barrier.state_dict().items())

    barrier.nonfinite = "skip"
    step = barrier.backward(weight.square().sum(), subject_to=at_most(bad, 0.5, name="fit"))
    assert step["status"].startswith("skipped: ")
    assert torch.equal(weight.grad, gradient)
    changed = [n for n, a in barrier.state_dict().items() if not torch.equal(a, state[n])]
    assert changed == ["state.skipped"]
    assert barrier.report()["skipped"] == 1


def test_a_first_batch_that_is_not_finite_leaves_no_trace():
    weight = torch.tensor([0.5], requires_grad=True)
    barrier = Barrier([weight], nonfinite="skip")
    before = {name: value for name, value in barrier.state_dict().items() if "skipped" not in name}
    barrier.backward(weight * float("inf"), subject_to=at_most(weight, 1.0))
    assert weight.grad is None
    after = barrier.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert barrier.status.startswith("skipped")


def test_reports_are_plain_and_read_like_words():
    weight = torch.tensor([2.0], requires_grad=True)
    barrier = Barrier([weight])
    assert barrier.report() == {"status": "not started", "steps": 0}
    step = barrier.backward((weight - 3).square().sum(), subject_to=at_most(weight, 1.0, name="w"))
    assert step["status"] == "w is being mended: broken by 1"
    assert step["slack"] == [-1.0]
    # eq. (9) with nu = 1 and eq. (10) with the largest multiplier
    direction = 2 * (2.0 - 3.0) + step["multiplier"][0]
    assert_close(step["kkt_score"], direction**2 + step["push"][0])
    assert_close(step["penalty"], 1.0 + step["multiplier"][0] * 1.0)
    assert isinstance(barrier.report(), BarrierReport)
    assert "Barrier(1 parameters" in repr(barrier)


def test_losses_are_told_as_they_are_and_slack_by_the_sense_of_its_bound():
    weight = torch.tensor([3.0, 5.0], requires_grad=True)
    bounds = [at_least(weight[0], 1.0), at_most(weight[1], 4.0), equal_to(weight[1], 4.5)]
    step = Barrier([weight]).backward(weight.sum(), subject_to=bounds)
    assert step["losses"] == [3.0, 5.0, 5.0]
    assert step["slack"] == [2.0, -1.0, -0.5]
    assert step["objective"] == 8.0


def test_opposed_constraints_are_reported():
    weight = torch.tensor([0.3, 1.0], requires_grad=True)
    barrier = Barrier([weight], gain=0.0)
    step = barrier.backward(
        weight.square().sum(),
        subject_to=[at_most(weight[0], -1.0), at_most(-weight[0], -1.0)],
    )
    assert step["status"].startswith("opposed")
    assert torch.isfinite(weight.grad).all()
    assert barrier.report()["opposed_steps"] == 1


def bad_calls():
    w = W
    other = torch.ones(1, requires_grad=True)
    ok = at_most(w.sum(), 1.0)
    yield TypeError, "write `at_most", lambda b: b.backward(w.sum(), subject_to=w.sum() <= 0.3)
    yield TypeError, "write `at_most", lambda b: b.backward(w.sum(), subject_to=[w.sum() <= 0.3])
    yield TypeError, "bare tensor", lambda b: b.backward(w.sum(), subject_to=[w.sum()])
    yield TypeError, "belong in a Problem", lambda b: b.backward(w.sum(), subject_to=0.3)
    yield ValueError, "single number", lambda b: at_most(w, 1.0)
    yield ValueError, "single number", lambda b: b.backward(w, subject_to=ok)
    yield ValueError, "without a graph", lambda b: at_most(w.sum().detach(), 1.0)
    yield TypeError, "scalar tensor", lambda b: at_most(0.3, 1.0)
    yield TypeError, "finite number", lambda b: at_most(w.sum(), float("nan"))
    yield TypeError, "one of the two", lambda b: b.backward(w.sum())
    yield TypeError, "one of the two", lambda b: b.backward(w.sum(), subject_to=ok, after=w.sum())
    yield TypeError, "lower", lambda b: b.backward(w.sum(), subject_to=ok, lower=0.0)
    yield ValueError, "one number for each", lambda b: b.backward(w[0], after=[w[1]], lower=[0, 0])
    yield ValueError, "empty", lambda b: b.backward(w.sum(), subject_to=[])
    yield ValueError, "does not depend", lambda b: b.backward(other.sum(), subject_to=ok)


@pytest.mark.parametrize("case", range(len(list(bad_calls()))))
def test_bad_input_says_what_to_do(case):
    error, words, call = list(bad_calls())[case]
    with pytest.raises(error, match=words):
        call(Barrier([W]))


def test_parameters_are_checked():
    frozen = torch.ones(2)
    with pytest.raises(ValueError, match="No trainable parameter among 1"):
        Barrier([frozen])
    with pytest.raises(TypeError, match=r"model\.parameters"):
        Barrier([nn.Linear(1, 1)])
    with pytest.raises(TypeError, match="go together"):
        Barrier([W], fraction=0.1)
    for option in ({"alpha": 0}, {"beta": -1}, {"tau": 0.5}, {"gain": -1}, {"every": 0}):
        with pytest.raises(ValueError, match=next(iter(option))):
            Barrier([W], **option)


def test_other_bounds_need_another_barrier():
    w = torch.ones(2, requires_grad=True)
    barrier = Barrier([w])
    barrier.backward(w.sum(), subject_to=at_most(w[0], 0.0))
    with pytest.raises(ValueError, match=r"reset\(\)"):
        barrier.backward(w.sum(), subject_to=equal_to(w[0], 0.0))
    barrier.reset()
    barrier.backward(w.sum(), after=w[0].square())
    assert barrier.report()["steps"] == 1


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


def test_the_status_agrees_with_the_slack():
    """A running mean remembers that a bound was broken; the last batch keeps it."""
    weight = torch.tensor([0.0], requires_grad=True)
    barrier = Barrier([weight])
    for value in (5.0, 3.0, -1.0):
        with torch.no_grad():
            weight.fill_(value)
        barrier.backward(weight.square().sum(), subject_to=at_most(weight.sum(), 0.0))
    report = barrier.report()
    assert report["mean_slack"][0] < 0 < report["slack"][0]
    assert report["status"] in ("held", "slack")


def test_the_printed_algorithm_has_a_name():
    """Eq. (4) on one batch: the multiplier of ``beta |grad g|^2``, whatever came before."""
    weight = torch.tensor([3.0, -1.0], requires_grad=True)
    barrier = Barrier([weight], rule="printed")
    assert "rule='printed'" in repr(barrier)
    for _ in range(2):
        side, main = weight.square().sum(), (weight.sum() - 1).square()
        step = barrier.backward(side, after=main)
    f, g = torch.tensor([6.0, -2.0]), torch.tensor([2.0, 2.0])
    assert step["multiplier"] == pytest.approx([(1 - f @ g / (g @ g)).item()])
    with pytest.raises(ValueError, match="'corrected' or 'printed'"):
        Barrier([weight], rule="published")
