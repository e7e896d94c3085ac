"""What other thresholds would do, against plain counting."""

import numpy as np
import pytest
from scipy.stats import binomtest

from setpoint.results import Findings, RunResult
from setpoint.results.measured import Margins
from setpoint.results.points import MOST_STOPS, operating_points, stops
from setpoint.results.rows import period_rates


def draw(n, dtype=float, seed=0):
    random = np.random.default_rng(seed)
    labels = random.random(n) < 0.1
    return (random.normal(size=n) + 2 * labels).astype(dtype), labels


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_every_stop_counts_rightly_in_the_precision_of_the_scores(dtype):
    scores, labels = draw(5000, dtype)
    cut = 1.2345
    found = stops(Margins(scores, cut), labels)
    assert 50 < len(found) <= MOST_STOPS
    assert [p.threshold for p in found if p.chosen] == [cut]
    thresholds = [p.threshold for p in found]
    assert thresholds == sorted(thresholds, reverse=True)
    for point in found:
        above = scores > point.threshold
        assert point.coverage.count == above.sum()
        assert point.misses == (~above & labels).sum()
        assert point.fpr.count == (above & ~labels).sum()
        known = binomtest(int(point.misses), int(labels.sum())).proportion_ci(0.95, "exact")
        assert point.missed.interval == pytest.approx((known.low, known.high))
    assert found[0].coverage.count == 0
    assert found[-1].coverage.value > 0.99


def test_stops_are_few_and_fine_where_it_matters():
    scores, labels = draw(300_000)
    found = stops(Margins(scores, 2.0), labels)
    assert len(found) <= MOST_STOPS
    recalls = [p.recall.value for p in found]
    assert max(np.diff(recalls)) < 0.02
    alerts = [p.coverage.count for p in found if 0.5 < p.coverage.value / (scores > 2).mean() < 2]
    assert max(np.diff(np.log(alerts))) < 0.03


@pytest.mark.parametrize("cut", [np.inf, 1e9, -1e9])
def test_a_threshold_outside_of_the_scores(cut):
    scores, labels = draw(100)
    found = stops(Margins(scores, cut), labels)
    assert len([p for p in found if p.chosen]) == np.isfinite(cut)
    assert operating_points(Margins(scores, cut), labels, [0.0])[0].threshold == 0.0


def test_intervals_of_costs_hold_as_often_as_they_say():
    """Both intervals miss together with probability at most 5 %; 300 draws: 5 % + 3 sd = 8.8 %."""
    random = np.random.default_rng(0)
    shares, costs, wrong = (0.02, 0.05), (500.0, 5.0), 0
    truth = costs[0] * shares[0] + costs[1] * shares[1]
    for _ in range(300):
        kinds = random.choice(3, 400, p=[*shares, 1 - sum(shares)])
        labels = kinds == 0  # a miss; 1 is a false alarm, 2 rightly left alone
        scores = np.where(kinds == 1, 1.0, 0.0)
        (point,) = operating_points(Margins(scores, 0.5), labels, [0.5], confidence=0.95)
        low, high = point.cost(costs, 0.95).interval
        assert low <= point.cost(costs, 0.95).value <= high
        wrong += not low <= truth <= high
    assert wrong <= 0.088 * 300


def test_which_side_is_safe():
    scores, labels = draw(100)
    for goal, side in {
        "fpr <= 0.1": "stricter",
        "fpr <= 0.1 and coverage <= 0.2": "stricter",
        "recall >= 0.9": "looser",
        "fnr <= 0.1": "looser",
        "fpr <= 0.1 and recall >= 0.5": "",
        "precision >= 0.5": "",
        "minimize fnr subject to fpr at 0.1": "",
    }.items():
        assert Findings(RunResult(goal, {"test": (scores, labels)}, 1.0)).safe_side == side


def test_periods_are_in_the_order_of_time():
    accepted, labels = np.arange(400) % 2 == 0, np.ones(400)
    days = np.datetime64("2026-01-01T10:00:00") + np.arange(400).astype("timedelta64[D]")
    months = period_rates(accepted, labels, days)
    assert [row.name for row in months][:2] == ["2026-01", "2026-02"]
    assert len(months) == 14
    weeks = period_rates(accepted[:70], labels[:70], days[:70])
    assert [row.name for row in weeks][:2] == ["2025-12-29", "2026-01-05"]  # Mondays
    numbers = period_rates(accepted, labels, np.arange(400) / 20.0)
    assert [row.name for row in numbers][8:11] == ["8", "9", "10"]
    many = period_rates(accepted, labels, days, by="day")
    assert many[-1].name == "2027-02-04"
    assert len(many) == 62
