"""CPU seconds, peak memory, and rows that are appended as they are made.

CPU time (one thread) and not the clock: the machine is shared. Methods take turns within a run, so
that ratios are fair.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.common.folder import ROOT

RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("torch", "scipy", "cvxpy", "cvxpylayers", "clarabel", "qpth", "ap_perf", "libauc")


def facts() -> dict[str, Any]:
    """Versions and the state of the machine."""
    versions = {name: version(name) for name in ("setpoint", *PACKAGES)}
    return {
        "versions": {"python": platform.python_version(), **versions},
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }


def version(package: str) -> str:
    """What is installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


class Rows:
    """A JSON-lines file: one row an outcome, written at once; rows already there are not remade."""

    def __init__(self, file: Path, fresh: bool) -> None:
        """``fresh`` starts the file anew."""
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            file.unlink(missing_ok=True)
        self.known = {key(row["cell"]) for row in read(file) if "cell" in row}

    def done(self, cell: dict[str, Any]) -> bool:
        """Whether this cell has its row."""
        return key(cell) in self.known

    def add(self, cell: dict[str, Any], **found: Any) -> None:
        """Write and show a row."""
        self.known.add(key(cell))
        with self.file.open("a") as out:
            out.write(json.dumps({"cell": cell, **found}) + "\n")
        shown = {k: v for k, v in found.items() if not isinstance(v, (list, tuple, dict))}
        print(*cell.values(), *(f"{k}={short(v)}" for k, v in shown.items()), flush=True)

    def note(self, **anything: Any) -> None:
        """A line about the run."""
        with self.file.open("a") as out:
            out.write(json.dumps(anything) + "\n")


def key(cell: dict[str, Any]) -> str:
    """A cell as text, for comparing."""
    return json.dumps(cell, sort_keys=True)


def short(value: Any) -> str:
    """A number in three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def read(file: Path) -> list[dict[str, Any]]:
    """All rows so far."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def turns(
    losses: dict[str, Callable[[Tensor], Tensor]],
    scores: Tensor,
    rounds: int,
    most: float,
    lost: dict[str, str],
) -> Iterator[tuple[str, float, float, float, Tensor | None]]:
    """Name, seconds forward and backward, loss and gradient; methods in turn, the first is warm-up.

    A method that has used ``most`` seconds gets no further round (but always one after warming up,
    unless the warm-up alone was longer: then that is what is counted). One that raises is out, and
    ``lost`` says why.
    """
    spent = dict.fromkeys(losses, 0.0)
    for round_ in range(rounds + 1):
        for name, loss in losses.items():
            late = spent[name] > most and round_ > 0
            if name in lost or (late and (round_ > 1 or spent[name] > 2 * most)):
                continue
            x = scores.clone().requires_grad_()
            try:
                start = time.process_time()
                value = loss(x)
                middle = time.process_time()
                value.backward()
                end = time.process_time()
            except Exception as error:  # somebody else's code: any error is a result
                lost[name] = f"{type(error).__name__}: {error}"[:200]
                continue
            spent[name] += end - start
            if round_ or end - start > 2 * most:
                yield name, middle - start, end - middle, float(value.detach()), x.grad


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
