"""A certificate after the first day."""

import json

import numpy as np
import pytest

from setpoint.certificates import certify
from setpoint.monitoring import counted_rows, pending_labels
from setpoint.monitoring.budgets import LABELLED, UNLABELLED, WATCHED
from setpoint.monitoring.history import MOST_PERIODS
from setpoint.monitoring.monitor import Monitor
from setpoint.monitoring.watched_scores import AlertWatch
from setpoint.rates import fpr, precision, recall

DAY = np.datetime64("2024-05-01")
SECONDS = DAY + np.arange(3000, dtype="timedelta64[s]")
"""Times that say in which order rows came."""


def rows(n, seed=0, shift=0.0, positives=0.2, gap=2.0):
    random = np.random.default_rng(seed)
    labels = random.random(n) < positives
    return random.normal(size=n) + gap * labels + shift, labels


@pytest.fixture(scope="module")
def certificate():
    return certify(*rows(5000), "fpr <= 0.05")


def days(monitor, count, per_day=500, shift=lambda day: 0.0, labelled=True):
    for day in range(count):
        scores, labels = rows(per_day, 1000 + day, shift(day))
        times = np.full(per_day, DAY + day)
        monitor.update(scores, labels if labelled else None, times=times)
    return monitor


def test_it_holds_where_nothing_changes(certificate):
    monitor = days(certificate.monitor(), 20)
    assert monitor.status == "holds"
    assert monitor
    assert monitor.exit_code == 0
    assert monitor.rows == 10_000


def test_a_new_monitor_has_counted_nothing_and_names_its_updates_from_one(certificate):
    monitor = certificate.monitor()
    assert (monitor.rows, monitor.updates, monitor.history.every) == (0, 0, [])
    monitor.update(*rows(10, 1))
    monitor.update(*rows(20, 2))
    assert (monitor.rows, monitor.updates) == (30, 2)
    assert [period.name for period in monitor.history.periods] == ["update 1", "update 2"]


def test_the_share_of_alerts_to_be_expected_and_what_is_compared_with_it():
    usual, none, unknown = (
        AlertWatch("alerts", (), k, n) for k, n in ((30, 600), (0, 600), (0, 0))
    )
    assert (usual.share, none.share, unknown.share) == (0.05, 0.0, 0.0)
    assert usual.ratio(0.1) == pytest.approx(2)
    assert none.ratio(0.01) == pytest.approx(12)  # half an alert of 600
    assert unknown.ratio(0.01) == pytest.approx(0.02)
    unknown.expect(0.05)
    assert unknown.urn is None
    assert (unknown.add(np.ones(3, bool)), unknown.log_evidence) == (-np.inf, 0.0)


def test_a_break_is_told_with_its_day_and_its_rate(certificate):
    monitor = days(certificate.monitor(), 20, shift=lambda day: 0.4 * (day >= 10))
    assert monitor.status.startswith("broken since 2024-05-11: fpr ")
    assert monitor.exit_code == 1
    value, (low, high) = monitor.rate_since("fpr <= 0.05")
    assert 0.05 < low < value < high


def test_drift_without_labels_is_told_with_its_size(certificate):
    shift = lambda day: 0.4 * (day >= 10)  # noqa: E731
    monitor = days(certificate.monitor(watch=["alerts"]), 30, shift=shift, labelled=False)
    assert monitor.status.startswith("drifting: alert share 1.")
    assert monitor.since("alerts") == "2024-05-11"
    assert monitor.verdict == "drifting"


def test_scores_tell_which_part_moved(certificate):
    reference = rows(5000)[0]
    monitor = certificate.monitor(watch=["scores"], reference=reference)
    assert monitor.update(rows(4000, 7, 0.5)[0]).startswith("drifting: scores above the threshold")
    monitor = certificate.monitor(watch=["scores"], reference=reference)
    scores = rows(4000, 7)[0]
    scores[scores > certificate.threshold] += 1  # further up: no more alerts, fewer doubtful ones
    status = monitor.update(scores)
    assert status.startswith("drifting: scores at the threshold 0.")


