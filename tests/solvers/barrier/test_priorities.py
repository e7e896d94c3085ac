"""Lexicographic directions: what a level keeps, units, a long way along the solutions."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch.testing import assert_close

from setpoint import Barrier
from setpoint.solvers.barrier.lexicographic import HASTE, RUSH, Seen, _helped, learn, ranked
from setpoint.solvers.barrier.rules import Push
from setpoint.solvers.barrier.state import LEARNT


def nothing_seen(levels=1):
    learnt = {name: np.zeros(levels) for name in LEARNT}
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
    learnt = {name: np.ones(1) for name in LEARNT}
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
        learnt = {name: np.zeros(1) for name in LEARNT}
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
    learnt = {name: np.ones(1) for name in LEARNT} | {"signal": np.array([all_steps])}
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
