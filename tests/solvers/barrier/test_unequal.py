"""Workers with unequal shards: told how many rows each has, they do what one process would do."""

import pytest
import torch
from distributed.fleet import run_fleet
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close

from setpoint import Barrier, at_most

SHARES = [(30, 10), (40, 0), (1, 39), (20, 20)]


def train(rank=None, *, by_loss=False, told=True):
    """Gradients and multipliers of some steps: of a bound, then of a more important loss."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    x, y = torch.randn(40, 3).double(), torch.randn(40).double()
    called = model if rank is None else DistributedDataParallel(model)
    found = []
    for bounded in (True, False):
        barrier = Barrier(model.parameters())
        for first, _ in SHARES:
            mine = {None: slice(None), 0: slice(first), 1: slice(first, None)}[rank]
            scores = called(x[mine]).squeeze(-1)
            side, fit = scores.square().mean(), (scores - y[mine]).square().mean()
            given = {"subject_to": at_most(fit, 0.9)} if bounded else {"after": fit}
            rows = len(scores) if told else None
            model.zero_grad()
            if by_loss:
                loss = barrier.loss(side, rows=rows, **given)
                assert loss.isfinite()
                loss.backward()
            else:
                barrier.backward(side, rows=rows, **given)
            found += [[p.grad.clone() for p in model.parameters()], barrier.last["multiplier"]]
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.05 * p.grad
    return found


def told(rows):
    weight = torch.ones(1, requires_grad=True)
    try:
        Barrier([weight]).backward(weight.sum(), subject_to=at_most(weight, 0.5), rows=rows)
    except ValueError as error:
        return str(error)
    return "nothing"


def work(rank):
    messages = [told(5 if rank else None), told(0), told(rank)]
    return train(rank), train(rank, by_loss=True), messages


@pytest.fixture(scope="module")
def both():
    return run_fleet(work, world=2)


@pytest.mark.parametrize("way", [0, 1], ids=["backward", "loss"])
def test_unequal_shards_and_a_process_without_rows_are_one_process(both, way):
    for rank in both:
        assert_close(rank[way], train(by_loss=bool(way)), rtol=1e-10, atol=1e-12)


def test_rows_that_only_some_give_or_that_are_none_are_told_in_every_process(both):
    for *_, (some, none, fine) in both:
        assert some.startswith("rows= was given by 1 of 2 processes")
        assert "0 in all" in none
        assert fine == "nothing"


def test_in_one_process_rows_change_nothing():
    assert_close(train(), train(told=False), rtol=0, atol=0)
    assert told(-1) == "rows must be a whole number of at least 0; got -1."
