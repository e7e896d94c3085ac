"""Several small CNNs of one shape as one: grouped convolutions, so that they train in one pass.

Nothing is shared between members, neither weights nor batches nor statistics; a stack of one is
the network itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from benchmarks.common.networks import SmallCNN


class Stack(nn.Module):
    """From images ``[members, n, 3, h, w]`` to scores ``[n, members, outputs]``."""

    def __init__(self, members: Sequence[SmallCNN]) -> None:
        """The weights of the members are copied side by side."""
        super().__init__()
        self.count = len(members)
        blocks = [[part for part in m if isinstance(part, nn.Sequential)] for m in members]
        self.body = nn.Sequential(*(_side_by_side(level) for level in zip(*blocks, strict=True)))
        heads = [m.fc for m in members]
        self.weight = nn.Parameter(torch.stack([head.weight.detach().T for head in heads]))
        self.bias = nn.Parameter(torch.stack([head.bias.detach() for head in heads]))

    def forward(self, images: Tensor) -> Tensor:
        """Each member sees its own images."""
        members, n = images.shape[:2]
        features = self.body(images.transpose(0, 1).reshape(n, -1, *images.shape[3:]))
        features = features.reshape(n, members, -1).transpose(0, 1)
        return torch.baddbmm(self.bias[:, None], features, self.weight).transpose(0, 1)


def _side_by_side(blocks: Sequence[nn.Sequential]) -> nn.Sequential:
    """Convolution, batch norm and ReLU of all members as one block."""
    first = blocks[0][0]
    assert isinstance(first, nn.Conv2d)
    count = len(blocks)
    conv = nn.Conv2d(
        count * first.in_channels,
        count * first.out_channels,
        3,
        stride=2,
        padding=1,
        bias=False,
        groups=count,
    )
    conv.weight = nn.Parameter(torch.cat([block[0].weight.detach() for block in blocks]))
    return nn.Sequential(conv, nn.BatchNorm2d(count * first.out_channels), nn.ReLU())
