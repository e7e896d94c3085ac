"""Several processes for tests, by gloo: each runs a function and writes what it returns as JSON."""

import json
import multiprocessing
from datetime import timedelta

import torch.distributed as dist

PATIENCE = 600  # seconds: on a busy machine the imports alone take minutes


def on_ranks(work, count, folder):
    """What ``work(rank, folder)`` returned on each of ``count`` ranks."""
    context = multiprocessing.get_context("spawn")
    started = [
        context.Process(target=_one, args=(work, rank, count, str(folder))) for rank in range(count)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(PATIENCE)
        if process.exitcode is None:
            process.kill()
    assert [process.exitcode for process in started] == [0] * count
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(count)]


def _one(work, rank, count, folder):
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=count,
        timeout=timedelta(seconds=PATIENCE),
    )
    found = work(rank, folder)
    with open(f"{folder}/rank{rank}.json", "w") as file:
        json.dump(found, file)
    dist.destroy_process_group()
