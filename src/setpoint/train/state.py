"""What a run knows between two steps, as named tensors and a JSON record, and back again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from setpoint.train.averaged import Averaged

History = list[dict[str, Any]]
RNG = "rng"


@dataclass
class Progress:
    """How far a run is: plain data."""

    step: int = 0
    best: float | None = None
    best_epoch: int | None = None
    finished: bool = False
    history: History = field(default_factory=list)


@dataclass
class State:
    """All parts of a run that change while it trains; ``best`` holds the best weights so far."""

    model: nn.Module
    optimizer: Optimizer
    average: Averaged | None
    criterion: object
    best: dict[str, Tensor]

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor under its own name."""
        named = {RNG: torch.get_rng_state()}
        for prefix, module in self._modules():
            named.update(_prefixed(prefix, module.state_dict()))
        for index, slots in self.optimizer.state_dict()["state"].items():
            named.update(_prefixed(f"optimizer.{index}", slots))
        named.update(_prefixed("best", self.best))
        return named

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up where :meth:`tensors` was called."""
        for prefix, module in self._modules():
            module.load_state_dict(_under(prefix, tensors))
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _under("optimizer", tensors).items():
            index, slot = name.split(".", 1)
            state.setdefault(int(index), {})[slot] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.best = _under("best", tensors)
        torch.set_rng_state(tensors[RNG])

    def _modules(self) -> list[tuple[str, nn.Module]]:
        parts = (("model", self.model), ("average", self.average), ("criterion", self.criterion))
        return [(name, part) for name, part in parts if isinstance(part, nn.Module)]


def _prefixed(prefix: str, tensors: Mapping[str, Any]) -> dict[str, Tensor]:
    for name, value in tensors.items():
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{prefix}.{name} is a {type(value).__name__}; checkpoints hold tensors only. "
                "Keep state in buffers, or train without checkpoints."
            )
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    start = f"{prefix}."
    return {name[len(start) :]: t for name, t in tensors.items() if name.startswith(start)}
