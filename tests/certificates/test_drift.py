import re

import numpy as np
import pytest
import torch
from certificates.simulate import most, sample
from scipy import stats

from setpoint.certificates import Certificate, certify
from setpoint.rates import coverage, error, f_score, fpr, npv, precision, recall, tpr

GOALS = [
    fpr <= 0.05,
    recall >= 0.9,
    precision >= 0.8,
    npv >= 0.9,
    coverage <= 0.3,
    f_score(1) >= 0.7,
    error <= 0.15,
    f_score(2) >= 0.6,
    [fpr <= 0.2, recall >= 0.8],
]
OLD = sample(0, 3000, 0.3)


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_new_data_of_the_same_kind_are_fine(goal):
    found = certify(*OLD, goal)
    for seed in range(5):
        scores, labels = sample(100 + seed, 1000, 0.3)
        for checked in (found.check(scores), found.check(scores, labels)):
            assert checked.verdict == "ok"
            assert checked.exit_code == 0
            assert checked


@pytest.mark.parametrize("goal", GOALS, ids=str)
def test_a_broken_promise_is_noticed(goal):
    found = certify(*OLD, goal)
    scores, labels = sample(200, 3000, 0.3)
    shift = -1.0 if "recall >= 0.9" in found.goal or "npv" in found.goal else 1.0
    if "f_score" in found.goal or "error" in found.goal:
        scores = -scores
    checked = found.check(scores + shift, labels)
    assert checked.verdict == "broken"
    assert checked.exit_code == 1
    assert not checked
    assert "ALARM" in str(checked)


def test_without_labels_a_changed_share_of_alerts_is_drift():
    found = certify(*OLD, fpr <= 0.05)
    scores, _ = sample(1, 3000, 0.3)
    checked = found.check(scores + 0.5)
    assert checked.verdict == "drift"
    (alerts,) = checked.findings
    assert alerts.measured == pytest.approx(np.mean(scores + 0.5 > found.threshold))
    assert alerts.chance < 0.01
    assert "share of alerts is not" in str(checked)
    # with labels the promise itself is what counts: more positives are no breach
    more, labels = sample(2, 3000, 0.6)
    assert found.check(more).verdict == "drift"
    assert found.check(more, labels).verdict == "ok"


def test_alarms_are_as_rare_as_promised():
    found = certify(*OLD, fpr <= 0.05)
    alarms = sum(not found.check(sample(s, 400, 0.3)[0], significance=0.1) for s in range(400))
    # the calibration sample is the same each time, so its own luck is in all of them
    assert alarms / 400 <= most(0.1, 400)
    new = [sample(10_000 + s, 1000, 0.3) for s in range(300)]
    certificates = [certify(*sample(s, 1000, 0.3), fpr <= 0.05) for s in range(300)]
    pairs = zip(certificates, new, strict=True)
    assert sum(not c.check(s, significance=0.1) for c, (s, _) in pairs) / 300 <= most(0.1, 300)


def test_the_chance_is_that_of_the_binomial_law():
    found = certify(*OLD, fpr <= 0.05)
    scores, labels = sample(3, 1000, 0.3)
    (cap, _alerts) = found.check(scores, labels).findings
    false = int((scores[~labels] > found.threshold).sum())
    expected = stats.binom.sf(false - 1, (~labels).sum(), 0.05)
    assert cap.chance == pytest.approx(expected)
    assert cap.measured == pytest.approx(false / (~labels).sum())


def test_a_check_says_what_the_chance_is_of():
    found = certify(*OLD, fpr <= 0.05)
    scores, labels = sample(1, 3000, 0.3)
    assert "now, certified for all data; this or worse by chance alone: " in str(
        found.check(scores, labels)
    )
    broken = str(found.check(scores + 2, labels))
    assert "this or worse by chance alone: less than 0.01 % - ALARM" in " ".join(broken.split())
    assert "e-" not in broken


