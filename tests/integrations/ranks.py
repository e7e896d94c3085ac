"""Several processes for tests, by gloo: each runs a function of this module and writes JSON."""

import json
import multiprocessing
import socket
from datetime import timedelta

import torch.distributed as dist


def on_ranks(work, count, folder):
    """What ``work(rank, folder)`` returned on each of ``count`` ranks."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    started = [
        context.Process(target=_one, args=(work, rank, count, port, str(folder)))
        for rank in range(count)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(180)
        if process.exitcode is None:
            process.kill()
    assert [process.exitcode for process in started] == [0] * count
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(count)]


def _one(work, rank, count, port, folder):
    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=count,
        timeout=timedelta(seconds=120),
    )
    found = work(rank, folder)
    with open(f"{folder}/rank{rank}.json", "w") as file:
        json.dump(found, file)
    dist.destroy_process_group()
