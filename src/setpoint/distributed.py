"""Several processes: for now only the refusal of a silent loss per rank."""

from __future__ import annotations

import torch.distributed as dist


def refuse_several_ranks() -> None:
    """Raise if this process is one of several.

    A rate of a shard is not the rate of the batch: averaging gradients over ranks would train for
    another number than the one asked for, without a word.
    """
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        raise NotImplementedError(
            f"This criterion sees only its own rank's share of the batch ({dist.get_world_size()} "
            "ranks). Distributed training is not available yet; train in one process."
        )
