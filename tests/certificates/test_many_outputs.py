"""Several labels of a row: one threshold each, one confidence for all."""

import json

import numpy as np
import pytest
from certificates.simulate import SHIFT, most
from scipy import stats

from setpoint.certificates import Certificate, certify
from setpoint.cli import main
from setpoint.rates import fpr, precision, recall

NAMES = ["cat", "dog", "eel", "fly"]


def rows(seed=0, n=2000, shares=(0.3, 0.2, 0.1, 0.002)):
    random = np.random.default_rng(seed)
    labels = (random.random((n, len(shares))) < shares).astype(float)
    return random.normal(size=labels.shape) + SHIFT * labels, labels


def test_each_label_is_certified_as_by_itself_with_its_part_of_the_risk():
    scores, labels = rows(shares=(0.3, 0.2, 0.1, 0.15))
    made = certify(scores, labels, fpr <= 0.05, outputs=NAMES)
    for i, name in enumerate(NAMES):
        alone = certify(scores[:, i], labels[:, i], fpr <= 0.05, confidence=1 - 0.05 / 4)
        assert made.thresholds[name] == alone.threshold
    assert made.outputs == tuple(NAMES)
    decided = made.decide(scores)
    assert decided.shape == scores.shape
    np.testing.assert_array_equal(decided[:, 1], scores[:, 1] > made.thresholds["dog"])


def test_missing_labels_are_absent():
    scores, labels = rows()
    gone = np.random.default_rng(1).random(labels.shape) < 0.3
    for missing in (np.nan, -1):
        made = certify(scores, np.where(gone, missing, labels), recall >= 0.8, outputs=NAMES)
        there = ~gone[:, 1]
        point = next(p for p in made.points if p.group == "dog")
        assert (point.examples, point.positives) == (there.sum(), labels[there, 1].sum())


def test_a_label_too_rare_for_a_proof_has_no_threshold():
    scores, labels = rows()
    made = certify(scores, labels, recall >= 0.8, outputs=NAMES)
    assert "1 output of 4 without a threshold: 'fly'" in made.verdict
    assert made.exit_code == 1
    assert "needs" in made.notes[0]
    assert not made.decide(scores)[:, 3].any()
    # by hand, the rank that Clopper and Pearson allow at 5 % / 4
    positives = np.sort(scores[labels[:, 2] == 1, 2])
    allowed = int(stats.binom.ppf(0.05 / 4, len(positives), 0.2)) - 1
    assert stats.binom.cdf(allowed, len(positives), 0.2) <= 0.05 / 4
    # half way to the next score of all rows of this label
    below = scores[scores[:, 2] < positives[allowed], 2].max()
    assert made.thresholds["eel"] == pytest.approx((below + positives[allowed]) / 2)


@pytest.mark.parametrize("seed", range(8))
def test_given_thresholds_are_proved_where_holm_rejects(seed):
    random = np.random.default_rng(seed)
    scores, labels = rows(seed, n=1500, shares=(0.3, 0.2, 0.1, 0.2))
    given = dict(zip(NAMES, random.normal(1.8, 0.1, 4).tolist(), strict=True))
    p = []
    for i, cut in enumerate(given.values()):
        negatives = scores[labels[:, i] == 0, i]
        p.append(stats.binom.cdf((negatives > cut).sum(), len(negatives), 0.05))
    order = np.argsort(p)
    stop = next((i for i, j in enumerate(order) if p[j] > 0.05 / (4 - i)), 4)
    made = certify(scores, labels, fpr <= 0.05, outputs=NAMES, thresholds=given)
    assert set(made.thresholds if made else ()) == {NAMES[j] for j in order[:stop]}
    assert all(claim.proved == 0.05 for claim in made.claims if made)


