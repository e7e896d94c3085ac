"""The networks that a name stands for, and the budget they are trained with if none is given."""

from __future__ import annotations

from torch import nn

HIDDEN = 64
LEARNING_RATES = {"linear": 0.03, "mlp": 0.01}
STEPS, LEAST_PASSES = 1500, 10
"""Without a number of passes: enough for so many steps, but never fewer passes than this."""


def network(name: str, columns: int, hidden: int = HIDDEN, outputs: int = 1) -> nn.Module:
    """An untrained network that gives one score a row (or several), ``[n, outputs]``."""
    if name == "linear":
        return nn.Linear(columns, outputs)
    if name == "mlp":
        return nn.Sequential(nn.Linear(columns, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
    known = " or ".join(map(repr, LEARNING_RATES))
    raise ValueError(f"model must be {known}; got {name!r}.")


def steps_for(rows: int, batch_size: int, passes: int | None = None) -> int:
    """How many batches make so many passes over the rows."""
    each = max(1, rows // batch_size)
    return each * (passes or max(LEAST_PASSES, -(-STEPS // each)))
