"""Iterates worth keeping: the best feasible one, and the mixture that a program shrinks."""

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import nn

from setpoint import Problem, error, fnr, fnr_at_fpr, fpr, macro, precision, recall
from setpoint.solvers import Iterates

SCORES = torch.tensor([4.0, 3.0, 2.0, 1.0, 0.0, -1.0, -2.0, -3.0], dtype=torch.float64)
LABELS = torch.tensor([1, 0, 1, 1, 0, 1, 0, 0])


def filled(problem, thresholds, **options):
    model, iterates = nn.Linear(1, 1, bias=False), Iterates(problem, **options)
    for i, threshold in enumerate(thresholds):
        model.weight.data.fill_(float(i))
        iterates.add(model, SCORES, LABELS, threshold, label=i)
    return model, iterates


def test_the_best_iterate_is_feasible_and_has_the_best_objective():
    model, iterates = filled(fnr_at_fpr(0.25), [3.5, 1.5, 0.5, -1.5, -9.0])
    assert iterates.best.label == 2  # one of four false alarms, three of four found
    assert iterates.best.objective == 0.25
    assert iterates.best.excess == (0.0,)
    assert iterates.load(model).label == 2
    assert model.weight.item() == 2


def test_without_a_feasible_iterate_the_least_broken_one_is_best():
    _, iterates = filled(fnr_at_fpr(0.1), [-9.0, 0.5, -1.5])
    assert iterates.best.label == 1


def test_the_mixture_is_small_feasible_and_better_than_any_single_one():
    problem = Problem(minimize=fnr, subject_to=fpr <= 0.4)
    _, iterates = filled(problem, [3.5, 1.5, 0.5, -1.5, -9.0])
    mixture = iterates.mixture()
    assert len(mixture) <= 2
    assert sum(p for p, _ in mixture) == pytest.approx(1)
    assert sum(p * each.excess[0] for p, each in mixture) <= 1e-9
    mean = sum(p * each.objective for p, each in mixture)
    costs = [each.objective for each in iterates.kept]
    rows = [[each.excess[0] for each in iterates.kept]]
    best = linprog(costs, A_ub=rows, b_ub=[0], A_eq=[[1] * 5], b_eq=[1]).fun
    assert mean == pytest.approx(best)
    assert mean < iterates.best.objective


def test_many_random_iterates_are_shrunk_to_one_more_than_targets():
    rng = np.random.default_rng(0)
    problem = Problem(minimize=error, subject_to=[fpr <= 0.3, recall >= 0.6])
    model, iterates = nn.Linear(1, 1), Iterates(problem)
    for _ in range(40):
        scores = torch.tensor(rng.normal(size=40)) + 1.0 * (torch.arange(40) % 2)
        iterates.add(model, scores, torch.arange(40) % 2, rng.normal())
    mixture = iterates.mixture()
    assert 1 <= len(mixture) <= 3
    for i in (0, 1):
        assert sum(p * each.excess[i] for p, each in mixture) <= 1e-9


def test_a_setpoint_is_held_from_both_sides():
    problem = Problem(minimize=fnr, subject_to=fpr.at(0.4))
    _, iterates = filled(problem, [3.5, 0.5, -1.5, -9.0])
    mixture = iterates.mixture()
    assert sum(p * each.excess[0] for p, each in mixture) == pytest.approx(0, abs=1e-9)
    assert iterates.best.excess == (pytest.approx(0.1),)


def test_targets_out_of_reach_are_broken_least():
    problem = Problem(minimize=fnr, subject_to=fpr <= 0.1)
    _, iterates = filled(problem, [0.5, -1.5, -9.0])
    assert [each.label for _, each in iterates.mixture()] == [0]


def test_chance_only_with_a_generator():
    problem = Problem(minimize=fnr, subject_to=fpr <= 0.4)
    model, iterates = filled(problem, [3.5, 1.5, 0.5, -1.5, -9.0])
    drawn = {
        iterates.load(model, generator=torch.Generator().manual_seed(i)).label for i in range(30)
    }
    assert drawn == {each.label for _, each in iterates.mixture()}
    assert {iterates.load(model).label for _ in range(5)} == {iterates.best.label}


def test_what_is_needed_survives_when_there_are_too_many():
    problem = Problem(minimize=fnr, subject_to=fpr <= 0.4)
    _, few = filled(problem, [0.5, -1.5, *[9.0] * 30], most=4)
    assert len(few.kept) == 4
    assert few.best.label == 0
    assert {each.label for _, each in few.mixture()} == {0, 1}


def test_undefined_rates_are_the_worst_there_is():
    _, iterates = filled(Problem(maximize=precision, subject_to=recall >= 0.2), [9.0, 1.5])
    assert iterates.kept[0].objective == -float("inf")
    assert iterates.best.label == 1
    assert [each.label for _, each in iterates.mixture()] == [1]


def test_bad_use_is_refused():
    iterates = Iterates(fnr_at_fpr(0.1))
    with pytest.raises(ValueError, match="No iterate was kept yet"):
        _ = iterates.best
    with pytest.raises(ValueError, match=r"1 threshold\(s\) of one output; got 2 of 1"):
        iterates.add(nn.Linear(1, 1), SCORES, LABELS, [0.0, 1.0])


@pytest.mark.parametrize(
    ("problem", "error_type", "words"),
    [
        (3, TypeError, "Iterates takes a Problem.*got 3"),
        (macro(recall), TypeError, "Iterates takes a Problem"),
        (Problem(maximize=macro(recall)), ValueError, "Iterates.*about several"),
        (
            Problem(minimize=fnr, subject_to=fpr <= 0.1, thresholds="per group"),
            NotImplementedError,
            "Iterates cuts everyone at the same threshold.*Implicit trains those",
        ),
    ],
    ids=str,
)
def test_goals_that_iterates_cannot_judge_are_refused_at_once(problem, error_type, words):
    with pytest.raises(error_type, match=words):
        Iterates(problem)
