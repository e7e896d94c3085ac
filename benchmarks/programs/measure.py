"""CPU seconds of methods that take turns, and peak memory.

CPU time (one thread) and not the clock: the machine is shared. Taking turns within a run makes
ratios fair.
"""

from __future__ import annotations

import ctypes
import re
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

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


def peak_megabytes(work: Callable[[], object]) -> float:
    """How much memory ``work`` adds at its peak (Linux: the kernel's high-water mark, set back)."""
    ctypes.CDLL(None).malloc_trim(0)  # give back what others have freed, or it would be used again
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    work()
    return _status("VmHWM") - before


def _status(name: str) -> float:
    found = re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024
