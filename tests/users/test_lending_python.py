"""Lending, in Python: equal approval rates by thresholds per group, proved, checked later."""

import numpy as np
import pytest

from setpoint import Certificate, Problem, error
from setpoint.certificates import approval_rates, certify_groups
from setpoint.fairness import demographic_parity


def draw(seed, rows=8000):
    random = np.random.default_rng(seed)
    sex = np.where(random.random(rows) < 0.5, "f", "m")
    able = random.normal(size=rows) + 0.5 * (sex == "m")
    return able + 0.5 * random.normal(size=rows), (able > 0.4).astype(int), sex


@pytest.fixture(scope="module")
def certificate():
    fair = demographic_parity(0.08, sex=["f", "m"])
    problem = Problem(minimize=error, subject_to=fair, thresholds="per group")
    return certify_groups(problem, draw(0), draw(1), column="sex", confidence=0.95)


def test_the_gap_is_proved_and_holds_on_new_rows(certificate):
    assert certificate.certified
    assert set(certificate.thresholds) == {"f", "m"}
    scores, _, sex = draw(2, 50_000)
    rates = approval_rates(certificate, scores, sex)
    at = np.where(sex == "f", certificate.thresholds["f"], certificate.thresholds["m"])
    approved = scores > at
    for group in ("f", "m"):
        assert rates[group] == pytest.approx(approved[sex == group].mean())
    assert abs(rates["f"] - rates["m"]) <= 0.08
    shared = scores > np.median(scores)  # what one threshold would do
    assert abs(shared[sex == "f"].mean() - shared[sex == "m"].mean()) > 0.1


def test_it_can_be_stored_and_checked_on_later_rows(certificate):
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    scores, labels, sex = draw(3)
    told = str(again.check(scores, labels, groups=sex))
    assert told.startswith("ok")
    moved = np.where(sex == "f", scores - 0.5, scores)
    assert not str(again.check(moved, labels, groups=sex)).startswith("ok")
