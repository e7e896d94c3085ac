"""Trials and points in processes, or on a local Ray cluster: the numbers of one process."""

import pytest
import torch
from distributed.pool_tasks import add, die, fail
from distributed.toy_data import parts
from pareto.toys import Number, squares

from setpoint import compare, fnr_at_fpr, pareto_front
from setpoint.distributed import open_pool
from setpoint.solvers import Method

PROBLEM = fnr_at_fpr(0.2)


def compared(processes):
    seen = []
    found = compare(
        PROBLEM,
        parts,
        ["focal", "implicit"],
        seeds=2,
        steps=8,
        batch_size=64,
        processes=processes,
        on_trial=lambda trial: seen.append((trial.seed, trial.method)),
    )
    assert seen == [(s, m) for s in (0, 1) for m in ("focal", "implicit")]
    return [(t.method, t.seed, t.value, t.carried, t.validation) for t in found.trials]


def points(processes):
    front = pareto_front(
        Number, squares, points=4, steps=10, end_steps=20, learning_rate=0.05, processes=processes
    )
    return [(point.minimized, point.held) for point in front.points]


@pytest.mark.slow
def test_processes_compare_like_one():
    assert compared(2) == compared(1)


@pytest.mark.slow
def test_ray_compares_and_walks_like_one():
    pytest.importorskip("ray")
    assert compared("ray") == compared(1)
    assert points("ray") == points(1)


def test_what_cannot_be_sent_and_other_words():
    own = {"mine": Method(lambda _p, _s: torch.nn.BCEWithLogitsLoss())}
    with pytest.raises(TypeError, match="top of a file"):
        compare(PROBLEM, parts, own, seeds=1, steps=2, processes=2)
    with pytest.raises(ValueError, match="a number or 'ray'"):
        compare(PROBLEM, parts, seeds=1, steps=2, processes="dask")
    with pytest.raises(ValueError, match="at least 1"):
        compare(PROBLEM, parts, seeds=1, steps=2, processes=0)


@pytest.mark.parametrize("processes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_pool_shares_counts_and_raises(processes):
    steps = []
    with open_pool(processes, on_steps=steps.append) as pool:
        shared = pool.share([1, 2])
        running = [pool.submit(add, shared, number) for number in range(3)]
        assert [pool.result(task) for task in running] == [3, 4, 5]
        task = pool.submit(fail, 7)
        with pytest.raises(KeyError, match="7"):
            pool.result(task)
        left = {pool.submit(add, shared, number) for number in range(3)}
        while left:
            for task in pool.finished(list(left)):
                assert pool.result(task) in (3, 4, 5)
                left.remove(task)
    assert sum(steps) == 12


@pytest.mark.slow
def test_a_killed_worker_is_an_error_with_advice():
    with open_pool(2, advice="Run it again.") as pool:
        task = pool.submit(die)
        with pytest.raises(RuntimeError, match=r"worker process was killed.*Run it again\."):
            pool.result(task)
