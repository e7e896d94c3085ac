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
    rng = torch.Generator().manual_seed(0)
    scores = torch.randn(n, c, generator=rng, dtype=torch.float64)
    labels = (torch.rand(n, c, generator=rng) < 0.4).long()
    at = torch.randn(c, m, generator=rng, dtype=torch.float64)
    width = 0.2 + torch.rand(c, m, generator=rng, dtype=torch.float64)
    sample = read_sample(((),), scores, labels).tensors()
    return SoftCounts(step, at, width, sample, sample)


def naive(r, scores, at):
    """Accepted (and for other steps rejected) weight by the definition."""
    u = (scores[:, None] - at[..., None]) / r.width[..., None]
    sides = (u,) if r.step.complementary else (u, -u)
    parts = [r.step.value(side)[..., None] * r.whole.columns[:, None] for side in sides]
    return torch.cat([part.sum(2) for part in parts], -1)


def test_a_batch_that_stands_for_more_pulls_by_its_own_scores(monkeypatch):
    monkeypatch.setattr(counts, "CHUNK", 6 * 10)  # pieces of ten examples, like the batch
    r = reading(Sigmoid())
    batch = Sample(r.whole.scores[:, :10].flip(1), r.whole.columns[:, :10].flip(1))
    split = SoftCounts(r.step, r.at, r.width, r.whole, batch)
    pulls = torch.randn_like(split.counts()[0])
    alone = SoftCounts(r.step, r.at, r.width, batch, batch)
    torch.testing.assert_close(split.pull(pulls), alone.pull(pulls))


@pytest.mark.parametrize("step", STEPS, ids=repr)
@pytest.mark.parametrize("chunk", [7, 60, 2**17])
def test_counts_slopes_and_pulls_are_those_of_the_definition(step, chunk, monkeypatch):
    monkeypatch.setattr(counts, "CHUNK", chunk)
    r = reading(step)
    scores, at = (x.clone().requires_grad_() for x in (r.whole.scores, r.at))
    value, slope = r.counts()
    expected = naive(r, scores, at)
    torch.testing.assert_close(value, expected.detach())
    for k in range(expected.shape[-1]):
        by_threshold = torch.autograd.grad(expected[..., k].sum(), at, retain_graph=True)[0]
        torch.testing.assert_close(slope[..., k], by_threshold)
    pulls = torch.randn_like(value)
    by_score = torch.autograd.grad((pulls * expected).sum(), scores)[0]
    torch.testing.assert_close(r.pull(pulls), by_score)


@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_counts_around_arrays_are_arrays_and_the_same(step):
    r = reading(step)
    whole = Sample(r.whole.scores.numpy(), r.whole.columns.numpy())
    plain = SoftCounts(step, r.at.numpy(), r.width.numpy(), whole, whole)
    pulls = torch.randn_like(r.counts()[0])
    expected = [r.whole.totals, *r.counts(), r.pull(pulls)]
    found = [whole.totals, *plain.counts(), plain.pull(pulls.numpy())]
    assert all(isinstance(x, np.ndarray) for x in found)
    torch.testing.assert_close(
        [torch.from_numpy(x) for x in found], expected, rtol=1e-13, atol=1e-15
    )
    assert all(isinstance(x, torch.Tensor) for x in expected)
