"""The search for shifts from inside: what it reads, how wide it looks, where it stops."""

import numpy as np
import pytest
import torch
from samples import draw_classes as draw
from samples import loss_and_gradient
from scipy.optimize import linear_sum_assignment, linprog

from setpoint import Implicit, Problem, Sigmoid
from setpoint.axes.class_data import decide, read_data
from setpoint.axes.confusion import hard_tables
from setpoint.axes.coordinate_descent import ClassCuts
from setpoint.axes.transport import correct_counts, quotas_of, shifts_for
from setpoint.batch import ScoredExamples

READ = [
    "minimize cost([[0, 1, 2, 3], [4, 0, 1, 2], [1, 2, 0, 5], [1, 1, 1, 0]])",
    "maximize top_k(2)",
    "maximize top_k(3) of 0 or 3",
    "maximize recall of 1 or 2",
    "minimize fpr of 3",
    "maximize precision of 0 or 1 + recall of 2 on side=1",
    "maximize macro(f_score(1))",
    "maximize lowest(recall)",
    "minimize error subject to recall of 0 >= 0.1",
]


@pytest.mark.parametrize("sentence", READ)
@pytest.mark.filterwarnings("ignore:invalid value")  # 0/0 where a class gets nobody
def test_counts_along_a_shift_are_those_of_every_place_of_it(sentence):
    problem = Problem.parse(sentence)
    scores, labels = draw(30, 4, seed=3)
    rng = np.random.default_rng(1)
    weights, side = rng.integers(1, 4, 30), {"side": np.arange(30) % 2}
    data = read_data(problem, ScoredExamples(scores, labels, weights, side))
    shifts, everyone = rng.normal(size=4), np.arange(30)
    held = decide(data.scores, shifts)
    for column in range(4):
        among = np.arange(4)
        cuts = ClassCuts.at(data, shifts, column, among=among, rows=everyone, held=held)
        along = np.broadcast_to(problem.objective.of(cuts.tables()), (1, 1, 31))[0, 0]
        for cut, place in enumerate(cuts.path.places):
            there = shifts.copy()
            there[column] = place
            tables = hard_tables(data, data.scores - there)
            value = problem.objective.of(tables)
            assert along[cut] == pytest.approx(value, abs=1e-12, nan_ok=True)
            alone = problem.objective.of(cuts.tables_at(np.full((1, 1), cut)))
            assert np.max(alone) == pytest.approx(value, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_the_softmax_is_as_wide_as_a_share_of_the_spread_of_margins(classes):
    scores, labels = draw(400, classes, seed=2)
    scores = scores * torch.linspace(1, 3, classes)  # the margins of some classes spread more
    criterion = Implicit(
        Problem.parse("maximize macro(recall)"), share=0.0, step=Sigmoid(width=0.1)
    )
    loss_and_gradient(criterion, scores, labels)
    shifted = scores.numpy() - criterion.outcome.soft.shifts
    margins = []
    for k in range(classes):
        others = np.delete(shifted, k, axis=1).max(1)
        margins.append(np.std(shifted[:, k] - others))
    # outliers count less in ours, by a few per cent
    assert criterion.outcome.soft.width == pytest.approx(0.1 * np.mean(margins), rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_reported_shifts_leave_every_example_as_much_room_as_there_is(seed):
    scores = draw(25, 4, seed=seed)[0].numpy()
    held = decide(scores, np.random.default_rng(seed).normal(size=4) / 3)
    middle, edge = shifts_for(scores, held)
    rows = np.arange(25)

    def room(shifts):
        shifted = scores - shifts
        own = shifted[rows, held].copy()
        shifted[rows, held] = -np.inf
        return (own - shifted.max(1)).min()

    limits, right = [], []  # t_held - t_j + room <= s_held - s_j
    for i in rows:
        for j in range(4):
            if j != held[i]:
                line = np.zeros(5)
                line[[held[i], j, 4]] = 1, -1, 1
                limits.append(line)
                right.append(scores[i, held[i]] - scores[i, j])
    free = [(None, None)] * 4 + [(0, None)]
    best = linprog(-np.eye(5)[4], limits, right, np.ones((1, 5)) - np.eye(5)[4:], [0], free)
    assert room(middle) == pytest.approx(-best.fun, abs=1e-9)
    assert room(edge) == pytest.approx(0, abs=1e-9)  # in training some example is between classes
    assert abs(middle.sum()) < 1e-12
    assert abs(edge.sum()) < 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_moves_along_shortest_paths_reach_the_best_plan_from_far_away(seed):
    rng = np.random.default_rng(seed)
    scores, quotas = rng.normal(size=(80, 6)), rng.multinomial(80, [0.02] * 5 + [0.9])
    held = correct_counts(scores, np.zeros(6), quotas.astype(float), np.ones(80))
    assert np.array_equal(np.bincount(held, minlength=6), quotas)
    assert not np.array_equal(np.bincount(scores.argmax(1), minlength=6), quotas)
    seats = np.repeat(np.arange(6), quotas)
    rows, columns = linear_sum_assignment(-scores[:, seats])
    best = scores[rows, seats[columns]].sum()
    assert scores[np.arange(80), held].sum() == pytest.approx(best, abs=1e-9)


def test_quotas_are_whole_numbers_and_half_is_rounded_down():
    ones = np.ones(10)
    assert quotas_of({0: 2.5}, np.array([1.0, 4.0, 5.0]), ones).tolist()[0] == 2
    assert quotas_of({0: 2.6}, np.array([1.0, 4.0, 5.0]), ones).tolist()[0] == 3
    thirds = quotas_of({0: 10 / 3, 1: 10 / 3, 2: 10 / 3}, np.array([5.0, 5.0, 0.0]), ones)
    assert sorted(thirds.tolist()) == [3, 3, 4]
    free = quotas_of({1: 4.0}, np.array([7.0, 2.0, 1.0]), ones)
    assert free.tolist() == [5, 4, 1]  # the rest by how often the others occur, 5.25 and 0.75
    assert quotas_of({0: 99.0}, np.array([5.0, 5.0]), ones).tolist() == [10, 0]
