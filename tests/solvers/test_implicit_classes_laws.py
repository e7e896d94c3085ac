"""Laws of problems of classes. Float64; algebra 1e-12, finite differences 1e-6."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from samples import draw_classes as draw
from samples import loss_and_gradient
from scipy.optimize import root
from subjects import PER_CLASS

from setpoint import Implicit, Problem, Sigmoid
from setpoint.axes.class_data import decide
from setpoint.axes.classes import ClassSoft

TWO = {
    "minimize fnr subject to fpr <= 0.05": "minimize fnr of 1 subject to fpr of 1 <= 0.05",
    "maximize precision subject to recall >= 0.9": (
        "maximize precision of 1 subject to recall of 1 >= 0.9"
    ),
    "maximize recall subject to coverage at 0.2": (
        "maximize recall of 1 subject to coverage of 1 at 0.2"
    ),
    "maximize f_score(1)": "maximize f_score(1) of 1",
    "minimize error": "minimize cost([[0, 1], [1, 0]])",
    "minimize balanced_error": "minimize macro(fnr)",
    "minimize fnr subject to tnr >= 0.95": "minimize fnr of 1 subject to recall of 0 >= 0.95",
    "maximize accuracy subject to fpr <= 0.1": "maximize top_k(1) subject to fpr of 1 <= 0.1",
    "minimize max(fpr, fnr)": "minimize highest(fnr)",
}
OPTIONS = [{"share": 0.0}, {"share": 0.4}, {"main": "cross_entropy", "steps": 10}]
many = pytest.mark.parametrize("sentence", PER_CLASS)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("plain", TWO)
def test_two_classes_equal_the_binary_problem(plain, options):
    scores, labels = draw(120, 2, seed=len(plain))
    binary = Implicit(Problem.parse(plain), **options)
    both = Implicit(Problem.parse(TWO[plain]), **options)
    loss, gradient = loss_and_gradient(binary, scores[:, 1] - scores[:, 0], labels)
    other, slopes = loss_and_gradient(both, scores, labels)
    assert torch.allclose(loss, other, rtol=0, atol=1e-12)
    assert torch.allclose(slopes[:, 1], gradient, rtol=0, atol=1e-12)
    assert torch.allclose(slopes[:, 0], -gradient, rtol=0, atol=1e-12)
    accepted = scores[:, 1] - scores[:, 0] > binary.thresholds
    assert np.array_equal(decide(scores, both.thresholds), accepted.long())


@pytest.mark.parametrize("plain", TWO)
def test_two_classes_are_chosen_and_valued_as_the_binary_problem(plain):
    scores, labels = draw(80, 2, seed=3, ties=True)
    one = Problem.parse(plain).choose(scores[:, 1] - scores[:, 0], labels)
    two = Problem.parse(TWO[plain]).choose(scores, labels)
    assert one.value == pytest.approx(two.value, abs=1e-12)
    accepted = (scores[:, 1] - scores[:, 0]).numpy() > one.thresholds[0]
    assert np.array_equal(decide(scores, two.thresholds), accepted)


@many
def test_the_gradient_is_that_of_the_soft_problem_solved_again(sentence):
    scores, labels = draw(60, 4, seed=1)
    criterion = Implicit(Problem.parse(sentence), share=0.0, widening=1.0, step=Sigmoid(width=0.3))
    _, gradient = loss_and_gradient(criterion, scores, labels)
    towards = torch.from_numpy(np.random.default_rng(5).normal(size=scores.shape))
    ahead, back = (solved_again(criterion, scores + e * towards) for e in (1e-5, -1e-5))
    assert float((gradient * towards).sum()) == pytest.approx((ahead - back) / 2e-5, rel=1e-6)


def solved_again(criterion, scores):
    """The objective where all that is held has the level it had, found by another solver."""
    soft, own = criterion.outcome.soft, criterion.outcome.found.anchors
    free = [i for i in range(scores.shape[1]) if i not in own]

    def held(shifts, data):
        now = ClassSoft(data, shifts, soft.width)
        shares = now.coverages[free] / now.coverages[free].sum()
        rates = [rate.of(now.tables) for rate in own.values()]
        return np.array([*rates, *shares[1:], shifts.sum()])

    level = held(soft.shifts, soft.data)
    moved = replace(soft.data, scores=scores.numpy())
    shifts = root(lambda t: held(t, moved) - level, soft.shifts, tol=1e-13).x
    value = criterion.problem.objective.of(ClassSoft(moved, shifts, soft.width).tables)
    return -value if criterion.problem.maximize else value


@many
def test_the_order_of_classes_changes_nothing(sentence):
    scores, labels = draw(90, 4, seed=2)
    order = torch.tensor([2, 0, 3, 1])  # the new place of each column
    names, moved = ["a", "b", "c", "d"], [""] * 4
    for i, place in enumerate(order.tolist()):
        moved[place] = names[i]
    named = sentence.replace("of 0", 'of "a"').replace("of 1 or 2", 'of "b" or "c"')
    for number, name in enumerate(names):
        named = named.replace(f"of {number}", f'of "{name}"')
    problem = Problem.parse(named)
    other = problem
    if "cost" in sentence:
        costs = np.array(problem.objective.costs)
        back = torch.argsort(order).numpy()
        other = Problem(minimize=type(problem.objective)(tuple(map(tuple, costs[back][:, back]))))
    loss, gradient = loss_and_gradient(Implicit(problem, classes=names), scores, labels)
    turned = scores[:, torch.argsort(order)]
    same, slopes = loss_and_gradient(Implicit(other, classes=moved), turned, order[labels])
    assert torch.allclose(loss, same, rtol=0, atol=1e-12)
    assert torch.allclose(slopes[:, order], gradient, rtol=0, atol=1e-12)


@many
def test_held_rates_hold(sentence):
    scores, labels = draw(100, 4, seed=7)
    problem = Problem.parse(sentence)
    criterion = Implicit(problem)
    loss_and_gradient(criterion, scores, labels)
    assert criterion.status == "held"
    assert float(criterion.thresholds.sum()) == pytest.approx(0, abs=1e-9)
    choice = problem.choose(scores, labels)
    for target in problem.subject_to:
        level = choice.rates[str(target.expression)]
        if hasattr(target, "sense"):
            assert level <= target.level if target.sense == "<=" else level >= target.level
        elif "coverage" in str(target):
            assert level == pytest.approx(target.level, abs=1e-12)  # to the example
        else:
            assert abs(level - target.level) <= 3 / 20  # K - 1 of the members of a class
