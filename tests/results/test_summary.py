import math

import numpy as np
import pytest
from scipy import stats

from setpoint.results import gain, summarize

OURS, THEIRS = [28.2, 29.9, 26.5], [39.0, 34.5, 35.0]


def test_mean_spread_and_standard_error():
    summary = summarize(OURS)
    assert summary.mean == pytest.approx(np.mean(OURS), rel=1e-12)
    assert summary.spread == pytest.approx(np.std(OURS, ddof=1), rel=1e-12)
    assert summary.standard_error == pytest.approx(stats.sem(OURS), rel=1e-12)
    assert summary.count == 3


def test_one_run_has_no_spread():
    summary = summarize([5.0])
    assert summary.mean == 5.0
    assert math.isnan(summary.spread)
    assert math.isnan(summary.standard_error)


def test_a_gain_is_positive_when_ours_is_better():
    lower = gain(OURS, THEIRS, higher_is_better=False)
    higher = gain(OURS, THEIRS, higher_is_better=True)
    assert lower.mean == pytest.approx(np.mean(THEIRS) - np.mean(OURS), rel=1e-12)
    assert lower.mean > 0 > higher.mean
    assert lower.standard_error == pytest.approx(higher.standard_error, rel=1e-12)


def test_the_standard_error_is_that_of_the_paired_test():
    paired = gain(OURS, THEIRS, higher_is_better=True)
    assert paired.mean / paired.standard_error == pytest.approx(
        stats.ttest_rel(OURS, THEIRS).statistic, rel=1e-12
    )


def test_a_gain_shared_by_all_seeds_has_no_error_however_much_seeds_differ():
    assert gain([11, 51, 91], [10, 50, 90], higher_is_better=True).standard_error == 0


@pytest.mark.parametrize("wrong", [[], [[1.0]]])
def test_nothing_cannot_be_summarized(wrong):
    with pytest.raises(ValueError, match="one value per run, at least one"):
        summarize(wrong)


def test_pairs_must_be_complete():
    with pytest.raises(ValueError, match="got 2 of ours and 1 of theirs"):
        gain([1, 2], [1], higher_is_better=True)
