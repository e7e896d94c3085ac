"""A moment of a model, to come back to: the same forward pass once more."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass
class Moment:
    """What a forward pass depends on: chance and buffers, and which weights they were."""

    chance: Tensor
    devices: list[Tensor]
    buffers: list[Tensor]
    versions: list[int]
    """Of each weight, as torch counts: a change in place, such as a step, is one more."""

    @classmethod
    def of(cls, model: nn.Module) -> Moment:
        """Now."""
        started = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        devices = torch.cuda.get_rng_state_all() if started else []
        buffers = [buffer.detach().clone() for buffer in model.buffers()]
        versions = [parameter._version for parameter in model.parameters()]
        return cls(torch.get_rng_state(), devices, buffers, versions)

    @torch.no_grad()
    def restore(self, model: nn.Module) -> None:
        """Chance and buffers as they were."""
        torch.set_rng_state(self.chance)
        if self.devices:
            torch.cuda.set_rng_state_all(self.devices)
        for buffer, then in zip(model.buffers(), self.buffers, strict=True):
            buffer.copy_(then)
