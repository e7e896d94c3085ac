"""Labels of alerts alone are no sample: what is promised and checked with them."""

import numpy as np
import pytest
from certificates.simulate import sample

from setpoint import certify, fpr, precision, recall
from setpoint.certificates import CannotPromise
from setpoint.rates import error


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
    assert any("not only reviewed alerts" in line for line in found.assumptions)


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
    factor = float(found.notes[0].split("about ")[1].split(" times")[0])
    proved = [
        certify(*draw(round(1000 * factor)), fpr <= 0.05, thresholds=0.5).certified
        for _ in range(200)
    ]
    assert 0.7 < np.mean(proved) < 0.95
