"""Two processes: rows and values are averaged, so that both do what one process would do."""

import pytest
import torch
from distributed.fleet import run_fleet
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close

from setpoint import Barrier
from setpoint.solvers import at_most

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


def work(rank):
    """What a process finds: on its half of the batch, and on shards of unequal length."""
    model, x, y = model_and_data()
    half = train(DistributedDataParallel(model), x[rank::2], y[rank::2], every=2)
    messages = [told(5 if rank else None), told(0), told(rank)]
    shards = train_on_shards(rank), train_on_shards(rank, by_loss=True), messages
    return (*half, poisoned(rank)), shards


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
def found():
    return run_fleet(work, world=2)


@pytest.fixture
def both(found):
    return [halves for halves, _ in found]


@pytest.fixture
def shards(found):
    return [shards for _, shards in found]


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


SHARES = [(30, 10), (40, 0), (1, 39), (20, 20)]


def train_on_shards(rank=None, *, by_loss=False, told=True):
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


@pytest.mark.parametrize("way", [0, 1], ids=["backward", "loss"])
def test_unequal_shards_and_a_process_without_rows_are_one_process(shards, way):
    for rank in shards:
        assert_close(rank[way], train_on_shards(by_loss=bool(way)), rtol=1e-10, atol=1e-12)


def test_rows_that_only_some_give_or_that_are_none_are_told_in_every_process(shards):
    for *_, (some, none, fine) in shards:
        assert some.startswith("rows= was given by 1 of 2 processes")
        assert "0 in all" in none
        assert fine == "nothing"


def test_in_one_process_rows_change_nothing():
    assert_close(train_on_shards(), train_on_shards(told=False), rtol=0, atol=0)
    assert told(-1) == "rows must be a whole number of at least 0; got -1."
