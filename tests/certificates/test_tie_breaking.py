"""Ties broken by lot: the bound is used up where equal scores leave it unused, and kept."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from certificates.simulate import most
from cli.shell import run
from scipy import stats

from setpoint import Certificate, certify, fpr, precision, recall
from setpoint.certificates import row_numbers
from setpoint.certificates.tie_breaking import lots

LEVELS = np.arange(6)
NEGATIVE = np.array([0.3, 0.3, 0.2, 0.1, 0.07, 0.03])
POSITIVE = np.array([0.02, 0.08, 0.1, 0.2, 0.3, 0.3])


def draw(random, n=1000, prior=0.3):
    labels = random.random(n) < prior
    law = (random.choice(LEVELS, n, p=p) for p in (POSITIVE, NEGATIVE))
    return np.where(labels, *law).astype(float), labels


def accepted(law, certificate):
    """The true share above the threshold and, with luck, at it."""
    if not certificate.certified:
        return 0.0
    (point,), (lot,) = certificate.points, certificate.lots
    return law[point.threshold < LEVELS].sum() + (1 - lot) * law[point.threshold == LEVELS].sum()


@pytest.mark.parametrize(
    ("goal", "broken"),
    [
        (fpr <= 0.05, lambda tpr, false: false > 0.05),
        (recall >= 0.7, lambda tpr, false: tpr < 0.7),
        (precision >= 0.7, lambda tpr, false: 0.3 * tpr < 0.7 * (0.3 * tpr + 0.7 * false)),
    ],
    ids=["fpr", "recall", "precision"],
)
def test_promises_are_kept_and_used_up(goal, broken):
    random, wrong, used, plain = np.random.default_rng(0), 0, [], []
    for _ in range(200):
        scores, labels = draw(random)
        found = certify(scores, labels, goal, ties="lot", ids=np.arange(1000))
        tpr, false = (accepted(law, found) for law in (POSITIVE, NEGATIVE))
        wrong += broken(tpr, false)
        used.append(false if goal.expression == recall else tpr)
        without = certify(scores, labels, goal)
        assert without.lots == ()
        law = NEGATIVE if goal.expression == recall else POSITIVE
        plain.append(law[without.threshold < LEVELS].sum() if without.certified else 0.0)
    assert wrong / 200 <= most(0.05, 200)
    if goal.expression == recall:
        assert np.mean(used) < np.mean(plain) - 0.02  # fewer false alarms for the same recall
    else:
        assert np.mean(used) > np.mean(plain) + 0.01


def test_the_bound_is_reached_where_no_plain_threshold_can():
    """Of the negatives 10 % share the top score: ``fpr <= 0.05`` accepts nobody without lots."""
    random = np.random.default_rng(0)
    labels = random.random(20_000) < 0.5
    scores = (random.random(20_000) < np.where(labels, 0.8, 0.1)).astype(float)
    assert certify(scores, labels, fpr <= 0.05).caveats[0].startswith("it accepts nobody")
    found = certify(scores, labels, fpr <= 0.05, ties="lot", ids=np.arange(20_000))
    assert 0.04 < 0.1 * (1 - found.lots[0]) <= 0.05
    assert found.claims[0].proved <= 0.05


def test_a_row_is_decided_the_same_way_everywhere(tmp_path):
    scores, labels = draw(np.random.default_rng(1), 3000)
    ids = np.array([f"r{i}" for i in range(3000)])
    found = certify(scores, labels, fpr <= 0.05, ties="lot", ids=ids)
    decided = found.decide(scores, ids=ids)
    assert decided.sum() == found.points[0].alerts
    order = np.random.default_rng(2).permutation(3000)
    shuffled = certify(scores[order], labels[order], fpr <= 0.05, ties="lot", ids=ids[order])
    assert (shuffled.threshold, shuffled.lots) == (found.threshold, found.lots)
    assert (found.decide(scores[order], ids=ids[order]) == decided[order]).all()
    assert (found.decide(scores[:7], ids=ids[:7]) == decided[:7]).all()
    tensor = found.decide(torch.tensor(scores), ids=list(ids))
    assert (tensor.numpy() == decided).all()
    again = Certificate.from_json(found.to_json())
    assert (again.decide(scores, ids=ids) == decided).all()
    assert ((found.resolve_ties(scores, ids) > found.threshold) == decided).all()
    assert found.check(scores, labels, ids=ids).verdict == "ok"
    file, made, out = (tmp_path / name for name in ("s.csv", "c.json", "d.csv"))
    rows = zip(ids, scores, labels.astype(int), strict=True)
    file.write_text("\n".join(["id,s,y", *(f"{a},{b},{c}" for a, b, c in rows)]) + "\n")
    goal = ("--goal", "fpr <= 0.05", "--ties", "lot", "--id", "id")
    page = ("--page", tmp_path / "page.html")
    assert run("certify", file, "--score", "s", "--label", "y", *goal, "--out", made, *page) == 0
    shell = Certificate.from_json(made.read_text())
    assert (shell.threshold, shell.lots, shell.lot_seed) == (
        found.threshold,
        found.lots,
        found.lot_seed,
    )
    words = ("decide", file, "--score", "s", "--certificate", made, "--out", out)
    assert run(*words, "--id", "id") == 0
    written = [line.endswith(",1") for line in out.read_text().splitlines()[1:]]
    assert written == decided.tolist()
    assert run(*words, "--force") == 2  # --id is missing
    assert run("check", made, file, "--score", "s", "--label", "y", "--id", "id") == 0


def test_groups_and_clusters_go_with_lots():
    random = np.random.default_rng(3)
    scores, labels = draw(random, 4000)
    group, ids = random.choice(["a", "b"], 4000), np.arange(4000)
    found = certify(scores, labels, fpr <= 0.05, groups=group, ties="lot", ids=ids)
    decided = found.decide(scores, group, ids=ids)
    assert decided.sum() == sum(point.alerts for point in found.points)
    assert len(set(found.lots)) == 2
    assert (
        (found.resolve_ties(scores, ids, group) > found.thresholds["a"])[group == "a"]
    ).sum() == (decided[group == "a"].sum())
    clustered = certify(scores, labels, fpr <= 0.05, clusters=ids // 2, ties="lot", ids=ids)
    assert clustered.certified
    assert clustered.clusters == 2000


def test_lots_are_uniform_and_differ_by_seed():
    for seed in (0, 1, 2**31, 2**32 - 1):
        drawn = lots(np.arange(100_000), seed)
        assert stats.kstest(drawn, "uniform").pvalue > 1e-4
        assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 0.02  # six standard errors
    first, second = lots(np.arange(4096), 0), lots(np.arange(4096), 1)
    assert set(first) != set(second)
    assert (lots(torch.arange(-500, 500), 7).numpy() == lots(np.arange(-500, 500), 7)).all()


def test_ids_are_read_alike():
    assert row_numbers(["7", "-3"]).tolist() == row_numbers([7, -3]).tolist() == [7, -3]
    assert row_numbers(np.array([7.0])).tolist() == [7]
    days = np.array(["2024-01-01"], "datetime64[D]")
    assert row_numbers(days) == row_numbers(days.astype("datetime64[ns]"))
    assert len(set(row_numbers(["07", "7", "a", "9" * 30]).tolist())) == 4
    with pytest.raises(ValueError, match="no id in row 1"):
        row_numbers(["7", ""])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ties": "lot"}, "ids= goes with it"),
        ({"ids": np.arange(1000)}, "ids= goes with it"),
        ({"ties": "coin"}, 'must be "reject" or "lot"'),
        ({"ties": "lot", "ids": np.arange(1000) // 2}, "rows 0 and 1 have the same"),
        ({"ties": "lot", "ids": np.where(np.arange(1000) == 3, np.nan, 1.0)}, "no id in row 3"),
        ({"ties": "lot", "ids": np.arange(9)}, "9"),
        (
            {"ties": "lot", "ids": np.arange(1000), "thresholds": 1.0},
            "ids= does not go with thresholds=",
        ),
        (
            {"ties": "lot", "ids": np.arange(1000), "unlabelled": np.ones(99)},
            "ids= does not go with unlabelled=",
        ),
    ],
)
def test_what_a_lot_needs(options, message):
    scores, labels = draw(np.random.default_rng(0))
    with pytest.raises(ValueError, match=message):
        certify(scores, labels, fpr <= 0.05, **options)
    found = certify(scores, labels, fpr <= 0.05, ties="lot", ids=np.arange(1000))
    with pytest.raises(ValueError, match="pass ids="):
        found.decide(scores)
    with pytest.raises(ValueError, match="one per score"):
        found.decide(scores, ids=[1])


def test_a_certificate_with_lots_is_watched_by_ids_or_by_resolved_scores():
    scores, labels = draw(np.random.default_rng(0), 3000)
    ids = np.arange(3000)
    found = certify(scores, labels, fpr <= 0.05, ties="lot", ids=ids)
    monitor = replace(found, lots=()).monitor(watch=("rates", "alerts"))
    new, truth = draw(np.random.default_rng(1), 3000)
    monitor.update(found.resolve_ties(new, ids + 3000), truth)
    assert monitor.status.startswith("holds")
    by_ids = found.monitor(watch=("rates", "alerts"))
    assert by_ids.update(new, truth, ids=ids + 3000) == monitor.status


def test_bounds_on_groups_with_one_threshold_are_checked_by_lot():
    scores, labels = draw(np.random.default_rng(0))
    goal = [fpr.on(g="a") <= 0.2, fpr.on(g="b") <= 0.3]
    known = {"groups": {"g": np.resize(["a", "b"], len(scores))}, "ids": np.arange(len(scores))}
    found = certify(scores, labels, goal, ties="lot", **known)
    assert found.lots
    assert found.check(scores, labels, **known).verdict == "ok"
