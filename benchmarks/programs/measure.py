"""CPU seconds of methods that take turns, and peak memory.

CPU time (one thread) and not the clock: the machine is shared. Taking turns within a run makes
ratios fair.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from benchmarks.common.folder import ROOT

TURN = 0.02  # seconds of a turn, at least


class Turn(NamedTuple):
    """Seconds forward and backward of a method, its loss and its gradient."""

    name: str
    forward: float
    backward: float
    value: float
    gradient: Tensor | None


def turns(
    losses: dict[str, Callable[[Tensor], Tensor]],
    scores: Tensor,
    rounds: int,
    most: float,
    lost: dict[str, str],
) -> Iterator[Turn]:
    """Methods in turn; the first round is for warming up and is not counted.

    A method faster than ``TURN`` is repeated in its turn and its median counts, or it would be
    charged for the caches that its neighbour has emptied. One that has used ``most`` seconds gets
    no further round, but one that counts. One that raises is out, and ``lost`` says why.
    """
    spent = dict.fromkeys(losses, 0.0)
    repeats = dict.fromkeys(losses, 1)
    for round_ in range(rounds + 1):
        for name, loss in losses.items():
            if name in lost or (round_ > 1 and spent[name] > most):
                continue
            try:
                calls = [once(name, loss, scores) for _ in range(repeats[name])]
            except Exception as error:  # somebody else's code: any error is a result
                lost[name] = f"{type(error).__name__}: {error}"[:200]
                continue
            spent[name] += sum(call.forward + call.backward for call in calls)
            if round_ == 0:
                repeats[name] = min(25, max(1, round(TURN / max(spent[name], 1e-6))))
                continue
            middle = [
                statistics.median(x) for x in zip(*(call[1:3] for call in calls), strict=True)
            ]
            yield calls[-1]._replace(forward=middle[0], backward=middle[1])


def once(name: str, loss: Callable[[Tensor], Tensor], scores: Tensor) -> Turn:
    """One loss and its backward pass."""
    x = scores.clone().requires_grad_()
    start = time.process_time()
    value = loss(x)
    middle = time.process_time()
    value.backward()
    end = time.process_time()
    return Turn(name, middle - start, end - middle, float(value.detach()), x.grad)


def peak_megabytes(module: str, *arguments: str) -> float:
    """What a process of its own says, in its last word, that its peak memory grew by."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def own_peak() -> float:
    """The largest memory this process ever held, in megabytes (Linux)."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024
