"""Clusters, amounts, many groups, gaps: what a monitor counts of rows that are not plain ones."""

import tracemalloc
import zlib
from base64 import b64encode

import numpy as np
import pytest
from monitoring.test_monitor import DAY, rows

from setpoint import Problem
from setpoint.certificates import certify, certify_shifts
from setpoint.monitoring import Monitor, watched_regions
from setpoint.monitoring.counted_rows import SeenClusters, cluster_hashes, one_row_each


def clusters_with_positions(seed, clusters=1500, shift=0.0):
    """Clusters of four rows whose scores rise from the first to the last."""
    random = np.random.default_rng(seed)
    labels = random.random(4 * clusters) < 0.2
    own = np.repeat(random.normal(size=clusters) * 0.5, 4)
    scores = (
        random.normal(size=4 * clusters) + 2 * labels + own + np.tile([0, 0.5, 1, 1.5], clusters)
    )
    names = np.repeat([f"{seed}-{i}" for i in range(clusters)], 4)
    return scores + shift, labels, names


def test_any_row_of_a_cluster_is_compared_with_any_row():
    """Nothing changes: at most 5 % of 20 monitors may alarm, 3 standard errors: 3.9 of them."""
    scores, labels, names = clusters_with_positions(999, 4000)
    certificate = certify(scores, labels, "fpr <= 0.1", clusters=names)
    alarms = 0
    for seed in range(20):
        monitor = certificate.monitor()
        for part in range(3):
            scores, labels, names = clusters_with_positions(100 * seed + part)
            monitor.update(scores, labels, clusters=names)
        alarms += not monitor
    assert alarms <= 3
    scores, labels, names = clusters_with_positions(5, shift=0.7)
    assert certificate.monitor().update(scores, labels, clusters=names).startswith("broken")


def test_the_row_that_stands_for_a_cluster_is_any_with_equal_chance():
    names = cluster_hashes(np.repeat(np.arange(4000), 4))
    drawn = one_row_each(names)
    assert len(drawn) == len(np.unique(names)) == 4000
    counts = np.bincount(drawn % 4, minlength=4)
    assert abs(counts - 1000).max() < 4 * (4000 * 0.25 * 0.75) ** 0.5
    order = np.random.default_rng(0).permutation(4000) * 4  # blocks in another order
    moved = (order[:, None] + np.arange(4)).reshape(-1)
    assert set(moved[one_row_each(names[moved])]) == set(drawn)


def test_clusters_take_bounded_memory():
    seen, first = SeenClusters(), cluster_hashes(np.arange(50_000))
    assert seen.new(first).mean() > 0.999
    assert not seen.new(first).any()
    assert len(seen.state()[0]) < 250_000
    again = SeenClusters.restore(seen.state())
    assert not again.new(first).any()
    assert again.new(cluster_hashes(np.arange(50_000, 60_000))).mean() > 0.99
    full = SeenClusters()
    for start in range(0, 600_000, 100_000):
        full.new(np.random.default_rng(start).integers(-(2**63), 2**63, 100_000))
    assert len(full.state()[0]) < 800_000
    assert 0.03 < full.mistaken < 0.06


def test_fractions_of_a_cluster_count_as_the_certificate_has_it():
    """A rate of a random row: negatives accepted over negatives, each row divided by its size."""
    scores, labels, names = clusters_with_positions(3, 2000)
    certificate = certify(scores, labels, "fpr <= 0.2", clusters=names)
    keep = np.random.default_rng(1).random(len(scores)) < 0.7  # clusters of different sizes
    monitor = certificate.monitor(watch=["rates"])
    monitor.update(scores[keep], labels[keep], clusters=names[keep])
    size = dict(zip(*np.unique(names[keep], return_counts=True), strict=True))
    weight = np.array([1 / size[name] for name in names[keep]]) * ~labels[keep]
    wrong = weight * (scores[keep] > certificate.threshold)
    assert monitor.rates[0].value == pytest.approx(wrong.sum() / weight.sum())
    low, high = monitor.rates[0].interval(0.05)
    assert low < monitor.rates[0].value < high < low + 0.1


def money(seed, n=6000, misses=0.0):
    scores, labels = rows(n, seed)
    scores = scores - misses * labels
    return scores, labels, np.random.default_rng(seed).exponential(20, n).clip(0, 100)


