"""A sparse code: a linear encoder whose features are penalised by L_p, and a head of unit rows.

The head's rows have length one. With a free head the code could shrink and the head grow without
changing a prediction, so every level of sparsity would be free and there would be no front.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss, normalize

POWER, ROUND = 0.5, 1e-4
"""The penalty |z|^p is rounded off where |z| is below the root of ROUND: its slope stays finite."""


class SparseCode(nn.Module):
    """``head(encoder(x))``; call it for both."""

    def __init__(self, inputs: int, features: int, classes: int) -> None:
        """A regression has one class."""
        super().__init__()
        self.encoder = nn.Linear(inputs, features, bias=False)
        self.head = nn.Parameter(torch.randn(classes, features))
        self.bias = nn.Parameter(torch.zeros(classes))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Code and prediction."""
        code = self.encoder(x)
        return code, code @ normalize(self.head, dim=1).T + self.bias


def penalty(code: Tensor) -> Tensor:
    """``E |z|_p^p``."""
    return ((code.square() + ROUND) ** (POWER / 2) - ROUND ** (POWER / 2)).sum(1).mean()


def losses(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, Tensor]:
    """The data loss is minimised, the sparsity penalty held."""
    code, out = model(x)
    fit = mse_loss(out[:, 0], y) if y.is_floating_point() else cross_entropy(out, y)
    return {"loss": fit, "penalty": penalty(code)}


@torch.no_grad()
def judged(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, float]:
    """What the test part says."""
    code, out = model(x)
    found = {"features in use": float((code.abs() > 0.05).float().sum(1).mean())}
    if y.is_floating_point():
        return found | {"test error": float(mse_loss(out[:, 0], y))}
    return found | {"test accuracy": float((out.argmax(1) == y).float().mean())}
