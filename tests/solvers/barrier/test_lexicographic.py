"""Lexicographic directions: what a level keeps, units, a long way along the solutions."""

import copy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.testing import assert_close

from setpoint import Barrier
from setpoint.solvers.barrier.lexicographic import MeanGradients, ranked
from setpoint.solvers.barrier.rules import Push
from setpoint.solvers.barrier.state import BarrierState


def first_step(*rows, gap=np.inf, beta=1.0):
    """The direction of losses that reach all parameters, in a first step."""
    levels = len(rows) - 1
    state = BarrierState()
    state.open(["after"] * levels)
    all_ = np.stack([*rows, *rows, *rows[1:]])  # gradients, their means, recent directions
    grams = np.stack([all_ @ all_.T] * levels)
    return ranked(grams, np.full(levels, gap), Push(beta=beta), state.numbers, 0)


@pytest.mark.parametrize("seed", range(20))
def test_no_loss_is_raised_by_a_later_one(seed):
    """Nor is what the second loss may still do where the first one opposes it."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3, 4)) * 10.0 ** rng.uniform(-3, 3, size=(3, 1))
    found = first_step(*rows)
    direction = found.weights @ rows
    assert rows[0] @ direction >= rows[0] @ rows[0] * (1 - 1e-12)
    free = rows[1] + max(0.0, -rows[1] @ rows[0] / (rows[0] @ rows[0])) * rows[0]
    assert free @ direction >= 0
    assert (found.weights > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_a_step_changes_the_first_loss_by_no_more_than_is_proved(seed):
    """By ``-rate / 2 |grad g|^2 + rate^2 L share^2 |grad f|^2`` for a rate of ``1 / 2L``."""
    rng = np.random.default_rng(seed)
    matrix, pull = torch.tensor(rng.normal(size=(4, 9))), torch.tensor(10 * rng.normal(size=9))
    steepest = torch.linalg.eigvalsh(matrix @ matrix.T)[-1].item()
    rate = 1 / (2 * steepest)
    x = torch.tensor(rng.normal(size=9), requires_grad=True)
    barrier, optimizer = Barrier([x]), torch.optim.SGD([x], lr=rate)
    first = lambda: (matrix @ x).square().sum() / 2  # noqa: E731
    for _ in range(100):
        optimizer.zero_grad()
        g, f = first(), (x - pull).square().sum()
        by_g, by_f = (torch.autograd.grad(each, x, retain_graph=True)[0] for each in (g, f))
        barrier.backward(f, after=g)
        optimizer.step()
        share = barrier.state.numbers["shares"][1]
        rise = rate**2 * steepest * share**2 * by_f.square().sum()
        assert first() - g <= -rate / 2 * by_g.square().sum() + rise + 1e-12


def test_the_share_is_a_part_of_the_ratio_of_lengths():
    """Half of it; more where the first loss is next to its lower bound (eq. 8), or by beta."""
    main, side = np.array([1.0, 0.0]), np.array([0.0, 4.0])
    assert_allclose(first_step(main, side).weights, [1, 0.5 / 4])
    assert_allclose(first_step(main, side, beta=3.0).weights, [1, 0.25 / 4])
    assert_allclose(first_step(main, side, gap=0.25).weights, [1, 0.8 / 4])


def test_units_of_the_next_loss_do_not_matter():
    paths = []
    for units in (1.0, 1e-4, 1e5):
        x = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
        barrier, optimizer = Barrier([x]), torch.optim.SGD([x], lr=0.1)
        for _ in range(10):
            optimizer.zero_grad()
            barrier.backward(units * x.square().sum(), after=(x[0] + x[1] - 1).square())
            optimizer.step()
        paths.append(x.detach().clone())
    for other in paths[1:]:
        assert_close(other, paths[0], rtol=1e-10, atol=0)


def test_a_long_way_along_the_solutions_is_walked_to_its_end():
    """The main loss is solved after a way of 1; the next one is 10 away, at right angles to it.

    A share in proportion to the main gradient would stop at 7.5: eq. (16) would not hold there.
    """
    x = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    barrier, optimizer = Barrier([x]), torch.optim.SGD([x], lr=0.3)
    for _ in range(500):
        optimizer.zero_grad()
        barrier.backward((x[1] - 10).square() / 2, after=x[0].square() / 2)
        optimizer.step()
    assert_close(x.detach(), torch.tensor([0.0, 10.0], dtype=torch.float64), rtol=0, atol=0.01)
    assert barrier.report()["noise_ratio"] == [1.0]


def test_a_lower_bound_is_what_a_loss_asks_for_at_most():
    x = torch.tensor([0.1, 1.0], dtype=torch.float64, requires_grad=True)
    losses = [10 * x[0], x[1].square() * 20]  # 1 and 20, with squared gradients of 100 and 1600
    step = Barrier([x]).backward(x.sum(), after=losses, lower=[0.7, None])
    assert_allclose(step["push"][0], 0.3)
    assert step["push"][1] > 100  # nothing is known: its own descent
    both = Barrier([x]).backward(x.sum(), after=losses, lower=0.7)
    assert_allclose(both["push"], [0.3, 19.3])


def test_with_a_lower_bound_the_order_is_kept_all_the_same():
    """On the line x1 + x2 = 1 the point nearest to the origin."""
    x = torch.tensor([2.0, -3.0], dtype=torch.float64, requires_grad=True)
    barrier, optimizer = Barrier([x], memory=0.9), torch.optim.SGD([x], lr=0.3)
    for _ in range(500):
        optimizer.zero_grad()
        barrier.backward(x.square().sum() / 2, after=(x.sum() - 1).square() / 2, lower=0.0)
        optimizer.step()
    assert_close(x.detach(), torch.full((2,), 0.5, dtype=torch.float64), rtol=0, atol=1e-3)


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
        share, last_share = barrier.state.numbers["shares"][1:]
        a, b, c = gradients(params)
        assert one >= 1
        assert three_ == last_share
        assert_close(params[0].grad, one * a[0] + two * b[0] + three_ * c[0])
        assert_close(params[1].grad, (two * b[1] + three_ * c[1]) / share)
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
    assert shares[0] == shares[1] > 0


def test_a_loss_that_only_reaches_its_own_head_is_followed_whole():
    body, _, head = parameters()
    Barrier([body, head]).backward(head.square().sum(), after=body.square().sum())
    assert_close((body.grad, head.grad), (2 * body.detach(), 2 * head.detach()))


def test_where_the_first_loss_has_no_gradient_the_next_is_followed_whole():
    body, _, _ = parameters()
    Barrier([body]).backward(body.square().sum(), after=(0 * body).sum())
    assert_close(body.grad, 2 * body.detach())


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