def test_given_thresholds_are_proved_by_holm_where_bonferroni_fails():
    scores, labels = rows(n=4000, shares=(0.3, 0.2, 0.1, 0.2))
    given = {"cat": 2.5, "dog": 2.5, "eel": 2.5, "fly": None}
    negatives = np.sort(scores[labels[:, 3] == 0, 3])[::-1]
    # the p-value of the last lies between 0.05 / 4 and 0.05
    count = next(m for m in range(1000) if 0.03 < stats.binom.cdf(m, len(negatives), 0.05) < 0.05)
    given["fly"] = float(negatives[count])
    made = certify(scores, labels, fpr <= 0.05, outputs=NAMES, thresholds=given)
    assert set(made.thresholds) == set(NAMES)
    given["cat"] = 1.0  # false: it stops nothing before it, and the last needs more now
    made = certify(scores, labels, fpr <= 0.05, outputs=NAMES, thresholds=given)
    assert set(made.thresholds) == {"dog", "eel"}
    assert made.notes[0].startswith("'cat': `fpr <= 0.05` is not proved: at most 0.1")


def test_any_promise_of_fifty_dependent_labels_is_broken_as_rarely_as_promised():
    """30 draws of 50 labels that share half of their noise; at most 5 % and three errors."""
    random, broken, kept = np.random.default_rng(0), 0, []
    shares = np.geomspace(0.3, 0.004, 50)
    for _ in range(30):
        labels = random.random((800, 50)) < shares
        noise = np.sqrt(0.5) * (random.normal(size=(800, 1)) + random.normal(size=(800, 50)))
        made = certify(
            noise + SHIFT * labels, labels, recall >= 0.8, outputs=list(map(str, range(50)))
        )
        cuts = np.array(list(made.thresholds.values()))
        broken += (stats.norm.sf(cuts - SHIFT) < 0.8).any()
        kept.append(len(cuts))
    assert broken / 30 <= most(0.05, 30)
    assert np.mean(kept) > 20


def test_clusters_and_times_of_outputs_are_those_of_each():
    scores, labels = rows(n=3000, shares=(0.3, 0.2, 0.1, 0.2))
    labels[:40, 1] = np.nan
    ids, when = np.arange(3000) // 4, np.arange(3000)
    made = certify(scores, labels, fpr <= 0.05, outputs=NAMES, clusters=ids, times=when)
    for i, name in enumerate(NAMES):
        alone = certify(
            *(scores[:, i], labels[:, i], fpr <= 0.05),
            **{"confidence": 1 - 0.05 / 4, "clusters": ids, "times": when},
        )
        assert made.thresholds[name] == alone.threshold
    assert (made.clusters, made.period) == (750, ("0", "2999"))
    with pytest.raises(ValueError, match="pass clusters="):
        made.check(scores, labels)
    found = made.check(scores, labels, clusters=ids)
    assert (found.verdict, found.examples) == ("ok", 750 * 3 + 740)
    assert made.check(scores + 1, labels, clusters=ids).verdict == "broken"


def test_one_output_that_drifts_has_no_threshold():
    scores, labels = rows(n=3000, shares=(0.3, 0.2, 0.1, 0.2))
    scores[:, 2] += np.linspace(0, 3, 3000)
    made = certify(scores, labels, fpr <= 0.05, outputs=NAMES, times=np.arange(3000))
    assert set(made.thresholds) == {"cat", "dog", "fly"}
    assert "1 output of 4 without a threshold: 'eel'" in made.verdict
    assert made.notes[0].startswith("'eel': ")
    accepted = certify(
        scores, labels, fpr <= 0.05, outputs=NAMES, times=np.arange(3000), accept_drift=True
    )
    assert set(accepted.thresholds) == set(NAMES)


def test_bounds_on_groups_hold_for_every_output():
    scores, labels = rows(n=3000, shares=(0.3, 0.2, 0.1, 0.2))
    group = np.where(np.arange(3000) % 3 == 0, "a", "b")
    goal = [fpr.on(group="a") <= 0.05, fpr.on(group="b") <= 0.1]
    made = certify(scores, labels, goal, outputs=NAMES, groups=group)
    assert len(made.claims) == 8
    for i, name in enumerate(NAMES):
        own = {"confidence": 1 - 0.05 / 4, "groups": group}
        assert made.thresholds[name] == certify(scores[:, i], labels[:, i], goal, **own).threshold
    assert Certificate.from_json(made.to_json()) == made
    assert made.check(scores, labels, groups=group).verdict == "ok"
    high = scores + 0.7 * (group == "a")[:, None]
    broken = made.check(high, labels, groups={"group": group})
    alarms = [finding.name for finding in broken.findings if finding.alarm]
    assert {name for name in alarms if "fpr" in name} == {
        f'fpr on group="a" & output="{name}" <= 0.05' for name in NAMES
    }


