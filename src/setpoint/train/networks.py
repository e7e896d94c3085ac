"""The networks that a name stands for, and the budget they are trained with if none is given."""

from __future__ import annotations

from torch import nn

HIDDEN = 64
"""Hidden units of ``"mlp"``."""
LEARNING_RATES = {"linear": 0.03, "mlp": 0.01}
"""Of Adam, for each network."""

STEPS = 1500
"""Of training, if neither steps nor passes are given."""
_FEWEST_PASSES = 10


def network(name: str, columns: int, hidden: int = HIDDEN, outputs: int = 1) -> nn.Module:
    """An untrained network, ``[n, columns]`` features to ``[n, outputs]`` scores.

    Raises:
        ValueError: The name is neither "linear" nor "mlp".
    """
    if name == "linear":
        return nn.Linear(columns, outputs)
    if name == "mlp":
        return nn.Sequential(nn.Linear(columns, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
    known = " or ".join(map(repr, LEARNING_RATES))
    raise ValueError(f"model must be {known}; got {name!r}.")


def steps_for(rows: int, batch_size: int, passes: int | None = None, *, fewest: int = STEPS) -> int:
    """The number of batches in ``passes`` passes over the rows.

    Without ``passes``: as many whole passes as give ``fewest`` batches, and at least 10.
    """
    batches = max(1, rows // batch_size)
    return batches * (passes or max(_FEWEST_PASSES, -(-fewest // batches)))
