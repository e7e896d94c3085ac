"""Three-way decisions: both sides keep their promise, and reviews are few."""

import json

import numpy as np
import pytest
from scipy.special import ndtr

from setpoint.certificates import CannotPromise, ThreeWayCertificate, certify_three_way


def draw(seed, n=2000):
    random = np.random.default_rng(seed)
    positive = random.random(n) < 0.3
    return random.normal(size=n) + 3 * positive, positive


def test_both_sides_keep_their_promise():
    broken = 0
    for seed in range(200):
        found = certify_three_way(*draw(seed), "precision >= 0.95", "npv >= 0.95")
        precision = 0.3 * ndtr(3 - found.upper)
        precision /= precision + 0.7 * ndtr(-found.upper)
        npv = 0.7 * ndtr(found.lower)
        npv /= npv + 0.3 * ndtr(found.lower - 3)
        broken += precision < 0.95 or npv < 0.95
    assert broken <= 20  # 5 % of 200, and three standard errors


def test_monotone_bounds_on_either_side():
    scores, positive = draw(0)
    found = certify_three_way(scores, positive, "fpr <= 0.02", "recall >= 0.95")
    decided = found.decide(scores)
    assert (decided[~positive] == "accept").mean() <= 0.02
    assert (decided[positive] != "reject").mean() >= 0.95
    assert found.reviews == (decided == "review").sum()


def test_no_reviews_where_one_threshold_satisfies_both():
    found = certify_three_way(*draw(0), "precision >= 0.8", "npv >= 0.8")
    assert (found.reviews, found.lower) == (0, found.upper)


def test_it_reads_back_and_a_changed_file_does_not():
    found = certify_three_way(*draw(0), "precision >= 0.95", "npv >= 0.95")
    assert ThreeWayCertificate.from_json(found.to_json()) == found
    body = json.loads(found.to_json())
    with pytest.raises(ValueError, match="checksum"):
        ThreeWayCertificate.from_json(json.dumps({**body, "upper": 9.0}))


def test_verdicts_that_are_none():
    scores, positive = draw(0)
    few = certify_three_way(scores[:30], positive[:30], "precision >= 0.95", "npv >= 0.95")
    assert few.status == "infeasible"
    assert "needs 82" in few.notes[0]
    with pytest.raises(ValueError, match="no thresholds"):
        few.decide([1.0])
    noise = np.random.default_rng(0).normal(size=2000)
    never = certify_three_way(noise, positive, "precision >= 0.95", "npv >= 0.95")
    assert never.status == "not certified"
    assert ThreeWayCertificate.from_json(never.to_json()) == never


def test_what_is_refused():
    scores, positive = draw(0)
    with pytest.raises(CannotPromise, match="one bound for everyone"):
        certify_three_way(scores, positive, "f_score(1) >= 0.9", "npv >= 0.95")
    with pytest.raises(ValueError, match="confidence"):
        certify_three_way(scores, positive, "precision >= 0.9", "npv >= 0.9", confidence=95)
    with pytest.raises(ValueError, match="row 0"):
        certify_three_way([np.nan, 1.0], [0, 1], "precision >= 0.9", "npv >= 0.9")
