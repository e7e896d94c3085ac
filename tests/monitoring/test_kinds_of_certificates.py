"""Certificates of several thresholds, of days and of two sides are watched, too."""

import json

import numpy as np
import pytest
from monitoring.test_monitor import DAY, rows

from setpoint.certificates import certify, certify_three_way
from setpoint.monitoring import JointMonitor, Monitor
from setpoint.monitoring.incoming_rows import IncomingRows
from setpoint.reports.watch_page import watch_page

NAMES = ["cat", "dog", "eel"]


def outputs(n, seed=0, shift=(0.0, 0.0, 0.0)):
    """Scores and labels of three outputs, whose noise is the same for half of it."""
    random = np.random.default_rng(seed)
    labels = random.random((n, 3)) < 0.2
    noise = (random.normal(size=(n, 1)) + random.normal(size=(n, 3))) / np.sqrt(2)
    return noise + 2 * labels + shift, labels


@pytest.fixture(scope="module")
def several():
    return certify(*outputs(4000), "fpr <= 0.05", outputs=NAMES)


def test_each_output_is_tested_by_itself(several):
    monitor = several.monitor()
    times = DAY + np.arange(3000) // 300
    assert monitor.update(*outputs(3000, 1), times=times) == "holds"
    assert monitor.rows == 3000
    assert len(monitor.history.periods) == 10
    assert [name for name in monitor.tests if "alerts" not in name] == [
        f'fpr on output="{name}" <= 0.05' for name in NAMES
    ]
    assert sum(monitor.budget.values()) == pytest.approx(0.05)
    assert "no independent draws" in monitor.notes[0]
    again = Monitor.from_json(monitor.to_json())
    moved = outputs(3000, 2, (0.0, 0.6, 0.0))
    for each in (monitor, again):
        status = each.update(*moved, times=np.full(3000, DAY + 20))
        assert status.startswith('broken since 2024-05-21: fpr on output="dog"')
    assert again.to_json() == monitor.to_json()


def test_outputs_count_as_they_would_in_monitors_of_their_own(several):
    monitor, (scores, labels) = several.monitor(watch=["rates"]), outputs(3000, 3)
    labels = np.where(np.random.default_rng(0).random(labels.shape) < 0.3, -1, labels)
    monitor.update(scores, labels)
    for i, name in enumerate(NAMES):
        alone = certify(*(x[:, i] for x in outputs(4000)), "fpr <= 0.05", confidence=1 - 0.05 / 3)
        one = alone.monitor(watch=["rates"])
        one.update(scores[:, i], np.where(labels[:, i] < 0, np.nan, labels[:, i]))
        test = monitor.tests[f'fpr on output="{name}" <= 0.05']
        assert test.log_evidence == pytest.approx(one.tests["fpr <= 0.05"].log_evidence, rel=1e-12)


def test_outputs_are_recalibrated_together(several):
    monitor = several.monitor()
    assert monitor.recalibrate(*outputs(6000, 4)).outputs == tuple(NAMES)
    assert monitor.update(*outputs(500, 5)) == "holds"
    goals = dict.fromkeys(NAMES, "fpr <= 0.05")
    named = certify(*outputs(4000), goals, outputs=NAMES).monitor()
    assert named.update(*outputs(500, 5)) == "holds"
    with pytest.raises(ValueError, match="a goal of its own"):
        named.recalibrate(*outputs(6000, 4))


def test_what_goes_by_rows_is_refused_for_outputs_with_a_recipe_that_runs(several):
    monitor = several.monitor()
    with pytest.raises(ValueError, match=r"certify\(scores\[:, i\], labels\[:, i\], goal, conf"):
        monitor.update(*outputs(100, 1), ids=np.arange(100))
    assert monitor.rows == 0
    scores, labels = outputs(4000)
    monitors = [
        certify(scores[:, i], labels[:, i], "fpr <= 0.05", confidence=1 - 0.05 / 3).monitor(
            0.05 / 3
        )
        for i in range(3)
    ]
    scores, labels = outputs(2000, 1, (0.8, 0.0, 0.0))
    for i, each in enumerate(monitors):
        each.update(scores[:, i], ids=np.arange(2000))
        each.add_labels(np.arange(2000), labels[:, i])
    assert [each.verdict for each in monitors] == ["broken", "holds", "holds"]


