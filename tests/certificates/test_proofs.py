import numpy as np
import pytest
from certificates.simulate import most, sample
from scipy import stats
from scipy.special import ndtr

from setpoint.certificates.proofs import ThresholdRule, evidence, rank_grid
from setpoint.certificates.regions import CountEvidence
from setpoint.certificates.sample import (
    EVERYONE,
    NEGATIVES,
    POSITIVES,
    PRIOR,
    CalibrationSample,
    Subset,
)
from setpoint.certificates.tails import lower, upper

ROWS = CalibrationSample(
    np.array([1.0, 2.0, 2.0, 3.0, 3.0, 4.0]),
    np.array([False, False, True, False, False, True]),
    {(("group", "a"),): np.array([True, False, False, True, False, False])},
    "float64",
)
NEGATIVE, INSIDE = Subset((), NEGATIVES), Subset((("group", "a"),), NEGATIVES)


def test_counts_at_a_fixed_threshold_are_plain():
    assert evidence(ROWS, NEGATIVE, ThresholdRule(2.0)) == CountEvidence(2, 2, 4, 1)
    assert evidence(ROWS, NEGATIVE, ThresholdRule(2.0, inclusive=True)) == CountEvidence(3, 3, 4, 1)
    assert evidence(ROWS, Subset((), PRIOR), ThresholdRule(2.0)) == CountEvidence(2, 2, 6, 1)
    assert evidence(ROWS, Subset((), EVERYONE), ThresholdRule(-np.inf)) == CountEvidence(6, 6, 6, 1)


def test_ties_at_a_rank_count_against_the_bound():
    at_rank = ThresholdRule(
        3.0, anchor=NEGATIVE
    )  # its second largest: nobody is above, one is beside it
    assert evidence(ROWS, NEGATIVE, at_rank) == CountEvidence(0, 1, 4, 1, ranked=True)
    assert evidence(ROWS, INSIDE, at_rank) == CountEvidence(0, 1, 2, 1)
    assert evidence(ROWS, Subset((), POSITIVES), at_rank) == CountEvidence(0, 1, 2, 1)
    floor = ThresholdRule(3.0, inclusive=True, anchor=NEGATIVE)
    assert evidence(ROWS, NEGATIVE, floor) == CountEvidence(1, 2, 4, 1, ranked=True)
    assert evidence(ROWS, Subset((), POSITIVES), floor) == CountEvidence(1, 2, 2, 1)


@pytest.mark.parametrize("n", [5, 100, 2000])
@pytest.mark.parametrize("tail", [0.05, 0.005])
def test_a_threshold_half_way_to_a_neighbour_keeps_the_bounds_of_others(n, tail):
    """The chance of a wrong lower bound, exactly, for every share ``q`` of a subset at the rank.

    With ``k`` of ``n`` above the rank, the bound ``L(k - 1)`` is wrong at some threshold below the
    lowest of them only if all ``k`` lie where the share is below the bound: ``(L(k - 1) / q)^k``.
    """
    k = np.arange(1, n + 1)
    bound = lower(k - 1, n, tail)
    for q in np.linspace(0.002, 0.998, 200):
        wrong = stats.binom.pmf(k, n, q) * np.minimum(1, bound / q) ** k
        assert wrong.sum() <= tail


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000, 12_345])
def test_the_grid_of_ranks_reaches_both_ends_and_is_its_own_mirror(n):
    grid = rank_grid(n)
    assert (grid[0], grid[-1]) == (0, n)
    assert (np.diff(grid) > 0).all()
    assert (n - grid[::-1] == grid).all()


def test_chosen_thresholds_are_rounded_outwards():
    scores, labels = sample(0, 2000)
    rows = CalibrationSample(scores, labels, {}, "float64")
    for score in (0.0, 1.0, 2.0):
        plain = evidence(rows, NEGATIVE, ThresholdRule(score))
        chosen = evidence(rows, NEGATIVE, ThresholdRule(score, chosen=True))
        assert chosen.low <= plain.low <= plain.high <= chosen.high
        assert chosen.high <= 1.16 * plain.high + 1
        assert chosen.tests == len(rank_grid(chosen.n))


def test_bounds_at_a_rank_of_everyone_hold_for_each_class():
    """The lemma of the module: a part inside the anchor. One-sided, 5 % each."""
    draws, missed = 800, np.zeros(4)
    for seed in range(draws):
        scores, labels = sample(seed, 200, 0.4)
        rows = CalibrationSample(np.round(scores, 1), labels, {}, "float64")
        x = rows.sorted(Subset((), EVERYONE))[150]
        at_rank = ThresholdRule(float(x), anchor=Subset((), EVERYONE))
        edge = x + 0.05
        for i, (kind, true) in enumerate(((POSITIVES, ndtr(2.5 - edge)), (NEGATIVES, ndtr(-edge)))):
            seen = evidence(rows, Subset((), kind), at_rank)
            missed[2 * i] += true < lower(seen.low, seen.n, 0.05)
            missed[2 * i + 1] += true > upper(seen.high, seen.n, 0.05)
    assert (missed / draws <= most(0.05, draws)).all()


def test_bounds_hold_at_all_thresholds_at_once():
    draws, missed = 300, 0
    cuts = np.linspace(-3, 3, 61)
    for seed in range(draws):
        scores = np.random.default_rng(seed).normal(size=300)
        rows = CalibrationSample(scores, np.zeros(300, bool), {}, "float64")
        seen = [evidence(rows, NEGATIVE, ThresholdRule(float(t), chosen=True)) for t in cuts]
        low = [float(lower(s.low, s.n, 0.05 / s.tests)) for s in seen]
        missed += bool((ndtr(-cuts) < low).any())
    assert missed / draws <= most(0.05, draws)
