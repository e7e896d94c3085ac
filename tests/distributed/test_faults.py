"""Faults on one of two ranks, for every solver: told on both, with the rank and its own row.

A rank that is late is told of after ``PATIENCE`` seconds; one that never comes ends the wait of the
others with the timeout of the process group. The step after a bad batch is as if it had not been.
"""

import logging
import time
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from distributed.cases import CASES, batch_of
from distributed.fleet import run_fleet
from subjects import network, rows_of
from torch.nn.parallel import DistributedDataParallel

import setpoint.distributed.ranks as waiting
from setpoint.distributed import RankLost, own_rows

SIZES = (40, 24)
ROW = 5  # of rank 1: the bad one
TIMEOUT = 2.0
SOME = ["cross entropy", "program, area", "pairwise, squared hinge", "last layer", "rate barrier"]
SOLVERS = [
    *SOME,
    *("implicit, fnr at fpr", "implicit, memory", "implicit, per group", "implicit, per query"),
    *("implicit, classes", "lagrangian, fnr at fpr", "proxy lagrangian", "swap regret"),
    *("lagrangian, fixed threshold", "program, structural", "any loss", "classes"),
]


def part(rank):
    """This rank's rows of a batch."""
    return slice(sum(SIZES[:rank]), sum(SIZES[: rank + 1]))


def told(call):
    """What a call raises, and after how many seconds."""
    start = time.monotonic()
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}", time.monotonic() - start
    return "nothing", time.monotonic() - start


class Ranked:
    """A criterion of one case on one of two ranks."""

    def __init__(self, name, group=None):
        self.case, self.rank = CASES[name], dist.get_rank()
        self.model = network(self.case, torch.float64)
        self.criterion = self.case.make(self.model)
        self.called = DistributedDataParallel(self.model, process_group=group)
        self.criterion.attach(self.called)

    def step(self, step=0, spoil=lambda scores, labels: (scores, labels)):
        x, y, more = batch_of(self.case, step, torch.float64)
        mine = part(self.rank)
        scores, labels = spoil(self.called(x[mine]), rows_of(y, mine))
        loss = self.criterion(scores, labels, **rows_of(more, mine))
        self.model.zero_grad()
        loss.backward()
        return [loss.detach(), *(p.grad.clone() for p in self.model.parameters())]


def spoilt(rank, value):
    """Put a value into the scores of a row of rank 1."""

    def spoil(scores, labels):
        bad = torch.arange(len(scores)) == ROW
        bad = bad.reshape(-1, *[1] * (scores.ndim - 1))
        return torch.where(bad & (rank == 1), value, scores), labels

    return spoil


def unlabelled(rank, wrong=7.0):
    def spoil(scores, labels):
        labels = labels.clone().double()
        if rank == 1:
            labels.view(len(labels), -1)[ROW] = wrong
        return scores, labels

    return spoil


def bad_batches(rank, names):
    """Of every case: what bad batches are told as, and the step after them."""
    found = {}
    for name in names:
        one, other = Ranked(name), Ranked(name)
        messages = [
            told(lambda one=one: one.step(0, spoilt(rank, torch.nan)))[0],
            told(lambda one=one: one.step(0, spoilt(rank, torch.inf)))[0],
            told(lambda one=one: one.step(0, unlabelled(rank)))[0],
            told(lambda one=one: one.step(0, lambda s, y: (s, y[1:] if rank else y)))[0],
        ]
        found[name] = messages, one.step(), other.step()
    return found


class _Heard(logging.Handler):
    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def silent_ranks(rank, names):
    """Of every case: rank 1 comes late, and then never."""
    waiting.PATIENCE = 0.6
    heard = _Heard()
    logging.getLogger("setpoint").addHandler(heard)
    groups = {n: dist.new_group([0, 1], timeout=timedelta(seconds=TIMEOUT)) for n in names}
    found = {}
    for name in names:
        one = Ranked(name, groups[name])
        for _ in range(2):  # in its second step DDP itself waits for all
            one.step()
        heard.lines.clear()
        if rank == 1:
            time.sleep(1.4)
        one.step()
        late = list(heard.lines)
        message = told(one.step) if rank == 0 else ("", 0.0)
        dist.barrier()  # on the group of all, which lives
        found[name] = late, message
    return found


def check_bad_batches(ranks, name):
    for rank, found in enumerate(ranks):
        (nan, infinite, labels, short), after, clean = found[name]
        for message, value in ((nan, "nan"), (infinite, "inf")):
            assert f"{value} in row {ROW} of rank 1" in message or name.startswith("last layer"), (
                message
            )
            assert f"nan in row {ROW} of rank 1" in message or value == "inf", message
            assert message.startswith(("ValueError", "TypeError"))
        assert f"row {ROW} of rank 1" in labels or "abel" in labels, labels
        whose = "Every column needs" if rank == 1 else "Rank 1 got a batch that it cannot use"
        assert whose in short, short
        for one, other in zip(after, clean, strict=True):
            torch.testing.assert_close(one, other)


def check_silence(ranks, name):
    (late, (message, seconds)), (nothing, _) = (found[name] for found in ranks)
    assert any("rank 0 waits for rank 1 (alive, and not there yet)" in line for line in late), late
    assert not any("rank 1 waits" in line for line in nothing)
    assert message.startswith("RankLost: rank 0 of 2 stops"), message
    assert "waits for rank 1 (" in message
    assert seconds < TIMEOUT + 4, seconds


def work(rank, names):
    return {"bad": bad_batches(rank, names), "silent": silent_ranks(rank, names[:1])}


@pytest.fixture(scope="module")
def ranks():
    return run_fleet(work, SOME, world=2)


@pytest.mark.parametrize("name", SOME)
def test_a_bad_batch_is_told_with_its_rank_and_row(ranks, name):
    check_bad_batches([one["bad"] for one in ranks], name)


def test_a_slow_rank_and_a_silent_one_are_told(ranks):
    check_silence([one["silent"] for one in ranks], SOME[0])


@pytest.mark.slow
def test_every_solver_tells_bad_batches():
    """But for a function of the user's own, which judges its batch itself."""
    names = [name for name in CASES if name != "any loss"]
    ranks = run_fleet(bad_batches, names, world=2)
    for name in names:
        check_bad_batches(ranks, name)


@pytest.mark.slow
def test_every_solver_tells_slow_and_silent_ranks():
    ranks = run_fleet(silent_ranks, SOLVERS, world=2)
    for name in SOLVERS:
        check_silence(ranks, name)


def test_a_lost_rank_is_an_error_of_its_own():
    assert issubclass(RankLost, RuntimeError)
    assert own_rows("got nan in row 3.", [2, 0, 5]) == "got nan in row 1 of rank 2."
    assert own_rows("got nan in row 9.", [2, 0, 5]) == "got nan in row 9."