def test_outputs_raise_no_more_false_alarms_than_promised():
    """60 streams, 10 looks each, outputs alike by half: 5 % and 3 standard errors are 13.4 %."""
    alarms = 0
    for seed in range(60):
        certificate = certify(*outputs(1500, seed), "fpr <= 0.1", outputs=NAMES)
        monitor = certificate.monitor()
        for look in range(10):
            monitor.update(*outputs(300, 1000 + 10 * seed + look))
        alarms += not monitor
    assert alarms / 60 < 0.134


def alerts_of_days(counts, first, threshold):
    """Scores and times of days with 40 rows and so many alerts."""
    scores = threshold - 1 + 2.0 * (np.arange(40) < np.array(counts)[:, None])
    return scores.reshape(-1), np.repeat(first + np.arange(len(counts)), 40)


@pytest.fixture(scope="module")
def capacity():
    scores, labels = rows(8000)
    times = DAY - 200 + np.arange(8000) // 40
    return certify(scores, labels, "alerts <= 8 per day on 95 % of days", times=times)


def test_days_with_too_many_alerts_are_counted_and_refute_a_capacity(capacity):
    monitor = capacity.monitor()
    scores, times = alerts_of_days([8, 9, 0, 20, 8], DAY, capacity.threshold)
    for part in np.array_split(np.arange(200), 23):  # days in pieces
        monitor.update(scores[part], times=times[part])
        monitor = Monitor.from_json(monitor.to_json())
    watch = monitor.rates[0]
    assert (watch.events, watch.relevant) == (2, 4)  # the last day is not over yet
    counts = monitor.history.counts("rates", watch.name)
    assert counts.tolist() == [[0, 1], [1, 1], [0, 1], [1, 1], [0, 1]]
    assert monitor.status == "holds"
    scores, times = alerts_of_days([3] * 10 + [12, 3, 12] * 10, DAY + 5, capacity.threshold)
    monitor.update(scores, times=times)
    assert monitor.status.startswith("broken since 2024-05-")
    assert "days with more than 8 alerts" in monitor.status
    assert "Days with more than 8 alerts" in watch_page(monitor)
    assert monitor.metrics()["status"] == 2


def test_a_day_that_is_over_its_capacity_counts_at_once(capacity):
    monitor = capacity.monitor()
    scores, times = alerts_of_days([9], DAY, capacity.threshold)
    monitor.update(scores[:8], times=times[:8])
    assert monitor.rates[0].relevant == 0
    monitor.update(scores[8:9], times=times[8:9])
    assert (monitor.rates[0].events, monitor.rates[0].relevant) == (1, 1)
    monitor.update(scores[9:], times=times[9:])
    monitor.update(scores[:1], times=times[:1] + 1)
    assert (monitor.rates[0].events, monitor.rates[0].relevant) == (1, 1)


