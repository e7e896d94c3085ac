"""The rows of a validation: scores and labels as the module gives them, each row once."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DistributedSampler

from setpoint.integrations.lightning.library import pl


def scores_of(outputs: Any) -> tuple[Tensor, Tensor]:
    """Scores and labels, as ``validation_step`` returned them."""
    if isinstance(outputs, dict) and {"scores", "labels"} <= set(outputs):
        outputs = outputs["scores"], outputs["labels"]
    if not (isinstance(outputs, (tuple, list)) and len(outputs) == 2):
        raise TypeError(
            "Recalibrate needs the scores: return (scores, labels) from validation_step, or a dict "
            f"with these names; it returned {type(outputs).__name__}."
        )
    scores, labels = (torch.as_tensor(part).reshape(-1) for part in outputs)
    return scores, labels


def own_rows(trainer: pl.Trainer, place: int) -> int:
    """How many rows this rank has without those a sampler repeats to make ranks equal."""
    loaders = trainer.val_dataloaders
    loader = loaders[place] if isinstance(loaders, (list, tuple)) else loaders
    sampler = getattr(loader, "sampler", None)
    if not isinstance(sampler, DistributedSampler):
        return sys.maxsize
    rows: int = len(range(sampler.rank, len(sampler.dataset), sampler.num_replicas))  # type: ignore[arg-type]
    return rows
