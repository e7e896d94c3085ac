"""Criteria that sort nothing add up: what they send does not grow with the batch."""

import pickle
from contextlib import contextmanager
from unittest.mock import patch

import pytest
import torch
import torch.distributed as dist
from distributed.fleet import run_fleet

from setpoint import CrossEntropy, Implicit, Lagrangian, Problem, fnr, fnr_at_fpr, fpr

WORLD = 2
BOUND = fnr_at_fpr(0.2)
MAKE = {
    "cross entropy": lambda **o: CrossEntropy(positives="balanced", **o),
    "focal": lambda **o: CrossEntropy(gamma=2.0, **o),
    "lagrangian": lambda **o: Lagrangian(BOUND, threshold=0.0, **o),
    "proxy": lambda **o: Lagrangian(BOUND, threshold=0.0, proxy=True, **o),
}
SORTING = {
    "implicit": lambda **o: Implicit(BOUND, **o),
    "cross entropy of a goal": lambda **o: CrossEntropy(BOUND, **o),
    "learned threshold": lambda **o: Lagrangian(BOUND, **o),
    "width of the spread": lambda **o: Lagrangian(
        Problem(minimize=fnr, subject_to=fpr <= 0.2), threshold=0.0, step=Implicit(BOUND).step, **o
    ),
}


def draw(rows, step=0):
    r = torch.Generator().manual_seed(step)
    y = (torch.rand(rows, generator=r) < 0.4).long()
    return torch.randn(rows, generator=r, dtype=torch.float64) + y, y


def share(values, rank):
    """Two thirds of the rows on the first rank."""
    return values[: 2 * len(values) // 3] if rank == 0 else values[2 * len(values) // 3 :]


@contextmanager
def counted():
    """The bytes that a rank hands over, and in how many messages."""
    sent = []

    def watch(name, place):
        real = getattr(dist, name)

        def call(*tensors, **options):
            what = tensors[place]
            tensor = isinstance(what, torch.Tensor)
            sent.append(what.numel() * what.element_size() if tensor else len(pickle.dumps(what)))
            return real(*tensors, **options)

        return patch.object(dist, name, call)

    calls = ("all_reduce", 0), ("all_gather_single", 1), ("all_gather_object", 1)
    with watch(*calls[0]), watch(*calls[1]), watch(*calls[2]):
        yield sent


def step_of(criterion, rank, rows, step):
    scores, y = (share(v, rank) for v in draw(rows, step))
    criterion(scores.requires_grad_(), y).backward()
    return scores.grad


def sizes(make, rank):
    """What the second step sends, of batches of 60 and of 6,000."""
    found = []
    for rows in (60, 6_000):
        criterion = make(reduction="sum")
        step_of(criterion, rank, rows, 0)
        with counted() as sent:
            step_of(criterion, rank, rows, 1)
        found.append(sent)
    return found


def told(call):
    try:
        call()
    except ValueError as error:
        return str(error)
    return "nothing"


def hard_days(make, rank):
    """Steps that are not like the one before them, with what every rank says of them."""
    criterion, found = make(reduction="sum"), []
    step_of(criterion, rank, 60, 0)
    scores, y = draw(30, 1)
    bad = scores.clone()
    bad[4] = torch.nan
    found.append(told(lambda: criterion(bad if rank == 1 else scores, y)))
    found.append(told(lambda: criterion(scores, y, **({"weights": scores**2} if rank else {}))))
    found.append(told(lambda: criterion(scores, y[1:] if rank else y)))
    step_of(criterion, rank, 60, 2)
    with torch.no_grad():  # another mode: gathered once, then added up
        values = [criterion(*(share(v, rank) for v in draw(40, step))) for step in (3, 4)]
    mine = slice(0, 0 if rank else None)  # a rank without rows, which knows of no gradient either
    scores, y = (v[mine] for v in draw(50, 5))
    loss = criterion(scores.requires_grad_(rank == 0), y)
    loss = criterion(scores, y)
    assert loss.requires_grad
    loss.backward()
    nobody = criterion(torch.zeros(0, dtype=torch.float64), torch.zeros(0, dtype=torch.long))
    flat = criterion(torch.ones(3, dtype=torch.float64), torch.arange(3) % 2)
    return found, [*values, loss.detach(), nobody, flat], criterion.stats()


def work(rank):
    sent = {name: sizes(make, rank) for name, make in (MAKE | SORTING).items()}
    days = {name: hard_days(make, rank) for name, make in MAKE.items()}
    stats = {}
    for name, make in MAKE.items():
        criterion = make(reduction="sum")
        for step in range(3):
            slopes = step_of(criterion, rank, 60, step)
        stats[name] = criterion.stats(), slopes
    return sent, days, stats


@pytest.fixture(scope="module")
def ranks():
    return run_fleet(work, world=WORLD)


@pytest.mark.parametrize("name", MAKE)
def test_one_message_of_the_same_length_for_any_batch(ranks, name):
    for sent, _, _ in ranks:
        small, large = sent[name]
        assert small == large
        assert len(small) == 1
        assert small[0] <= 13 * 8


@pytest.mark.parametrize("name", SORTING)
def test_what_needs_an_order_gathers(ranks, name):
    for sent, _, _ in ranks:
        small, large = (sum(messages) for messages in sent[name])
        assert large - small >= 16 * 5_940 // 3  # a score and a label of 8 bytes per row


@pytest.mark.parametrize("name", MAKE)
def test_gradients_and_the_last_batch_are_those_of_all_ranks(ranks, name):
    criterion = MAKE[name]()
    for step in range(3):
        scores, y = draw(60, step)
        criterion(scores.requires_grad_(), y).backward()
    expected = criterion.stats()
    for _, _, found in ranks:
        stats, _ = found[name]
        assert stats.keys() == expected.keys()
        for key, value in expected.items():
            close = value if isinstance(value, str) else pytest.approx(value, rel=1e-12)
            assert stats[key] == close, key
    slopes = torch.cat([found[name][1] for _, _, found in ranks])  # reduction="sum": no factor
    torch.testing.assert_close(slopes, scores.grad, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", MAKE)
def test_a_step_unlike_the_last_is_right_or_an_error_for_all(ranks, name):
    criterion = MAKE[name]()
    for step in (0, 2):
        scores, y = draw(60, step)
        criterion(scores.requires_grad_(), y).backward()
    with torch.no_grad():
        expected = [criterion(*draw(40, step)) for step in (3, 4)]
    scores, y = draw(50, 5)
    for _ in range(2):
        loss = criterion(scores.requires_grad_(), y)
    expected += [
        loss.detach(),
        torch.zeros(()),
        criterion(torch.ones(6).double(), torch.tensor([0, 1, 0] * 2)),
    ]
    for rank, (_, days, _) in enumerate(ranks):
        messages, values, stats = days[name]
        assert "got nan in row 34" in messages[0]
        assert "with the same kinds of columns" in messages[1]
        assert ("Every column needs" if rank else "Rank 1 got a batch") in messages[2]
        torch.testing.assert_close(values, expected, check_dtype=False)
        if name in ("cross entropy", "focal"):
            assert stats["status"] == "flat: all scores are equal"
