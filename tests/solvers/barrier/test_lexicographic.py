"""Lexicographic directions: what a level keeps, units, a long way along the solutions."""

import copy

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn
from torch.testing import assert_close

from setpoint import Barrier
from setpoint.solvers.barrier.lexicographic import (
    HASTE,
    RUSH,
    MeanGradients,
    Seen,
    _helped,
    learn,
    ranked,
    trusted,
)
from setpoint.solvers.barrier.rules import Push
from setpoint.solvers.barrier.state import LEVEL_MEANS


def nothing_seen(levels=1):
    learnt = {name: np.zeros(levels) for name in LEVEL_MEANS}
    return Seen(learnt, pace=1.0, spent=1.0, looks=0, weights=np.zeros(0))


def grams(*rows):
    """Of two losses that reach all parameters, in a first step: means are what is seen now."""
    both = np.stack([*rows, *rows])
    return np.stack([both @ both.T, np.zeros((4, 4))])


@pytest.mark.parametrize("seed", range(20))
def test_noise_or_not_the_main_loss_keeps_half_of_its_descent(seed):
    """In the first step nothing is known yet, so that gradients count as noise."""
    rng = np.random.default_rng(seed)
    main, side = rng.normal(size=(2, 3)) * 10.0 ** rng.uniform(-3, 3, size=(2, 1))
    found = ranked(grams(main, side), np.array([np.inf]), nothing_seen(), Push())
    direction = found.weights @ np.stack([main, side])
    assert found.weights[0] == 1  # its own learning rate
    assert found.weights[1] > 0
    assert main @ direction >= HASTE * (main @ main) * (1 - 1e-12)
    assert_allclose(found.multipliers, 1 / found.weights[1:])


def test_a_low_enough_loss_leaves_more_to_the_next():
    """Eq. (8): close to its lower bound the main loss asks for less, with more beta for more."""
    main, side = np.array([1.0, 0.0]), np.array([-1.0, 0.0])
    learnt = {name: np.ones(1) for name in LEVEL_MEANS}
    exact = Seen(learnt, pace=0.1, spent=0.05, looks=10, weights=np.ones(2))

    def share(side, gap=np.inf, beta=1.0):
        found = ranked(grams(main, side), np.array([gap]), exact, Push(beta=beta))
        return found.weights[1]

    assert_allclose([share(side), share(side, gap=0.1)], [1 - RUSH, 1 - 0.1 * RUSH])
    aslant = np.array([-1.0, 1.0])  # it has a way to go: a hundredth is asked for, half at most
    assert_allclose([share(aslant), share(aslant, beta=100.0)], [0.99, 0.5])


def test_what_later_losses_do_against_a_level_is_not_counted():
    """Of four losses the third helps the first one, the fourth hurts it."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [-3.0, 0.0]])
    both = np.vstack([rows, rows])
    seen = Seen({}, 1.0, 1.0, 0, np.array([1.0, 0.7, 0.5, 0.25]))
    assert _helped(both @ both.T, np.eye(8)[4], 2, seen) == 0.5 * 2.0


def test_the_square_of_the_true_gradient_is_estimated_without_bias():
    """The mean of n noisy gradients is longer than the truth by the noise over n."""
    rng = np.random.default_rng(0)
    truth = np.array([0.3, -0.2, 0.1])
    found = []
    for _ in range(400):
        learnt = {name: np.zeros(1) for name in LEVEL_MEANS}
        mean, spent = np.zeros(3), 0.0
        for step in range(30):
            row = truth + rng.normal(size=3)
            pace = max(0.1, 1 / (step + 1))
            mean += pace * (row - mean)
            spent = (1 - pace) ** 2 * spent + pace**2
            seen = Seen({}, pace, spent, step, np.zeros(0))
            learn(learnt, 0, row @ row, mean @ mean, seen)
        found.append(learnt["signal"][0])
    error = np.std(found) / 400**0.5
    assert abs(np.mean(found) - truth @ truth) < 3 * error
    assert error < 0.02  # noise alone has the square 3


@pytest.mark.parametrize(
    ("all_steps", "now", "clear"),
    [(0.1, 1.0, 1.0), (0.9, 0.05, 0.9), (0.1, 0.05, 0.1)],
    ids=["noise that went", "exact ones that vanished", "noise"],
)
def test_gradients_are_as_clear_as_now_or_as_all_steps_say(all_steps, now, clear):
    learnt = {name: np.ones(1) for name in LEVEL_MEANS} | {"signal": np.array([all_steps])}
    seen = Seen({}, pace=0.01, spent=1e-9, looks=10**6, weights=np.zeros(0))
    assert_allclose(learn(learnt, 0, 1.0, now, seen), clear, rtol=1e-4)


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
        learnt = {name: np.zeros(1) for name in LEVEL_MEANS} | {"recent": np.array([recent])}
        return trusted(learnt, 0, square, after, clear, looks=0)

    assert share(1.0, 100.0, (1.0, 100.0)) == pytest.approx(0.5)
    assert share(1.0, 100.0, (100.0, 100.0)) == pytest.approx(0.05)  # a gradient without noise
    assert share(1.0, 4.0, (1.0, 100.0)) == pytest.approx(0.2)  # steps may not be noisier
    assert share(1.0, 1.0, (1.0, 1.0), clear=1.0) == pytest.approx(4.0)
    # half clear: only half of a batch is noise, so that it may be twice as long
    assert share(1.0, 1.0, (1e-6, 100.0), clear=0.5) == pytest.approx(0.2)


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
