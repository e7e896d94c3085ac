import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import examples

from setpoint.certificates.tails import (
    allowed,
    allowed_on_average,
    lower,
    needed,
    needed_on_average,
    prob_at_least,
    prob_at_most,
    upper,
)

COUNTS = [(0, 1), (1, 1), (0, 7), (3, 7), (7, 7), (29, 100), (0, 2995), (40, 10_000)]


@pytest.mark.parametrize(("k", "n"), COUNTS)
@pytest.mark.parametrize("share", [0.001, 0.3, 0.99])
def test_tails_are_those_of_scipy(k, n, share):
    assert float(prob_at_most(k, n, share)) == pytest.approx(stats.binom.cdf(k, n, share), rel=1e-9)
    assert float(prob_at_least(k, n, share)) == pytest.approx(
        stats.binom.sf(k - 1, n, share), rel=1e-9, abs=1e-300
    )


@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_bounds_are_those_of_clopper_and_pearson(k, n):
    interval = stats.binomtest(k, n).proportion_ci(0.9, "exact")
    assert float(lower(k, n, 0.05)) == pytest.approx(interval.low, rel=1e-9)
    assert float(upper(k, n, 0.05)) == pytest.approx(interval.high, rel=1e-9)


def test_bounds_of_nothing_are_everything():
    assert (float(lower(0, 0, 0.05)), float(upper(0, 0, 0.05))) == (0.0, 1.0)


@examples(100)
@given(st.integers(1, 400), st.floats(0.001, 0.999), st.floats(0.001, 0.6))
def test_what_is_allowed_is_the_largest_count_that_passes(n, share, tail):
    m = allowed(n, share, tail)
    assert m == -1 or stats.binom.cdf(m, n, share) <= tail * (1 + 1e-9)
    assert stats.binom.cdf(m + 1, n, share) > tail * (1 - 1e-9)


@pytest.mark.parametrize(
    ("share", "tail", "n"),
    [(0.1, 0.1, 22), (0.05, 0.05, 59), (0.01, 0.05, 299), (0.01, 0.01, 459), (0.001, 0.05, 2995)],
)
def test_sample_sizes_are_those_of_the_textbook(share, tail, n):
    assert needed(share, tail) == n
    assert (allowed(n, share, tail), allowed(n - 1, share, tail)) == (0, -1)


@examples(100)
@given(st.floats(1e-6, 0.999), st.floats(1e-6, 0.999))
def test_needed_is_the_fewest(share, tail):
    n = needed(share, tail)
    assert allowed(n, share, tail) >= 0
    assert n == 1 or allowed(n - 1, share, tail) == -1


def test_an_end_needs_infinitely_many():
    assert needed(0.0, 0.05) is None
    assert needed_on_average(0.0) is None


@examples(100)
@given(st.integers(1, 2000), st.integers(1, 99))
def test_on_average_counts_compare_as_whole_numbers(n, percent):
    m = allowed_on_average(n, percent / 100)
    assert 100 * (m + 1) <= percent * (n + 1) < 100 * (m + 2)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.29, 0.5])
def test_needed_on_average_is_the_fewest(share):
    n = needed_on_average(share)
    assert allowed_on_average(n, share) >= 0
    assert n == 1 or allowed_on_average(n - 1, share) < 0


def test_a_false_positive_rate_at_a_rank_follows_the_beta_law():
    random = np.random.default_rng(0)
    n, m = 40, 3
    share = 1 - np.sort(random.random((20_000, n)), 1)[:, n - m - 1]  # of uniforms above the rank
    assert stats.kstest(share, stats.beta(m + 1, n - m).cdf).pvalue > 1e-3
    assert np.mean(share > upper(m, n, 0.05)) == pytest.approx(
        0.05, abs=3 * math.sqrt(0.0475 / 2e4)
    )
