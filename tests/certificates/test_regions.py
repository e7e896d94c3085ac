import numpy as np
import pytest
from scipy import stats

from setpoint.certificates import regions
from setpoint.certificates.regions import CountEvidence, _counted, are_independent, upper_bound
from setpoint.certificates.sample import EVERYONE, NEGATIVES, POSITIVES, PRIOR, Subset
from setpoint.rates import Counts, f_score, tpr


def test_one_share_has_the_whole_tail():
    ((levels, index),) = regions.tails_of_boxes(1, 0.05)
    assert levels[index].tolist() == [0.05]


@pytest.mark.parametrize("shares", [2, 3])
def test_the_radius_is_the_quantile_of_the_sum_of_squares(shares):
    z = np.random.default_rng(0).normal(size=(1_000_000, shares))
    squares = (np.maximum(z, 0) ** 2).sum(1)
    assert np.mean(squares > regions.radius(shares, 0.05) ** 2) == pytest.approx(0.05, abs=7e-4)


@pytest.mark.parametrize("shares", [2, 3])
def test_boxes_cover_the_region_and_not_much_more(shares):
    deviates = np.abs(np.random.default_rng(1).normal(size=(2000, shares)))
    deviates *= regions.radius(shares, 0.05) / np.linalg.norm(deviates, axis=1, keepdims=True)
    corners = stats.norm.isf(np.stack([lv[i] for lv, i in regions.tails_of_boxes(shares, 0.05)], 1))
    inside = (deviates[:, None] <= corners[None] + 1e-9).all(-1).any(-1)
    assert inside.all()
    assert np.linalg.norm(corners, axis=1).max() < 1.08 * regions.radius(shares, 0.05)


def test_what_is_counted_of_a_table():
    table = Counts(8, 5, 2, 95, 10, 100)
    kinds = {POSITIVES: (8, 10), NEGATIVES: (5, 100), EVERYONE: (13, 110), PRIOR: (10, 110)}
    for kind, (count, n) in kinds.items():
        found = _counted(Subset((), kind), table)
        assert (found.low, found.high, found.n) == (count, count, n)


def test_subsets_that_share_rows_are_not_independent():
    positives, negatives = Subset((), POSITIVES), Subset((), NEGATIVES)
    assert are_independent([positives, negatives])
    assert not are_independent([positives, Subset((), EVERYONE)])
    assert not are_independent([positives, negatives, positives])


def test_dependent_or_many_shares_fall_back_to_the_union_bound():
    assert [lv.tolist() for lv, _ in regions.tails_of_boxes(2, 0.05, False)] == [[0.025]] * 2
    assert [lv.tolist() for lv, _ in regions.tails_of_boxes(5, 0.05)] == [[0.01]] * 5


def test_a_difference_is_bounded_better_than_by_the_union():
    a, b = (Subset((("group", g),), POSITIVES) for g in "ab")
    gap = tpr.on(group="a") - tpr.on(group="b")
    known = {subset: CountEvidence(900, 900, 1000, 1) for subset in (a, b)}
    ours, union = (upper_bound(gap, known, 0.05, None, apart) for apart in (True, False))
    error = np.sqrt(2 * 0.9 * 0.1 / 1000)
    assert 1.645 * error < ours < 2.25 * error < 2.7 * error < union


@pytest.mark.parametrize("seed", range(2))
def test_bounds_of_two_and_three_shares_are_wrong_as_rarely_as_promised(seed):
    random, wrong = np.random.default_rng(seed), np.zeros(2)
    where = (("group", "a"),), (("group", "b"),)
    gap = tpr.on(group="a") - tpr.on(group="b")
    draws, ns, shares, prior = 1500, (80, 300), (0.3, 0.15), 0.25
    truth = 2 * prior * 0.6 / (2 * prior * 0.6 + prior * 0.4 + 0.75 * 0.1)
    for _ in range(draws):
        counts = random.binomial(ns, shares)
        known = {
            Subset(w, POSITIVES): CountEvidence(k, k, n, 1)
            for w, k, n in zip(where, counts.tolist(), ns, strict=True)
        }
        wrong[0] += upper_bound(gap, known, 0.05, None) < shares[0] - shares[1]
        p = random.binomial(400, prior)
        tp, fp = random.binomial(p, 0.6), random.binomial(400 - p, 0.1)
        known = {
            Subset((), POSITIVES): CountEvidence(tp, tp, p, 1),
            Subset((), NEGATIVES): CountEvidence(fp, fp, 400 - p, 1),
            Subset((), PRIOR): CountEvidence(p, p, 400, 1),
        }
        wrong[1] += -upper_bound(-f_score(1), known, 0.05, None) > truth
    # 0.05 + 3 standard errors of 1,500 draws
    assert (wrong / draws <= 0.067).all()
    assert (wrong / draws > 0).all()  # nor is the bound empty