def test_a_cost_by_amounts_is_refuted():
    scores, labels, amounts = money(1)
    goal = "cost(miss=1, false_alarm=2) <= 1.4"
    certificate = certify(scores, labels, goal, amounts=amounts, largest_amount=100)
    assert certificate
    monitor = certificate.monitor(watch=["rates"])
    for seed in (2, 3):
        scores, labels, amounts = money(seed)
        assert monitor.update(scores, labels, amounts=amounts) == "holds"
    cell = np.where(labels, np.where(scores > certificate.threshold, 0, amounts), 0.0)
    cell += np.where(~labels & (scores > certificate.threshold), 2, 0)
    fresh = certificate.monitor(watch=["rates"])
    fresh.update(scores, labels, amounts=amounts)
    assert fresh.rates[0].value == pytest.approx(cell.mean())
    low, high = fresh.rates[0].interval(0.05)
    assert low < cell.mean() < high
    scores, labels, amounts = money(4, misses=1.5)
    assert monitor.update(scores, labels, amounts=amounts).startswith("broken since update 3: cost")
    late = certificate.monitor(watch=["rates"])
    ids = np.arange(6000)
    late.update(scores, amounts=amounts, ids=ids)
    assert Monitor.from_json(late.to_json()).add_labels(ids, labels).startswith("broken")
    with pytest.raises(ValueError, match="pass amounts="):
        certificate.monitor().update(scores, labels)


def test_late_labels_of_many_groups():
    scores, labels = rows(30_000)
    group = np.arange(30_000) % 70
    certificate = certify(scores, labels, "fpr <= 0.15", groups={"site": group})
    assert certificate
    at_once, later = certificate.monitor(watch=["rates"]), certificate.monitor(watch=["rates"])
    scores, labels = rows(7000, 2)
    given = {"groups": {"site": group[:7000]}}
    at_once.update(scores, labels, **given)
    later.update(scores, ids=np.arange(7000), **given)
    later.add_labels(np.arange(7000), labels)
    assert [w.value for w in later.rates] == [w.value for w in at_once.rates]


