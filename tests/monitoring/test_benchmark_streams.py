"""The benchmark's short cuts for many long streams alarm where the monitor does, row by row."""

import numpy as np
import pytest
from monitoring.test_monitor import SECONDS, rows

from benchmarks.monitoring import simulate
from benchmarks.monitoring.simulate import _share_below, alarmed
from benchmarks.monitoring.streams import alarms_of
from benchmarks.monitoring.urn_streams import urn_alarms
from setpoint.certificates import certify
from setpoint.certificates.polya_urn import RankCells, rank_evidence

ALARM = 20.0
"""The evidence at which a test that has all of the 5 % alarms."""


def first_alarm(monitor, scores, labels=None, every=1):
    """After how many rows the monitor alarms, looked at after so many rows."""
    for end in range(every, len(scores) + 1, every):
        part = slice(end - every, end)
        known = None if labels is None else labels[part]
        monitor.update(scores[part], known, times=SECONDS[part])
        if not monitor:
            return float(end)
    return np.inf


@pytest.mark.parametrize("every", [1, 25])
def test_certified_rates(every):
    certificate = certify(*rows(5000), "fpr <= 0.1")
    events = np.random.default_rng(3).random((6, 600)) < 0.2
    fast = alarms_of(events, 0.1, np.log(ALARM), every)
    scores = certificate.threshold + np.where(events, 1, -1)
    slow = [
        first_alarm(certificate.monitor(watch=["rates"]), each, np.zeros(600), every)
        for each in scores
    ]
    assert np.isfinite(slow).sum() > 2
    assert (np.ceil(fast / every) * every).tolist() == slow  # it looks where a block ends, too


@pytest.mark.parametrize("share", [0.01, 0.14, 0.2])
def test_the_share_of_alerts(share):
    """Falls, stays and rises: 10 % of 300 calibration rows are alerts; tails are included."""
    scores = np.arange(300.0)
    certificate = certify(scores, scores > 150, "coverage <= 0.5", thresholds=269.0)
    alerts = (np.random.default_rng(1).random(300) < share).astype(np.uint8)
    slow, urn = certificate.monitor(watch=["alerts"]), certificate.monitor(watch=["alerts"])
    urn.expect(labelled=False)
    fast = urn_alarms(urn.alerts[0].urn, alerts, ALARM, [1, 50])
    assert fast[0] == first_alarm(slow, np.where(alerts, 280.0, 100.0))
    assert fast[0] <= fast[1]
    assert np.isfinite(fast).all() == (share != 0.14)


@pytest.mark.parametrize("shift", [0.0, 0.6])
def test_the_ranks_of_scores(shift):
    random = np.random.default_rng(2)
    reference, scores = random.normal(size=1000), random.normal(shift, 1.0, 250)
    certificate = certify(reference, reference > 0, "fpr <= 0.5")
    slow = certificate.monitor(watch=["scores"], reference=reference)
    cells = slow.scores.cells.cells(scores, random)
    fast = urn_alarms(slow.scores.urn, cells, ALARM, [1])
    assert fast == [first_alarm(slow, scores)]
    assert np.isfinite(fast).all() == (shift > 0)


@pytest.mark.parametrize("ties", [0, 20])
def test_shares_of_cells_are_those_of_drawn_scores(ties):
    """200,000 scores: 5 standard errors of a share are at most 0.0056."""
    random = np.random.default_rng(3)

    def draw(n):
        scores = random.normal(size=n) + 2 * (random.random(n) < 0.1)
        return np.round(scores * ties / 8) if ties else scores

    cells = RankCells.of(draw(2000), random)
    found = np.bincount(cells.cells(draw(200_000), random)) / 200_000
    expected = np.diff(np.concatenate([[0.0], _share_below(cells, ties), [1.0]]))
    np.testing.assert_allclose(found, expected, atol=0.0056)
    assert len(expected) == rank_evidence(cells.balls).balls.shape[1]


def test_the_share_of_alarms_has_an_exact_interval():
    share, low, high = alarmed(np.array([5.0] * 3 + [np.inf] * 97))
    assert share == 0.03
    assert (round(low, 4), round(high, 4)) == (0.0062, 0.0852)  # Clopper and Pearson, 3 of 100
    assert alarmed(np.full(10, np.inf))[:2] == [0.0, 0.0]


def test_a_result_with_fewer_streams_is_gone_on_with(monkeypatch):
    monkeypatch.setattr(simulate, "BATCH", 1)
    monkeypatch.setattr(simulate, "FALSE_ALARM", 0.9)  # many alarms
    long = list(simulate.label_free_false_alarms(3, 5000))
    again = list(simulate.label_free_false_alarms(3, 5000, known=long[0]))
    assert [found["streams"] for found in long] == [1, 2, 3]
    assert again == long[1:]
    assert any(long[2]["hits"].values())
