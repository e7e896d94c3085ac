"""What evaluation refuses, and in which words: what is wrong, with which value, what to do."""

import math

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.rates import CATALOGUE, error

S, Y = [4.0, 3.0, 2.0, 1.0], [1, 0, 1, 0]
FREE = sp.Problem(maximize=sp.f_score(1))
BY_GROUP = sp.Problem(minimize=sp.fnr.on(group="a"), subject_to=sp.fpr.on(group="b") <= 0.5)
TWO_COLUMNS = sp.Problem(minimize=sp.fnr.on(sex="f"), subject_to=sp.fpr.on(site=1) <= 0.5)
PER_GROUP = sp.Problem(minimize=error, thresholds="per group")

REFUSED = {
    "nobody": (
        lambda: FREE.evaluate([], []),
        ValueError,
        "no scores to evaluate: pass at least one",
    ),
    "a nan": (lambda: FREE.evaluate([1, math.nan], [0, 1]), ValueError, "finite; got nan in row 1"),
    "an infinity": (lambda: FREE.evaluate([-math.inf, 1], [0, 1]), ValueError, "got -inf in row 0"),
    "a tensor with a nan": (
        lambda: FREE.evaluate(torch.tensor([1.0, 2.0, math.nan]), torch.tensor([0, 1, 1])),
        ValueError,
        "got nan in row 2. Look at the model's output",
    ),
    "labels of -1": (
        lambda: FREE.evaluate(S, [1, -1, 1, 1]),
        ValueError,
        "got -1 in row 1. If -1 marks negatives",
    ),
    "labels of three kinds": (
        lambda: FREE.evaluate(S, [0, 1, 2, 1]),
        ValueError,
        "0 or 1; got 2 in row 2",
    ),
    "soft labels": (lambda: FREE.evaluate(S, [0, 1, 0.3, 1]), ValueError, "got 0.3 in row 2"),
    "labels in words": (
        lambda: FREE.evaluate(S, list("spam")),
        TypeError,
        "labels must be 0 or 1; got .*Say which is the positive one",
    ),
    "scores in words": (
        lambda: FREE.evaluate(["a"], [1]),
        TypeError,
        r"scores must be numbers; got \['a'\]",
    ),
    "no scores at all": (lambda: FREE.evaluate(None, Y), (TypeError, ValueError), "scores"),
    "ragged scores": (lambda: FREE.evaluate([[1], [1, 2]], Y), TypeError, "scores must be numbers"),
    "fewer labels": (
        lambda: FREE.evaluate(S, [1, 0, 1]),
        ValueError,
        r"scores, \(4,\); got \(3,\)",
    ),
    "fewer weights": (
        lambda: FREE.evaluate(S, Y, weights=[1]),
        ValueError,
        "weights must have the shape",
    ),
    "negative weights": (
        lambda: FREE.evaluate(S, Y, weights=[1, -2, 1, 1]),
        ValueError,
        "got -2.0 in row 1",
    ),
    "two outputs": (
        lambda: FREE.evaluate(np.zeros((4, 2)), np.zeros((4, 2))),
        ValueError,
        r"got the shape \(4, 2\). Of predict_proba take .*scores\[:, 1\].* named: outputs=",
    ),
    "a row": (lambda: FREE.evaluate(np.zeros((1, 4)), Y), ValueError, r"got the shape \(1, 4\)"),
    "a number": (lambda: FREE.evaluate(1.0, 1), ValueError, r"got the shape \(\)"),
    "no groups": (lambda: BY_GROUP.evaluate(S, Y), ValueError, 'slices by "group"; pass groups='),
    "an unknown group": (
        lambda: BY_GROUP.evaluate(S, Y, groups=list("accc")),
        ValueError,
        "No example has group = 'b'; the column holds 'a', 'c'",
    ),
    "numbers for names": (
        lambda: BY_GROUP.evaluate(S, Y, groups=[1, 2, 1, 2]),
        ValueError,
        "No example has group = 'a'; the column holds 1, 2",
    ),
    "groups of all kinds": (
        lambda: BY_GROUP.evaluate(S, Y, groups=np.array(["a", None, 3, "x"], dtype=object)),
        ValueError,
        "the column holds 'a', None, 3, 'x'",
    ),
    "many groups": (
        lambda: BY_GROUP.evaluate(range(9), [0, 1, 1, 1, 1, 1, 1, 1, 1], groups=list("acdefghij")),
        ValueError,
        "holds 'a', 'c', 'd', 'e', 'f'\\.",
    ),
    "fewer groups": (
        lambda: BY_GROUP.evaluate(S, Y, groups=["a", "b"]),
        ValueError,
        "groups must have",
    ),
    "groups without names": (
        lambda: TWO_COLUMNS.evaluate(S, Y, groups=list("fmfm")),
        ValueError,
        r"needs the columns sex, site; pass groups=\{name: column\}",
    ),
    "a column too few": (
        lambda: TWO_COLUMNS.evaluate(S, Y, groups={"sex": list("fmfm")}),
        ValueError,
        'needs a group column "site"; groups has: sex',
    ),
    "two thresholds for one": (
        lambda: FREE.evaluate(S, Y, [1, 2]),
        ValueError,
        r"takes 1 threshold, none of them NaN; got \[1, 2\]",
    ),
    "one threshold for ten": (
        lambda: sp.roc_auc().evaluate(S, Y, 1.0),
        ValueError,
        "takes 10 thresholds",
    ),
    "thresholds in a table": (
        lambda: FREE.evaluate(S, Y, [[1.0]]),
        ValueError,
        "takes 1 threshold",
    ),
    "a nan threshold": (
        lambda: FREE.evaluate(S, Y, math.nan),
        ValueError,
        "none of them NaN; got nan",
    ),
    "a threshold in words": (
        lambda: FREE.evaluate(S, Y, "high"),
        TypeError,
        "thresholds must be numbers",
    ),
    "one threshold for groups": (
        lambda: PER_GROUP.evaluate(S, Y, 0.5, groups=list("abab")),
        TypeError,
        r"one threshold per group: pass \{group: threshold\}",
    ),
    "a group without threshold": (
        lambda: PER_GROUP.evaluate(S, Y, {"a": 1}, groups=list("abab")),
        ValueError,
        "No threshold for group 'b'; add it",
    ),
    "a nan for a group": (
        lambda: PER_GROUP.evaluate(S, Y, {"a": 1, "b": math.nan}, groups=list("abab")),
        ValueError,
        "none of them NaN",
    ),
    "thresholds but no groups": (
        lambda: PER_GROUP.evaluate(S, Y, {"a": 1}),
        ValueError,
        'slices by "group"; pass groups=',
    ),
    "groups of another length": (
        lambda: PER_GROUP.evaluate(S, Y, {"a": 1}, groups=["a"]),
        ValueError,
        "groups must have the shape",
    ),
    "choosing per group": (
        lambda: PER_GROUP.choose(S, Y),
        ValueError,
        'looks at slices by "group"; pass groups=',
    ),
}