def test_json_keeps_everything_and_goes_on_alike(certificate):
    first = days(certificate.monitor(), 5)
    again = Monitor.from_json(first.to_json())
    assert again.to_json() == first.to_json()
    more = {"times": np.full(400, DAY + 9)}
    for monitor in (first, again):
        monitor.update(*rows(400, 9, 0.3), **more)
    assert again.to_json() == first.to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.replace('"rows": 500', '"rows": 501'), "checksum does not fit"),
        (lambda t: t[:-20], "not JSON"),
        (lambda t: t.replace("setpoint monitor", "other"), "no state of a monitor"),
        (lambda t: "[]", "no JSON object"),
    ],
)
def test_a_changed_state_is_refused(certificate, change, message):
    monitor = certificate.monitor()
    monitor.update(*rows(500))
    with pytest.raises(ValueError, match=message):
        Monitor.from_json(change(monitor.to_json()))


def test_evidence_does_not_depend_on_the_size_of_updates(certificate):
    scores, labels = rows(3000, 3)
    one, other = certificate.monitor(), certificate.monitor()
    one.update(scores, labels, times=SECONDS)
    for part in np.array_split(np.arange(3000), 37):
        other.update(scores[part], labels[part], times=SECONDS[part])
    for name in ("fpr <= 0.05", "alerts"):
        alike = pytest.approx(one.tests[name].log_evidence, rel=1e-8)
        assert other.tests[name].log_evidence == alike


def test_the_budget_adds_up_to_the_false_alarms():
    goal = [fpr <= 0.05, precision >= 0.5, recall >= 0.5]
    monitor = certify(*rows(20_000), goal).monitor(features=["a", "b"])
    assert sum(monitor.budget.values()) == pytest.approx(0.05)
    assert len(monitor.budget) == 3 + 1 + 1 + 2
    two = certify(*rows(5000), "fpr <= 0.05").monitor(watch=["rates", "alerts"])
    assert set(two.budget) == {"fpr <= 0.05", "alerts"}


@pytest.mark.parametrize(
    ("goal", "change"),
    [
        ("recall >= 0.9", {"gap": 1.3}),
        ("precision >= 0.6", {"positives": 0.08}),
        ("coverage <= 0.25", {"shift": 0.5}),
        ("error <= 0.17", {"gap": 0.5}),
        ("recall >= 0.8 and fpr <= 0.2", {"gap": 1.0}),
    ],
)
def test_every_rate_can_break(goal, change):
    certificate = certify(*rows(8000), goal)
    assert certificate
    monitor = certificate.monitor(watch=["rates"])
    assert monitor.update(*rows(3000, 1)) == "holds"
    assert monitor.update(*rows(6000, 2, **change)).startswith("broken since update 2")


def test_coverage_needs_no_labels():
    scores = rows(4000)[0]
    monitor = certify(scores, None, "coverage <= 0.1").monitor(watch=["rates"])
    assert monitor.update(rows(2000, 1)[0]) == "holds"
    assert monitor.update(rows(2000, 2, 0.8)[0]).startswith("broken since update 2: coverage")


def test_groups_have_tests_of_their_own():
    scores, labels = rows(8000)
    group = np.where(np.random.default_rng(1).random(8000) < 0.5, "a", "b")
    certificate = certify(scores, labels, "fpr <= 0.05", groups={"site": group})
    monitor = certificate.monitor()
    scores, labels = rows(4000, 2)
    group = np.array(["a", "b"] * 2000)
    scores[group == "b"] += 0.5
    status = monitor.update(scores, labels, groups={"site": group})
    assert 'fpr on site="b"' in status
    assert [name for name in monitor.alarms if "site" in name and "fpr" in name] == [
        'fpr on site="b" <= 0.05'
    ]
    with pytest.raises(ValueError, match="No threshold for site = 'c'"):
        monitor.update(scores, labels, groups={"site": np.array(["c"] * 4000)})


