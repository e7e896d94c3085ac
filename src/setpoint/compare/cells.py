"""The cells of a comparison, a method on a split each: here, in processes, or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from setpoint.compare.trial import Bench, Trial
from setpoint.datasets import Split
from setpoint.distributed import Processes, check_sendable, open_pool
from setpoint.problems import Problem
from setpoint.solvers import Method, methods_named
from setpoint.train.networks import network

Members = str | Mapping[str, Method]
"""A method by its name, or methods of one's own."""


@dataclass(frozen=True)
class Plan:
    """What all cells share; data come from a function of the seed."""

    problem: Problem
    split: Callable[[int], Split]
    model: str | Callable[[], nn.Module]
    steps: int
    batch_size: int
    learning_rates: Sequence[float]

    def bench(self, seed: int) -> Bench:
        """What all methods share on one split."""
        parts = self.split(seed)
        given = (self.steps, self.batch_size, self.learning_rates, seed)
        return Bench(self.problem, parts, self._maker(parts.train.x.shape[1]), *given)

    def _maker(self, columns: int) -> Callable[[], nn.Module]:
        model = self.model
        return model if callable(model) else lambda: network(model, columns)


def run_cells(
    plan: Plan, methods: Mapping[str, Members], seeds: Sequence[int], processes: Processes
) -> Iterator[Trial]:
    """All trials, split by split; the same ones however many processes there are."""
    if processes == 1:
        for seed in seeds:
            bench = plan.bench(seed)
            for name, members in methods.items():
                yield bench.run(name, _members(members))
        return
    check_sendable((plan, methods), "data, model and methods of your own")
    with open_pool(processes) as pool:
        shared = pool.share(plan)
        cells = [(seed, name, members) for seed in seeds for name, members in methods.items()]
        for task in [pool.submit(_cell, shared, *cell) for cell in cells]:
            yield pool.result(task)


def _cell(plan: Plan, seed: int, name: str, members: Members) -> Trial:
    return plan.bench(seed).run(name, _members(members))


def _members(members: Members) -> Mapping[str, Method]:
    return methods_named(members) if isinstance(members, str) else members
