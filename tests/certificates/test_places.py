import math

import numpy as np
import pytest
from certificates.simulate import most, sample
from scipy.special import ndtr

from setpoint.certificates.evidence import Evidence, Place, evidence, ranks
from setpoint.certificates.sample import EVERYONE, NEGATIVES, POSITIVES, PRIOR, Part, Sample
from setpoint.certificates.split_test import SHARE, lots, split_rows
from setpoint.certificates.tails import lower, upper

ROWS = Sample(
    np.array([1.0, 2.0, 2.0, 3.0, 3.0, 4.0]),
    np.array([False, False, True, False, False, True]),
    {(("group", "a"),): np.array([True, False, False, True, False, False])},
    "float64",
)
NEGATIVE, INSIDE = Part((), NEGATIVES), Part((("group", "a"),), NEGATIVES)


def test_counts_at_a_fixed_threshold_are_plain():
    assert evidence(ROWS, NEGATIVE, Place(2.0)) == Evidence(2, 2, 4, 1)
    assert evidence(ROWS, NEGATIVE, Place(2.0, inclusive=True)) == Evidence(3, 3, 4, 1)
    assert evidence(ROWS, Part((), PRIOR), Place(2.0)) == Evidence(2, 2, 6, 1)
    assert evidence(ROWS, Part((), EVERYONE), Place(-np.inf)) == Evidence(6, 6, 6, 1)


def test_ties_at_a_rank_count_against_the_bound():
    place = Place(3.0, anchor=NEGATIVE)  # its second largest: nobody is above, one is beside it
    assert evidence(ROWS, NEGATIVE, place) == Evidence(0, 1, 4, 1)
    assert evidence(ROWS, INSIDE, place) == Evidence(0, 1, 2, 1)
    assert evidence(ROWS, Part((), POSITIVES), place) == Evidence(1, 1, 2, 1)
    floor = Place(3.0, inclusive=True, anchor=NEGATIVE)
    assert evidence(ROWS, NEGATIVE, floor) == Evidence(1, 2, 4, 1)
    assert evidence(ROWS, Part((), POSITIVES), floor) == Evidence(1, 1, 2, 1)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000, 12_345])
def test_the_grid_of_ranks_reaches_both_ends_and_is_its_own_mirror(n):
    grid = ranks(n)
    assert (grid[0], grid[-1]) == (0, n)
    assert (np.diff(grid) > 0).all()
    assert (n - grid[::-1] == grid).all()


def test_chosen_thresholds_are_rounded_outwards():
    scores, labels = sample(0, 2000)
    rows = Sample(scores, labels, {}, "float64")
    for score in (0.0, 1.0, 2.0):
        plain = evidence(rows, NEGATIVE, Place(score))
        chosen = evidence(rows, NEGATIVE, Place(score, chosen=True))
        assert chosen.low <= plain.low <= plain.high <= chosen.high
        assert chosen.high <= 1.16 * plain.high + 1
        assert chosen.tests == len(ranks(chosen.n))


def test_bounds_at_a_rank_of_everyone_hold_for_each_class():
    """The lemma of the module: a part inside the anchor. One-sided, 5 % each."""
    draws, missed = 800, np.zeros(4)
    for seed in range(draws):
        scores, labels = sample(seed, 200, 0.4)
        rows = Sample(np.round(scores, 1), labels, {}, "float64")
        x = rows.sorted(Part((), EVERYONE))[150]
        place = Place(float(x), anchor=Part((), EVERYONE))
        edge = x + 0.05
        for i, (kind, true) in enumerate(((POSITIVES, ndtr(2.5 - edge)), (NEGATIVES, ndtr(-edge)))):
            seen = evidence(rows, Part((), kind), place)
            missed[2 * i] += true < lower(seen.low, seen.n, 0.05)
            missed[2 * i + 1] += true > upper(seen.high, seen.n, 0.05)
    assert (missed / draws <= most(0.05, draws)).all()


def test_bounds_hold_at_all_thresholds_at_once():
    draws, missed = 300, 0
    cuts = np.linspace(-3, 3, 61)
    for seed in range(draws):
        scores = np.random.default_rng(seed).normal(size=300)
        rows = Sample(scores, np.zeros(300, bool), {}, "float64")
        seen = [evidence(rows, NEGATIVE, Place(float(t), chosen=True)) for t in cuts]
        low = [float(lower(s.low, s.n, 0.05 / s.tests)) for s in seen]
        missed += bool((ndtr(-cuts) < low).any())
    assert missed / draws <= most(0.05, draws)


# ---- the rows that propose ----


def test_a_quarter_proposes_and_nobody_does_both():
    scores, labels = sample(0, 8000)
    pilot, rest = split_rows(Sample(scores, labels, {}, "float64"))
    assert len(pilot.scores) == pytest.approx(2000, abs=3 * np.sqrt(8000 * 0.1875))
    both = np.concatenate([pilot.scores, rest.scores])
    assert np.array_equal(np.sort(both), np.sort(scores))


@pytest.mark.parametrize("grouped", [False, True])
def test_lots_do_not_depend_on_the_order_of_the_rows(grouped):
    random = np.random.default_rng(0)
    scores, labels = sample(0, 500)
    scores = np.round(scores)
    groups = {(("group", "a"),): random.random(500) < 0.5} if grouped else {}
    order = random.permutation(500)
    found = []
    for o in (np.arange(500), order):
        slices = {w: mask[o] for w, mask in groups.items()}
        pilot, _ = split_rows(Sample(scores[o], labels[o], slices, "float64"))
        traits = np.stack([pilot.scores, *pilot.traits], 1)
        found.append(sorted(map(tuple, traits.tolist())))
    assert found[0] == found[1]


def test_lots_are_even_and_unrelated_to_scores_and_labels():
    scores, labels = sample(3, 20_000)
    for s in (scores, np.round(scores)):
        rows = Sample(s, labels, {}, "float64").in_order()
        drawn = lots(rows)
        assert drawn.mean() == pytest.approx(0.5, abs=4 / np.sqrt(12 * 20_000))
        for trait in (rows.scores, rows.labels.astype(float)):
            assert abs(np.corrcoef(drawn, trait)[0, 1]) < 4 / np.sqrt(20_000)


def test_lots_are_drawn_anew_for_every_sample_of_the_same_few_scores():
    random = np.random.default_rng(5)
    shares = {(score, label): [] for score in (0.0, 0.5, 1.0) for label in (False, True)}
    for _ in range(300):
        labels = random.random(120) < 0.5
        rows = Sample(random.choice([0.0, 0.5, 1.0], 120), labels, {}, "float64").in_order()
        pilot = lots(rows) < SHARE
        for (score, label), seen in shares.items():
            alike = (rows.scores == score) & (rows.labels == label)
            seen.append(pilot[alike].mean())
    for seen in shares.values():  # about 20 rows each time: 0.25 +- sqrt(0.19 / 20 / 300)
        assert abs(np.mean(seen) - SHARE) < 4 * 0.0057
        assert np.std(seen) == pytest.approx(math.sqrt(0.19 / 20), rel=0.2)
