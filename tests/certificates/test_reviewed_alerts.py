"""Labels of alerts alone are no sample: what is promised and checked with them."""

import numpy as np
import pytest
from certificates.simulate import sample

from setpoint import certify, fpr, precision, recall
from setpoint.certificates import CannotPromise, certify_three_way
from setpoint.rates import error, npv


@pytest.mark.parametrize("goal", [recall >= 0.9, fpr <= 0.05, error <= 0.2], ids=str)
def test_goals_about_rejected_rows_are_refused(goal):
    scores, labels = sample(0)
    reviewed = scores > 1
    with pytest.raises(CannotPromise, match="alerts that were reviewed"):
        certify(scores[reviewed], labels[reviewed], goal, old_threshold=1.0)
    assert certify(scores, labels, fpr <= 0.05, old_threshold=1.0).certified


def test_precision_can_be_certified_on_alerts():
    scores, labels = sample(0)
    reviewed = scores > 1
    found = certify(scores[reviewed], labels[reviewed], precision >= 0.8, old_threshold=1.0)
    assert found.certified
    assert any("alerts that were reviewed" in line for line in found.assumptions)
    new = sample(1)
    assert found.check(*new).verdict == "ok"  # of all rows, fewer are alerts
    assert found.check(new[0]).verdict == "unchecked"
    plain = certify(scores, labels, precision >= 0.8)
    assert any("not only reviewed alerts" in line for line in plain.assumptions)


def test_checking_on_alerts_alone_is_an_alarm():
    scores, labels = sample(0)
    found = certify(scores, labels, recall >= 0.9)
    new, truth = sample(1)
    alerts = new > found.threshold
    check = found.check(new[alerts], truth[alerts])
    assert check.verdict == "drift"
    assert "no row lies below the threshold" in str(check)
    mostly = alerts | (np.arange(2500) % 20 == 0)  # a twentieth of the others was looked at
    check = found.check(new[mostly], truth[mostly])
    assert check.verdict != "ok"


@pytest.mark.parametrize("prevalence", [0.05, 0.2, 0.6])
def test_another_share_of_positives_is_no_alarm_with_labels(prevalence):
    found = certify(*sample(0), fpr <= 0.05)
    for seed in range(1, 11):
        assert found.check(*sample(seed, prevalence=prevalence)).verdict == "ok"


def test_what_is_not_proved_says_how_many_rows_would():
    """A rate of 4 %, a bound of 5 %, 1,000 negatives: the advised size proves it 8 of 10 times.

    200 draws have a standard error of 2.8 points; the normal law that the advice goes by asks for
    somewhat more rows than the exact test.
    """
    random = np.random.default_rng(0)

    def draw(n):
        return (random.random(n) < 0.04).astype(float), np.zeros(n)

    scores = np.repeat([0.0, 1.0], [960, 40])
    found = certify(scores, np.zeros(1000), fpr <= 0.05, thresholds=0.5)
    assert not found.certified
    advised = int(found.notes[0].split("about ")[1].split(" negatives")[0].replace(",", ""))
    proved = [certify(*draw(advised), fpr <= 0.05, thresholds=0.5).certified for _ in range(200)]
    assert 0.7 < np.mean(proved) < 0.95


def reviewed(seed, at=1.0, n=4000):
    """Scores, their labels, and the labels of those above ``at`` alone (NaN below)."""
    scores, labels = sample(seed, n=n)
    return scores, labels, np.where(scores > at, labels, np.nan)


@pytest.mark.parametrize("given", [{}, {"old_threshold": 1.0}], ids=["NaN below", "old_threshold"])
def test_no_threshold_is_certified_below_the_reviewed_alerts(given):
    """Their precision says nothing about rows below them, however high it is."""
    scores, labels, known = reviewed(0)
    if given:
        scores, labels, known = (x[scores > 1] for x in (scores, labels, known))
    found = certify(scores, known, precision >= 0.2, **given)
    assert found.certified
    assert found.threshold > 1.0
    assert "recall" not in [each.name for each in found.objective]
    with pytest.raises(CannotPromise, match="lies below"):
        certify(scores, known, precision >= 0.2, thresholds=0.5, **given)