def test_gaps_are_refuted_through_their_shares():
    scores, labels = rows(20_000)
    group = np.array(["a", "b"] * 10_000)
    sentence = 'abs(recall on g="a" - recall on g="b") <= 0.1 and fpr <= 0.1'
    certificate = certify(scores, labels, sentence, groups={"g": group})
    assert certificate
    monitor = certificate.monitor(watch=["rates"])
    assert monitor.update(*rows(6000, 1), groups={"g": group[:6000]}) == "holds"
    scores, labels = rows(10_000, 2)
    scores[(group[:10_000] == "b") & labels] -= 1.5
    assert "recall" in monitor.update(scores, labels, groups={"g": group[:10_000]})


def test_clusters_are_one_draw_each():
    """20 copies of every row: as 20 rows they would break the bound, as one they do not."""
    scores, labels = rows(5000)
    certificate = certify(scores, labels, "fpr <= 0.05")
    monitor = certificate.monitor(watch=["rates"])
    scores, labels = rows(60, 25, 0.3)
    copies, clusters = np.repeat(np.arange(60), 20), np.repeat(np.arange(60), 20)
    assert monitor.update(scores[copies], labels[copies], clusters=clusters) == "holds"
    (watch,) = monitor.rates
    assert watch.relevant == pytest.approx((~labels).sum())
    assert "left out" not in str(monitor)
    monitor.update(scores[copies], labels[copies], clusters=clusters)  # seen before
    assert "1,200 rows of clusters that were counted before are left out" in str(monitor)
    assert Monitor.from_json(monitor.to_json()).clusters.left_out == 1200
    assert watch.relevant == pytest.approx((~labels).sum())


def test_labels_that_come_later_are_joined_by_id(certificate):
    scores, labels = rows(2000, 4, 0.6)
    ids = np.arange(2000).astype(str)
    at_once, later = certificate.monitor(watch=["rates"]), certificate.monitor(watch=["rates"])
    at_once.update(scores, labels)
    later.update(scores, ids=ids)
    assert later.rates[0].value is None
    shuffled = np.random.default_rng(0).permutation(2000)
    again = Monitor.from_json(later.to_json())
    assert again.add_labels(ids[shuffled], labels[shuffled]).startswith("broken")
    assert again.rates[0].value == at_once.rates[0].value
    again.add_labels(["0", "nobody"], [1, 1])
    assert again.pending.unknown == 2
    assert again.rates[0].relevant == at_once.rates[0].relevant
    with pytest.raises(ValueError, match="occurs twice"):
        later.update(scores[:2], ids=["7", "8"])
    with pytest.raises(ValueError, match="has two labels"):
        later.add_labels(["7", "7"], [0, 1])


def test_labels_of_alerts_alone_test_precision_and_nothing_else():
    goal = [fpr <= 0.1, precision >= 0.6]
    certificate = certify(*rows(8000), goal)
    monitor = certificate.monitor(watch=["rates"])
    scores, labels = rows(4000, 3, positives=0.08)
    shown = np.where(certificate.decide(scores), labels.astype(float), np.nan)
    assert "broken since update 1: precision" in monitor.update(scores, shown)
    by_name = {watch.name: watch for watch in monitor.rates}
    assert by_name["fpr <= 0.1"].value is None
    assert "`fpr <= 0.1` is not tested" in str(monitor)
    known = "labels are known of alerts and of none of the other rows"
    assert known in monitor.notes[0]


def test_labels_that_were_refused_count_once_the_others_come(certificate):
    scores, labels = rows(3000, 6)
    ids, alerts = np.arange(3000).astype(str), certificate.decide(scores)
    monitor = certificate.monitor(watch=["rates"])
    monitor.update(scores, ids=ids)
    monitor.add_labels(ids[alerts], labels[alerts])
    assert monitor.refused
    monitor.add_labels(ids[~alerts], labels[~alerts])
    assert not monitor.refused
    (watch,) = monitor.rates
    assert (watch.events, watch.relevant) == ((alerts & ~labels).sum(), (~labels).sum())