def test_an_output_without_positives_or_labels_is_left_without_a_threshold():
    scores, labels = rows(shares=(0.3, 0.2, 0.1, 0.0))
    made = certify(scores, labels, recall >= 0.8, outputs=NAMES)
    assert set(made.thresholds) == set(NAMES[:3])
    labels[:, 3] = np.nan
    made = certify(scores, labels, recall >= 0.8, outputs=NAMES)
    assert set(made.thresholds) == set(NAMES[:3])
    assert any("'fly': No row has a label" in note for note in made.notes)


def test_goals_by_name_json_and_check():
    scores, labels = rows(shares=(0.3, 0.2, 0.1, 0.2))
    goals = {"cat": "fpr <= 0.05", "dog": fpr <= 0.1, "eel": recall >= 0.7, "fly": precision >= 0.6}
    made = certify(scores, labels, goals, outputs=NAMES)
    assert made.certified
    assert Certificate.from_json(made.to_json()) == made
    fresh, truth = rows(5, n=4000, shares=(0.3, 0.2, 0.1, 0.2))
    assert made.check(fresh, truth).verdict == "ok"
    assert made.check(fresh).verdict == "ok"
    assert made.check(fresh + 1, truth).verdict == "broken"


def test_from_the_shell(tmp_path, capsys):
    scores, labels = rows(shares=(0.3, 0.002))
    file, made, out = tmp_path / "s.csv", tmp_path / "c.json", tmp_path / "d.csv"
    labels[3, 0] = np.nan
    lines = [
        ",".join([f"{a!r}", f"{b!r}", "" if np.isnan(c) else f"{c:.0f}", f"{d:.0f}"])
        for (a, b), (c, d) in zip(scores.tolist(), labels.tolist(), strict=True)
    ]
    file.write_text("\n".join(["sa,sb,cat,dog", *lines]))
    columns = ["--score=sa", "--score=sb"]
    known = ["--label=cat", "--label=dog"]
    asked = ["certify", str(file), *columns, *known, "--goal=recall >= 0.8", f"--out={made}"]
    assert main(asked) == 1  # dog has no threshold
    capsys.readouterr()
    assert json.loads(made.read_text())["outputs"] == ["cat", "dog"]
    assert main(["check", str(made), str(file), *columns, *known]) == 0
    assert main(["decide", str(file), *columns, f"--certificate={made}", f"--out={out}"]) == 0
    head, first = out.read_text().splitlines()[:2]
    assert head.endswith("decision_cat,decision_dog")
    cut = Certificate.from_json(made.read_text()).thresholds["cat"]
    assert first.split(",")[-2:] == [str(int(scores[0, 0] > cut)), ""]
    assert (
        main(
            ["decide", str(file), "--score=sa", f"--certificate={made}", f"--out={out}", "--force"]
        )
        == 2
    )
    assert "2 outputs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"outputs": NAMES[:3]}, "scores are"),
        ({"outputs": ["a", "a", "b", "c"]}, "must be different names"),
        ({"outputs": "abcd"}, "must be different names"),
        ({"outputs": NAMES, "groups": np.zeros(2000)}, "certify every output by itself"),
        ({"outputs": NAMES, "prevalence": 0.1}, "certify each output by itself"),
        ({"outputs": NAMES, "thresholds": 1.0}, "one threshold for each output"),
        ({"outputs": NAMES, "goal": {"cat": "fpr <= 0.1"}}, "give each output one goal"),
        ({"outputs": NAMES, "labels": np.zeros((2000, 3))}, "shape of the scores"),
    ],
)
def test_bad_input_is_told(given, says):
    scores, labels = rows()
    given = {"labels": labels, "goal": fpr <= 0.1} | given
    with pytest.raises((ValueError, TypeError), match=says):
        certify(scores, **given)
