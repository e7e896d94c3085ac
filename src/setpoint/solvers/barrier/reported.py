"""What a barrier knows of its steps: told in words and numbers, kept in a state, or forgotten."""

from __future__ import annotations

from typing import Any

from torch import nn

from setpoint.solvers.barrier.ledger import Ledger
from setpoint.solvers.barrier.means import Means
from setpoint.solvers.barrier.report import Report, summary


class Reported(nn.Module):
    """Its state is that of its ledger and its means; ``last`` is the last step, for loggers."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.means = Means()
        self.last: dict[str, Any] = {}

    def report(self) -> Report:
        """How it went so far: a dict of plain numbers that prints as lines of words.

        Lists have one number for each bound, in the order given. ``multiplier`` is what the bound
        costs, ``slack`` how far it is from being broken, ``binding`` the share of steps in which it
        mattered, ``noise_ratio`` how many times more than a single batch asks for was needed; in
        lexicographic training, how many times a batch's squared gradient is that of the truth.
        """
        return summary(self.last, self.ledger)

    @property
    def status(self) -> str:
        """The first word of the report: *held*, *slack*, *opposed*, *settled*, and so on."""
        return str(self.report()["status"])

    def reset(self) -> None:
        """Forget all steps, before other losses are trained."""
        self.ledger.reset()
        self.means.reset()
        self.last = {}
