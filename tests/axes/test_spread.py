"""The spread: a population deviation that outliers cannot move."""

import numpy as np
import pytest
import torch

from setpoint.axes import spread
from setpoint.axes.sample import read_sample


def spread_of(scores, weights=None):
    scores = torch.as_tensor(scores, dtype=torch.float64)
    sample = read_sample(((),), scores, torch.arange(len(scores)) % 2, weights)
    return float(spread(sample.scores, sample.weights)[0])


@pytest.mark.parametrize("n", [20, 512, 5000])
def test_clean_scores_have_their_population_deviation(n):
    scores = np.random.default_rng(n).normal(3, 2, n)
    assert spread_of(scores) == pytest.approx(scores.std(), rel=1e-12)
    uniform = np.random.default_rng(n).random(n)
    assert spread_of(uniform) == pytest.approx(uniform.std(), rel=1e-12)


@pytest.mark.parametrize("outlier", [1e3, -1e3, 1e9])
@pytest.mark.parametrize("n", [64, 512])
def test_one_outlier_changes_little(outlier, n):
    scores = np.random.default_rng(0).normal(size=n)
    dirty = np.r_[scores[1:], outlier]
    allowed = 0.03 if n == 512 else 0.25
    assert spread_of(dirty) == pytest.approx(spread_of(scores), rel=allowed)


def test_scores_that_are_nearly_all_tied_still_have_a_spread():
    scores = np.r_[np.zeros(97), 1.0, 2.0, 3.0]
    assert spread_of(scores) == pytest.approx(scores.std())


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8, -1e-8])
def test_constant_scores_have_none(value):
    assert spread_of(np.full(50, value)) == 0


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_it_scales(factor):
    scores = np.random.default_rng(1).normal(size=200)
    assert spread_of(scores * factor) == pytest.approx(spread_of(scores) * factor)


def test_weights_are_copies():
    rng = np.random.default_rng(2)
    scores, copies = np.r_[rng.normal(size=80), 50.0], rng.integers(0, 4, 81)
    copied = spread_of(np.repeat(scores, copies))
    assert spread_of(scores, torch.tensor(copies)) == pytest.approx(copied, rel=1e-12)
