"""How hard a bound pushes: the dynamic barrier of the paper's eq. (8) and Proposition 3.7."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from setpoint._checks import at_least_zero, number, positive


@dataclass(frozen=True)
class Push:
    """``min(alpha * gap, beta * |grad g|^tau)``, for gaps that are positive where broken.

    Args:
        alpha: How fast a broken bound is mended: the gap shrinks like ``exp(-alpha * time)``, where
            a step of plain gradient descent takes as much time as its learning rate.
        beta: The most that is asked for, in units of the steepest descent of the loss itself.
        tau: The power of the gradient's length in it, at least 1; 2 in the paper's eq. (8).
    """

    alpha: float = 1.0
    beta: float = 1.0
    tau: float = 2.0

    def __post_init__(self) -> None:
        positive(self.alpha, "alpha")
        at_least_zero(self.beta, "beta")
        if number(self.tau, "tau") < 1:
            raise ValueError(f"tau must be at least 1 (Proposition 3.7); got {self.tau:g}.")

    def __call__(self, gap: float, length: float, *, both_ways: bool = False) -> float:
        """The least decrease of the loss that is asked for, per unit of time.

        Args:
            gap: By how much the bound is broken; infinite when there is no threshold, only a loss
                to be made as small as possible.
            length: Of the gradient of the loss.
            both_ways: For an equality: a negative gap is mended as hard as a positive one.
        """
        cap = self.beta * length**self.tau if length > 0 else 0.0
        mend = self.alpha * gap if gap != inf else inf
        return min(max(mend, -cap), cap) if both_ways else min(mend, cap)
