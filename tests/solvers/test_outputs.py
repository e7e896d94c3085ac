"""Several binary outputs by name: status, numbers, values and certificates of each."""

import json

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.integrations.shared import scalars

NAMES = ["toxic", "spam", "threat"]
GOAL = "maximize recall subject to fpr <= 5 %"


def draw(seed=0, rows=400, chances=(0.3, 0.1, 0.05)):
    random = np.random.default_rng(seed)
    labels = (random.random((rows, 3)) < chances).astype(float)
    return torch.tensor(random.normal(size=(rows, 3)) + 2 * labels), torch.tensor(labels)


def step(criterion, scores, labels):
    criterion(scores.clone().requires_grad_(), labels).backward()


def rates(scores, labels, threshold):
    accepted = np.asarray(scores) > threshold
    truth = np.asarray(labels) == 1
    return accepted[truth].mean(), accepted[~truth].mean()


def test_numbers_and_statuses_are_by_name():
    scores, labels = draw()
    labels[:, 1] = 0
    criterion = sp.Implicit(GOAL, outputs=NAMES)
    step(criterion, scores, labels)
    assert criterion.status == "spam: no positives in the batch"
    assert criterion.statuses == {
        "toxic": "held",
        "spam": "no positives in the batch",
        "threat": "held",
    }
    stats = criterion.stats()
    for place, name in ((0, "toxic"), (2, "threat")):
        found = rates(scores[:, place], labels[:, place], stats["threshold"][name])
        assert (stats["hard_objective"][name], stats["held_rate"][name]) == pytest.approx(found)
    assert stats["hard_objective"]["spam"] is None
    json.dumps(stats, allow_nan=False)
    logged = scalars(stats)
    assert logged["setpoint/train/status"] == 0
    assert logged["setpoint/train/status/toxic"] == 1
    assert logged["setpoint/train/status/spam"] == 0
    assert logged["setpoint/train/threshold/threat"] == stats["threshold"]["threat"]


def test_without_names_outputs_are_numbered():
    scores, labels = draw()
    labels[:, 2] = 1
    criterion = sp.Implicit(GOAL)
    step(criterion, scores, labels)
    assert criterion.status == "2: no negatives in the batch"
    assert list(criterion.statuses) == ["0", "1", "2"]
    assert len(criterion.stats()["threshold"]) == 3


def test_many_troubled_outputs_are_counted():
    scores, labels = torch.randn(50, 6).double(), torch.zeros(50, 6)
    criterion = sp.Implicit(GOAL, outputs=list("abcdef"))
    step(criterion, scores, labels)
    assert criterion.status.startswith("a: no positives in the batch; b: ")
    assert criterion.status.endswith("; and 3 more")


@pytest.mark.parametrize(
    ("goal", "outputs", "message"),
    [
        (GOAL, ["a", "a", "b"], "different names"),
        (GOAL, "abc", "different names"),
        ("maximize macro(recall)", ["a", "b"], "outputs= names binary outputs; .* classes"),
    ],
)
def test_names_that_are_none(goal, outputs, message):
    with pytest.raises(ValueError, match=message):
        sp.Implicit(goal, outputs=outputs)


def test_there_is_a_column_for_each_name():
    criterion = sp.Implicit(GOAL, outputs=["a", "b"])
    with pytest.raises(ValueError, match=r"names 2 outputs .* have 3 columns"):
        criterion(*draw())


def test_the_last_batches_are_counted_together():
    criterion = sp.Implicit(GOAL, outputs=NAMES)
    seen = []
    for seed in range(60):
        scores, labels = draw(seed, rows=100)
        step(criterion, scores, labels)
        seen.append((scores.numpy(), labels.numpy(), criterion.thresholds.numpy().copy()))
    recent = criterion.stats()["recent"]
    for place, name in enumerate(NAMES):
        hits = found = alarms = negatives = 0
        for scores, labels, at in seen[-50:]:
            accepted, truth = scores[:, place] > at[place], labels[:, place] == 1
            hits, found = hits + (accepted & truth).sum(), found + truth.sum()
            alarms, negatives = alarms + (accepted & ~truth).sum(), negatives + (~truth).sum()
        assert recent["recall"][name] == pytest.approx(hits / found)
        assert recent["fpr"][name] == pytest.approx(alarms / negatives)
    rates = [
        ", ".join(f"{rate} {recent[rate][name]:.3g}" for rate in ("recall", "fpr"))
        for name in NAMES
    ]
    told = [f"{name}: {text}" for name, text in zip(NAMES, rates, strict=True)]
    shown = [*told[:3], *([f"and {len(told) - 3} more"] if len(told) > 3 else [])]
    assert criterion.status.endswith(f"; over the last 50 steps: {'; '.join(shown)}")


def test_large_batches_are_counted_the_same(monkeypatch):
    from setpoint.solvers import status

    told = []
    for kept in (2**16, 0):
        monkeypatch.setattr(status, "_KEPT", kept)
        criterion = sp.Implicit(GOAL)
        for seed in range(3):
            scores, labels = draw(seed)
            step(criterion, scores[:, 0], labels[:, 0])
        told.append(criterion.stats())
    assert told[0] == told[1]


def test_evaluate_by_output():
    scores, labels = draw()
    found = sp.evaluate(scores, labels, GOAL, outputs=NAMES)
    each = [sp.evaluate(scores[:, i], labels[:, i], GOAL) for i in range(3)]
    assert found == dict(zip(NAMES, each, strict=True))
    at = {"toxic": 1.0, "spam": 2.0, "threat": 0.5}
    for thresholds in (at, list(at.values()), np.array(list(at.values()))):
        values = sp.evaluate(scores, labels, GOAL, thresholds=thresholds, outputs=NAMES)
        for place, name in enumerate(NAMES):
            expected = rates(scores[:, place], labels[:, place], at[name])[0]
            assert values[name] == pytest.approx(expected)
    labels[:200, 1] = np.nan  # not labelled for spam
    partly = sp.evaluate(scores, labels, GOAL, outputs=NAMES)
    assert partly["spam"] == sp.evaluate(scores[200:, 1], labels[200:, 1], GOAL)
    with pytest.raises(ValueError, match="labels must have the shape of the scores"):
        sp.evaluate(scores, labels[:, 0], GOAL, outputs=NAMES)
