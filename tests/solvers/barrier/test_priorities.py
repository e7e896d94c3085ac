"""Lexicographic training reaches its optimum: all optimizers, rates, starts, and three levels."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from setpoint import Barrier
from setpoint.solvers.barrier import lexicographic_residual
from setpoint.solvers.barrier.lexicographic import _residual
from setpoint.solvers.barrier.state import LEARNT, BarrierState

OPTIMIZERS = {
    "SGD .2": lambda p: torch.optim.SGD(p, lr=0.2),
    "SGD .05": lambda p: torch.optim.SGD(p, lr=0.05),
    "SGD .01": lambda p: torch.optim.SGD(p, lr=0.01),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.02),
}
STARTS = [(3, -1), (-2, 1), (0, 0), (1, 1), (5, 5), (2, 0.5), (-4, -1), (0.2, 0.9)]


def descend(start, losses, optimizer, steps, **settings):
    """Train ``losses(x) = (more important ones..., objective)``; returns the point and barrier."""
    x = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    barrier, stepper = Barrier([x], **settings), optimizer([x])
    for _ in range(steps):
        stepper.zero_grad()
        *first, last = losses(x)
        barrier.backward(last, after=first)
        stepper.step()
    return x, barrier


def nearest_on_a_line(x):
    return (x.sum() - 1).square(), x.square().sum()


@pytest.mark.parametrize("start", STARTS[::4], ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_point_nearest_to_the_origin_on_a_line(name, start):
    """The answer is (.5, .5). ``benchmarks/barrier/priorities.py`` takes all starts."""
    steps = 2500 if name in ("SGD .01", "Adam") else 800
    x, barrier = descend(start, nearest_on_a_line, OPTIMIZERS[name], steps)
    assert (x - 0.5).abs().max() < 0.01
    assert barrier.report()["status"] == "settled"
    main, side = nearest_on_a_line(x)
    assert lexicographic_residual(side, main, [x]) < 0.05


def test_settled_is_said_only_where_the_residual_is_small():
    """The share of the second loss once vanished too fast: distances of 0.08 and 0.16 'settled'."""
    x = torch.tensor([3.0, -1.0], dtype=torch.float64, requires_grad=True)
    barrier, optimizer = Barrier([x]), torch.optim.SGD([x], lr=0.01)
    said = 0
    for _ in range(1000):
        optimizer.zero_grad()
        main, side = nearest_on_a_line(x)
        if barrier.backward(side, after=main)["status"] == "settled":
            said += 1
            main, side = nearest_on_a_line(x)
            assert lexicographic_residual(side, main, [x]) < 0.15
        optimizer.step()
    assert said > 100


def test_settled_is_not_said_while_both_losses_pull_the_same_way():
    """From far behind the line both fall towards it: nothing balances the second one yet."""
    x = torch.tensor([-7.0, -5.6], dtype=torch.float64, requires_grad=True)
    barrier, optimizer = Barrier([x]), torch.optim.SGD([x], lr=0.05)
    said = 0
    for _ in range(100):
        optimizer.zero_grad()
        main, side = nearest_on_a_line(x)
        step = barrier.backward(side, after=main)
        if x.detach().sum() < 0:
            assert step["status"] == "descending"
            assert step["residual"] == 1
        said += step["status"] == "settled"
        optimizer.step()
    assert said > 20


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
def test_overparameterised_least_squares(rate):
    """Rates relative to the inverse of the largest curvature."""
    rows, columns = 10, 30
    rng = np.random.default_rng(rows)
    matrix = torch.tensor(rng.normal(size=(rows, columns)))
    wanted = matrix @ torch.tensor(rng.normal(size=columns))
    steepest = torch.linalg.eigvalsh(matrix @ matrix.T)[-1].item() / rows

    def losses(x):
        return (matrix @ x - wanted).square().mean() / 2, x.square().sum() / 2

    x, _ = descend(
        rng.normal(size=columns), losses, lambda p: torch.optim.SGD(p, lr=rate / steepest), 2500
    )
    best = torch.linalg.pinv(matrix) @ wanted
    assert (x - best).norm() / best.norm() < 0.02


def test_the_smallest_value_of_the_first_loss_may_be_anything():
    """(x1 + x2)^2 + (x1 + x2 - 2)^2 is at least 2, on the line x1 + x2 = 1."""

    def losses(x):
        return x.sum().square() + (x.sum() - 2).square(), (x[0] - 2).square() + x[1].square()

    x, barrier = descend((3, 3), losses, OPTIMIZERS["SGD .05"], 1000)
    assert_close(x.detach(), torch.tensor([1.5, -0.5], dtype=x.dtype), rtol=0, atol=0.01)
    assert barrier.status == "settled"


@pytest.mark.parametrize(("name", "steps"), [("SGD .2", 1000), ("SGD .01", 4000)])
def test_the_third_level_is_reached(name, steps):
    """At the rate 0.01 the third loss once ended 0.32 off: its share stopped to rise too early."""

    def losses(x):
        return (x[0] - 1).square(), (x[0] + x[1] - 3).square(), x.square().sum()

    x, _ = descend((0, 0, 3), losses, OPTIMIZERS[name], steps)
    assert_close(x.detach(), torch.tensor([1.0, 2.0, 0.0], dtype=x.dtype), rtol=0, atol=0.03)


def test_a_main_loss_of_small_curvature_is_solved_all_the_same():
    """20 x 60 with a curvature of 0.12 next to 1: once 0.12 off after 5,000 steps."""
    rng = np.random.default_rng(0)
    matrix = torch.tensor(rng.normal(size=(20, 60))) / 60**0.5
    wanted = matrix @ torch.tensor(rng.normal(size=60))
    x, barrier = descend(
        rng.normal(size=60),
        lambda x: ((matrix @ x - wanted).square().mean() / 2, x.square().sum() / 2),
        lambda p: torch.optim.SGD(p, lr=0.1),
        3000,
    )
    best = torch.linalg.pinv(matrix) @ wanted
    assert (x - best).norm() / best.norm() < 0.02
    assert barrier.status == "settled"


@pytest.mark.parametrize("lag", [-0.5, 0.0, 3.0])
def test_the_residual_does_not_depend_on_how_far_the_share_is_ahead(lag):
    """grad f = (3, 4), of which 3 are free: a residual of 0.6 from V = share (free - lag held)."""
    free, held, share = np.array([3.0, 0.0]), np.array([0.0, 4.0]), 0.1
    path = share * (free - lag * held)
    rows = np.stack([path - share * (free + held), free + held])  # the direction is V itself
    all_ = np.stack([*rows, *rows, path])
    state = BarrierState()
    state.open(["after"])
    new = {name: state.numbers[name] for name in LEARNT}
    new["levels"] = np.array([[1.0, share]])
    for step in range(3, 200):
        found, *_ = _residual(new, 1, all_ @ all_.T, step)
    assert found == pytest.approx(0.36, abs=1e-6)


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_later_losses_never_raise_the_first(levels):
    """Linear losses in random directions: what was 293 after 1,000 steps can only fall."""
    for seed in range(10):
        rows = torch.tensor(np.random.default_rng(seed).normal(size=(levels + 1, 10)))
        x = torch.zeros(10, dtype=torch.float64, requires_grad=True)
        barrier, optimizer = Barrier([x]), torch.optim.SGD([x], lr=0.1)
        before = 0.0
        for _ in range(30):
            optimizer.zero_grad()
            *first, last = rows @ x
            barrier.backward(last, after=first)
            optimizer.step()
            now = (rows[0] @ x).item()
            assert now < before
            before = now


def test_a_few_equations_at_a_time_find_the_solution_of_least_norm():
    """Batches of 2 of 10 equations agree at the solution: their noise vanishes there."""
    torch.manual_seed(0)
    matrix = torch.randn(10, 40, dtype=torch.float64)
    wanted = matrix @ torch.randn(40, dtype=torch.float64)
    best = torch.linalg.pinv(matrix) @ wanted

    def losses(x):
        rows = torch.randperm(10)[:2]
        return (matrix[rows] @ x - wanted[rows]).square().mean() / 2, x.square().sum() / 2

    x, _ = descend([0.5] * 40, losses, lambda p: torch.optim.SGD(p, lr=0.01), 2000)
    assert (x - best).norm() / best.norm() < 0.05
