"""Evidence: the average over alternatives and restarts is a martingale, whatever the pieces."""

import numpy as np
import pytest
from scipy.special import betaln, xlog1py, xlogy
from scipy.stats import beta, betabinom, norm

from setpoint.certificates.martingales import (
    FACTORS,
    FROM_START,
    WEIGHTS,
    Evidence,
    bernoulli_gains,
    bets_of,
    confidence_sequence,
    moments,
    odds_times,
    overdrawn,
    ratio_sequence,
    restart_weight,
    tail_weight,
    weighted_gains,
)
from setpoint.certificates.polya_urn import RankCells, Tail, alert_evidence, rank_evidence


def stream(events, limit=0.05, block=20):
    """The evidence after a sequence of 0 and 1, in one piece, and its path."""
    evidence = Evidence(WEIGHTS, block)
    cuts = evidence.pieces(len(events))
    sums = np.concatenate([[0.0], np.cumsum(events)])
    gains = bernoulli_gains(np.diff(sums[cuts]), np.diff(cuts), limit)
    return evidence, evidence.advance(cuts, gains)


def brute_force(events, limit, block):
    """The average by its definition: over the start, restarts and alternatives."""
    other = odds_times(limit, FACTORS)
    each = np.where(np.asarray(events)[:, None] == 1, other / limit, (1 - other) / (1 - limit))
    total = FROM_START * WEIGHTS @ each.prod(0)
    restarts = (len(events) - 1) // block
    for r in range(1, restarts + 1):
        after = each[r * block :].prod(0)
        total += (1 - FROM_START) * restart_weight(r) * (WEIGHTS @ after)
    return total + (1 - FROM_START) * tail_weight(restarts)


@pytest.mark.parametrize("rows", [1, 19, 20, 21, 40, 97])
def test_evidence_is_the_average_it_says(rows):
    events = np.random.default_rng(rows).random(rows) < 0.2
    evidence, path = stream(events.astype(float))
    assert np.exp(evidence.log_value) == pytest.approx(brute_force(events, 0.05, 20), rel=1e-12)
    assert path[-1] == pytest.approx(evidence.log_value, rel=1e-12)


def test_weights_add_up_to_one():
    assert WEIGHTS.sum() == pytest.approx(1)
    r = np.arange(1, 10_001)
    assert restart_weight(r).sum() + tail_weight(10_000) == pytest.approx(1)


def test_the_mean_of_the_evidence_at_the_limit_is_one_exactly():
    """All 2^10 sequences, weighed by their probability: a martingale, restarts included."""
    limit, rows = 0.3, 10
    total = 0.0
    for code in range(2**rows):
        events = np.array([code >> i & 1 for i in range(rows)], float)
        value = np.exp(stream(events, limit, block=3)[0].log_value)
        total += limit ** events.sum() * (1 - limit) ** (rows - events.sum()) * value
    assert total == pytest.approx(1, rel=1e-12)


def test_the_pieces_in_which_rows_come_do_not_matter():
    events = (np.random.default_rng(0).random(500) < 0.08).astype(float)
    whole, _ = stream(events)
    parts = Evidence(WEIGHTS, 20)
    for part in np.split(events, [1, 2, 19, 20, 33, 400]):
        cuts = parts.pieces(len(part))
        sums = np.concatenate([[0.0], np.cumsum(part)])
        parts.advance(cuts, bernoulli_gains(np.diff(sums[cuts]), np.diff(cuts), 0.05))
    assert parts.log_value == pytest.approx(whole.log_value, rel=1e-9)
    again = Evidence(WEIGHTS, 1)
    again.restore(parts.state())
    assert again.log_value == parts.log_value


def test_restarts_find_a_break_after_a_long_quiet_time():
    random = np.random.default_rng(1)
    quiet, broken = random.random(100_000) < 0.005, random.random(6_000) < 0.02
    events = np.concatenate([quiet, broken]).astype(float)
    evidence, path = stream(events, limit=0.01, block=300)
    assert path.max() > np.log(20)
    assert evidence.log_start.max() < np.log(1e-3)  # without restarts there is no hope of it


def test_bets_on_single_rows_are_likelihood_ratios():
    limit = 0.03
    other = odds_times(limit, FACTORS)
    yes, no = weighted_gains(bets_of(limit), [1 - limit, -limit], np.ones(2))
    np.testing.assert_allclose(yes, np.log(other / limit), rtol=1e-12)
    np.testing.assert_allclose(no, np.log((1 - other) / (1 - limit)), rtol=1e-12)


