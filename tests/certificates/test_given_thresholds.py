"""Certificates at thresholds that were chosen on other data, and gaps between groups."""

from __future__ import annotations

import numpy as np
import pytest

from setpoint import Problem, certify, coverage, error, fpr
from setpoint.certificates import Certificate
from setpoint.certificates.goals import inequalities
from setpoint.fairness import demographic_parity, equal_opportunity, four_fifths

THREE = {"g": ["a", "b", "c"]}


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    g = random.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    y = (random.random(n) < 0.3).astype(int)
    return random.normal(size=n) + 1.5 * y + 0.5 * (g == "a"), y, g


def per_group(bound: object) -> Problem:
    return Problem(minimize=error, subject_to=bound, thresholds="per group")  # type: ignore


@pytest.mark.parametrize(
    ("asked", "provable"),
    [
        (demographic_parity(0.01, **THREE), demographic_parity(0.15, **THREE)),
        (equal_opportunity(0.01, **THREE), equal_opportunity(0.3, **THREE)),
        (four_fifths(0.97, **THREE), four_fifths(0.4, **THREE)),
    ],
    ids=str,
)
def test_gaps_are_proved_at_the_thresholds_chosen_elsewhere(asked, provable) -> None:
    s, y, g = draw(3000, 0)
    thresholds = per_group(asked).choose(s, y, groups=g).thresholds
    new = draw(3000, 1)
    strict = certify(*new[:2], per_group(asked), groups={"g": new[2]}, thresholds=thresholds)
    assert not strict.certified
    assert "is not proved" in strict.notes[0]
    found = certify(*new[:2], per_group(provable), groups={"g": new[2]}, thresholds=thresholds)
    assert found.certified
    assert found.thresholds == thresholds
    rates = {e.name: e for e in found.objective}
    assert len([name for name in rates if not name.startswith("error")]) == 3
    assert all(e.low <= e.value <= e.high for e in found.objective)
    accepted = new[0] > np.array([thresholds[k] for k in new[2]])
    assert np.array_equal(found.decide(new[0], groups=new[2]), accepted)
    if "coverage" in str(provable):
        shares = [accepted[new[2] == k].mean() for k in "abc"]
        claim = found.claims[0]
        value = max(shares) - min(shares) if "<=" in claim.bound else min(shares) / max(shares)
        assert claim.measured == pytest.approx(value, abs=1e-12)


def test_the_promise_is_broken_no_more_often_than_allowed() -> None:
    """The gap is 0.05 in truth; a certificate of at most that is wrong, in 10 % of the samples.

    400 samples: 40 expected at most, 60 is 3.3 standard deviations above.
    """
    random = np.random.default_rng(0)
    bound = per_group(demographic_parity(0.05, g=["a", "b"]))
    wrong = 0
    for _ in range(400):
        s = random.random(400)
        g = np.repeat(["a", "b"], 200)
        found = certify(
            s,
            np.arange(400) % 2,
            bound,
            groups={"g": g},
            thresholds={"a": 0.90, "b": 0.8499},
            confidence=0.9,
        )
        wrong += found.certified
    assert wrong <= 60


def test_one_threshold_for_everyone_may_be_given_too() -> None:
    random = np.random.default_rng(0)
    y = np.repeat([0, 1], 2000)
    s = random.normal(size=4000) + 3 * y
    found = certify(s, y, fpr <= 0.02, thresholds=2.5)
    assert found.certified
    assert found.threshold == 2.5
    assert not certify(s, y, fpr <= 0.02, thresholds=2.1).certified


def test_a_gap_of_many_groups_is_taken_apart_into_pairs() -> None:
    parts = [str(atom.bound) for atom in inequalities([demographic_parity(0.1, **THREE)], None)]
    assert len(parts) == 6
    assert str(coverage.on(g="a") - coverage.on(g="b") <= 0.1) in parts
    assert len(inequalities([four_fifths(**THREE)], None)) == 6


def test_slips_are_named() -> None:
    s, y, g = draw(300, 0)
    goal = per_group(demographic_parity(0.1, **THREE))
    with pytest.raises(ValueError, match="add one, or pass thresholds= that were chosen on other"):
        certify(s, y, goal, groups={"g": g})
    with pytest.raises(ValueError, match="No threshold for g = 'c': add it"):
        certify(s, y, goal, groups={"g": g}, thresholds={"a": 0.0, "b": 0.0})
    with pytest.raises(TypeError, match="one threshold for each g"):
        certify(s, y, goal, groups={"g": g}, thresholds=0.0)
    with pytest.raises(TypeError, match="pass a number"):
        certify(s, y, fpr <= 0.1, thresholds={"a": 0.0})
    with pytest.raises(ValueError, match='use guarantee="pac"'):
        certify(s, y, fpr <= 0.1, thresholds=0.0, guarantee="mean")


@pytest.mark.parametrize("goal", ["fpr <= 0.01", "fpr <= 0.99"])
@pytest.mark.parametrize("at", [0.0, -np.inf, np.inf])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_a_certificate_at_a_given_threshold_is_kept_in_a_file_proved_or_not(goal, at, dtype):
    """It says what was tried; infinities accept everybody or nobody."""
    scores, labels, _ = draw(300, 0)
    found = certify(scores.astype(dtype), labels, goal, thresholds=at)
    assert found.certified == (goal == "fpr <= 0.99" and at >= 0)
    assert Certificate.from_json(found.to_json()) == found
    assert found.points[0].alerts == (scores.astype(dtype) > at).sum()