def test_groups_are_checked_one_by_one():
    scores, labels = OLD
    groups = np.where(np.random.default_rng(5).random(3000) < 0.5, "a", "b")
    found = certify(scores, labels, fpr <= 0.05, groups=groups)
    found = Certificate.from_json(found.to_json())  # as a cron job would
    assert found.check(scores, groups=groups).verdict == "ok"
    moved = np.where(groups == "b", scores + 1, scores)
    checked = found.check(moved, labels, groups=groups)
    assert checked.verdict == "broken"
    alarms = [finding.name for finding in checked.findings if finding.alarm]
    assert alarms == ['fpr on group="b" <= 0.05', "alerts, group = 'b'"]
    assert found.check(moved, groups=groups).verdict == "drift"
    gap = abs(tpr.on(group="a") - tpr.on(group="b")) <= 0.2
    shared = certify(scores, labels, [fpr <= 0.2, gap], groups=groups)
    assert shared.check(scores, labels, groups=groups).verdict == "ok"
    apart = np.where(groups == "b", scores - 3 * labels, scores)
    assert shared.check(apart, labels, groups=groups).verdict == "broken"


def test_groups_that_came_and_groups_that_went():
    scores, labels = OLD
    groups = np.where(np.random.default_rng(5).random(3000) < 0.5, "a", "b")
    found = certify(scores, labels, fpr <= 0.05, groups=groups)
    some = np.where(np.arange(3000) % 5 == 0, "new", groups)
    for given in (None, labels):
        checked = found.check(scores, given, groups=some)
        assert checked.verdict == "drift"
        assert checked.findings[-1].name == "rows of another group"
        assert checked.findings[-1].measured == 0.2
    gone = groups == "a"
    for given in (None, labels[gone]):
        checked = found.check(scores[gone], given, groups=groups[gone])
        assert checked.verdict == "ok"
        assert checked.findings[-1].measured is None  # alerts of b: no rows
        assert 'fpr on group="b" <= 0.05' not in [finding.name for finding in checked.findings]


def test_scores_are_compared_in_the_calibrated_precision():
    scores, labels = OLD
    found = certify(torch.from_numpy(scores).bfloat16(), labels, fpr <= 0.05)
    for new in (scores, torch.from_numpy(scores), scores.astype(np.float32)):
        (alerts,) = found.check(new).findings
        assert alerts.measured == found.points[0].alerts / 3000


def test_a_check_needs_a_promise_and_sensible_data():
    with pytest.raises(ValueError, match="no threshold, the goal is infeasible"):
        certify(*OLD, fpr <= 1e-5).check(OLD[0])
    found = certify(*OLD, fpr <= 0.05)
    with pytest.raises(ValueError, match="got nan in row 1"):
        found.check([0.0, np.nan])
    with pytest.raises(ValueError, match="significance must be a share"):
        found.check(OLD[0], significance=0)
    with pytest.raises(ValueError, match="Labels must be 0 or 1"):
        found.check(OLD[0], np.full(3000, 3))
    assert "<table>" in found.check(OLD[0])._repr_html_()


def test_alerts_are_compared_at_the_declared_share_of_positives():
    found = certify(*OLD, precision >= 0.5, prevalence=0.1)
    draws = [sample(300 + seed, 2000, 0.1)[0] for seed in range(300)]
    assert np.mean([found.check(scores).verdict == "drift" for scores in draws]) <= most(0.01, 300)
    (alerts,) = found.check(draws[0]).findings
    assert alerts.measured == np.mean(draws[0] > found.threshold)
    assert "expected where 10 % are positive" in str(found.check(draws[0]))
    for drifted in (draws[0] + 0.7, draws[0] - 0.7, sample(4, 2000, 0.3)[0]):
        assert found.check(drifted).verdict == "drift"


def test_with_labels_alerts_are_expected_at_the_share_of_positives_now():
    found = certify(*OLD, precision >= 0.5, prevalence=0.1)
    checked = found.check(*sample(7, 2000, 0.1))
    assert checked.verdict == "ok"
    assert "expected where 9.75 % are positive" in checked.findings[-1].expected
    drifted = found.check(*sample(4, 2000, 0.3))  # precision at the declared share still holds
    assert drifted.verdict == "ok"
    assert not drifted.findings[-1].alarm


@pytest.mark.parametrize("labelled", [True, False])
def test_alerts_alarm_where_they_leave_the_range_that_is_shown(labelled):
    found = certify(*OLD, precision >= 0.5, prevalence=0.1)
    alarms = 0
    for move in np.linspace(-0.6, 0.6, 25):
        scores, labels = sample(8, 2000, 0.1)
        alerts = found.check(scores + move, labels if labelled else None).findings[-1]
        low, high = (float(word) for word in re.findall(r"([\d.]+) %", alerts.expected)[:2])
        measured = 100 * alerts.measured
        assert alerts.alarm == (not low - 0.01 <= measured <= high + 0.01)
        alarms += alerts.alarm
    assert 5 < alarms < 20
