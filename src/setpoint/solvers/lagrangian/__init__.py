"""Multipliers, soft and proxy, and the iterates worth keeping."""

from typing import TYPE_CHECKING

from setpoint._extras import import_lazily

if TYPE_CHECKING:
    from setpoint.solvers.lagrangian.iterates import Iterate, Iterates
    from setpoint.solvers.lagrangian.lagrangian import Lagrangian

__all__ = ["Iterate", "Iterates", "Lagrangian"]

__getattr__ = import_lazily(__name__)
