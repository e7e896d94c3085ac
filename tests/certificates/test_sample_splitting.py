import math

import numpy as np
import pytest
from certificates.simulate import sample

from setpoint import accuracy, certify, error
from setpoint.certificates.sample import CalibrationSample
from setpoint.certificates.selection import (
    SELECTION_SHARE,
    in_order,
    random_numbers,
    split_rows,
    traits_of,
)


def test_a_quarter_of_the_rows_selects_and_no_row_does_both():
    scores, labels = sample(0, 8000)
    selection, test = split_rows(CalibrationSample(scores, labels, {}, "float64"))
    assert len(selection.scores) == pytest.approx(2000, abs=3 * np.sqrt(8000 * 0.1875))
    both = np.concatenate([selection.scores, test.scores])
    assert np.array_equal(np.sort(both), np.sort(scores))


@pytest.mark.parametrize("grouped", [False, True])
def test_the_split_does_not_depend_on_the_order_of_the_rows(grouped):
    random = np.random.default_rng(0)
    scores, labels = sample(0, 500)
    scores = np.round(scores)
    groups = {(("group", "a"),): random.random(500) < 0.5} if grouped else {}
    order = random.permutation(500)
    found = []
    for o in (np.arange(500), order):
        slices = {w: mask[o] for w, mask in groups.items()}
        selection, _ = split_rows(CalibrationSample(scores[o], labels[o], slices, "float64"))
        traits = np.stack([selection.scores, *traits_of(selection)], 1)
        found.append(sorted(map(tuple, traits.tolist())))
    assert found[0] == found[1]


def test_the_random_numbers_are_even_and_unrelated_to_scores_and_labels():
    scores, labels = sample(3, 20_000)
    for s in (scores, np.round(scores)):
        rows = in_order(CalibrationSample(s, labels, {}, "float64"))
        drawn = random_numbers(rows)
        assert drawn.mean() == pytest.approx(0.5, abs=4 / np.sqrt(12 * 20_000))
        for trait in (rows.scores, rows.labels.astype(float)):
            assert abs(np.corrcoef(drawn, trait)[0, 1]) < 4 / np.sqrt(20_000)


def test_the_random_numbers_are_drawn_anew_for_every_sample_of_the_same_few_scores():
    random = np.random.default_rng(5)
    shares = {(score, label): [] for score in (0.0, 0.5, 1.0) for label in (False, True)}
    for _ in range(300):
        labels = random.random(120) < 0.5
        drawn = random.choice([0.0, 0.5, 1.0], 120)
        rows = in_order(CalibrationSample(drawn, labels, {}, "float64"))
        selected = random_numbers(rows) < SELECTION_SHARE
        for (score, label), seen in shares.items():
            alike = (rows.scores == score) & (rows.labels == label)
            seen.append(selected[alike].mean())
    for seen in shares.values():  # about 20 rows each time: 0.25 +- sqrt(0.19 / 20 / 300)
        assert abs(np.mean(seen) - SELECTION_SHARE) < 4 * 0.0057
        assert np.std(seen) == pytest.approx(math.sqrt(0.19 / 20), rel=0.2)


def probabilities(seed, n, shift):
    """Probabilities of Gaussian classes that are ``shift`` apart: 0.5 is the best threshold."""
    random = np.random.default_rng(seed)
    labels = random.random(n) < 0.5
    margin = shift * (random.normal(size=n) + shift * labels) - shift**2 / 2
    return 1 / (1 + np.exp(-margin)), labels


def test_the_error_of_few_probabilities_is_tested_at_one_half_on_all_rows():
    """Of 40 rows with a true accuracy of 95 %, 63.5 % prove 80 % if a quarter of them select."""
    certified = 0
    for seed in range(100):
        found = certify(*probabilities(seed, 40, 3.3), accuracy >= 0.8)
        certified += found.certified
    assert certified >= 75  # 88 expected, four standard errors less
    assert certify(*probabilities(0, 40, 4.0), error <= 0.2).threshold == 0.5


def test_few_probabilities_prove_no_accuracy_that_is_not_there():
    shift = 2 * 0.8416 - 0.001  # the best accuracy is just below 80 %: every certificate is false
    wrong = sum(
        certify(*probabilities(s, 60, shift), accuracy >= 0.8).certified for s in range(300)
    )
    assert wrong / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5
