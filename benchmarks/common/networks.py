"""Small networks for two slow cores."""

import torch
from torch import Tensor, nn

BIG = (16, 32, 64, 64)  # 60,945 weights with one output: data-limited on our images
TINY = (6, 8, 8, 8)  # 1,839 weights: capacity-limited


class SmallCNN(nn.Sequential):
    """Four strided 3 x 3 convolutions with batch norm and ReLU, then one linear head ``fc``."""

    def __init__(self, outputs: int = 1, widths: tuple[int, ...] = BIG, channels: int = 3) -> None:
        """``widths`` are those of the layers; the body ends in ``widths[-1] * 4`` features."""
        super().__init__()
        before = channels
        for place, width in enumerate(widths):
            block = nn.Sequential(
                nn.Conv2d(before, width, 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
            )
            self.add_module(f"block{place}", block)
            before = width
        self.add_module("flatten", nn.Flatten())
        self.add_module("fc", nn.Linear(before * 4, outputs))


def flipped(images: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Each image mirrored with probability one half."""
    coins = torch.rand(len(images), generator=generator) < 0.5
    return torch.where(coins[:, None, None, None], images.flip(-1), images)
