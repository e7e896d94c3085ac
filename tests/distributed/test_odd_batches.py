"""Losses by sums of counts on several ranks, with batches unlike the one before them."""

import pytest
import torch
from distributed.fleet import run_fleet

from setpoint import CrossEntropy, Lagrangian, fnr_at_fpr

WORLD = 2


def test_a_gradient_of_own_rows_is_that_of_all_rows_by_either_reduction(monkeypatch):
    """Averaged over 3 ranks it is a third of the sum, which a reduction by sums is to give."""

    def third(rows, params, group):
        rows[0] = [None if part is None else part / 3 for part in rows[0]]

    monkeypatch.setattr("setpoint.solvers.base.workers", lambda group: 3)
    monkeypatch.setattr("setpoint.solvers.base.average_gradients", third)
    for reduction, factor in (("sum", 1.0), ("mean", 1 / 3)):
        criterion = CrossEntropy(reduction=reduction)
        found = criterion._row_of_all([torch.ones(2), None], [])
        torch.testing.assert_close(found[0], torch.full((2,), factor))
        assert found[1] is None


BOUND = fnr_at_fpr(0.2)
MAKE = {
    "cross entropy": lambda **o: CrossEntropy(positives="balanced", **o),
    "focal": lambda **o: CrossEntropy(gamma=2.0, **o),
    "lagrangian": lambda **o: Lagrangian(BOUND, threshold=0.0, **o),
    "proxy": lambda **o: Lagrangian(BOUND, threshold=0.0, proxy=True, **o),
}


def draw(rows, step=0):
    r = torch.Generator().manual_seed(step)
    y = (torch.rand(rows, generator=r) < 0.4).long()
    return torch.randn(rows, generator=r, dtype=torch.float64) + y, y


def share(values, rank):
    """Two thirds of the rows on the first rank."""
    return values[: 2 * len(values) // 3] if rank == 0 else values[2 * len(values) // 3 :]


def step_of(criterion, rank, rows, step):
    scores, y = (share(v, rank) for v in draw(rows, step))
    criterion(scores.requires_grad_(), y).backward()
    return scores.grad


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
    with torch.no_grad():
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
    days = {name: hard_days(make, rank) for name, make in MAKE.items()}
    stats = {}
    for name, make in MAKE.items():
        criterion = make(reduction="sum")
        for step in range(3):
            slopes = step_of(criterion, rank, 60, step)
        stats[name] = criterion.stats(), slopes
    return days, stats


@pytest.fixture(scope="module")
def ranks():
    return run_fleet(work, world=WORLD)


@pytest.mark.parametrize("name", MAKE)
def test_gradients_and_the_last_batch_are_those_of_all_ranks(ranks, name):
    criterion = MAKE[name]()
    for step in range(3):
        scores, y = draw(60, step)
        criterion(scores.requires_grad_(), y).backward()
    expected = criterion.stats()
    for _, found in ranks:
        stats, _ = found[name]
        assert stats.keys() == expected.keys()
        for key, value in expected.items():
            close = value if isinstance(value, str) else pytest.approx(value, rel=1e-12)
            assert stats[key] == close, key
    slopes = torch.cat([found[name][1] for _, found in ranks])  # reduction="sum": no factor
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
    for rank, (days, _) in enumerate(ranks):
        messages, values, stats = days[name]
        assert "got nan in row 4 of rank 1" in messages[0]
        assert "with the same kinds of columns" in messages[1]
        assert ("Every column needs" if rank else "Rank 1 got a batch") in messages[2]
        torch.testing.assert_close(values, expected, check_dtype=False)
        if name in ("cross entropy", "focal"):
            assert stats["status"] == "flat: all scores are equal"
