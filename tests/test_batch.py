"""Inputs are refused in the same words, whether they come from numpy or from torch."""

import math

import numpy as np
import pytest
import torch

from setpoint.batch import (
    check_labels,
    check_length,
    check_scores,
    check_weights,
    column_of,
    describe,
)


@pytest.fixture(params=[np.asarray, torch.tensor], ids=["numpy", "torch"])
def make(request):
    return request.param


def test_good_inputs_pass(make):
    scores = make([1.5, -2.0, 0.0])
    check_scores(scores)
    check_scores(make([3, -1, 0]))
    check_scores(make([1e38, -1e38, 1e-45]))
    for labels in ([0, 1, 1], [0.0, 1.0, 1.0], [False, True, True], [-0.0, 1.0, 0.0]):
        check_labels(make(labels), scores)
    for weights in ([0, 1, 2], [0.0, 0.5, 1e30]):
        check_weights(make(weights), scores)
    check_labels(make([[0], [1]]), make([[0.5], [1.5]]))


def test_nothing_is_no_trouble(make):
    nothing = make([])
    check_scores(nothing)
    check_labels(nothing, nothing)
    check_weights(nothing, nothing)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_are_named_with_their_row(make, bad):
    with pytest.raises(ValueError, match=rf"Scores must be finite; got {bad} in row 2\. Look at"):
        check_scores(make([0.0, 1.0, bad, bad]))
    with pytest.raises(ValueError, match=rf"got {bad} in row 1\."):  # rows, not entries
        check_scores(make([[0.0, 1.0, 2.0], [3.0, bad, 5.0]]))
    with pytest.raises(ValueError, match=rf"got {bad} in row 0\."):
        check_scores(make([[bad], [3.0]]))


@pytest.mark.parametrize(
    ("bad", "text"),
    [(2, "2"), (0.5, "0.5"), (-1, "-1"), (math.nan, "nan"), (math.inf, "inf"), (255, "255")],
)
def test_labels_are_zero_or_one(make, bad, text):
    with pytest.raises(ValueError, match=f"Labels must be 0 or 1; got {text} in row 1") as caught:
        check_labels(make([1, bad]), make([0.0, 0.0]))
    assert ("pass labels > 0" in str(caught.value)) == (bad == -1)
    with pytest.raises(ValueError, match="in row 2"):
        check_labels(make([[0, 1], [1, 1], [0, bad]]), make([[0.0, 0.0]] * 3))


@pytest.mark.parametrize("bad", [-1.0, -1e-30, math.nan, math.inf])
def test_weights_are_finite_and_not_negative(make, bad):
    with pytest.raises(ValueError, match=r"finite and at least 0; got .* in row 1\."):
        check_weights(make([1.0, bad, bad]), make([0.0, 0.0, 0.0]))


@pytest.mark.parametrize("shape", [(3,), (4, 1), (1, 4), ()])
def test_every_score_has_one_of_each(make, shape):
    scores, others = make([0.0] * 4), make(np.zeros(shape).tolist())
    for check, name in [(check_labels, "labels"), (check_weights, "weights")]:
        with pytest.raises(
            ValueError, match=rf"{name} must have the shape of the scores, \(4,\); got \("
        ):
            check(others, scores)
    with pytest.raises(ValueError, match="groups must have the shape"):
        check_length(others, scores, "groups")


def test_half_precision_and_gradients_are_no_trouble():
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        check_scores(torch.ones(3, dtype=dtype, requires_grad=True))
        with pytest.raises(ValueError, match="got nan in row 1"):
            check_scores(torch.tensor([1.0, math.nan], dtype=dtype, requires_grad=True))


# ---- groups --------------------------------------------------------------------------------------
def test_one_column_needs_no_name_and_several_do():
    assert column_of(["a", "b"], "group", {"group"}) == ["a", "b"]
    assert column_of({"sex": "fm", "site": [1, 2]}, "site", {"sex", "site"}) == [1, 2]
    with pytest.raises(
        ValueError, match=r"needs the columns sex, site; pass groups=\{name: column\}"
    ):
        column_of(["a", "b"], "site", {"sex", "site"})


def test_a_missing_column_is_named():
    with pytest.raises(ValueError, match='slices by "group"; pass groups='):
        column_of(None, "group", {"group"})
    with pytest.raises(ValueError, match='needs a group column "site"; groups has: sex, age'):
        column_of({"sex": [], "age": []}, "site", {"site"})
    with pytest.raises(ValueError, match="groups has: none"):
        column_of({}, "site", {"site"})


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((3, 97), "3 positives and 97 negatives"),
        ((1, 1200), "1 positive and 1,200 negatives"),
        ((0.5, 0), "0.5 positives and 0 negatives"),
    ],
)
def test_what_the_data_have_is_told_in_words(counts, words):
    assert describe(*counts) == words
