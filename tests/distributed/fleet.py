"""Processes of one machine that do the same thing: started once, for all cases."""

import multiprocessing
import tempfile
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

WORLD = 4


def run_fleet(work, *given, world=WORLD):
    """What ``work(rank, *given)`` returned on every rank, in their order."""
    multiprocessing.set_forkserver_preload(["torch._dynamo", "setpoint.train"])
    with tempfile.TemporaryDirectory() as folder:
        mp.start_processes(
            _start, (folder, world, work, given), nprocs=world, start_method="forkserver"
        )
        found = [
            torch.load(Path(folder) / f"{rank}.pt", weights_only=False) for rank in range(world)
        ]
    troubles = [f"rank {rank}: {one}" for rank, one in enumerate(found) if isinstance(one, str)]
    if troubles:  # those that lost a connection are not to blame
        raise AssertionError(min(troubles, key=lambda text: "closed by peer" in text))
    return found


def _start(rank, folder, world, work, given):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meet",
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=40),
    )
    try:
        found = work(rank, *given)
    except Exception:
        found = traceback.format_exc()
    torch.save(found, Path(folder) / f"{rank}.pt")
    dist.destroy_process_group()