def test_a_capacity_goes_by_its_own_period_and_needs_times(capacity):
    monitor = capacity.monitor(by="month")
    assert monitor.by == "day"
    assert list(monitor.tests) == ["alerts <= 8 per day on 0.95 of days"]
    assert "the draws are days" in monitor.notes[0]
    with pytest.raises(ValueError, match="goes by time: pass times="):
        monitor.update(rows(10)[0])
    renewed = monitor.recalibrate(*rows(8000, 5), times=DAY + np.arange(8000) // 40)
    assert renewed.certified


def test_a_capacity_at_its_limit_raises_no_more_false_alarms_than_promised(capacity):
    """100 streams of 120 days, 5 % of them over: 5 % alarms and 3 standard errors are 11.5 %."""
    alarms = 0
    for seed in range(100):
        watch, best = capacity.monitor().rates[0], -np.inf
        for day, over in enumerate(np.random.default_rng(seed).random(120) < 0.05):
            alerts = np.ones(9 if over else 8, bool)
            none = np.zeros(len(alerts), bool)
            decided = IncomingRows(none, alerts, none, none, {})
            best = max(best, watch.add(decided, f"day {day}")[1])
        alarms += best >= np.log(20)
    assert alarms / 100 < 0.115


def test_both_sides_of_three_ways_are_watched():
    scores, labels = rows(20_000, gap=4.0)
    found = certify_three_way(scores, labels, "precision >= 0.97", "npv >= 0.99")
    accept, reject = found.sides
    assert (accept.threshold, reject.threshold) == (found.upper, found.lower)
    assert accept.points[0].alerts == (scores > found.upper).sum()
    assert reject.points[0].alerts == (scores > found.lower).sum()
    monitor = found.monitor(0.04)
    budgets = [sum(part.budget.values()) for part in monitor.parts.values()]
    assert budgets == pytest.approx([0.02, 0.02])
    assert monitor.update(*rows(6000, 1, gap=4.0)) == "holds"
    assert (monitor.exit_code, bool(monitor)) == (0, True)
    again = JointMonitor.from_json(monitor.to_json())
    worse = rows(6000, 2, gap=2.0)
    for each in (monitor, again):
        assert each.update(*worse).startswith("reject: broken since update 2: npv")
        assert (each.verdict, each.exit_code, bool(each)) == ("broken", 1, False)
        assert "accept: drifting" in each.status
        assert each.metrics()["reject/status"] == 2
    assert "npv >= 0.99" in str(again)


def test_features_are_tested_on_one_side_of_three_ways():
    found = certify_three_way(*rows(20_000, gap=4.0), "precision >= 0.97", "npv >= 0.99")
    monitor, age = found.monitor(features=["age"]), np.random.default_rng(0).normal(size=6000)
    monitor.update(*rows(3000, 1, gap=4.0), features={"age": age[:3000]})
    status = monitor.update(*rows(3000, 2, gap=4.0), features={"age": age[3000:] + 2})
    assert status.startswith("accept: drifting: feature age")


def test_ties_broken_by_lot_are_decided_by_the_ids_of_rows():
    def few_values(n, seed):
        scores, labels = rows(n, seed)
        return np.round(2 * scores) / 2, labels, np.arange(n) + 10_000 * seed

    scores, labels, ids = few_values(6000, 1)
    certificate = certify(scores, labels, "fpr <= 0.05", ties="lot", ids=ids)
    monitor = certificate.monitor()
    with pytest.raises(ValueError, match="drawn from the row's id: pass ids="):
        monitor.update(scores, labels)
    assert monitor.rows == 0
    scores, labels, ids = few_values(4000, 2)
    assert monitor.update(scores, labels, ids=ids) == "holds"
    accepted = certificate.decide(scores, ids=ids)
    assert monitor.rates[0].events == (accepted & ~labels).sum()
    assert monitor.history.counts("alerts", "alerts").tolist() == [[accepted.sum(), 4000]]
    scores, labels, ids = few_values(4000, 3)
    assert monitor.update(scores + 0.5, labels, ids=ids).startswith("broken since update 2")
    with pytest.raises(ValueError, match="ties broken by lot: pass ids="):
        monitor.recalibrate(scores + 0.5, labels)
    renewed = monitor.recalibrate(scores + 0.5, labels, ids=ids)
    assert renewed.lots
    assert monitor.scores.cells is not None  # the rows are the reference of ranks


def test_three_ways_join_labels_later_and_refuse_a_changed_state():
    found = certify_three_way(*rows(20_000, gap=4.0), "precision >= 0.97", "npv >= 0.99")
    monitor, (scores, labels) = found.monitor(), rows(6000, 2, gap=2.0)
    monitor.update(scores, ids=np.arange(6000))
    status = monitor.add_labels(np.arange(6000), labels)
    assert status.startswith("accept: broken since update 1: precision")
    assert "; reject: broken since update 1: npv" in status
    body = json.loads(monitor.to_json())
    body["parts"]["accept"]["rows"] += 1
    for text, message in (
        (json.dumps(body), "checksum does not fit"),
        (json.dumps({**body, "parts": {}}), "no state of a joint monitor"),
        (monitor.parts["accept"].to_json(), "no state of a joint monitor"),
    ):
        with pytest.raises(ValueError, match=message):
            JointMonitor.from_json(text)
    few = certify_three_way(*rows(30), "precision >= 0.99", "npv >= 0.999")
    with pytest.raises(ValueError, match="There are no thresholds"):
        few.monitor()
