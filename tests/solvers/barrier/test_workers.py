"""Two processes: rows and values are averaged, so that both do what one process would do."""

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close

from setpoint import Barrier, at_most

STEPS = 6


def model_and_data():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    return model, torch.randn(40, 3).double(), torch.randn(40).double()


def train(model, x, y, every):
    """Returns the parameters and all multipliers: of a bound, then of a more important loss."""
    own = torch.ones(1, dtype=torch.float64, requires_grad=True)  # only the side loss reaches it
    params = [*model.parameters(), own]
    optimizer = torch.optim.SGD(params, lr=0.1)
    bounded, ranked = (Barrier(params, every=every) for _ in range(2))
    multipliers = []
    for step in range(2 * STEPS):
        optimizer.zero_grad()
        scores = model(x).squeeze(-1)
        side = scores.square().mean() + (own - y).square().mean()
        fit = (scores - y).square().mean()
        if step < STEPS:
            record = bounded.backward(side, subject_to=at_most(fit, 0.9))
        else:
            record = ranked.backward(side, after=fit)
        multipliers.append(record["multiplier"])
        optimizer.step()
    return [p.detach().clone() for p in params], multipliers


def work(rank, folder, every):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meet",
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=300),
    )
    model, x, y = model_and_data()
    wrapped = DistributedDataParallel(model)
    found = train(wrapped, x[rank::2], y[rank::2], every)  # each half of the batch
    torch.save((*found, poisoned(rank)), Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()


def poisoned(rank):
    """What a barrier says where only the second process has a value, or a slope, that is none."""
    weight = torch.tensor([0.0, 1.0], requires_grad=True)
    barrier = Barrier([weight], nonfinite="skip")
    bad = [weight[1] * float("nan"), weight[0].sqrt()] if rank else [weight[1], weight[0]]
    words = [
        barrier.backward(weight.square().sum(), subject_to=at_most(each, 0.5, name="fit"))["status"]
        for each in bad
    ]
    return [*words, weight.grad is None, barrier.report()["steps"]]


@pytest.fixture(scope="module")
def both():
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, args=(folder, 2), nprocs=2)
        return [torch.load(Path(folder) / f"{rank}.pt") for rank in (0, 1)]


def test_what_is_not_finite_on_one_process_is_skipped_by_all(both):
    for *_, (value, slope, untouched, steps) in both:
        assert value.startswith("skipped: The value of fit is not finite in step 0")
        assert slope.startswith("skipped: The gradient of fit is not finite in step 0")
        assert untouched
        assert steps == 0


def test_two_processes_give_the_numbers_of_one(both):
    alone = train(*model_and_data(), every=2)
    for weights, multipliers, _ in both:
        assert_close(weights, alone[0], rtol=1e-10, atol=1e-12)
        assert_close(multipliers, alone[1], rtol=1e-8, atol=1e-12)
