"""Conduct an experiment: every case for every seed, in turn, kept as it finishes."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import sqrt
from statistics import fmean, stdev
from typing import Any

import torch
from torch import nn
from torch.optim import SGD
from torch.optim.lr_scheduler import CosineAnnealingLR

from benchmarks.barrier.front_rows import Rows
from benchmarks.barrier.rules import Rule
from benchmarks.common import results

Case = dict[str, Any]
Found = list[dict[str, Any]]


def options(
    text: str | None, steps: int, arguments: Sequence[str] | None, *, first: int = 0
) -> argparse.Namespace:
    """The flags that all experiments share."""
    quick = "two seeds, a tenth of the steps"
    parser = results.parser(text, "fresh", quick=quick, seeds=5, minutes=30.0)
    parser.add_argument("--only", metavar="METHOD", nargs="+", default=[""], help="that start so")
    parser.add_argument("--again", action="store_true", help="forget earlier rows of these methods")
    parser.add_argument("--synthetic", action="store_true", help="made-up data, to try the code")
    parser.add_argument("--first", type=int, default=first, help="the first seed")
    parser.add_argument("--steps", type=int, default=steps)
    given = parser.parse_args(arguments)
    if given.quick:
        given.seeds, given.steps = min(given.seeds, 2), max(2, given.steps // 10)
    return given


def conduct(
    name: str,
    cases: Iterable[Case],
    trial: Callable[..., Mapping[str, Any]],
    given: argparse.Namespace,
) -> Found:
    """All rows of ``trial(**case, seed=..., steps=...)``; those that are stored are not made again.

    Seeds are the outer loop, and each starts with another case, so that a run that is cut short
    has as many rows of one method as of the next.
    """
    ending = "_synthetic" if given.synthetic else "_quick" if given.quick else ""
    rows = Rows(f"barrier_{name}{ending}", fresh=given.fresh)
    wanted = tuple(given.only)
    if given.again:
        forget(rows, wanted)
    listed = [case for case in cases if case["method"].startswith(wanted)]
    began = time.monotonic()
    for seed in range(given.first, given.first + given.seeds):
        first = seed % len(listed)
        for case in listed[first:] + listed[:first]:
            key = {**case, "seed": seed, "steps": given.steps}
            late = time.monotonic() - began > 60 * given.minutes
            if late or rows.find(**key):
                continue
            start = time.process_time()
            with one_core():
                torch.manual_seed(seed)
                row = {**key, **trial(**key, synthetic=given.synthetic)}
            rows.add({**row, "processor_seconds": round(time.process_time() - start, 2)})
            print({k: v for k, v in row.items() if not isinstance(v, (list, dict))}, flush=True)
    return [row for row in rows.rows if row["steps"] == given.steps]


@contextmanager
def one_core() -> Iterator[None]:
    """One thread; numbers next to zero are zero, or collapsed networks take ten times as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)


def forget(rows: Rows, methods: tuple[str, ...]) -> None:
    """Drop the stored rows of the methods that start so, to make them again."""
    rows.rows = [row for row in rows.rows if not row["method"].startswith(methods)]
    rows.path.unlink()
    results.append(rows.path, *rows.rows)


def descend(
    model: nn.Module,
    losses: Callable[[], tuple[torch.Tensor, torch.Tensor]],
    rule: Rule,
    steps: int,
    rate: float,
) -> float:
    """SGD with momentum, the rate falling to zero like a cosine, for every rule alike.

    Returns the mean weight of the main loss over the last tenth of the steps.
    """
    optimizer = SGD(model.parameters(), lr=rate, momentum=0.9)
    schedule = CosineAnnealingLR(optimizer, steps)
    weights = []
    model.train()
    for step in range(steps):
        optimizer.zero_grad()
        weights.append(rule(*losses(), step / steps))
        optimizer.step()
        schedule.step()
    return fmean(weights[-max(1, steps // 10) :])


def paired(own: Mapping[int, float], other: Mapping[int, float], digits: int = 1) -> str:
    """``+0.3 ± 0.2``: mean difference over common seeds and its standard error."""
    differences = [own[seed] - other[seed] for seed in sorted(own.keys() & other.keys())]
    if len(differences) < 2:
        return "-"
    error = stdev(differences) / sqrt(len(differences))
    return f"{fmean(differences):+.{digits}f} ± {error:.{digits}f}"


def by_seed(rows: Found, value: str, **key: Any) -> dict[int, float]:
    """``value`` of the rows with this key, by seed."""
    chosen = (row for row in rows if all(row[name] == each for name, each in key.items()))
    return {row["seed"]: row[value] for row in chosen}
