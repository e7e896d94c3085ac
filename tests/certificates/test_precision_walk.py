from itertools import pairwise

import numpy as np
import pytest
from certificates.simulate import halves, sample
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import examples

from setpoint.certificates.goals import inequalities
from setpoint.certificates.precision_walk import SHRINK, PrecisionWalk, first_failure, starts
from setpoint.certificates.sample import CalibrationSample
from setpoint.rates import npv, precision


def walk(inequality, rows, delta):
    return PrecisionWalk().prove([inequality], rows, delta)


def by_hand(scores, labels, level, delta):
    """All thresholds that some walk proves, by the definition."""
    cuts = np.unique(scores)[::-1]  # accept what reaches a cut
    n = np.array([(scores >= c).sum() for c in cuts])
    hits = np.array([labels[scores >= c].sum() for c in cuts])
    p = stats.binom.sf(hits - 1, n, level)
    proved = set()
    for start, tail in starts(len(scores), level, delta):
        first = np.flatnonzero(n <= start)
        if not len(first):
            continue
        for i in range(first[-1], len(cuts)):
            if p[i] > tail:
                break
            proved.add(i)
    return cuts, proved


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_walks_prove_what_the_definition_says(seed, tied, level):
    scores, labels = sample(seed, 400, 0.4)
    scores = halves(scores) if tied else scores
    cuts, proved = by_hand(scores, labels, level, 0.05)
    (inequality,) = inequalities([precision >= level], None)
    walked = walk(inequality, CalibrationSample(scores, labels, {}, "float64"), 0.05)
    inside = {
        i
        for i, cut in enumerate(cuts)
        if any(s.low <= np.nextafter(cut, -np.inf) <= s.high for s in walked.ranges)
    }
    assert inside == proved
    assert bool(proved) == bool(walked.ranges)


@pytest.mark.parametrize("seed", range(4))
def test_npv_is_precision_seen_from_the_other_end(seed):
    scores, labels = sample(seed, 400, 0.4)
    (up,), (down,) = inequalities([precision >= 0.8], None), inequalities([npv >= 0.8], None)
    walked = walk(up, CalibrationSample(scores, labels, {}, "float64"), 0.05).ranges
    mirror = walk(down, CalibrationSample(-scores, ~labels, {}, "float64"), 0.05).ranges
    # score > t accepts those above t, -score <= -t rejects them and t itself: one step apart
    for a, b in zip(walked, mirror, strict=True):
        assert (scores > a.low).sum() == (-scores <= b.high).sum()
        assert (scores > a.high).sum() == (-scores <= b.low).sum()


@examples(200)
@given(
    st.lists(st.tuples(st.integers(1, 300), st.floats(0, 1)), min_size=1, max_size=12),
    st.floats(0.05, 0.99),
    st.floats(1e-6, 0.2),
)
def test_the_shortcut_of_chernoff_changes_nothing(pairs, level, tail):
    n = np.array([size for size, _ in pairs])
    hits = np.array([round(size * share) for size, share in pairs])
    passed = stats.binom.sf(hits - 1, n, level) <= tail
    expected = int(np.argmin(passed)) if not passed.all() else len(n)
    assert first_failure(hits, n, level, tail) == expected


def test_starts_share_delta_and_depend_on_the_number_of_rows_only():
    found = starts(100_000, 0.9, 0.05)
    assert sum(tail for _, tail in found) <= 0.05
    assert found[0] == (57, 0.05 * (1 - SHRINK))
    assert all(b[0] in (2 * a[0], 2 * a[0] - 1) for a, b in pairwise(found))
    assert starts(20, 0.9, 0.05) == [(20, 0.05 * (1 - SHRINK))]


def test_long_walks_are_taken_in_parts(monkeypatch):
    from setpoint.certificates import precision_walk

    scores, labels = sample(1, 3000, 0.4)
    (inequality,) = inequalities([precision >= 0.7], None)
    rows = CalibrationSample(halves(scores), labels, {}, "float64")
    whole = walk(inequality, rows, 0.05)
    monkeypatch.setattr(precision_walk, "_WALK_CHUNK", 7)
    assert walk(inequality, rows, 0.05) == whole
