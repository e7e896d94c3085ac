"""Another share of positives than in the calibration rows: an interval and its worst case."""

import json

import numpy as np
import pytest
from certificates.simulate import most, sample, true_rates

from setpoint.certificates import CannotPromise, Certificate, certify
from setpoint.certificates.prior_shift import prevalence_now
from setpoint.certificates.regions import CountEvidence, upper_bound
from setpoint.certificates.sample import NEGATIVES, POSITIVES, Subset, calibration_sample
from setpoint.cli import main
from setpoint.rates import accuracy, cost, coverage, error, precision


@pytest.mark.parametrize(
    "rate", [precision, accuracy, coverage, cost(miss=5, false_alarm=1)], ids=str
)
def test_an_interval_is_as_bad_as_the_worse_of_its_ends(rate):
    """Every rate is a quotient of linear functions of the share of positives."""
    known = {
        Subset((), POSITIVES): CountEvidence(170, 170, 200, 1),
        Subset((), NEGATIVES): CountEvidence(60, 60, 800, 1),
    }
    for side in (rate, -rate):
        shares = np.linspace(0.02, 0.4, 50)
        each = [upper_bound(side, known, 0.05, float(p)) for p in shares]
        found = upper_bound(side, known, 0.05, (0.02, 0.4))
        assert max(each) == pytest.approx(max(each[0], each[-1]))
        assert found == pytest.approx(max(each))


def test_a_wider_interval_proves_less_and_a_point_is_a_share():
    scores, labels = sample(0, n=4000)
    point = certify(scores, labels, precision >= 0.6, prevalence=0.1)
    assert certify(scores, labels, precision >= 0.6, prevalence=(0.1, 0.1)).points == point.points
    wide = certify(scores, labels, precision >= 0.6, prevalence=(0.05, 0.3))
    assert wide.certified
    assert wide.threshold > point.threshold
    assert Certificate.from_json(wide.to_json()) == wide
    assert any("0.05 to 0.3" in text for text in wide.assumptions)
    assert wide.check(*sample(1, n=4000, prevalence=0.1)).verdict == "ok"


def test_precision_holds_at_the_share_that_unlabelled_scores_have():
    """Calibrated at 20 %, used at 8 %: 10 certificates, and 100 intervals of the share."""
    broken = missed = 0
    for seed in range(100):
        scores, labels = sample(seed, n=5000)
        now = sample(1000 + seed, n=8000, prevalence=0.08)[0]
        low, high = prevalence_now(calibration_sample(scores, labels, None, ()), now, 0.05)
        missed += not low <= 0.08 <= high
        if seed >= 10:
            continue
        made = certify(scores, labels, precision >= 0.5, unlabelled=now)
        assert made.certified
        broken += true_rates(made.threshold, prevalence=0.08)["precision"] < 0.5
        assert 0.02 < made.prevalence[0] < 0.08 < made.prevalence[1] < 0.16
    assert broken <= 3  # of 10; more happen with a probability below 0.0011 at 5 % each
    assert missed / 100 <= most(0.05, 100)


def test_ignoring_the_shift_breaks_the_promise():
    scores, labels = sample(0, n=20_000)
    made = certify(scores, labels, precision >= 0.5)
    assert true_rates(made.threshold, prevalence=0.08)["precision"] < 0.5


def test_scores_that_fit_no_mixture_are_told():
    scores, labels = sample(0, n=3000)
    with pytest.raises(CannotPromise, match="fit no share"):
        certify(scores, labels, precision >= 0.5, unlabelled=scores[:2000] + 5)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"prevalence": (0.3, 0.1)}, "low to high"),
        ({"prevalence": (0.1, 0.2, 0.3)}, "lowest and the highest"),
        ({"prevalence": (0.1, 1.5)}, "prevalence"),
        (
            {"prevalence": 0.1, "unlabelled": [1.0] * 100},
            "unlabelled= does not go with prevalence=.*give one",
        ),
        ({"unlabelled": [1.0, 2.0]}, "10 of the rows"),
        ({"unlabelled": [np.nan] * 100}, "must be finite"),
    ],
)
def test_bad_input_is_told(given, says):
    scores, labels = sample(0)
    with pytest.raises(ValueError, match=says):
        certify(scores, labels, error <= 0.3, **given)


def test_intervals_and_rows_to_come_from_the_shell(tmp_path, capsys):
    scores, labels = sample(0, n=4000)
    file, now = tmp_path / "s.csv", tmp_path / "now.csv"
    np.savetxt(file, np.column_stack([scores, labels]), delimiter=",", header="s,y", comments="")
    fresh = sample(1, n=8000, prevalence=0.1)[0]
    np.savetxt(now, fresh, header="s", comments="")
    asked = ["certify", str(file), "--score=s", "--label=y", "--goal=precision >= 0.5", "--json"]
    assert main([*asked, "--prevalence=0.05", "--prevalence=0.2"]) == 0
    assert json.loads(capsys.readouterr().out)["prevalence"] == [0.05, 0.2]
    assert main([*asked, f"--unlabelled={now}"]) == 0
    low, high = json.loads(capsys.readouterr().out)["prevalence"]
    assert low < 0.1 < high


def test_of_an_interval_of_prevalences_its_middle_is_measured():
    scores, labels = sample(0, n=3000, prevalence=0.5)
    found = certify(scores, labels, precision >= 0.3, prevalence=(0.1, 0.3))
    above = scores > found.threshold
    tpr, fpr = above[labels == 1].mean(), above[labels == 0].mean()
    (claim,) = found.claims
    assert claim.measured == pytest.approx(0.2 * tpr / (0.2 * tpr + 0.8 * fpr), abs=0.02)
