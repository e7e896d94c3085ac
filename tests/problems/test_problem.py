"""Problems as values: goals by name, what is refused, and what a problem knows of itself."""

import copy
import dataclasses
import pickle

import pytest
from hypothesis import given
from strategies import examples, problems

import setpoint as sp
from setpoint.problems import PER_GROUP
from setpoint.rates import Bound, Setpoint, error


@pytest.mark.parametrize(
    ("goal", "problem", "sentence"),
    [
        (
            sp.fnr_at_fpr(0.01),
            sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.01),
            "minimize fnr subject to fpr <= 0.01",
        ),
        (
            sp.tpr_at_fpr(0.01),
            sp.Problem(maximize=sp.tpr, subject_to=sp.fpr <= 0.01),
            "maximize tpr subject to fpr <= 0.01",
        ),
        (
            sp.precision_at_recall(0.95),
            sp.Problem(maximize=sp.precision, subject_to=sp.recall >= 0.95),
            "maximize precision subject to recall >= 0.95",
        ),
        (
            sp.recall_at_precision(0.5),
            sp.Problem(maximize=sp.recall, subject_to=sp.precision >= 0.5),
            "maximize recall subject to precision >= 0.5",
        ),
        (
            sp.precision_at_k(100),
            sp.Problem(maximize=sp.precision, subject_to=sp.alerts.at(100)),
            "maximize precision subject to alerts at 100",
        ),
        (
            sp.precision_at_k(100, of=50_000),
            sp.Problem(maximize=sp.precision, subject_to=sp.coverage.at(0.002)),
            "maximize precision subject to coverage at 0.002",
        ),
        (
            sp.roc_auc(fpr=(0.0, 0.05), points=10),
            sp.Problem(maximize=sp.tpr, subject_to=sp.fpr.over(0, 0.05), thresholds=10),
            "maximize tpr over fpr in [0, 0.05] with 10 thresholds",
        ),
        (
            sp.roc_auc(),
            sp.Problem(maximize=sp.tpr, subject_to=sp.fpr.over(0, 1)),
            "maximize tpr over fpr in [0, 1] with 10 thresholds",
        ),
        (
            sp.pr_auc(recall=(0.95, 1.0), points=5),
            sp.Problem(maximize=sp.precision, subject_to=sp.recall.over(0.95, 1), thresholds=5),
            "maximize precision over recall in [0.95, 1] with 5 thresholds",
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_goal_by_name_is_its_long_form(goal, problem, sentence):
    assert goal == problem
    assert hash(goal) == hash(problem)
    assert str(goal) == sentence


def test_the_bins_of_an_area_are_held_at_their_mid_points():
    points = sp.pr_auc(recall=(0.5, 1.0), points=5).points
    assert [str(setpoint.expression) for (setpoint,) in points] == ["recall"] * 5
    assert [setpoint.level for (setpoint,) in points] == pytest.approx(
        [0.55, 0.65, 0.75, 0.85, 0.95]
    )


def test_one_target_or_several_in_any_container():
    bound = sp.fpr <= 0.1
    expected = sp.Problem(minimize=sp.fnr, subject_to=(bound,))
    for given_as in (bound, [bound], iter([bound]), {bound}):
        assert sp.Problem(minimize=sp.fnr, subject_to=given_as) == expected
    assert sp.Problem(minimize=sp.fnr, subject_to=[]) == sp.Problem(minimize=sp.fnr)
    assert sp.Problem(minimize=sp.fnr, thresholds="shared") == sp.Problem(
        minimize=sp.fnr, thresholds=1
    )


def test_a_problem_knows_its_slices_everyone_first():
    a, b = sp.recall.on(group="a"), sp.recall.on(group="b")
    problem = sp.Problem(minimize=a, subject_to=[abs(a - b) <= 0.1, sp.fpr <= 0.1])
    assert problem.slices == ((), (("group", "a"),), (("group", "b"),))
    assert problem.rates == (a, a, b, sp.fpr)


def test_a_problem_is_frozen_and_can_be_copied_and_pickled():
    problem = sp.Problem(minimize=sp.fnr.on(group="a"), subject_to=[sp.fpr <= 0.1, error <= 0.2])
    for field in ("objective", "maximize", "subject_to", "thresholds", "anything"):
        with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
            setattr(problem, field, 1)
    for again in (copy.copy(problem), copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):
        assert again == problem
        assert hash(again) == hash(problem)


@examples(200)
@given(problems())
def test_what_every_problem_knows_of_itself(problem):
    assert problem.slices[0] == ()
    assert all(rate.where in problem.slices for rate in problem.rates)
    count = 1 if problem.swept is None else problem.thresholds
    assert len(problem.points) == (1 if count == PER_GROUP else count)
    for targets in problem.points:
        assert all(isinstance(target, (Bound, Setpoint)) for target in targets)
    if problem.swept is not None:
        low, high = problem.swept.low, problem.swept.high
        levels = [setpoint.level for (setpoint,) in problem.points]
        assert levels == sorted(levels)
        assert all(low <= level <= high for level in levels)


swept, held = sp.recall.over(0.9, 1), sp.fpr.at(0.1)
REFUSED = {
    "no objective": (lambda: sp.Problem(), TypeError, "give minimize= or maximize="),
    "two objectives": (lambda: sp.Problem(minimize=sp.fnr, maximize=sp.fpr), TypeError, "not both"),
    "a target as objective": (
        lambda: sp.Problem(minimize=sp.fpr <= 0.1),
        TypeError,
        "`fpr <= 0.1` is a target; it belongs into subject_to, not minimize",
    ),
    "a sentence as objective": (
        lambda: sp.Problem(maximize="recall"),
        TypeError,
        r"got 'recall'. For a sentence use Problem.parse\('maximize recall …'\)",
    ),
    "a number as objective": (
        lambda: sp.Problem(minimize=0.5),
        TypeError,
        "takes a rate .* got 0.5",
    ),
    "an objective of numbers": (
        lambda: sp.Problem(minimize=sp.maximum(1, 2)),
        ValueError,
        r"`max\(1, 2\)` contains no rate: nothing to minimize",
    ),
    "an objective that cancels": (
        lambda: sp.Problem(minimize=sp.fpr - sp.fpr),
        ValueError,
        "`0` contains no rate",
    ),
    "a target that cancels": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=sp.fpr - sp.fpr <= 0.1),
        ValueError,
        "`0 <= 0.1` contains no rate: nothing to hold",
    ),
    "two equals signs": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=sp.fpr == 0.01),
        TypeError,
        r"to hold a rate at a value write fpr.at\(0.01\)",
    ),
    "a sentence as target": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to="fpr <= 0.1"),
        TypeError,
        r"without quotes, or Problem.parse\('minimize … subject to fpr <= 0.1'\)",
    ),
    "a rate as target": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=sp.fpr),
        TypeError,
        "got fpr. Write a bound",
    ),
    "None as target": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=None),
        TypeError,
        "got None. Write a bound",
    ),
    "a chain": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=0.1 <= sp.fpr <= 0.2),
        TypeError,
        "List goals",
    ),
    "two setpoints": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=[held, sp.fnr.at(0.2)]),
        ValueError,
        "`fpr at 0.1` already fixes the threshold, so nothing is left to decide for `fnr at 0.2`",
    ),
    "one setpoint twice": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=[held, held]),
        ValueError,
        "already fixes",
    ),
    "a setpoint and a bound": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=[error <= 0.1, held]),
        ValueError,
        r"nothing is left to decide for `error <= 0.1`. Use bounds",
    ),
    "a range and a bound": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=[error <= 0.1, swept]),
        ValueError,
        "already fixes the threshold",
    ),
    "several thresholds": (
        lambda: sp.Problem(minimize=sp.fnr, thresholds=3),
        ValueError,
        r"3 thresholds need a range to spread over: subject_to=recall.over\(0.95, 1\)",
    ),
    "no thresholds": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=swept, thresholds=0),
        ValueError,
        "at least 1; got 0",
    ),
    "half a threshold": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=swept, thresholds=1.5),
        ValueError,
        "whole number of at least 1; got 1.5",
    ),
    "a true threshold": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=swept, thresholds=True),
        ValueError,
        "got True",
    ),
    "thresholds by another name": (
        lambda: sp.Problem(minimize=sp.fnr, thresholds="each"),
        ValueError,
        '"shared" or "per group"; got \'each\'',
    ),
    "a range per group": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=swept, thresholds="per group"),
        ValueError,
        "a number of bins; got 'per group'",
    ),
    "a percentage": (lambda: sp.fnr_at_fpr(1.5), ValueError, "For 1.5 % write 0.015"),
    "no k": (
        lambda: sp.precision_at_k(0),
        ValueError,
        "k must be a whole number of at least 1; got 0",
    ),
    "half a k": (lambda: sp.precision_at_k(1.5), ValueError, "k must be a whole number"),
    "k of less": (
        lambda: sp.precision_at_k(10, of=10),
        ValueError,
        "less than the population .* got 10 of 10",
    ),
    "k of half": (lambda: sp.precision_at_k(10, of=10.5), ValueError, "of must be a whole number"),
    "recall upside down": (lambda: sp.pr_auc(recall=(1, 0.5)), ValueError, "from low to high"),
    "fpr in percent": (lambda: sp.roc_auc(fpr=(0, 5)), ValueError, "For 5 % write 0.05"),
}


@pytest.mark.parametrize("slip", REFUSED)
def test_a_slip_is_answered_with_advice(slip):
    do, error, advice = REFUSED[slip]
    with pytest.raises(error, match=advice):
        do()
