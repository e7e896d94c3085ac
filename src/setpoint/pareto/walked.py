"""A job becomes a front: in a folder that stays, or in one that is gone afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from setpoint.distributed import Processes
from setpoint.pareto.front import Front, front_in
from setpoint.pareto.job import Job
from setpoint.pareto.store import Store
from setpoint.pareto.workers import walk
from setpoint.train import write_atomically
from setpoint.train.loop import ProgressLine

JSON = "front.json"


def walked(job: Job, folder: str | Path | None, processes: Processes, shown: bool) -> Front:
    """Train what is missing and read the whole front; ``shown`` draws a bar."""
    with _opened(folder) as where:
        front = _walk(job, Store(where, job.recipe()), processes, shown)
        if folder is None:
            return _in_memory(front)
        write_atomically(where / JSON, front.to_json().encode())
    return front


@contextmanager
def _opened(folder: str | Path | None) -> Iterator[Path]:
    """The caller's folder, or one that is gone afterwards."""
    if folder is not None:
        yield Path(folder)
        return
    with TemporaryDirectory(prefix="setpoint-front-") as made:
        yield Path(made)


def _walk(job: Job, store: Store, processes: Processes, shown: bool) -> Front:
    line = ProgressLine(sum(map(job.steps_of, job.legs())), shown=shown)
    taken = 0

    def on_steps(count: int) -> None:
        nonlocal taken
        taken += count
        line.update(taken, "of the front")

    walk(job, store, processes, on_steps)
    line.close()
    return front_in(store)


def _in_memory(front: Front) -> Front:
    """The front with its weights, before the files go."""
    return Front(front.names, front.method, front.points, list(front.state_dicts), front.recipe)
