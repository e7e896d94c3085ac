"""The study: its metrics, its folds, and its contrasts, checked against independent numbers."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_curve

pytest.importorskip("lightgbm")
from benchmarks.study import report, tables, training
from benchmarks.study.metrics import FPR, metrics
from setpoint.datasets import Table, split


@pytest.mark.parametrize("ties", [False, True])
def test_metrics_are_those_of_scikit_learn(ties: bool) -> None:
    random = np.random.default_rng(3)
    labels = (random.random(20_000) < 0.1).astype(np.int64)
    scores = (random.normal(size=20_000) + 1.5 * labels).astype(np.float32)
    scores = np.round(scores, 1) if ties else scores
    found = metrics(scores, labels)
    fpr, tpr, _ = roc_curve(labels, scores, drop_intermediate=False)
    for goal, rate in FPR.items():
        assert found[goal] == pytest.approx(100 * tpr[fpr <= rate * (1 + 1e-12)].max())
    precision, recall, _ = precision_recall_curve(labels, scores)
    assert found["pr95"] == pytest.approx(100 * precision[recall >= 0.95].max())
    assert found["ap"] == pytest.approx(100 * average_precision_score(labels, scores))


def test_folds_are_disjoint_and_noise_is_outside_of_the_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(0)
    y = (random.random(3000) < 0.2).astype(np.int64)
    x = np.stack([np.arange(3000.0), random.normal(size=3000)], axis=1).astype(np.float32)
    monkeypatch.setattr(tables, "load", lambda _: Table(x, y))
    clean = [tables.fold("any", number)[0] for number in range(tables.FOLDS)]
    noisy = [tables.fold("any", number, 0.05) for number in range(tables.FOLDS)]
    assert sum(len(parts.test.y) for parts in clean) == 3000
    assert sum(int(parts.test.y.sum()) for parts in clean) == y.sum()
    for parts, (changed, noise) in zip(clean, noisy, strict=True):
        assert (parts.test.y == changed.test.y).all()
        rest = [p.train.y.sum() + p.validation.y.sum() for p in (parts, changed)]
        negatives = 2000 - rest[0]
        assert noise.moved == rest[0] - rest[1] == round(0.05 * negatives)


def row(data: str, fold: int, hidden: int, goal: str, method: str, test: float, seen: float):
    cell = {"data": data, "fold": fold, "hidden": hidden, "contaminated": 0.0}
    return cell | {"goal": goal, "method": method, "test": test, "validation": seen}


def test_the_baseline_is_picked_on_validation_and_slopes_are_by_table() -> None:
    rows = []
    for data, slope in (("a", -1.0), ("b", -3.0)):
        for fold in (0, 1):
            for hidden, doublings in ((0, 0), (2, 1), (8, 3)):
                for goal in ("fnr1", "fnr01"):
                    rows += [
                        row(data, fold, hidden, goal, "implicit", 50 + slope * doublings, 1.0),
                        row(data, fold, hidden, goal, "focal", 40.0, 9.0),
                        row(data, fold, hidden, goal, "weighted", 70.0, 8.0),  # validation says no
                    ]
    found = report.gains(rows)
    assert {gain.best for gain in found} == {"focal"}
    assert report.slopes(found) == pytest.approx({"a": -1.0, "b": -3.0})
    estimate = report.clustered(report.slopes(found))
    assert (estimate.mean, estimate.error) == pytest.approx((-2.0, 1.0))
    assert estimate.high == pytest.approx(-2.0 + 12.706, abs=1e-3)  # t, one degree of freedom
    assert "H3" in report.text(rows)


def test_only_what_was_run_on_all_tables_counts_and_one_baseline_can_be_asked_for() -> None:
    rows = [
        row(data, 0, hidden, "fnr1", method, test, seen)
        for data in ("a", "b")
        for hidden in (0, 2)
        for method, test, seen in (
            ("implicit", 50.0, 1.0),
            ("weighted", 49.0, 3.0),
            ("focal", 46.0, 2.0),
            ("cross-entropy", 40.0, 9.0),  # one of the weighted, not a candidate of its own
        )
        if (data, hidden) != ("b", 2) or method != "implicit"
    ]
    kept = report.complete(rows)
    assert {r["hidden"] for r in kept} == {0}
    assert [gain.points for gain in report.gains(kept)] == [1.0, 1.0]
    assert [gain.points for gain in report.gains(kept, "focal")] == [4.0, 4.0]
    assert "| cross-entropy | +10.00 (0.00), +10.00, +10.00; 2 : 0 |" in report.text(rows)


def test_a_cell_trains_and_beats_a_coin() -> None:
    random = np.random.default_rng(1)
    y = (random.random(4000) < 0.3).astype(np.int64)
    x = (random.normal(size=(4000, 3)) + y[:, None]).astype(np.float32)
    parts = split(Table(x, y), seed=0)
    for way in ("weighted", "tfco", "partial area", "implicit"):
        rows = training.train(parts, way, hidden=2, seed=0, steps=40)
        assert {r["goal"] for r in rows} == {"fnr1", "pr95", "ap"}
        assert next(r["test"] for r in rows if r["goal"] == "ap") > 60
