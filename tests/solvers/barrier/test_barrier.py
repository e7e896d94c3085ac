"""The barrier in a loop: bad input, checkpoints, reuse of multipliers, mixed precision."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from setpoint import Barrier, at_most, equal_to
from setpoint.solvers.barrier.report import Report


def problem(seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(dtype)
    x = torch.randn(200, 4, dtype=dtype)
    y = (x[:, 0] + 0.3 * torch.randn(200, dtype=dtype) > 0).to(dtype)
    return model, x, y


def losses(model, x, y):
    scores = model(x).squeeze(-1)
    fit = nn.functional.binary_cross_entropy_with_logits(scores, y)
    return (scores * x[:, 0]).mean().square(), fit


def train(model, x, y, barrier, optimizer, steps, seed=0):
    generator = torch.Generator().manual_seed(seed)
    records = []
    for _ in range(steps):
        rows = torch.randint(0, len(x), (32,), generator=generator)
        optimizer.zero_grad()
        side, fit = losses(model, x[rows], y[rows])
        records.append(barrier.backward(side, subject_to=at_most(fit, 0.5, name="fit")))
        optimizer.step()
    return records


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
    barrier.ledger.numbers["steps"] += 1
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


@pytest.mark.parametrize("scale", [2.0**8, 2.0**14])
def test_a_loss_scale_changes_nothing(scale):
    """Mixed precision: rows are unscaled before their dot products are taken."""
    model, x, y = problem(dtype=torch.float64)
    side, fit = losses(model, x, y)
    plain = Barrier(model.parameters()).backward(side, subject_to=at_most(fit, 0.1))
    wanted = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    side, fit = losses(model, x, y)
    step = Barrier(model.parameters()).backward(side, subject_to=at_most(fit, 0.1), scaler=scaler)
    assert_close(step["multiplier"], plain["multiplier"])
    scaler.unscale_(optimizer)
    for p, g in zip(model.parameters(), wanted, strict=True):
        assert_close(p.grad, g)
    scaler.step(optimizer)
    scaler.update()


def test_an_overflow_is_left_to_the_scaler():
    model, x, y = problem()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = copy.deepcopy(model.state_dict())
    barrier = Barrier(model.parameters())
    side, fit = losses(model, x * 1e20, y)
    step = barrier.backward(side + fit, subject_to=at_most(fit, 0.1), scaler=scaler)
    scaler.step(optimizer)
    scaler.update()
    assert step["status"].startswith("skipped")
    assert scaler.get_scale() < 2.0**120
    assert barrier.report()["steps"] == 0
    for name, tensor in model.state_dict().items():
        assert_close(tensor, before[name])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_dot_products_of_half_precision_do_not_overflow(dtype):
    """300 squared is beyond half precision, and so is the sum."""
    weight = torch.full((50,), 300.0, dtype=dtype, requires_grad=True)
    step = Barrier([weight]).backward(
        (3 * weight).float().mean(), subject_to=at_most(weight.float().square().mean(), 1.0)
    )
    assert np.isfinite(step["kkt_score"])
    assert weight.grad.isfinite().all()
    assert weight.grad.dtype == dtype


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
    assert changed == ["ledger.skipped"]
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
    assert isinstance(barrier.report(), Report)
    assert "Barrier(1 parameters" in repr(barrier)


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


W = torch.ones(2, requires_grad=True)


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
