"""Recalibration renews the same promise and keeps an account of it."""

import numpy as np
import pytest
from monitoring.test_kinds_of_rows import money
from monitoring.test_monitor import DAY, days, rows

from setpoint.certificates import certify
from setpoint.monitoring import Monitor
from setpoint.monitoring.budgets import LABELLED, UNLABELLED


def test_given_thresholds_are_proved_again_and_not_replaced():
    certificate = certify(*rows(5000), "fpr <= 0.05", thresholds=2.0, candidates=3)
    monitor = certificate.monitor()
    renewed = monitor.recalibrate(*rows(6000, 1))
    assert (renewed.threshold, renewed.given_thresholds, renewed.candidates) == (2.0, True, 3)
    assert not monitor.recalibrate(*rows(6000, 2, 1.0))  # at 2.0 the bound does not hold any more
    moved = monitor.recalibrate(*rows(6000, 3, 1.0), thresholds=3.0, candidates=1)
    assert (moved.threshold, moved.candidates) == (3.0, 1)


def test_costs_by_amounts_are_renewed():
    scores, labels, amounts = money(1)
    goal = "cost(miss=1, false_alarm=2) <= 1.4"
    monitor = certify(scores, labels, goal, amounts=amounts, largest_amount=100).monitor()
    with pytest.raises(ValueError, match="costs by amounts: pass amounts="):
        monitor.recalibrate(scores, labels)
    scores, labels, amounts = money(2)
    renewed = monitor.recalibrate(scores, labels, amounts=amounts)
    assert renewed.certified
    assert renewed.largest_amount == 100


def test_a_rolling_window_spends_equal_parts_and_no_more_than_there_is():
    monitor = certify(*rows(5000), "fpr <= 0.05").monitor()
    for month in range(12):
        assert monitor.recalibrate(*rows(6000, month + 1), spend=1 / 12)
    assert sum(entry["delta"] for entry in monitor.spent) == pytest.approx(0.05)
    with pytest.raises(ValueError, match="more than is left"):
        monitor.recalibrate(*rows(6000, 50), spend=1 / 12)


def test_the_history_of_earlier_certificates_is_kept():
    certificate = certify(*rows(5000), "fpr <= 0.05")
    monitor = days(certificate.monitor(), 15, shift=lambda day: 0.5 * (day > 4))
    status = monitor.status
    assert status.startswith("broken")
    assert monitor.recalibrate(*rows(5000, 77, 0.5), times=np.arange(5000))
    assert monitor.spent[0]["before"] == status
    assert monitor.history.earlier[0].name == str(DAY)
    monitor.update(*rows(500, 5, 0.5), times=np.full(500, DAY + 30))
    assert len(monitor.to_frame()) == 16
    assert monitor.to_frame()["present"].tolist() == [False] * 15 + [True]
    assert monitor.status == "holds"
    again = Monitor.from_json(monitor.to_json())
    assert again.to_json() == monitor.to_json()


def test_without_labels_alerts_and_scores_have_most_of_the_false_alarms():
    certificate = certify(*rows(5000), "fpr <= 0.05")
    free, labelled, late = (certificate.monitor() for _ in range(3))
    free.update(rows(100, 1)[0])
    labelled.update(*rows(100, 1))
    late.update(rows(100, 1)[0], ids=np.arange(100))
    assert free.budget["alerts"] == pytest.approx(0.05 * UNLABELLED["alerts"])
    assert free.budget["fpr <= 0.05"] == pytest.approx(0.05 * UNLABELLED["rates"])
    for other in (labelled, late):
        assert other.budget["fpr <= 0.05"] == pytest.approx(0.05 * LABELLED["rates"])
    assert sum(free.budget.values()) == pytest.approx(0.05)
    assert Monitor.from_json(free.to_json()).budget == free.budget
