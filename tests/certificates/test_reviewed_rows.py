"""Rows that were labelled because of their score, and ties that are no copies."""

import numpy as np
import pytest

from setpoint import certify
from setpoint.certificates import CannotPromise
from setpoint.reports import report


def draw(n=20_000, seed=0):
    random = np.random.default_rng(seed)
    labels = (random.random(n) < 0.1).astype(float)
    return random.normal(size=n) + 2 * labels, labels, random


def test_labels_of_alerts_alone_prove_precision_and_nothing_else():
    scores, labels, random = draw()
    reviewed = np.where(scores > 1.5, labels, np.nan)
    with pytest.raises(CannotPromise, match="nothing about what was rejected"):
        certify(scores, reviewed, "fpr <= 0.05")
    assert certify(scores, reviewed, "precision >= 0.5").certified
    at_random = np.where(random.random(len(scores)) < 0.3, labels, np.nan)
    assert certify(scores, at_random, "fpr <= 0.05").certified
    late = labels.copy()
    late[np.argsort(scores)[:5]] = np.nan  # a few rows are no pattern
    assert certify(scores, late, "fpr <= 0.05").certified


def test_rounded_scores_of_many_negatives_are_no_copies():
    scores, labels, _ = draw(100_000)
    labels[np.flatnonzero(labels)[1000:]] = np.nan  # few positives, many negatives
    kept = ~np.isnan(labels)
    notes = certify(scores[kept].round(5), labels[kept], "fpr <= 0.05").notes
    assert not any("void" in note for note in notes)
    some = (labels[kept] == 1) & (np.arange(kept.sum()) % 2 == 0)
    twice = np.repeat(np.arange(kept.sum()), 1 + some)
    notes = certify(scores[kept][twice], labels[kept][twice], "fpr <= 0.05").notes
    assert any("oversampled" in note for note in notes)


def test_the_page_of_a_certificate_of_clusters_counts_its_rows():
    scores, labels, _ = draw(6000)
    who = np.arange(6000) // 3
    certificate = certify(scores, labels, "fpr <= 0.05", clusters=who)
    page = report(scores, labels, certificate, clusters=who)
    point = certificate.points[0]
    assert "Measured on calibration data" in page
    assert f"{point.true_alerts:,} of {point.positives:,}" in page
    assert "One row of each of 2,000 clusters is counted." in page