def test_weighted_bets_are_fair_at_the_limit_and_given_up_before_they_ruin():
    """Alerts are labelled always, other rows with share 0.1; the share of events is the limit."""
    limit, share, bets = 0.05, 0.1, bets_of(0.05)
    lost = overdrawn(bets, limit, 1.0, share)
    assert 0 < lost.sum() < len(bets)  # an alternative of 6 times the odds could lose all
    cases = [  # probability, excess: an event (labelled), another row labelled, or not labelled
        (limit, (1 - limit) / 1.0),
        ((1 - limit) * share, -limit / share),
        ((1 - limit) * (1 - share), 0.0),
    ]
    gains = [(p, weighted_gains(bets[~lost], [z], np.ones(1))[0]) for p, z in cases]
    np.testing.assert_allclose(sum(p * np.exp(gain) for p, gain in gains), 1, rtol=1e-12)
    # a bet that is lost is worth 0 on every row of that share: the others cannot make up for it
    assert (limit * (1 + bets[lost] * (1 - limit)) <= 1).all()


def test_the_tail_of_the_share_of_alerts_is_a_martingale():
    """By the urn's own law of alerts the mean stays 1; in the tail it comes to 1 / q."""
    tail = Tail((971.0, 30.0), upper=True, chance=0.01)
    for n in (1, 50, 2000):
        k = np.arange(n + 1)
        law = betabinom.pmf(k, n, 30, 971)
        values = np.exp(tail.log_values(np.stack([n - k, k], 1).astype(float)))
        assert (law * values).sum() == pytest.approx(1, rel=1e-6)
    far = np.exp(tail.log_values(np.array([1e6 * 0.9, 1e6 * 0.1])))
    assert far == pytest.approx(100, rel=1e-6)


def sampled(random, n):
    """Sampled labels, events more often: 0 or what the mean share is of the row's own."""
    event = random.random(n) < 0.1
    share = np.where(event, 1.0, 0.3)  # chosen by what is seen of a row, as alerts are
    weight = np.where(random.random(n) < share, 0.3 / share, 0.0)
    return event * weight, weight, 0.1


def costs(random, n):
    """A tenth misses, of an exponential amount; all rows are relevant."""
    amount = np.minimum(random.exponential(0.2, n), 1.0)
    return np.where(random.random(n) < 0.1, amount, 0.0), np.ones(n), 0.02 * (1 - np.exp(-5))


def clusters(random, n):
    """Of five rows: those that are relevant, and events among them with a share of their own."""
    relevant = random.binomial(5, 0.7, n)
    return random.binomial(relevant, random.beta(1, 19, n)) / 5, relevant / 5, 0.05


@pytest.mark.parametrize("draw", [sampled, costs, clusters])
def test_the_sequence_of_a_ratio_covers_at_all_times_and_shrinks(draw):
    """100 streams of 3,000 rows: at most 5 % may ever be outside, 3 standard errors: 11.5 %."""
    missed, widths = 0, []
    for seed in range(100):
        events, relevant, truth = draw(np.random.default_rng(seed), 3000)
        sums, outside = np.zeros(5), False
        for part in np.split(np.arange(3000), [20, 100, 600]):
            sums += moments(events[part], relevant[part])
            low, high = ratio_sequence(sums, 1.0, 0.05)
            outside |= not low <= truth <= high
        missed += outside
        widths.append((high - low) / truth)
    assert missed / 100 < 0.115
    assert np.median(widths) < 1.35


def test_the_sequence_of_a_ratio_is_close_to_that_of_a_share():
    for k, n in ((5, 100), (300, 3000), (29_900, 30_000)):
        low, high = ratio_sequence(np.array([k, n, k, k, n]), 1.0, 0.05)
        exact = confidence_sequence(k, n, 0.05)
        assert high - low < 1.6 * float(exact[1] - exact[0])
        other = ratio_sequence(np.array([n - k, n, n - k, n - k, n]), 1.0, 0.05)
        np.testing.assert_allclose([low, high], [1 - other[1], 1 - other[0]])
    assert ratio_sequence(np.zeros(5), 1.0, 0.05) == (0.0, 1.0)


def test_the_confidence_sequence_is_where_its_martingale_is_small():
    low, high = confidence_sequence(7, 200, 0.05)
    for p in (low, high):
        mixture = betaln(7.5, 193.5) - betaln(0.5, 0.5)
        assert mixture - 7 * np.log(p) - 193 * np.log1p(-p) == pytest.approx(np.log(20), abs=1e-6)
    assert low < 7 / 200 < high
    exact = beta.ppf([0.025, 0.975], [7, 8], [194, 193])
    assert low < exact[0]  # wider than an interval for one look
    assert high > exact[1]
    assert tuple(map(float, confidence_sequence(0, 0, 0.05))) == (0.0, 1.0)
    assert confidence_sequence(0, 50, 0.05)[0] == 0.0