@pytest.mark.parametrize("slip", REFUSED)
def test_a_slip_is_answered_with_advice(slip):
    do, error, advice = REFUSED[slip]
    with pytest.raises(error, match=advice):
        do()


# ---- what cannot be done -------------------------------------------------------------------------
INFEASIBLE = {
    "a precision nobody reaches": (
        lambda: sp.recall_at_precision(0.9).evaluate([2.0, 1.0], [0, 1]),
        "No threshold reaches `precision >= 0.9`: for precision the nearest gives 0.5. "
        "The data have 1 positive and 1 negative. Loosen the target, or pass more data.",
    ),
    "the bound that breaks is named": (
        lambda: sp.Problem(
            maximize=sp.recall, subject_to=[sp.fpr <= 0.5, sp.precision >= 0.9]
        ).choose(S, [0, 1, 0, 1]),
        "reaches `fpr <= 0.5 and precision >= 0.9`: for precision the nearest gives 0.5.",
    ),
    "bounds that exclude each other": (
        lambda: sp.Problem(
            minimize=error, subject_to=[sp.coverage <= 0.2, sp.recall >= 0.9]
        ).evaluate(S, Y),
        "No threshold reaches `coverage <= 0.2 and recall >= 0.9`",
    ),
    "no negatives": (
        lambda: sp.fnr_at_fpr(0.01).evaluate([2.0, 1.0], [1, 1]),
        "for fpr it is 0/0. The data have 2 positives and 0 negatives.",
    ),
    "no positives": (
        lambda: sp.precision_at_recall(0.9).evaluate([2.0, 1.0], [0, 0]),
        "for recall it is 0/0. The data have 0 positives and 2 negatives.",
    ),
    "a setpoint without negatives": (
        lambda: sp.Problem(minimize=sp.fnr, subject_to=sp.fpr.at(0.1)).evaluate([2.0, 1.0], [1, 1]),
        "for fpr it is 0/0.",
    ),
    "an empty class in a slice": (
        lambda: BY_GROUP.evaluate(S, [1, 1, 1, 0], groups=list("abba")),
        'for fpr on group="b" it is 0/0.',
    ),
    "everybody absent": (
        lambda: sp.fnr_at_fpr(0.01).evaluate(S, Y, weights=[0, 0, 0, 0]),
        "The data have 0 positives and 0 negatives.",
    ),
}


