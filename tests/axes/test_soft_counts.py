"""Soft counts in pieces are soft counts."""

import sys

import numpy as np
import pytest
import torch

from setpoint import Sigmoid
from setpoint.axes.sample import Sample, read_sample
from setpoint.axes.soft_counts import SoftCounts
from setpoint.steps import Hinge, SlopeOf, Softplus

counts = sys.modules["setpoint.axes.soft_counts"]
STEPS = [Sigmoid(), Softplus(), Hinge(), SlopeOf(Sigmoid()), SlopeOf(Softplus())]


def reading(step, n=57, c=2, m=3):
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(n, c)), rng.random((n, c)) < 0.4
    at, width = rng.normal(size=(c, m)), 0.2 + rng.random((c, m))
    sample = read_sample(((),), scores, labels)
    return SoftCounts(step, at, width, sample, sample)


def naive(r, scores, at):
    """Accepted (and for other steps rejected) weight by the definition, in tensors."""
    width, columns = torch.from_numpy(r.width), torch.from_numpy(r.whole.columns)
    u = (scores[:, None] - at[..., None]) / width[..., None]
    sides = (u,) if r.step.complementary else (u, -u)
    parts = [r.step.value(side)[..., None] * columns[:, None] for side in sides]
    return torch.cat([part.sum(2) for part in parts], -1)


def test_a_batch_that_stands_for_more_pulls_by_its_own_scores(monkeypatch):
    monkeypatch.setattr(counts, "CHUNK", 6 * 10)  # pieces of ten examples, like the batch
    r = reading(Sigmoid())
    batch = Sample(r.whole.scores[:, 9::-1], r.whole.columns[:, 9::-1])
    split = SoftCounts(r.step, r.at, r.width, r.whole, batch)
    pulls = np.random.default_rng(1).normal(size=split.counts()[0].shape)
    alone = SoftCounts(r.step, r.at, r.width, batch, batch)
    np.testing.assert_allclose(split.pull(pulls), alone.pull(pulls), rtol=1e-12)


@pytest.mark.parametrize("step", STEPS, ids=repr)
@pytest.mark.parametrize("chunk", [7, 60, 2**17])
def test_counts_slopes_and_pulls_are_those_of_the_definition(step, chunk, monkeypatch):
    monkeypatch.setattr(counts, "CHUNK", chunk)
    r = reading(step)
    scores, at = (torch.tensor(x, requires_grad=True) for x in (r.whole.scores, r.at))
    value, slope = map(torch.from_numpy, r.counts())
    expected = naive(r, scores, at)
    torch.testing.assert_close(value, expected.detach())
    for k in range(expected.shape[-1]):
        by_threshold = torch.autograd.grad(expected[..., k].sum(), at, retain_graph=True)[0]
        torch.testing.assert_close(slope[..., k], by_threshold)
    pulls = torch.randn_like(value)
    by_score = torch.autograd.grad((pulls * expected).sum(), scores)[0]
    torch.testing.assert_close(torch.from_numpy(r.pull(pulls.numpy())), by_score)