def test_the_ends_of_the_confidence_sequence_are_right_for_any_counts():
    k, n, delta = np.meshgrid([1e-3, 1, 37.5, 3e5], [38, 1e4, 1e9], [0.3, 1e-6, 1e-300])
    k = np.minimum(k, n - 0.5)
    ends = confidence_sequence(k, n, delta)
    for p, other in zip(ends, confidence_sequence(n - k, n, delta)[::-1], strict=True):
        np.testing.assert_allclose(p, 1 - other, rtol=1e-6, atol=1e-14)
        logs = betaln(k + 0.5, n - k + 0.5) - betaln(0.5, 0.5) - xlogy(k, p) - xlog1py(n - k, -p)
        inside = (p > 0) & (p < 1 - 1e-9)  # 1 - p keeps its digits there
        np.testing.assert_allclose(logs[inside], -np.log(delta[inside]), rtol=1e-4, atol=1e-4)
    assert (ends[0] < k / n).all()
    assert (ends[1] > k / n).all()


def test_the_confidence_sequence_covers_at_all_times():
    """400 streams of 3,000 rows: at most 5 % may ever be outside, 3 standard errors: 8.3 %."""
    random = np.random.default_rng(2)
    missed = 0
    for _ in range(400):
        sums = np.cumsum(random.random(3000) < 0.1)
        looks = np.unique(np.geomspace(1, 3000, 40).astype(int))
        low, high = confidence_sequence(sums[looks - 1], looks, 0.05)
        missed += bool(((low > 0.1) | (high < 0.1)).any())
    assert missed / 400 < 0.083


def test_the_urn_of_two_cells_is_the_beta_binomial_law():
    """The log probability of a sequence in the urn, through a likelihood ratio of tilt 1."""
    urn = alert_evidence(30, 1000, 0.05)
    cells = (np.random.default_rng(3).random(200) < 0.05).astype(np.int64)
    urn.add(cells)
    k, n = cells.sum(), len(cells)
    for j, shift in enumerate(urn.tilts[:, 1]):
        a, b = (31, 970) if shift > 1 else (30, 971)
        other = urn.spread * np.array([b, a * shift]) / (b + a * shift)
        log = betaln(other[1] + k, other[0] + n - k) - betaln(other[1], other[0])
        log -= betaln(a + k, b + n - k) - betaln(a, b)
        assert urn.evidence.log_start[j] == pytest.approx(log, rel=1e-9)


def false_alarms(draw, streams=300):
    return np.mean([draw(np.random.default_rng(seed)) >= np.log(20) for seed in range(streams)])


def test_no_more_false_alarms_than_promised_for_alerts_and_ranks_with_ties():
    """At most 5 % of 300 streams, 3 standard errors: 8.8 %. Scores have 8 different values."""

    def alerts(random):
        threshold, sample = norm.isf(0.05), random.normal(size=400)
        urn = alert_evidence(float((sample > threshold).sum()), 400, 0.05)
        return urn.add((random.normal(size=4000) > threshold).astype(np.int64)).max()

    def ranks(random):
        cells = RankCells.of(np.round(random.normal(size=300)), random)
        rows = cells.cells(np.round(random.normal(size=3000)), random)
        return rank_evidence(cells.balls).add(rows).max()

    assert false_alarms(alerts) < 0.088
    assert false_alarms(ranks) < 0.088


def test_equal_scores_fall_by_lot():
    """All scores are one value: the cells get what their ranks say, not all or nothing."""
    random = np.random.default_rng(4)
    cells = RankCells.of(np.zeros(1000), random)
    shares = np.bincount(cells.cells(np.zeros(100_000), random)) / 100_000
    np.testing.assert_allclose(shares, cells.balls / 1001, atol=0.05)


def test_evidence_begins_at_one_with_its_tails():
    assert alert_evidence(50, 1000, 0.05).log_value == pytest.approx(0, abs=1e-9)


def test_a_doubling_at_the_first_row_of_a_call_is_a_doubling():
    """The urn of 1,001 balls doubles at row 1,100, a border of blocks: a call may end before it."""
    random = np.random.default_rng(6)
    cells = RankCells.of(random.normal(size=1000), random)
    rows = cells.cells(random.normal(0.2, 1, size=2000), random)
    for end in (1099, 1100, 1101):
        one, other = rank_evidence(cells.balls), rank_evidence(cells.balls)
        one.add(rows)
        other.add(rows[:end])
        other.add(rows[end:])
        assert other.log_value == pytest.approx(one.log_value, rel=1e-9)
        assert other.anchor.tolist() == one.anchor.tolist()


def test_ranks_see_a_shift_and_the_urn_is_partition_free():
    random = np.random.default_rng(5)
    cells = RankCells.of(random.normal(size=2000), random)
    rows = cells.cells(random.normal(0.3, 1, size=3000), random)
    one, other = rank_evidence(cells.balls), rank_evidence(cells.balls)
    one.add(rows)
    for part in np.split(rows, [1, 99, 100, 101, 2500]):
        other.add(part)
    assert one.evidence.log_value > np.log(1000)
    assert other.evidence.log_value == pytest.approx(one.evidence.log_value, rel=1e-9)
    third = rank_evidence(cells.balls)
    third.restore(one.state())
    assert third.evidence.log_value == one.evidence.log_value
