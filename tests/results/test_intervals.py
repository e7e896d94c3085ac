import numpy as np
import pytest
from scipy.stats import binomtest

from setpoint.results import clopper_pearson


@pytest.mark.parametrize(("count", "total"), [(0, 1), (1, 1), (3, 10), (25, 3602), (500, 500)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_it_is_scipys_two_sided_interval(count, total, confidence):
    theirs = binomtest(count, total).proportion_ci(confidence, method="exact")
    assert clopper_pearson(count, total, confidence) == pytest.approx((theirs.low, theirs.high))


def test_nothing_counted_says_nothing():
    assert clopper_pearson(0, 0) == (0.0, 1.0)


def test_each_end_is_wrong_as_rarely_as_promised():
    """20,000 draws of Bin(60, 0.1): 2.5 % on either side plus three standard errors."""
    draws = np.random.default_rng(0).binomial(60, 0.1, size=20_000)
    ends = {k: clopper_pearson(k, 60, 0.95) for k in set(draws.tolist())}
    below = np.mean([ends[k].high < 0.1 for k in draws.tolist()])
    above = np.mean([ends[k].low > 0.1 for k in draws.tolist()])
    assert max(below, above) <= 0.025 + 3 * (0.025 * 0.975 / 20_000) ** 0.5


@pytest.mark.parametrize("wrong", [(-1, 5), (6, 5), (1.5, 5)])
def test_a_count_is_a_part_of_the_total(wrong):
    with pytest.raises(ValueError, match="count"):
        clopper_pearson(*wrong)
