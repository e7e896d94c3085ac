"""Problems with known answers: where the printed algorithm stalls or settles outside its bound."""

import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy
from torch.testing import assert_close

from setpoint import Barrier
from setpoint.solvers import at_most

TWO_GROUPS, FEATURES = 2000, 8


@pytest.fixture(autouse=True)
def _float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("power", "bound", "start"),
    [(0.5, 0.2, 2.0), (0.5, 0.8, 0.05), (1, 0.5, -1.5), (2, 0.1, 2.0), (2, 0.8, 0.1)],
)
def test_example_3_9_is_solved_exactly_with_the_default_correction(power, bound, start):
    """min |w - 1|^p s.t. |w|^p <= b^p: w = b, whatever the power does to convexity."""
    weight = torch.tensor([start], requires_grad=True)
    barrier, optimizer = Barrier([weight]), torch.optim.SGD([weight], lr=0.02)
    for _ in range(1000):
        optimizer.zero_grad()
        objective = (weight - 1).abs().pow(power).sum()
        step = barrier.backward(
            objective, subject_to=at_most(weight.abs().pow(power).sum(), bound**power)
        )
        optimizer.step()
    assert_close(weight.item(), bound, rtol=0, atol=1e-6)  # exp(-0.02 * 1000) of the start
    assert_close(step["multiplier"], [((1 - bound) / bound) ** (power - 1)], rtol=1e-4, atol=0)
    assert_close(barrier.report()["noise_ratio"], [1.0])


def test_three_levels_are_solved_in_order_of_priority():
    """x1 + x2 = 1 first, then x1 = 2, then the least norm: (2, -1, 0)."""
    x = torch.tensor([0.5, 1.5, 1.0], requires_grad=True)
    barrier, optimizer = Barrier([x]), torch.optim.SGD([x], lr=0.3)
    for _ in range(2000):
        optimizer.zero_grad()
        first, second = (x[0] + x[1] - 1).square() / 2, (x[0] - 2).square() / 2
        barrier.backward(x.square().sum() / 2, after=[first, second])
        optimizer.step()
    assert_close(x.detach(), torch.tensor([2.0, -1.0, 0.0]), rtol=0, atol=0.05)


def two_groups():
    """Logistic regression: the loss of one group, while that of the other keeps its bound.

    The bound is where the sum with the multiplier 1.68 is smallest, so that is the multiplier.
    """
    torch.manual_seed(1)
    x = torch.randn(TWO_GROUPS, FEATURES)
    group = torch.arange(TWO_GROUPS) % 2
    truth = torch.nn.functional.normalize(torch.randn(2, FEATURES), dim=1)
    labels = (torch.rand(TWO_GROUPS) < torch.sigmoid(3 * (x * truth[group]).sum(1))).double()
    labels = torch.where(torch.rand(TWO_GROUPS) < 0.1, 1 - labels, labels)
    weight = torch.zeros(FEATURES, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight], max_iter=200, line_search_fn="strong_wolfe")

    def losses(rows=slice(None)):
        scores, y, g = x[rows] @ weight, labels[rows], group[rows]
        return [cross_entropy(scores[g == i], y[g == i]) for i in (0, 1)]

    def closure():
        optimizer.zero_grad()
        objective, held = losses()
        total = objective + 1.68 * held
        total.backward()
        return total

    optimizer.step(closure)
    objective, held = (loss.item() for loss in losses())
    return weight, losses, objective, held


@pytest.mark.parametrize(("size", "steps"), [(8, 4000), (32, 2000), (128, 2000)])
def test_minibatches_keep_the_bound_on_the_whole_data(size, steps):
    """As printed the bound is broken by 0.19, 0.10 and 0.04 at these batch sizes.

    The mean over the second half of the steps: with batches of 8 the weights wander, and a
    thousand of these batches know the loss itself only to 0.01 (a deviation of 0.3 each).
    """
    weight, losses, _, level = two_groups()
    torch.nn.init.zeros_(weight)
    barrier, optimizer = Barrier([weight]), torch.optim.SGD([weight], lr=0.1)
    whole = []
    for step in range(steps):
        rows = torch.randint(0, TWO_GROUPS, (size,))
        if not 0 < (rows % 2).sum() < size:
            continue
        optimizer.zero_grad()
        objective, held = losses(rows)
        barrier.backward(objective, subject_to=at_most(held, level))
        optimizer.step()
        if step >= steps / 2 and step % 10 == 0:
            with torch.no_grad():
                whole.append(losses()[1].item() - level)
    assert abs(sum(whole) / len(whole)) <= 0.01
    assert barrier.report()["noise_ratio"][0] > 1.2


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.Adam(p, lr=0.03),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    ],
    ids=["adam", "momentum"],
)
def test_adam_and_momentum_reach_the_optimum(make):
    """The inequality of a single step does not survive an optimizer's memory; the limit does."""
    weight, losses, best, level = two_groups()
    torch.nn.init.zeros_(weight)
    optimizer = make([weight])
    barrier = Barrier([weight])
    for _ in range(1500):
        optimizer.zero_grad()
        objective, held = losses()
        barrier.backward(objective, subject_to=at_most(held, level))
        optimizer.step()
    objective, held = losses()
    assert abs(objective.item() - best) <= 1e-4
    assert held.item() - level <= 1e-4
