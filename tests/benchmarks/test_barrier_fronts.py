"""Fronts of several methods are compared at the same held loss, seed by seed."""

import pytest

from benchmarks.barrier.front_study import below


def row(seed, *pairs):
    return {"seed": seed, "pairs": [list(pair) for pair in pairs]}


def test_a_front_is_measured_against_the_line_through_ours():
    ours = [row(0, (4.0, 0.0), (2.0, 1.0), (0.0, 2.0)), row(1, (3.0, 0.0), (0.0, 1.0))]
    theirs = [
        row(0, (4.0, 0.0), (2.5, 0.5), (0.0, 1.9), (0.0, 2.0)),  # 0.5 below; 1.9 is an end's
        row(1, (2.5, 0.5)),  # 1 above
        row(2, (0.0, 0.5)),  # nothing to compare it with
    ]
    assert below(theirs, ours) == pytest.approx([0.5, -1.0])
    assert below(ours, ours) == [0.0]  # of the second there is no point between the ends
