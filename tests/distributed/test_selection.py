"""A score of a given rank, by histograms of bits: the one that sorting finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint import certify, coverage, fnr, fpr, precision, recall, tnr
from setpoint.distributed import select
from setpoint.train.streaming_certificate import certified_threshold


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from(["normal", "ties", "wide", "signs", "near"]),
)
def test_it_is_the_score_that_sorting_finds(seed, dtype, kind):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=rng.integers(1, 300)).astype(dtype)
    if kind == "ties":
        scores = scores.round(1)
    elif kind == "wide":
        scores = (scores * 10.0 ** rng.integers(-35, 35, len(scores))).astype(dtype)
    elif kind == "signs":
        scores = np.sign(scores) * dtype(0.0)  # -0.0 and 0.0 are one score
    elif kind == "near":  # all in one bin until the last bits
        scores = (1 + np.finfo(dtype).eps * rng.integers(0, 9, len(scores))).astype(dtype)
    falling, pieces = np.sort(scores)[::-1], np.array_split(scores, 3)
    for rank in {0, len(scores) // 2, len(scores) - 1}:
        found = select(lambda: pieces, lambda n, rank=rank: rank)
        value = falling[rank]
        assert found == (value, len(scores), (scores > value).sum(), (scores >= value).sum())


def test_nothing_to_find_and_what_is_no_score():
    assert select(lambda: [], lambda n: 0) == 0
    assert select(lambda: [np.ones(3)], lambda n: None) == 3
    assert select(lambda: [np.ones(3)], lambda n: 3) == 3
    with pytest.raises(ValueError, match="finite; 2 of them"):
        select(lambda: [np.array([1.0, np.nan, np.inf])], lambda n: 0)
    with pytest.raises(TypeError, match="float16"):
        select(lambda: [np.ones(3, np.float16)], lambda n: 0)
    with pytest.raises(TypeError, match="got both"):
        select(lambda: [np.ones(3), np.ones(3, np.float32)], lambda n: 0)


BOUNDS = [fpr <= 0.01, tnr >= 0.9, recall >= 0.95, fnr <= 0.1, coverage <= 0.05, coverage >= 0.2]


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_the_threshold_is_that_of_certify(bound, ties):
    rng = np.random.default_rng(1)
    labels = (rng.random(6000) < 0.3).astype(int)
    scores = (rng.normal(size=6000) + 1.5 * labels).astype(np.float32)
    scores = scores.round(2) if ties else scores
    halves = [(scores[:2500], labels[:2500]), (scores[2500:], labels[2500:])]
    found, certificate = certified_threshold(lambda: halves, bound), certify(scores, labels, bound)
    assert certificate.status == "certified"
    assert found.threshold == certificate.threshold
    assert found.proved == pytest.approx(certificate.claims[0].proved, rel=1e-12)


def test_too_few_examples_and_other_bounds():
    few = [(np.arange(50.0), np.zeros(50))]
    assert certified_threshold(lambda: few, fpr <= 0.01).threshold is None
    assert "needs 299 negatives, you have 50" in certified_threshold(lambda: few, fpr <= 0.01).note
    with pytest.raises(ValueError, match="one kind of examples"):
        certified_threshold(lambda: few, precision >= 0.9)
