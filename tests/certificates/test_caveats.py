"""A certificate that is valid and of no use says so: "certified, but ...", exit code 1."""

import numpy as np
import pytest
from certificates.simulate import sample

from setpoint import certify, fpr, recall
from setpoint.certificates import Certificate
from setpoint.cli import main
from setpoint.fairness import demographic_parity
from setpoint.problems import Problem
from setpoint.rates import error


def test_a_useful_certificate_has_no_caveat():
    found = certify(*sample(0), fpr <= 0.05)
    assert (found.caveats, found.exit_code, found.verdict) == ((), 0, "certified")


def test_a_threshold_that_accepts_nobody():
    labels = np.repeat([0, 1], 500)
    found = certify(np.zeros(1000), labels, fpr <= 0.05)
    assert found.certified
    assert found.exit_code == 1
    assert str(found).startswith("certified, but it accepts nobody")
    assert "#b35900" in found._repr_html_()  # amber
    assert Certificate.from_json(found.to_json()) == found


def test_each_group_must_accept_somebody():
    scores, labels = sample(0)
    group = np.arange(len(labels)) % 2
    scores = np.where(group == 1, 0.0, scores)
    found = certify(scores, labels, fpr <= 0.05, groups=group)
    assert [caveat[:31] for caveat in found.caveats] == ["it accepts nobody of group 1 (t"]


def test_inverted_scores_do_worse_than_chance():
    scores, labels = sample(0)
    for goal in (fpr <= 0.05, recall >= 0.9):
        found = certify(-scores, labels, goal)
        assert found.exit_code == 1
        assert "fewer positives than chance" in found.caveats[0]


def test_inverted_scores_are_told_although_the_alerts_are_few():
    random = np.random.default_rng(0)
    labels = random.random(5000) < 0.1
    scores = random.normal(size=5000) + 2.5 * labels
    found = certify(-scores, labels, fpr <= 0.01)  # 0 of 33: by chance in 1 of 40 samples
    assert found.exit_code == 1
    assert "(0 of the 33 accepted, 10.5 % of all): inverted scores?" in found.caveats[0]


@pytest.mark.parametrize("ratio", [0.3, 1.0])
def test_scores_that_are_good_at_the_top_alone_are_of_use(ratio):
    random = np.random.default_rng(0)
    labels = random.random(5000) < 0.1
    top = random.random(5000) < 0.2
    scores = random.normal(size=5000) + np.where(top, 4.0, -ratio) * labels
    assert not certify(scores, labels, fpr <= 0.01).caveats


@pytest.mark.parametrize("seed", range(20))
def test_scores_that_say_nothing_are_not_called_inverted(seed):
    """A false alarm has a chance of 0.1 %; none of these 20 happens to be one."""
    random = np.random.default_rng(seed)
    assert not certify(random.normal(size=2000), random.random(2000) < 0.1, fpr <= 0.05).caveats


def test_scores_that_find_no_more_positives_than_chance_are_noted():
    random = np.random.default_rng(0)
    labels, scores = random.random(2000) < 0.1, random.normal(size=2000)
    scores[random.permutation(np.flatnonzero(~labels))[:40]] += 5  # on top only negatives
    found = certify(scores, labels, fpr <= 0.05)
    told = "are positive, of all 10.5 %: these scores do not find positives there"
    assert any(told in note for note in found.notes)
    assert not certify(scores + 9 * labels, labels, fpr <= 0.05).notes


def test_test_rows_may_contradict_it():
    found = certify(*sample(0), fpr <= 0.05)
    assert found.tested_on(*sample(1)) == found
    scores, labels = sample(1)
    told = found.tested_on(scores + 1, labels)
    assert told.certified
    assert told.exit_code == 1
    assert "2,500 test rows contradict it: `fpr <= 0.05` is" in told.verdict


def test_from_a_shell(tmp_path, capsys):
    scores, labels = sample(0)
    calibration, test = tmp_path / "c.csv", tmp_path / "t.csv"
    for path, shift in ((calibration, 0), (test, 1)):
        lines = [f"{s + shift},{int(y)}" for s, y in zip(scores, labels, strict=True)]
        path.write_text("\n".join(["s,y", *lines]))
    command = ["certify", str(calibration), "--score=s", "--label=y", "--goal", "fpr <= 0.05"]
    assert main(command) == 0
    assert main([*command, "--test", str(test)]) == 1
    assert "certified, but 2,500 test rows contradict it" in capsys.readouterr().out
    assert main([*command, "--test", str(test), "--allow-useless"]) == 0


@pytest.mark.parametrize("labelled", [True, False])
def test_a_gap_certificate_of_given_thresholds_can_be_checked(labelled):
    scores, labels = sample(0, n=20_000)
    groups = np.where(np.arange(20_000) % 2, "a", "b")
    gap = demographic_parity(0.05, g=["a", "b"])
    problem = Problem(minimize=error, subject_to=gap, thresholds="per group")
    found = certify(scores, labels, problem, groups={"g": groups}, thresholds={"a": 0.5, "b": 0.5})
    assert found.certified
    assert found.check(scores, labels if labelled else None, groups=groups).verdict == "ok"
    moved = scores + 2 * (groups == "a")
    drifted = found.check(moved, labels if labelled else None, groups=groups)
    assert drifted.verdict == ("broken" if labelled else "drift")


def test_positives_that_were_oversampled_are_pointed_out():
    rng = np.random.default_rng(0)
    negatives, positives = rng.normal(size=900), rng.normal(2, 1, size=100)
    drawn = np.concatenate([positives, rng.choice(positives, 60)])
    scores = np.concatenate([negatives, drawn])
    found = certify(scores, np.arange(len(scores)) >= 900, "fpr <= 0.1")
    assert "of the positives share their score with another, the other class hardly" in str(found)


@pytest.mark.parametrize("clusters", [None, np.arange(43_000) // 2])
def test_ties_that_few_decimals_make_are_no_copies(clusters):
    rng = np.random.default_rng(0)
    labels = np.arange(43_000) >= 42_600  # classes that lie apart: no score is in both
    logits = np.where(labels, rng.normal(3, 0.6, 43_000), rng.normal(-4.5, 1.2, 43_000))
    scores = np.round(1 / (1 + np.exp(-logits)), 6)
    assert len(np.unique(scores[~labels])) < 0.8 * 42_600
    assert "share their score" not in str(certify(scores, labels, "fpr <= 1 %", clusters=clusters))
    copied = np.where(labels, scores, np.round(scores[rng.integers(0, 8_000, 43_000)], 6))
    assert "share their score" in str(certify(copied, labels, "fpr <= 1 %"))


def test_more_rows_are_not_advised_where_clusters_prove_enough():
    rng = np.random.default_rng(0)
    labels = np.arange(9000) % 10 == 0
    scores, customer = rng.normal(size=9000) + 3 * labels, np.arange(9000) // 20
    alike = certify(scores[:900], labels[:900], "fpr <= 0.1", clusters=np.arange(900) // 2)
    many = certify(scores, labels, "fpr <= 0.1", clusters=customer)
    (claim,) = many.claims
    assert claim.measured > 0.08
    assert "could use 80 %" not in str(many)
    assert "of clusters of their own" in str(alike.advice)
    few = certify(scores, labels, "fpr <= 0.001", clusters=customer)
    assert "(of each cluster one row counts)" in str(few.notes)
