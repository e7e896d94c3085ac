"""Samples: batches, memories, and a batch that stands for both."""

import torch

from setpoint.thresholds import Memory, read


def sample(n, seed):
    rng = torch.Generator().manual_seed(seed)
    return read(((),), torch.randn(n, generator=rng), torch.arange(n) % 3 == 0)


def test_a_batch_standing_for_the_whole_has_its_totals():
    batch, rest = sample(10, 0), sample(50, 1)
    whole = batch.joined(rest)
    assert whole.scores.shape == (1, 60)
    torch.testing.assert_close(whole.totals.sum(), torch.tensor(10.0, dtype=torch.float64))
    standing = batch.standing_for(whole)
    torch.testing.assert_close(standing.totals, whole.totals)
    assert torch.equal(standing.scores, batch.scores)


def test_an_empty_memory_is_nobody():
    batch = sample(10, 0)
    whole = batch.joined(Memory(30).sample(batch))
    torch.testing.assert_close(whole.totals, batch.totals)
    cuts = whole.cuts(((),))
    assert cuts.present.tolist() == [10]


def test_numpy_and_torch_cuts_are_the_same():
    from setpoint.axes.cuts import Cuts

    batch = sample(40, 2)
    ours = batch.cuts(((),))
    masks = {(): (batch.columns[..., 0], batch.columns[..., 1])}
    theirs = Cuts.sort(torch, batch.scores, masks)
    assert torch.equal(torch.as_tensor(ours.scores), theirs.scores)
    for a, b in zip(ours.running[()], theirs.running[()], strict=True):
        assert torch.equal(torch.as_tensor(a), b)
