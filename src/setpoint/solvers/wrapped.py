"""How a model is wrapped: who averages its gradients, and over which ranks."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from setpoint.distributed import workers

SHARDED = ("FullyShardedDataParallel", "FSDPModule")
"""Wrappers that average as well; known by name, as importing them takes its time."""


def check_model(model: object) -> None:
    """Only a module can be attached."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"attach takes the model that is trained; got {type(model).__name__}.")


def averaging_group(
    model: nn.Module, criterion: nn.Module, *, told: bool
) -> dist.ProcessGroup | None:
    """The ranks that the model's gradients are averaged over; None for all of them.

    Args:
        model: As it is called in training.
        criterion: What is attached to it.
        told: Whether the user said what becomes of gradients: then nothing needs to average.

    Raises:
        TypeError: There are several ranks and nobody averages, or the criterion has weights that
            the model does not have, so that nobody averages those.
    """
    sharded = any(kind.__name__ in SHARDED for kind in type(model).__mro__)
    if not sharded and not isinstance(model, DistributedDataParallel):
        if told:
            return None
        raise TypeError(
            f"There are {workers()} ranks, and nothing averages the gradients of a "
            f"{type(model).__name__}: wrap it in DistributedDataParallel and attach that. If you "
            "add gradients up yourself, say criterion.reduction = 'sum' instead."
        )
    known = {id(p) for p in model.parameters()}
    left = [name for name, p in criterion.named_parameters() if id(p) not in known]
    if left:
        raise TypeError(
            f"The criterion trains weights that the model does not have ({left[0]}), so nobody "
            "averages them over ranks. Let the model hold them: LastLayer(problem, Split(model)) "
            "with DistributedDataParallel(split)."
        )
    group = getattr(model, "process_group", None)
    return None if group is dist.group.WORLD else group