@pytest.mark.parametrize(
    ("goal", "change"),
    [
        ('abs(recall on g="a" - recall on g="b") <= 0.1 and fpr <= 0.1', {"gap_b": -1.2}),
        ("(fpr + fnr) / 2 <= 0.25", {"gap": 0.8}),
        ("cost(miss=5, false_alarm=1) <= 0.35", {"gap": 0.8}),
        ("precision / prevalence >= 2.5", {"gap": 0.2}),
    ],
)
def test_a_break_is_dated_for_every_kind_of_bound(goal, change):
    def day(seed, changed, n=1000):
        scores, labels = rows(n, seed, gap=change.get("gap", 2.0) if changed else 2.0)
        group = np.array(["a", "b"] * (n // 2))
        if changed:
            scores = scores + change.get("gap_b", 0.0) * ((group == "b") & labels)
        return scores, labels, group

    scores, labels, group = day(1, changed=False, n=20_000)
    certificate = certify(scores, labels, goal, groups={"g": group} if "g=" in goal else None)
    assert certificate
    monitor = certificate.monitor(watch=["rates"])
    for i in range(40):
        scores, labels, group = day(100 + i, changed=i >= 25)
        status = monitor.update(
            scores,
            labels,
            times=np.full(1000, DAY + i),
            groups={"g": group} if "g=" in goal else None,
        )
    assert status.startswith("broken since 2024-05-2"), status
    (name,) = monitor.alarms
    assert str(DAY + 24) <= monitor.since(name) <= str(DAY + 27)
    alarm = monitor.alarms[name].period
    assert alarm <= str(DAY + 34), alarm  # restarts: 25 good days need not be made up for
    assert monitor.rate_since(name)[0] is not None
    again = Monitor.from_json(monitor.to_json())
    assert again.status == monitor.status
    assert again.to_json() == monitor.to_json()


def test_no_more_false_alarms_of_gaps_than_promised():
    """Gap exactly at its limit: at most 5 % of 60 monitors, 3 standard errors: 13.4 %."""
    scores, labels = rows(20_000)
    group = np.array(["a", "b"] * 10_000)
    sentence = 'recall on g="a" - recall on g="b" <= 0.1 and fpr <= 0.1'
    certificate = certify(scores, labels, sentence, groups={"g": group})
    alarms = 0
    for seed in range(60):
        random, monitor = np.random.default_rng(seed), certificate.monitor(watch=["rates"])
        for _ in range(4):
            accepted = random.random(1000) < np.where(group[:1000] == "a", 0.8, 0.7)
            scores = np.where(accepted, certificate.threshold + 1, certificate.threshold - 1)
            monitor.update(scores, np.ones(1000), groups={"g": group[:1000]})
        alarms += not monitor
    assert alarms / 60 < 0.134


@pytest.mark.parametrize("kind", ["clusters", "costs", "sampled", "sampled later"])
def test_the_rate_since_a_break_has_an_interval_for_every_kind_of_rows(kind):
    """Good days, then bad ones: since then it is about the bad days alone."""
    scores, labels = rows(6000)
    amounts = np.minimum(np.random.default_rng(0).exponential(20, 6000), 100)
    if kind == "costs":
        goal, cost = "cost(miss=1, false_alarm=2) <= 1.6", {"largest_amount": 100}
        certificate = certify(scores, labels, goal, amounts=amounts, thresholds=1.0, **cost)
    else:
        names = np.arange(6000) if kind == "clusters" else None
        certificate = certify(scores, labels, "fpr <= 0.05", clusters=names)
    monitor, truth = certificate.monitor(watch=["rates"]), []
    for day in range(30):
        bad = day >= 15
        scores, labels = rows(600, day, 0.6 * bad)
        given, alerts = {}, scores > certificate.threshold
        if kind == "clusters":
            given["clusters"] = [f"{day}-{i // 2}" for i in range(600)]
        elif kind == "costs":
            scores = scores - 2.2 * bad
            alerts, given["amounts"] = scores > certificate.threshold, amounts[:600]
        elif kind == "sampled" or bad:  # before, all labels were known
            share = np.where(alerts, 1.0, 0.4)
            known = np.random.default_rng(1000 + day).random(600) < share
            given["label_shares"] = share
        cost = np.where(labels, amounts[:600] * ~alerts, 2 * alerts)
        truth.append(cost.mean() if kind == "costs" else alerts[~labels].mean())
        shown = np.where(known, labels, np.nan) if "label_shares" in given else labels
        monitor.update(scores, shown, times=np.full(600, DAY + day), **given)
        monitor = Monitor.from_json(monitor.to_json()) if day == 20 else monitor
    (name,) = monitor.alarms
    assert str(DAY + 13) <= monitor.since(name) <= str(DAY + 17)
    value, (low, high) = monitor.rate_since(name)
    assert low < np.mean(truth[15:]) < high
    assert low < value < high
    assert low > np.mean(truth[:15])
    assert f"{monitor.since(name)}: " in monitor.status
    assert monitor.status.endswith(")")
    if kind != "sampled later":  # else later rows count less in that of all rows
        low, high = monitor.rates[0].interval(0.05)
        assert low < np.mean(truth) < high


def test_shares_of_labels_do_not_matter_where_no_label_is_needed():
    certificate = certify(*rows(20_000), "coverage <= 0.3")
    plain, told = certificate.monitor(watch=["rates"]), certificate.monitor(watch=["rates"])
    scores, labels = rows(2000, 1)
    plain.update(scores, labels)
    told.update(scores, labels, label_shares=0.01)
    assert plain.rates[0].state() == told.rates[0].state()


def test_an_update_of_a_gap_asks_for_few_intervals(monkeypatch):
    """All windows at once, and once after each update: 12 windows took 100 times as many."""
    scores, labels = rows(20_000)
    group = np.array(["a", "b"] * 10_000)
    sentence = 'recall on g="a" - recall on g="b" <= 0.1 and fpr <= 0.1'
    monitor = certify(scores, labels, sentence, groups={"g": group}).monitor(watch=["rates"])
    calls, kept = [], watched_regions.confidence_sequence

    def counted(*given):
        calls.append(1)
        return kept(*given)

    monkeypatch.setattr(watched_regions, "confidence_sequence", counted)
    for day in range(20):
        scores, labels = rows(1000, day)
        scores = scores - 1.2 * ((group[:1000] == "b") & labels) * (day > 14)
        calls.clear()
        monitor.update(scores, labels, groups={"g": group[:1000]})
        assert len(calls) <= 6
    assert not monitor
    assert len(monitor.rates[0].windows) == 12


def test_rows_that_were_chosen_say_nothing_about_the_share_of_alerts():
    scores, labels = rows(20_000)
    old = np.quantile(scores, 0.9)
    reviewed = scores > old
    certificate = certify(scores[reviewed], labels[reviewed], "precision >= 0.8", old_threshold=old)
    assert certificate.old_threshold == old
    half = np.concatenate([np.flatnonzero(labels)[:2000], np.flatnonzero(~labels)[:2000]])
    declared = certify(scores[half], labels[half], "precision >= 0.6", prevalence=0.2)
    for each in (certificate, declared):
        monitor = each.monitor()
        assert "alerts" not in monitor.tests
        assert monitor.update(rows(3000, 5)[0]) == "holds"
        assert "The share of alerts is not tested" in str(monitor)
        with pytest.raises(ValueError, match="Leave reference= out"):
            each.monitor(reference=scores)


def test_no_alert_at_calibration_is_no_blindness():
    scores, labels = rows(2000)
    certificate = certify(scores, labels, "fpr <= 0.05", thresholds=50.0)
    monitor = certificate.monitor(watch=["alerts"])
    assert "No calibration row counts in alerts: the share can only rise" in str(monitor)
    assert monitor.update(rows(2000, 1)[0]) == "holds"
    scores = rows(2000, 2)[0]
    scores[:40] = 60.0
    assert monitor.update(scores).startswith("drifting: alert share")


def test_names_that_differ_by_case_alone_stay_apart():
    scores, labels = rows(8000)
    group = np.array(["A", "a"] * 4000)
    monitor = certify(scores, labels, "fpr <= 0.1", groups={"g": group}).monitor()
    monitor.update(*rows(2000, 1), groups={"g": group[:2000]})
    found = monitor.metrics()
    assert len({name.lower() for name in found if name.startswith("evidence_fpr")}) == 2
    assert len({name.lower() for name in found if "alerts" in name and "expected" in name}) == 2


def test_drift_among_clusters_is_looked_for_before_a_certificate():
    scores, labels, names = clusters_with_positions(8, 1500)
    given = {"clusters": names, "times": np.arange(len(scores))}
    assert certify(scores, labels, "fpr <= 0.2", **given)
    drifting = certify(scores + np.linspace(0, 1.5, len(scores)), labels, "fpr <= 0.2", **given)
    assert drifting.notes[0].startswith("these rows drift")


def test_a_class_is_watched_against_the_others():
    random = np.random.default_rng(0)

    def decided(n, noise):
        labels = random.integers(0, 3, n)
        return np.argmax(np.eye(3)[labels] + noise * random.normal(size=(n, 3)), 1), labels

    problem = Problem.parse("maximize accuracy subject to recall of 0 >= 0.8")
    found, labels = decided(4000, 0.4)
    whole = certify_shifts(np.eye(3)[found], labels, problem, np.zeros(3), classes=[0, 1, 2])
    one = certify((found == 0) * 1.0, labels == 0, "recall >= 0.8", thresholds=0.5)
    assert bool(one) == bool(whole)
    monitor, of_classes = one.monitor(watch=["rates", "alerts"]), whole.monitor()
    for noise in (0.4, 0.8):
        found, labels = decided(4000, noise)
        status = monitor.update((found == 0) * 1.0, labels == 0)
        both = of_classes.update(np.eye(3)[found], labels)
        assert both == (status if noise == 0.4 else f"recall of 0 >= 0.8: {status}")
    assert status.startswith("broken since update 2")


def test_a_forged_state_of_clusters_is_not_unpacked_without_limit():
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(200)) + packer.flush()
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="of another length"):
            SeenClusters.restore((b64encode(packed).decode(), 0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 * 2**20, f"{peak / 2**20:.0f} MB"


@pytest.mark.parametrize("key", ["score", "label"])
@pytest.mark.parametrize("times", [True, False])
def test_a_file_that_is_sorted_is_no_change(key, times):
    """At most 5 % of 12 monitors and 3 standard errors: 2.9. Unshuffled, all alarm."""
    certificate, alarms = certify(*rows(5000, 0), "fpr <= 0.05"), 0
    for seed in range(12):
        monitor = certificate.monitor()
        for day in range(5):
            scores, labels = rows(500, 1000 + 10 * seed + day)
            order = np.argsort(-scores if key == "score" else labels, kind="stable")
            when = np.full(500, DAY + day) if times else None
            monitor.update(scores[order], labels[order], times=when)
        alarms += not monitor
    assert alarms <= 2
