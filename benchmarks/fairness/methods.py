"""Every method by name, with the tolerances it is asked for (fairret: weights of its penalty)."""

from collections.abc import Callable

from benchmarks.fairness.ours import RULES, Chances, chosen, per_group, shared
from benchmarks.fairness.rivals import (
    exponentiated_gradient,
    fairret,
    tfco,
    threshold_optimizer,
    unconstrained,
)

__all__ = ["METHODS", "NEEDS", "RULES"]

FINE = (0.005, 0.02, 0.05, 0.1, 0.2, 0.4)
METHODS: dict[str, tuple[Callable[..., Chances], tuple[float, ...]]] = {
    "logistic regression": (unconstrained, (1.0,)),
    "setpoint, per group": (per_group, FINE),
    "logistic + setpoint's thresholds": (chosen, FINE),
    "setpoint, shared (multipliers)": (shared, (0.02, 0.05)),
    "fairlearn ThresholdOptimizer": (threshold_optimizer, (0.0, 0.02, 0.05)),
    "fairlearn ExponentiatedGradient": (exponentiated_gradient, (0.02, 0.05)),
    "fairret": (fairret, (0.1, 0.3, 1.0)),
    "TFCO Lagrangian": (tfco, (0.02, 0.05)),
}
NEEDS = {"fairlearn": "fairlearn", "fairret": "fairret", "TFCO": "tensorflow"}
"""What must be installed for methods that begin so."""
