"""Gradient boosting for an operating point, with XGBoost or LightGBM."""

from setpoint.integrations.boosting.objective import Objective
from setpoint.integrations.boosting.warm import boost, raw_scores

__all__ = ["Objective", "boost", "raw_scores"]
