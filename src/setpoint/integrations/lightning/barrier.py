"""The dynamic barrier under Lightning's manual optimisation."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from setpoint.integrations.lightning.library import pl
from setpoint.integrations.scalars import scalars
from setpoint.solvers import Barrier


def barrier_step(
    module: pl.LightningModule, barrier: Barrier, objective: Tensor, **constraints: Any
) -> dict[str, Any]:
    """One step of a barrier, to be called in ``training_step`` under manual optimisation.

    Args:
        module: With ``self.automatic_optimization = False`` and one optimizer.
        barrier: Made of the module's parameters; an attribute of it, so that checkpoints keep it.
        objective: The loss to make small.
        **constraints: ``subject_to=``, or ``after=`` and ``lower=``; ``rows=`` where devices have
            different numbers of rows: see :meth:`setpoint.Barrier.backward`.

    Returns:
        The step in plain numbers; they are logged too.
    """
    if module.automatic_optimization:
        raise RuntimeError(
            "A barrier combines gradients by itself: set self.automatic_optimization = False in "
            "the module's __init__."
        )
    optimizer = module.optimizers()
    optimizer.zero_grad()
    scaler = getattr(module.trainer.precision_plugin, "scaler", None)
    report = barrier.backward(objective, scaler=scaler, **constraints)
    optimizer.step()
    module.log_dict(scalars(report, "setpoint/barrier/"))
    return report