def sampled(certificate, seed, shift=0.0, share=0.1, n=10_000):
    """All alerts are labelled, of the other rows a tenth."""
    scores, labels = rows(n, seed, shift)
    shares = np.where(certificate.decide(scores), 1.0, share)
    shown = np.random.default_rng(10_000 + seed).random(n) < shares
    return scores, np.where(shown, labels.astype(float), np.nan), shares


def test_known_sampling_shares_give_an_unbiased_rate_and_few_false_alarms():
    """The rate is at its limit: at most 5 % of 200 monitors may alarm, 3 se: 9.6 %."""
    certificate = certify(*rows(5000), "fpr <= 0.05")
    scores, labels = rows(400_000, 99)
    shift = certificate.threshold - np.sort(scores[~labels])[-int(0.05 * (~labels).sum())]
    alarms, values = 0, []
    for seed in range(200):
        monitor = certificate.monitor(watch=["rates"])
        scores, shown, shares = sampled(certificate, seed, shift, n=3000)
        alarms += monitor.update(scores, shown, label_shares=shares) != "holds"
        values.append(monitor.rates[0].value)
    assert alarms / 200 < 0.096
    assert np.mean(values) == pytest.approx(0.05, abs=0.003)


def test_known_sampling_shares_find_a_break(certificate):
    monitor = certificate.monitor(watch=["rates"])
    scores, shown, shares = sampled(certificate, 1, 0.5)
    assert monitor.update(scores, shown, label_shares=shares).startswith("broken since update 1")
    low, high = monitor.rates[0].interval(0.05)
    assert 0.05 < low < monitor.rates[0].value < high
    monitor.update(scores, shown, label_shares=shares / 20)  # larger weights than all before
    assert monitor.rates[0].log_evidence < np.inf
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        monitor.update(scores, shown, label_shares=0.0)


def test_features_are_watched_on_request(certificate):
    random = np.random.default_rng(2)
    monitor = certificate.monitor(features=["age"], watch=["alerts"])
    scores, _ = rows(2000, 1)
    assert monitor.update(scores, features={"age": random.normal(40, 5, 2000)}) == "holds"
    status = monitor.update(scores, features={"age": random.normal(46, 5, 2000)})
    assert status.startswith("drifting: feature age: high values")
    with pytest.raises(ValueError, match="watches the features"):
        monitor.update(scores)


def test_a_feature_that_becomes_missing_is_seen(certificate):
    random = np.random.default_rng(2)
    monitor = certificate.monitor(features=["age"], watch=["alerts"])
    scores, _ = rows(2000, 1)
    age = random.normal(40, 5, 2000)
    age[random.random(2000) < 0.02] = np.nan
    assert monitor.update(scores, features={"age": age}) == "holds"
    age[random.random(2000) < 0.3] = np.nan
    status = monitor.update(scores, features={"age": age})
    assert status.startswith("drifting: feature age: low or missing values")
    assert Monitor.from_json(monitor.to_json()).status == status


def test_the_day_of_a_break_does_not_wander(certificate):
    monitor = days(certificate.monitor(watch=["rates"]), 30, shift=lambda day: 0.5 * (day >= 10))
    since = monitor.since("fpr <= 0.05")
    assert since == "2024-05-11"
    rate = monitor.rate_since("fpr <= 0.05")[0]
    for day in range(30, 1300):
        monitor.update(*rows(5, day), times=np.full(5, DAY + day))
    again = Monitor.from_json(monitor.to_json())
    assert again.since("fpr <= 0.05") == since
    assert f"broken since {since}" in again.status
    assert 0.05 < again.rate_since("fpr <= 0.05")[0] < rate


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scores": [1.0, float("nan")]}, "Scores must be finite; got nan in row 1"),
        ({"labels": [0, 2]}, "Labels must be 0 or 1, or NaN; got 2 in row 1"),
        ({"times": ["2024-04-30", "2024-05-01"]}, "The clock goes back"),
        ({"times": [3.0, 4.0]}, "Times were like"),
        ({"times": ["yesterday", "2024-06-01"]}, "times has 'yesterday' in row 0"),
        ({"ids": ["x", "x"]}, "occurs twice"),
        ({"labels": [1, 0, 1]}, "labels must have the shape"),
    ],
)
def test_a_bad_update_counts_nothing(certificate, given, message):
    monitor = days(certificate.monitor(), 3)
    before = monitor.to_json()
    with pytest.raises((ValueError, TypeError), match=message):
        monitor.update(**{"scores": [0.1, 0.2], **given})
    assert monitor.to_json() == before


