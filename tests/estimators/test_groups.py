"""Estimators with one threshold per group: fit with groups, predict with groups."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from setpoint import CertifiedThreshold, Classifier, Problem, error
from setpoint.estimators import NotCertifiedWarning
from setpoint.fairness import demographic_parity

FAIR = demographic_parity(0.15, sex=["f", "m"])
GOAL = Problem(minimize=error, subject_to=FAIR, thresholds="per group")


def draw(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    sex = random.choice(["f", "m"], n)
    x = random.normal(size=(n, 3)) + (sex == "m")[:, None] * [0.8, 0, 0]
    y = (x[:, 0] + 0.5 * random.normal(size=n) > 0.6).astype(int)
    return x, y, sex


def gap(accepted: np.ndarray, sex: np.ndarray) -> float:
    return abs(accepted[sex == "f"].mean() - accepted[sex == "m"].mean())


@pytest.fixture(scope="module")
def fitted() -> Classifier:
    x, y, sex = draw(4000)
    return Classifier(GOAL, model="linear", epochs=3, random_state=0).fit(x, y, groups=sex)


def test_a_classifier_keeps_the_gap_on_new_data_and_proves_it(fitted: Classifier) -> None:
    x, _, sex = draw(4000, seed=1)
    assert set(fitted.threshold_) == {"f", "m"}
    assert fitted.threshold_["f"] < fitted.threshold_["m"]
    assert gap(fitted.predict(x, groups=sex), sex) <= 0.15
    assert gap(LogisticRegression().fit(*draw(4000)[:2]).predict(x), sex) > 0.2
    certificate = fitted.certificate_
    assert certificate is not None
    assert certificate.certified
    assert certificate.thresholds == fitted.threshold_
    assert certificate.claims[0].proved <= 0.15
    names = [estimate.name for estimate in certificate.objective]
    assert 'coverage on sex="f"' in names
    assert all(e.low <= e.value <= e.high for e in certificate.objective)


def test_scores_and_decisions_agree(fitted: Classifier) -> None:
    x, y, sex = draw(500, seed=2)
    margin = fitted.decision_function(x, groups={"sex": sex})
    assert np.array_equal(fitted.predict(x, groups=sex) == 1, margin > 0)
    assert -1 <= fitted.score(x, y, groups=sex) < 0


def test_groups_are_needed_and_strangers_are_refused(fitted: Classifier) -> None:
    x, _, sex = draw(20, seed=3)
    with pytest.raises(ValueError, match=r"one threshold for each group.*predict\(X, groups=...\)"):
        fitted.predict(x)
    sex = sex.astype("<U5")
    sex[4] = "other"
    with pytest.raises(ValueError, match=r"Row 4 is of a group without a threshold.*unseen="):
        fitted.predict(x, groups=sex)


@pytest.mark.parametrize(("unseen", "pick"), [("highest", max), ("lowest", min)])
def test_a_declared_fallback_decides_for_strangers(
    fitted: Classifier, unseen: str, pick: Any
) -> None:
    x, _, _ = draw(30, seed=4)
    fitted.unseen = unseen
    found = fitted.predict(x, groups=np.full(30, "x"))
    fitted.unseen = "error"
    same = [k for k, t in fitted.threshold_.items() if t == pick(fitted.threshold_.values())]
    assert np.array_equal(found, fitted.predict(x, groups=np.full(30, same[0])))


def test_any_classifier_gets_thresholds_per_group() -> None:
    x, y, sex = draw(8000)
    model = CertifiedThreshold(
        LogisticRegression(), goal=GOAL, calibration_fraction=0.5, random_state=0
    )
    model = clone(model).fit(x, y, groups=sex)
    new, _, other = draw(4000, seed=1)
    assert model.certificate_.certified
    assert gap(model.predict(new, groups=other), other) <= 0.15


def test_without_a_proof_there_is_a_warning_and_a_threshold() -> None:
    x, y, sex = draw(600)
    strict = Problem(
        minimize=error,
        subject_to=demographic_parity(0.01, sex=["f", "m"]),
        thresholds="per group",
    )
    model = CertifiedThreshold(LogisticRegression(), goal=strict, random_state=0)
    with pytest.warns(NotCertifiedWarning, match="is not proved: at most"):
        model.fit(x, y, groups=sex)
    assert set(model.threshold_) == {"f", "m"}
    assert not model.certificate_.certified


def test_intersections_work_without_a_certificate() -> None:
    x, y, sex = draw(3000)
    race = np.random.default_rng(5).choice(["b", "w"], 3000)
    goal = Problem(
        minimize=error,
        subject_to=demographic_parity(0.1, sex=["f", "m"], race=["b", "w"]),
        thresholds="per group",
    )
    columns = {"sex": sex, "race": race}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertifiedWarning)
        model = Classifier(goal, model="linear", epochs=2, random_state=0).fit(x, y, groups=columns)
    assert set(model.threshold_) == {("b", "f"), ("b", "m"), ("w", "f"), ("w", "m")}
    assert model.predict(x, groups=columns).shape == (3000,)


def test_slips_are_named() -> None:
    x, y, sex = draw(100)
    with pytest.raises(ValueError, match="unseen must be one of 'error'"):
        Classifier(GOAL, unseen="ignore").fit(x, y, groups=sex)
    with pytest.raises(ValueError, match="names no group to find a threshold for"):
        Classifier("minimize error with thresholds per group").fit(x, y, groups=sex)
    with pytest.raises(ValueError, match="needs groups: pass fit"):
        Classifier(GOAL).fit(x, y)
