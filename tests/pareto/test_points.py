import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setpoint.pareto.points import FrontPoint, hypervolume, non_dominated, unevenness

WHOLE = st.integers(0, 6).map(float)  # small numbers, so that ties happen
PAIRS = st.lists(st.tuples(WHOLE, WHOLE), min_size=1, max_size=12)


def dominates(p, q):
    return p[0] <= q[0] and p[1] <= q[1] and p != q


@given(PAIRS)
def test_a_point_is_on_the_front_if_nobody_dominates_it(pairs):
    by_definition = [not any(dominates(q, p) for q in pairs) for p in pairs]
    assert non_dominated(pairs) == by_definition


@given(PAIRS, st.tuples(WHOLE, WHOLE))
def test_hypervolume_counts_the_cells_that_somebody_dominates(pairs, reference):
    cells = [
        any(p[0] <= i and p[1] <= j for p in pairs)  # the unit cell right above (i, j)
        for i in range(int(reference[0]))
        for j in range(int(reference[1]))
    ]
    assert hypervolume(pairs, reference) == sum(cells)


@given(PAIRS)
def test_dominated_points_add_no_area(pairs):
    kept = [pair for pair, flag in zip(pairs, non_dominated(pairs), strict=True) if flag]
    assert hypervolume(kept, (7.0, 7.0)) == hypervolume(pairs, (7.0, 7.0))


def test_hypervolume_of_a_quarter_circle():
    angles = np.linspace(0, np.pi / 2, 20_001)
    pairs = [(1 - float(np.cos(a)), 1 - float(np.sin(a))) for a in angles]
    # a staircase of n steps is off by less than its largest step
    assert hypervolume(pairs, (1.0, 1.0)) == pytest.approx(np.pi / 4, abs=2e-4)


def test_unevenness_is_the_coefficient_of_variation_of_the_gaps():
    values = [0.3, 1.0, 0.0, 0.5]
    gaps = np.diff(sorted(values))
    assert unevenness(values) == pytest.approx(gaps.std() / gaps.mean(), rel=1e-12)
    assert unevenness([1.0, 1.0, 1.0]) == 0
    assert unevenness([2.0]) == 0


def test_the_gap_is_what_is_held_minus_its_level():
    assert FrontPoint(1, 0.0, 0.5, level=0.4).gap == pytest.approx(0.1)
    assert FrontPoint(0, 0.0, 0.5).gap is None
