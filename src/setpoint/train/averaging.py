"""An exponential average of a model's weights, which is better than the weights of the last step.

The threshold of a rate lies where few examples are, so single steps are noisy there; the average of
the last hundred or so is not. The decay is small at first, when the weights are still far off.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

_LONGEST_DECAY = 0.99


class Averaged(AveragedModel):
    """The running average of ``model``: update it after every optimizer step, then use it instead.

    The decay is ``min(0.99, (1 + t) / (10 + t))`` after ``t`` updates. Batch-norm statistics are
    averaged like weights (counters are copied). It is a module: call it, ``eval()`` it, save its
    ``state_dict()``; ``averaged.module`` is a plain model like the one it was made of.

    Args:
        model: The model being trained. It is copied here, and read at every update.

    Examples:
        >>> model = nn.Linear(2, 1)
        >>> averaged = Averaged(model)
        >>> for _ in range(3):
        ...     _ = model.weight.data.fill_(1.0)    # here the optimizer would step
        ...     averaged.update()
        >>> averaged(torch.ones(1, 2)).shape, averaged.module.weight.data
        (torch.Size([1, 1]), tensor([[1., 1.]]))
    """

    module: nn.Module

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model, multi_avg_fn=_follow, use_buffers=True)
        self._trained = (model,)  # in a tuple, so that it does not become a part of this module

    def update(self) -> None:
        """Add the model's present weights to the average; the first update copies them."""
        self.update_parameters(self._trained[0])


def decay(updates: int) -> float:
    """The share of the average that is kept, after ``updates`` earlier updates."""
    return min(_LONGEST_DECAY, (1 + updates) / (10 + updates))


@torch.no_grad()
def _follow(averaged: Any, current: Any, updates: Tensor | int) -> None:
    """Move tensors of one dtype towards the present ones; torch calls it for each dtype."""
    if averaged[0].is_floating_point() or averaged[0].is_complex():
        torch._foreach_lerp_(averaged, current, 1 - decay(int(updates)))
    else:  # a counter is copied
        torch._foreach_copy_(averaged, current)
