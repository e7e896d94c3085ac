"""What a criterion learns lives in buffers that survive checkpoints, devices and casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class State(nn.Module):
    """A module whose buffers keep their precision, and take their shapes from a checkpoint.

    ``model.half()`` is for weights: counts and thresholds stay in the precision they were found in
    and only move between devices.
    """

    _flexible: tuple[str, ...] = ()
    """Buffers whose shape is not known before the first batch."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> State:
        kept = dict(self._buffers)
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, before in kept.items():
            after = self._buffers[name]
            if before is not None and after is not None and after.dtype != before.dtype:
                self._buffers[name] = before.to(after.device)
        return self

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in self._flexible:
            saved = state.get(prefix + name)
            if saved is not None:
                device = getattr(self, name).device
                setattr(self, name, torch.zeros_like(saved, device=device))
        super()._load_from_state_dict(state, prefix, *rest)