def test_rows_that_wait_are_dropped_before_the_state_is_too_long(certificate, monkeypatch):
    monkeypatch.setattr(pending_labels, "MOST_CHARACTERS", 1000)
    monitor, names = certificate.monitor(), [f"{i:048d}" for i in range(60)]  # 50 with the quotes
    for part in (slice(0, 15), slice(15, 60)):
        monitor.update(rows(60, 1)[0][part], ids=names[part], times=SECONDS[part])
        monitor = Monitor.from_json(monitor.to_json())
    assert list(monitor.pending.waiting) == names[40:]
    assert monitor.pending.dropped == 40
    monitor.add_labels(names[40:42], [0, 0])
    monitor.update(rows(60, 2)[0][:2], ids=["x" * 48, "y" * 48], times=SECONDS[60:62])
    assert monitor.pending.dropped == 40  # those with labels have made room
    monkeypatch.setattr(pending_labels, "MOST_WAITING", 5)
    monitor.update(rows(60, 2)[0][:1], ids=["another"])
    assert list(monitor.pending.waiting) == [*names[58:], "x" * 48, "y" * 48, "another"]


def test_memory_is_bounded(certificate):
    monitor = certificate.monitor(watch=["rates", "alerts"])
    scores, labels = rows(4 * MOST_PERIODS, 8)
    for place in range(0, 4 * MOST_PERIODS, 2):
        monitor.update(scores[place : place + 2], labels[place : place + 2])
    assert len(monitor.history.periods) <= MOST_PERIODS
    assert sum(period.rows for period in monitor.history.periods) == 4 * MOST_PERIODS
    assert len(monitor.to_json()) < 300_000


def test_recalibration_spends_its_share_and_starts_anew(certificate):
    monitor = days(certificate.monitor(), 15, shift=lambda day: 0.5 * (day > 4))
    assert monitor.verdict == "broken"
    fresh = monitor.recalibrate(*rows(5000, 77, 0.5))
    assert fresh
    assert fresh.confidence == pytest.approx(1 - 0.05 / 2)
    assert fresh.threshold > certificate.threshold
    assert monitor.status == "holds"
    assert monitor.update(*rows(3000, 78, 0.5), times=np.full(3000, DAY + 30)) == "holds"
    second = monitor.recalibrate(*rows(5000, 79, 0.5))
    assert second.confidence == pytest.approx(1 - 0.05 / 6)
    assert [round(each["delta"], 5) for each in monitor.spent] == [0.025, 0.00833]
    hopeless = monitor.recalibrate(*rows(20, 80))
    assert not hopeless
    assert monitor.certificate is second
    assert Monitor.from_json(monitor.to_json()).spent == monitor.spent


def test_numbers_for_other_tools_are_plain(certificate):
    monitor = days(certificate.monitor(), 3)
    found = monitor.metrics()
    assert json.loads(json.dumps(found)) == found
    assert found["status"] == 0.0
    assert 0 < found["fpr_low"] < found["fpr"] < found["fpr_high"] < 0.1
    assert all(name.replace("_", "").isalnum() for name in found)
    frame = monitor.to_frame()
    assert list(frame["period"]) == ["2024-05-01", "2024-05-02", "2024-05-03"]
    assert frame["rows"].sum() == monitor.rows