@pytest.mark.parametrize("case", INFEASIBLE)
def test_what_cannot_be_reached_is_said_with_the_nearest_value(case):
    do, words = INFEASIBLE[case]
    with pytest.raises(sp.Infeasible) as caught:
        do()
    assert words in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("problem", "labels"),
    [
        (sp.roc_auc(), [1, 1, 1, 1]),
        (sp.roc_auc(fpr=(0, 0.1)), [0, 0, 0, 0]),
        (sp.pr_auc(), [0, 0, 0, 0]),
        (sp.Problem(minimize=sp.fpr), [1, 1, 1, 1]),
        (sp.Problem(maximize=sp.recall), [0, 0, 0, 0]),
        (sp.Problem(maximize=CATALOGUE["lift"]), [0, 0, 0, 0]),
        (sp.Problem(maximize=sp.tpr.on(g=1), subject_to=sp.fpr <= 0.5), [0, 0, 1, 1]),
    ],
    ids=str,
)
def test_an_objective_that_the_data_leave_undefined_is_refused(problem, labels):
    with pytest.raises(ValueError, match=r"is 0/0 here: .* The data have .* pass data with"):
        problem.evaluate(S, labels, groups=[1, 1, 2, 2])


def test_one_class_is_enough_where_only_one_is_counted():
    assert (
        sp.Problem(maximize=sp.recall, subject_to=sp.coverage <= 0.5).evaluate(S, [1, 1, 1, 1])
        == 0.5
    )
    assert sp.Problem(minimize=error).evaluate(S, [0, 0, 0, 0]) == 0
    assert sp.precision_at_recall(0.5).evaluate(S, [1, 1, 1, 1]) == 1
    assert sp.Problem(maximize=sp.recall).evaluate([7.0], [1]) == 1
    assert sp.Problem(minimize=sp.fpr).choose([7.0], [0]).thresholds == (7.0,)


def test_zero_over_zero_at_some_thresholds_is_the_worst_value_there():
    nobody, everybody = math.inf, -math.inf
    assert sp.Problem(maximize=sp.precision).evaluate(S, Y, nobody) == 0
    assert sp.Problem(minimize=1 - sp.precision).objective.is_share is False
    assert sp.Problem(maximize=sp.npv).evaluate(S, Y, everybody) == 0
    assert sp.Problem(minimize=sp.precision).evaluate(S, Y, nobody) == 1
    area = sp.pr_auc(points=2)
    assert area.evaluate(S, Y, [nobody, everybody]) == 0.25
    with pytest.raises(ValueError, match="0/0"):  # of a difference nobody knows the worst
        sp.Problem(maximize=sp.precision - sp.fpr).evaluate(S, Y, nobody)
    with pytest.raises(ValueError, match="0/0"):  # no positives: no precision of any worth
        sp.Problem(maximize=sp.recall).evaluate(S, [0, 0, 0, 0], nobody)


def test_weights_of_zero_do_not_hide_bad_scores():
    with pytest.raises(ValueError, match="row 0"):
        FREE.evaluate([math.nan, 1.0], [0, 1], weights=[0, 1])


def test_constant_scores_are_all_or_none():
    found = sp.Problem(minimize=sp.fnr, subject_to=sp.fpr <= 0.5).choose([1.0] * 4, Y)
    assert found.thresholds == (1.0,)
    assert found.value == 1
    assert sp.Problem(maximize=sp.f_score(1)).choose([1.0] * 4, Y).thresholds == (-math.inf,)
    assert sp.roc_auc().evaluate([1.0] * 4, Y) == 0.5
