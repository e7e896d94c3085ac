"""Parameters that a more important loss does not reach: there a loss keeps its learning rate."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from setpoint import Barrier
from setpoint.solvers.barrier.lexicographic import trusted
from setpoint.solvers.barrier.state import LEARNT


def parameters():
    start = [torch.tensor([0.5, -1.0]), torch.tensor([2.0]), torch.tensor([-3.0])]
    return [each.double().requires_grad_() for each in start]


def three(body, second, third):
    """The first loss reaches the body, the second one a head of its own as well, and so on."""
    first = (body[0] - 1).square()
    middle = (body.sum() + second[0] - 1).square()
    return first, middle, 7 * (body[1] + second[0] * third[0] - 2).square()


def gradients(params):
    rows = []
    for loss in three(*params):
        found = torch.autograd.grad(loss, params, allow_unused=True)
        rows.append(
            [torch.zeros_like(p) if g is None else g for p, g in zip(params, found, strict=True)]
        )
    return rows


@pytest.mark.parametrize("call", ["backward", "loss"])
def test_each_parameter_is_moved_at_the_rate_of_the_first_loss_that_reaches_it(call):
    params = parameters()
    barrier = Barrier(params, every=2)
    for _ in range(3):  # the second one uses weights again
        for each in params:
            each.grad = None
        first, second, last = three(*params)
        if call == "backward":
            barrier.backward(last, after=[first, second])
        else:
            loss = barrier.loss(last, after=[first, second])
            assert_close(loss, last)
            loss.backward()
        one, two, three_ = barrier.last["weights"]
        a, b, c = gradients(params)
        assert one == 1
        assert 0 < two != three_ > 0
        assert_close(params[0].grad, a[0] + two * b[0] + three_ * c[0])
        assert_close(params[1].grad, b[1] + three_ / two * c[1])
        assert_close(params[2].grad, c[2])
        with torch.no_grad():
            for each in params:
                each -= 0.01 * each.grad


def test_a_head_of_its_own_does_not_shorten_the_share_of_what_is_common():
    shares = []
    for size in (1.0, 1e4):
        body, _, head = parameters()
        first, side = body.square().sum(), (body[0] - 2).square() + size * head.square().sum()
        shares.append(Barrier([body, head]).backward(side, after=first)["weights"][1])
    assert shares[0] == shares[1]


def test_a_loss_that_only_reaches_its_own_head_is_followed_whole():
    body, _, head = parameters()
    Barrier([body, head]).backward(head.square().sum(), after=body.square().sum())
    assert_close((body.grad, head.grad), (2 * body.detach(), 2 * head.detach()))


def test_where_the_first_loss_has_no_gradient_the_next_is_followed_whole():
    body, _, _ = parameters()
    Barrier([body]).backward(body.square().sum(), after=(0 * body).sum())
    assert_close(body.grad, 2 * body.detach())


def test_means_are_compared_with_means_and_batches_with_batches():
    """Both losses are as noisy: then noise is no reason for a smaller share."""

    def share(square, recent, after, clear=0.0):
        learnt = {name: np.zeros(1) for name in LEARNT} | {"recent": np.array([recent])}
        return trusted(learnt, 0, square, after, clear, looks=0)

    assert share(1.0, 100.0, (1.0, 100.0)) == pytest.approx(0.5)
    assert share(1.0, 100.0, (100.0, 100.0)) == pytest.approx(0.05)  # a gradient without noise
    assert share(1.0, 4.0, (1.0, 100.0)) == pytest.approx(0.2)  # steps may not be noisier
    assert share(1.0, 1.0, (1.0, 1.0), clear=1.0) == pytest.approx(4.0)
    # half clear: only half of a batch is noise, so that it may be twice as long
    assert share(1.0, 1.0, (1e-6, 100.0), clear=0.5) == pytest.approx(0.2)
