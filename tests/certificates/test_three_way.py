"""Three-way decisions: both sides keep their promise, and reviews are few."""

import json

import numpy as np
import pytest
from scipy.special import ndtr

from setpoint.certificates import CannotPromise, ThreeWayCertificate, certify_three_way
from setpoint.certificates.proofs import rank_grid
from setpoint.results import clopper_pearson


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


def test_intervals_of_the_shares_hold_for_thresholds_that_were_chosen():
    """They are those of ranks of a grid, with a tail for each; reviews are a difference."""
    found = certify_three_way(*draw(0), "precision >= 0.95", "npv >= 0.95")
    for each, tails in zip(found.shares, (1, 2, 1), strict=True):
        plain = clopper_pearson(round(2000 * each.value), 2000, 1 - 0.05 / len(rank_grid(2000)))
        assert each.low <= plain.low + 0.01 * tails
        assert each.high >= plain.high - 0.01 * tails
        assert each.high - each.low < 0.2 * tails
    accept, review, reject = found.shares
    assert review.low >= 0
    assert accept.low + reject.low + review.high >= 1 >= accept.high + review.low


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


def test_new_rows_are_compared_with_both_sides():
    found = certify_three_way(*draw(0, 20_000), "precision >= 0.95", "npv >= 0.95")
    scores, positive = draw(1, 20_000)
    fine = found.check(scores, positive)
    assert fine.verdict == "ok"
    assert [finding.name for finding in fine.findings][::2] == [
        "precision >= 0.95, accept",
        "npv >= 0.95, reject",
    ]
    assert found.check(scores + 1).verdict == "drift"
    turned = found.check(-scores, positive)
    assert turned.verdict == "broken"
    assert found.tested_on(scores, positive) == found
    doubted = found.tested_on(-scores, positive)
    assert doubted.verdict.startswith("certified, but 20,000 test rows contradict it")
    assert (found.exit_code, doubted.exit_code) == (0, 1)
    assert ThreeWayCertificate.from_json(doubted.to_json()) == doubted


def test_a_choice_among_models_costs_risk():
    alone, best = (
        certify_three_way(*draw(0), "precision >= 0.95", "npv >= 0.95", candidates=k)
        for k in (1, 50)
    )
    assert best.candidates == 50
    assert best.upper > alone.upper
    assert best.lower < alone.lower
    with pytest.raises(ValueError, match="candidates"):
        certify_three_way(*draw(0), "precision >= 0.95", "npv >= 0.95", candidates=0)


def test_a_side_that_decides_nothing_is_a_caveat():
    scores, positive = draw(0)
    found = certify_three_way(np.minimum(scores, 1.0), positive, "fpr <= 0.01", "recall >= 0.9")
    assert found.caveats == ("it accepts nobody",)
    assert found.exit_code == 1


def test_sides_that_do_not_meet_say_where_each_is_proved():
    found = certify_three_way(*draw(0), "recall >= 0.95", "fpr <= 0.01")
    assert (found.status, len(found.notes)) == ("not certified", 1)
    for part in ("`recall >= 0.95` is proved up to ", "`fpr <= 0.01` is proved from ", "loosen"):
        assert part in found.notes[0]


def of_clusters(seed, alike=0.9, clusters=800):
    """Up to 19 rows of each, alike in score and label."""
    random = np.random.default_rng(seed)
    ids = np.repeat(np.arange(clusters), random.integers(1, 20, clusters))
    positive = (random.random(clusters) < 0.4)[ids]
    shared, own = random.normal(size=clusters)[ids], random.normal(size=len(ids))
    scores = np.sqrt(alike) * shared + np.sqrt(1 - alike) * own + 3 * positive
    return scores, positive, ids


def test_clusters_count_once_on_both_sides():
    broken = {"clusters": 0, "ignored": 0}
    for seed in range(40):
        scores, positive, ids = of_clusters(seed)
        for name, given in (("clusters", ids), ("ignored", None)):
            goals = ("fpr <= 0.05", "recall >= 0.9")
            found = certify_three_way(scores, positive, *goals, clusters=given)
            lower, upper = found.thresholds
            broken[name] += ndtr(-upper) > 0.05 or ndtr(3 - lower) < 0.9
    assert broken["clusters"] <= 6  # 5 % of 40 and three standard errors
    assert broken["ignored"] > 10


def test_a_certificate_about_clusters_is_kept_checked_and_watched():
    scores, positive, ids = of_clusters(1)
    found = certify_three_way(scores, positive, "fpr <= 0.1", "recall >= 0.9", clusters=ids)
    assert (found.clusters, found.examples) == (800, 800)
    assert "every cluster counts once" in str(found)
    of_rows = certify_three_way(scores, positive, "fpr <= 0.1", "recall >= 0.9")
    assert found.fingerprint == of_rows.fingerprint
    assert ThreeWayCertificate.from_json(found.to_json()) == found
    new = of_clusters(2)
    assert found.check(new[0], new[1], clusters=new[2])
    assert not found.check(new[0] + 2, new[1], clusters=new[2])
    with pytest.raises(ValueError, match="pass clusters="):
        found.check(new[0], new[1])
    monitor = found.monitor()
    assert monitor.update(new[0], new[1], clusters=new[2]) == "holds"


def test_times_put_the_period_on_it_and_rows_that_drift_are_not_certified():
    scores, positive = draw(0)
    days = np.datetime64("2024-01-01") + np.arange(len(scores)) // 40
    goals = ("precision >= 0.9", "npv >= 0.9")
    found = certify_three_way(scores, positive, *goals, times=days)
    assert found.thresholds == certify_three_way(scores, positive, *goals).thresholds
    assert found.period[0] == "2024-01-01"
    assert "from 2024-01-01 to" in str(found)
    moved = scores + np.linspace(0, 2, len(scores))
    refused = certify_three_way(moved, positive, *goals, times=days)
    assert (refused.status, refused.upper) == ("not certified", None)
    assert refused.notes[0].startswith("these rows drift")
    accepted = certify_three_way(moved, positive, *goals, times=days, accept_drift=True)
    assert accepted.verdict.startswith("certified, but these rows drift")
