"""Mixed precision: scales of losses, overflows, half precision."""

import copy

import numpy as np
import pytest
import torch
from solvers.barrier.toys import losses, problem
from torch.testing import assert_close

from setpoint import Barrier
from setpoint.solvers import at_most


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


@pytest.mark.parametrize("order", [False, True], ids=["bound", "order"])
def test_a_network_under_autocast_keeps_what_it_promises(order):
    """Half precision in the forward pass, a scaler around it, as in any mixed-precision loop."""
    model, x, y = problem()
    barrier = Barrier(model.parameters())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=20)
    for _ in range(150):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            side, fit = losses(model, x, y)
        how = {"after": fit} if order else {"subject_to": at_most(fit, 0.5)}
        barrier.backward(side, scaler=scaler, **how)
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() > 2.0**10  # it grew on the way
    _, fit = losses(model, x, y)
    assert fit.item() < 0.2 if order else abs(fit.item() - 0.5) < 0.02
    assert barrier.report()["skipped"] == 0