def test_alerts_of_one_group_are_noticed_among_others():
    scores, labels, _ = reviewed(0)
    group = np.arange(len(scores)) % 2
    known = np.where((group == 0) | (scores > 1), labels, np.nan)
    with pytest.raises(CannotPromise, match="group = 1"):
        certify(scores, known, recall >= 0.8, groups=group)


def test_a_check_by_labels_of_alerts_tests_precision_and_refuses_recall():
    scores, labels = sample(0, n=4000)
    found = certify(scores, labels, [recall >= 0.8, precision >= 0.3])
    new, truth, known = reviewed(1, at=found.threshold - 0.5)
    check = found.check(new, known)
    by_name = {finding.name: finding for finding in check.findings}
    assert check.verdict == "unchecked"
    assert check.exit_code == 1
    assert "setpoint plan" in by_name["recall >= 0.8"].expected
    assert by_name["recall >= 0.8"].measured is None
    assert by_name["precision >= 0.3"].measured == pytest.approx(
        truth[new > found.threshold].mean()
    )
    assert by_name["alerts"].measured == pytest.approx((new > found.threshold).mean())
    assert not by_name["alerts"].alarm


def test_a_check_by_labels_of_some_alerts_refuses_precision_too():
    found = certify(*sample(0, n=4000), precision >= 0.5)
    new, _, known = reviewed(1, at=found.threshold + 0.5)
    check = found.check(new, known)
    assert check.verdict == "unchecked"
    assert [finding.name for finding in check.findings if finding.refused] == ["precision >= 0.5"]


def test_broken_precision_is_broken_on_labels_of_alerts_too():
    found = certify(*sample(0, n=4000), precision >= 0.6)
    new, _, known = reviewed(1, at=found.threshold)
    known[known == 1] = 0
    assert found.check(new, known).verdict == "broken"


def test_both_sides_of_a_review_cannot_be_proved_by_alerts():
    scores, _, known = reviewed(0)
    with pytest.raises(CannotPromise, match="alerts that were reviewed"):
        certify_three_way(scores, known, precision >= 0.6, npv >= 0.9)


def test_alerts_a_day_count_rows_without_a_label():
    """A promise of so many alerts a day is about all rows: labels do not matter."""
    random = np.random.default_rng(0)
    scores, day = random.normal(size=12_000), np.repeat(np.arange(120.0), 100)
    known = np.where(random.random(12_000) < 0.1, 0.0, np.nan)
    goal = "alerts <= 6 per day on 90 % of days"
    one, two = (certify(scores, labels, goal, times=day) for labels in (None, known))
    assert one.threshold == two.threshold


def test_a_certificate_that_accepts_everyone_is_checked():
    """No row lies below its threshold, as it should be."""
    found = certify(*sample(0, prevalence=0.9), precision >= 0.8)
    assert found.threshold == -np.inf
    assert found.check(*sample(1, prevalence=0.9)).verdict == "ok"
    floor = certify(*sample(0), recall >= 0.5, thresholds=-np.inf)
    assert floor.check(*sample(1)).verdict == "ok"


def test_labels_that_were_chosen_by_score_are_a_caveat():
    """All alerts and a twentieth of the others: the recall that is measured is too high."""
    scores, labels, known = reviewed(0, at=1.5)
    some = np.random.default_rng(99).random(len(scores)) < 0.05
    mostly = np.where(some, labels, known)
    found = certify(scores, mostly, recall >= 0.8)
    assert found.certified
    assert any("labels depend on scores" in caveat for caveat in found.caveats)
    for seed in range(100, 200):
        at_random = np.random.default_rng(seed).random(len(scores)) < 0.5
        assert not certify(scores, np.where(at_random, labels, np.nan), recall >= 0.8).caveats