def test_a_certificate_that_is_none_cannot_be_watched():
    with pytest.raises(ValueError, match="There is no threshold"):
        certify(*rows(20), "fpr <= 0.001").monitor()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"false_alarm": 5}, "false_alarm must be a share"),
        ({"watch": ["all"]}, "watch is some of rates, alerts, scores"),
        ({"by": "decade"}, "by is one of hour, day, week, month, quarter, year"),
    ],
)
def test_wrong_options_are_told(certificate, given, message):
    with pytest.raises(ValueError, match=message):
        certificate.monitor(**given)


def test_a_certificate_of_clusters_is_watched_by_clusters():
    scores, labels = rows(12_000)
    clusters = np.arange(12_000) // 2
    certificate = certify(scores, labels, "fpr <= 0.1", clusters=clusters)
    assert certificate
    monitor = certificate.monitor()
    with pytest.raises(ValueError, match="pass clusters="):
        monitor.update(scores, labels)
    assert monitor.rows == 0
    assert monitor.update(*rows(4000, 5), clusters=clusters[:4000]) == "holds"
    assert monitor.alerts[0].urn.balls[0].sum() == pytest.approx(6001)


@pytest.mark.parametrize("seed", range(4))
def test_labels_of_alerts_alone_are_no_evidence_row_by_row(seed):
    monitor = certify(*rows(4000, seed), "fpr <= 0.2").monitor(watch=["rates"])
    scores, labels = rows(400, seed + 100)
    for score, label in zip(scores, labels, strict=True):
        known = label if monitor.certificate.decide(score) else np.nan
        monitor.update([score], [known])
    assert monitor.status == "holds"
    first = certify(*rows(4000, 1), "fpr <= 0.2").monitor(watch=["rates"])
    assert first.update([99.0], [0]) == "holds"  # an alert, and no other row so far


def test_clusters_with_late_labels_are_refused():
    scores, labels = rows(1000, 3)
    monitor = certify(scores, labels, "fpr <= 0.2", clusters=np.arange(1000) // 2).monitor()
    clusters = np.arange(1000) // 2
    with pytest.raises(ValueError, match="leave ids= out"):
        monitor.update(scores, ids=np.arange(1000), clusters=clusters)
    with pytest.raises(ValueError, match="pass clusters="):
        monitor.recalibrate(scores, labels)
    assert monitor.rows == 0


@pytest.mark.parametrize("parts", [LABELLED, UNLABELLED])
def test_the_parts_of_a_budget_are_shares_and_features_get_a_tenth_more(parts):
    assert sum(parts[kind] for kind in WATCHED) == pytest.approx(1)
    assert parts["features"] == 0.1


def test_an_hour_without_rows_changes_nothing(certificate):
    monitor = certificate.monitor()
    before = monitor.to_json()
    assert monitor.update([], [], times=[]) == "holds"
    assert monitor.to_json() == before


def test_an_id_counts_once_among_the_latest_in_bounded_memory(certificate, monkeypatch):
    monkeypatch.setattr(counted_rows, "MOST_IDS", 300)
    monitor, (scores, labels) = certificate.monitor(), rows(200)
    for start in (0, 200, 400):
        monitor.update(scores, labels, ids=np.arange(start, start + 200))
        monitor = Monitor.from_json(monitor.to_json())
    assert monitor.counted_before([599, "300", 299, 600]).tolist() == [True, True, False, False]
    before = monitor.to_json()
    with pytest.raises(ValueError, match=r"'45[01]' occurs twice.*counted \(2 rows\)"):
        monitor.update(scores[:3], labels[:3], ids=[700, 450, 451])
    assert monitor.to_json() == before


def test_an_update_of_very_many_periods_puts_neighbours_together(monkeypatch):
    monkeypatch.setattr("setpoint.monitoring.monitor.MOST_PERIODS_AT_ONCE", 10)
    scores, labels = np.arange(95.0), np.arange(95) % 3 == 0
    monitor = certify(scores, labels, "fpr <= 0.5").monitor()
    monitor.update(scores, labels, times=np.arange(95))
    periods = monitor.history.periods
    assert [period.rows for period in periods] == [10] * 9 + [5]
    assert (periods[0].name, periods[-1].name) == ("0 to 9", "90 to 94")
    assert monitor.rows == 95
