"""The cheapest shifts of a cost matrix are those of an integer program, and of brute force."""

import itertools

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from setpoint import Problem, cost
from setpoint.axes import class_choice


def draw(seed, n, count, digits=3):
    """Scores in steps of 0.001, so that shifts which decide otherwise are not too near."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, count, n)
    scores = (random.normal(size=(n, count)) + 1.2 * np.eye(count)[labels]).round(digits)
    costs = random.integers(1, 10, (count, count)).astype(float)
    np.fill_diagonal(costs, 0)
    return scores, labels, costs


def by_integer_program(scores, prices):
    """The least cost of ``argmax(score - shift)``: a binary for each example and class."""
    n, count = scores.shape
    rows, limits, far, close = [], [], 2 * np.ptp(scores) + 9, 1e-5
    for i, (k, j) in itertools.product(range(n), itertools.permutations(range(count), 2)):
        row = np.zeros(n * count + count)  # t_k - t_j + far a_ik <= s_ik - s_ij - close + far
        row[[n * count + k, n * count + j, i * count + k]] = 1, -1, far
        rows.append(row)
        limits.append(scores[i, k] - scores[i, j] - close + far)
    each = np.hstack([np.kron(np.eye(n), np.ones(count)), np.zeros((n, count))])
    found = milp(
        np.append(prices.reshape(-1), np.zeros(count)),
        constraints=[LinearConstraint(np.array(rows), ub=limits), LinearConstraint(each, 1, 1)],
        integrality=np.append(np.ones(n * count), np.zeros(count)),
        bounds=Bounds(
            np.append(np.zeros(n * count), np.full(count, -far)),
            np.append(np.ones(n * count), np.full(count, far)),
        ),
    )
    assert found.success
    return found.fun


def by_brute_force(scores, prices):
    """Three classes: a point in every cell that the lines of all examples cut the plane into."""
    u, v = scores[:, 0] - scores[:, 2], scores[:, 1] - scores[:, 2]

    def between(values):
        known = np.unique(values)
        return np.concatenate([[known[0] - 1], (known[1:] + known[:-1]) / 2, [known[-1] + 1]])

    least = np.inf
    for x in between(np.concatenate([u, (v[:, None] - (v - u)).reshape(-1)])):
        y = between(np.concatenate([v, v - u + x]))
        shifted = np.stack(
            [np.tile(u - x, (len(y), 1)), v - y[:, None], np.zeros((len(y), len(u)))], axis=2
        )
        held = shifted.argmax(2)
        least = min(least, prices[np.arange(len(u)), held].sum(1).min())
    return least


@pytest.mark.parametrize(("count", "n"), [(3, 25), (4, 16), (5, 12)])
@pytest.mark.parametrize("seed", range(3))
def test_the_choice_is_that_of_an_integer_program(count, n, seed):
    scores, labels, costs = draw(seed, n, count)
    found = Problem(minimize=cost(costs)).choose(scores, labels)
    assert found.value * n == pytest.approx(by_integer_program(scores, costs[labels]), abs=1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_the_choice_is_that_of_brute_force_with_ties_and_weights(seed):
    scores, labels, costs = draw(seed, 30, 3, digits=seed % 3)
    weights = np.random.default_rng(seed).integers(0, 4, 30).astype(float)
    found = Problem(minimize=cost(costs)).choose(scores, labels, weights)
    there = weights > 0
    least = by_brute_force(scores[there], weights[there, None] * costs[labels[there]])
    assert found.value * weights.sum() == pytest.approx(least, rel=1e-12)


def test_the_highest_gain_is_found_too():
    scores, labels, costs = draw(0, 25, 3)
    found = Problem(maximize=cost(-costs)).choose(scores, labels)
    assert found.value * 25 == pytest.approx(-by_integer_program(scores, costs[labels]), abs=1e-6)


def test_a_search_that_is_cut_short_is_never_worse_than_before(monkeypatch):
    scores, labels, costs = draw(2, 3000, 6)
    goal = Problem(minimize=cost(costs))
    values = []
    for most in (0, 10**6):
        monkeypatch.setattr(class_choice, "MOST_COMPARISONS", most)
        values.append(goal.choose(scores, labels).value)
    assert values[1] <= values[0]


def test_the_shifts_decide_what_was_counted():
    scores, labels, costs = draw(1, 400, 4)
    found = Problem(minimize=cost(costs)).choose(scores, labels)
    held = (scores - np.array(found.thresholds)).argmax(1)
    assert found.value == pytest.approx(costs[labels, held].mean(), rel=1e-12)
