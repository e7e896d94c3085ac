"""Samples: batches, memories, and a batch that stands for both."""

import numpy as np
import pytest
import torch

from setpoint.axes.sample import read_sample
from setpoint.solvers.memory import Memory


def sample(n, seed):
    rng = torch.Generator().manual_seed(seed)
    return read_sample(((),), torch.randn(n, generator=rng), torch.arange(n) % 3 == 0)


def test_a_batch_standing_for_the_whole_has_its_totals():
    batch, rest = sample(10, 0), sample(50, 1)
    whole = batch.joined(rest)
    assert whole.scores.shape == (1, 60)
    assert whole.totals.sum() == pytest.approx(10)
    standing = batch.standing_for(whole)
    np.testing.assert_allclose(standing.totals, whole.totals)
    assert np.array_equal(standing.scores, batch.scores)


def test_an_empty_memory_is_nobody():
    batch = sample(10, 0)
    whole = batch.joined(Memory(30).sample(batch))
    np.testing.assert_allclose(whole.totals, batch.totals)
    cuts = whole.cuts
    assert cuts.present.tolist() == [10]
