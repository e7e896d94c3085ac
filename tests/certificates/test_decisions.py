import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from setpoint.certificates.decisions import SCORE_PRECISIONS, below, exceeds, rounded
from setpoint.certificates.sample import scores_and_precision

TORCH = {name: getattr(torch, name) for name in SCORE_PRECISIONS}
FLOATS = st.floats(-60000, 60000, allow_nan=False, width=32)


@pytest.mark.parametrize("name", SCORE_PRECISIONS)
@examples(100)
@given(value=FLOATS)
def test_nothing_lies_between_a_score_and_the_number_below(name, value):
    score = torch.tensor(value, dtype=TORCH[name])
    under = torch.tensor(below(float(score), name), dtype=torch.float64)
    assert float(under) == float(under.to(TORCH[name]))  # it is a number of that precision
    if name == "bfloat16":  # torch has no nextafter on bfloat16 of every release
        bits = score.view(torch.int16).item()
        step = torch.tensor(bits + (-1 if value > 0 else 1), dtype=torch.int16)
        expected = step.view(torch.bfloat16).double()
    else:
        expected = torch.nextafter(score, torch.tensor(-float("inf"), dtype=TORCH[name])).double()
    smallest = torch.finfo(TORCH[name]).tiny
    assert float(under) == (float(expected) if score else -smallest)  # zero: no subnormal number


@examples(100)
@given(st.lists(FLOATS, min_size=1, max_size=20))
def test_bfloat16_is_rounded_as_torch_does(values):
    array = np.array(values, np.float32)
    np.testing.assert_array_equal(
        rounded(array, "bfloat16"), torch.from_numpy(array).bfloat16().float().numpy()
    )


@pytest.mark.parametrize("name", SCORE_PRECISIONS)
def test_numpy_and_torch_decide_alike(name):
    scores = np.random.default_rng(0).normal(size=1000)
    threshold = float(torch.tensor(0.3).to(TORCH[name]))
    ours = exceeds(scores, threshold, name)
    theirs = exceeds(torch.from_numpy(scores), threshold, name)
    assert isinstance(theirs, torch.Tensor)
    np.testing.assert_array_equal(ours, theirs.numpy())
    if name != "float64":  # rounding decides
        close = np.array([threshold * (1 + 1e-9)])
        assert not exceeds(close, threshold, name)[0]


@pytest.mark.parametrize("name", SCORE_PRECISIONS)
def test_the_precision_of_the_scores_is_kept(name):
    array, dtype = scores_and_precision(torch.tensor([0.1, 0.2], dtype=TORCH[name]))
    assert dtype == name
    assert array.tolist() == torch.tensor([0.1, 0.2], dtype=TORCH[name]).double().tolist()


def test_whole_numbers_and_lists_are_float64():
    assert scores_and_precision([1, 2])[1] == "float64"
    assert scores_and_precision(np.array([1, 2]))[1] == "float64"
    assert scores_and_precision(np.array([[1.0], [2.0]], np.float32))[0].shape == (2,)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (["a"], "must be numbers"),
        ([], "no scores"),
        (np.ones((2, 2)), "outputs are named: outputs="),
        ([1.0, float("nan")], "got nan in row 1"),
        ([1.0, float("inf")], "got inf in row 1"),
    ],
)
def test_bad_scores_are_named(scores, message):
    with pytest.raises((TypeError, ValueError), match=message):
        scores_and_precision(scores)


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_scores_to_decide_on_must_be_finite(make):
    with pytest.raises(ValueError, match="got nan in row 1"):
        exceeds(make([0.0, float("nan")]), 0.0, "float32")


@pytest.mark.parametrize("name", SCORE_PRECISIONS)
@pytest.mark.parametrize("value", [70_000.0, -70_000.0, 3.4028235e38, 1e300, -1e300])
def test_finite_scores_beyond_a_precision_are_decided_alike_by_numpy_and_torch(name, value):
    """Half precision ends at 65,504: what is above is infinite there, and above every threshold."""
    for scores in (np.array([value, 0.0]), torch.tensor([value, 0.0], dtype=torch.float64)):
        assert exceeds(scores, 1.5, name).tolist() == [value > 0, False]
        with pytest.raises(ValueError, match="got inf in row 1"):
            exceeds(_last(scores), 1.5, name)


def _last(scores):
    """The same with an infinite score at the end."""
    changed = scores.copy() if isinstance(scores, np.ndarray) else scores.clone()
    changed[1] = float("inf")
    return changed


def test_no_scores_are_told_in_words_that_fit_every_use():
    with pytest.raises(ValueError, match=r"^There are no scores: pass those of at least one"):
        scores_and_precision([])
