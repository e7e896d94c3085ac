"""Ideas for the default: each, switched off, is the default, and has its line in the end."""

import numpy as np
import pytest
import samples
import torch

from benchmarks.points import ideas, ideas_seeing, training
from benchmarks.points.design import STAGES
from benchmarks.points.goals import GOALS
from benchmarks.points.ideas import IDEAS, FarSide, GaussNewton, SlowThresholds
from benchmarks.points.ideas_seeing import AveragedThreshold, HeadAgain, Mixup
from benchmarks.points.report import SCREENING, TRYING, text
from benchmarks.points.stack import Stack, Stepper
from setpoint import Implicit
from setpoint.datasets import DataSplit, Table

OFF = {
    FarSide: ("TAIL", 0.0),
    SlowThresholds: ("KEPT", 0.0),
    Mixup: ("mixing", lambda _, n: (1.0, torch.arange(n))),
    AveragedThreshold: None,  # is off while the average is the model itself
}


def draw(n=200, seed=0):
    return samples.draw(n, seed, features=4, dtype=torch.float32)


def gradients(kind, goal, batches=2):
    """What two columns are pulled by, at the second of two batches."""
    stack = Stack(4, 0, 2, seed=1, zero_head=False)
    stepper = Stepper(stack, torch.full((2,), 0.1), "sgd")
    loss = kind(GOALS[goal], steps=3)
    for seed in range(batches):
        x, y = draw(seed=seed)
        stack.zero_grad()
        if isinstance(loss, ideas_seeing.Seeing):
            loss.see(stepper, x, slice(0, 2))
        scores = stack(x)
        scores.retain_grad()
        loss(scores, y[:, None].expand(-1, 2)).backward()
    return scores.grad, stack.head.grad, y


@pytest.mark.parametrize("goal", ["fnr1", "pauc"])
@pytest.mark.parametrize("kind", OFF, ids=lambda kind: kind.__name__)
def test_an_idea_switched_off_is_the_default_and_switched_on_is_not(kind, goal, monkeypatch):
    expected = gradients(Implicit, goal)[1]
    if OFF[kind]:
        assert not torch.allclose(gradients(kind, goal)[1], expected, rtol=1e-3)
        module = ideas_seeing if kind is Mixup else ideas
        monkeypatch.setattr(module, *OFF[kind])
    torch.testing.assert_close(gradients(kind, goal)[1], expected)


def test_the_averaged_models_thresholds_are_those_of_its_scores():
    x, y = draw()
    stack = Stack(4, 0, 1, seed=1, zero_head=False)
    stepper = Stepper(stack, torch.ones(1), "sgd")
    stepper.average[0].mul_(3)
    loss = AveragedThreshold(GOALS["fnr1"], steps=3)
    loss.see(stepper, x, slice(0, 1))
    loss(stack(x), y[:, None])
    expected = GOALS["fnr1"].choose(stepper.scores(x, averaged=True)[:, 0], y.numpy())
    np.testing.assert_allclose(loss.thresholds, expected.thresholds, rtol=1e-6)


@pytest.mark.parametrize("kind", [FarSide, GaussNewton], ids=lambda kind: kind.__name__)
def test_moving_all_scores_changes_nothing(kind):
    pulls, *_ = gradients(lambda goal, steps: kind(goal, share=1e-9), "fnr1")
    assert float(pulls.abs().sum()) > 0.1
    torch.testing.assert_close(pulls.sum(0), torch.zeros(2), atol=1e-6, rtol=0)


def test_training_the_head_again_changes_no_other_column_and_no_body():
    x, y = draw()
    part = Table(x.numpy(), y.numpy())
    stepper = Stepper(Stack(4, 5, 3, seed=1, zero_head=True), torch.full((3,), 0.1), "adam")
    before = [w.clone() for w in stepper.average]
    HeadAgain(GOALS["f1"], steps=3).finish(stepper, slice(1, 2), DataSplit(part, part, part))
    changed = [(now != old).any(0) for now, old in zip(stepper.average, before, strict=True)]
    assert not any(weights.any() for weights in changed[:2])
    assert changed[2].tolist() == [False, True, False]


def test_ideas_have_splits_of_their_own():
    seeds = {name: {job.cell.seed for job in stage(3)} for name, stage in STAGES.items()}
    mine = seeds.pop("ideas")
    assert min(mine) == TRYING > SCREENING
    assert not mine & set().union(*seeds.values())


def test_every_idea_has_a_line_with_its_pairs(monkeypatch):
    monkeypatch.setitem(training.RATES, ("mlp", "adam"), (0.01,))
    monkeypatch.setitem(training.RATES, ("linear", "adam"), (0.01,))
    parts = DataSplit(*(Table(*(t.numpy() for t in draw(600, seed))) for seed in range(3)))
    rows, finished = [], []
    monkeypatch.setattr(HeadAgain, "finish", lambda self, *given: finished.append(given))
    for job in list(STAGES["ideas"](1))[:2]:
        cell = job.cell._replace(batch=64)
        rows += training.train(cell, parts, ["pr95"], job.runs, steps=4)
    lines = text(rows).splitlines()
    for name in IDEAS:
        (line,) = [line for line in lines if line.startswith(f"| {name} |")]
        assert line.count(", 1)") == (1 if name == "head trained again" else 2), line
    assert len(finished) == 1
    assert np.isfinite([row["test"] for row in rows]).all()
