"""One criterion for each kind of problem: ``Implicit(problem)`` is made by the one that fits it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

CRITERIA = {
    "groups": ("setpoint.solvers.groups.criterion", "GroupImplicit"),
    "classes": ("setpoint.solvers.classes.criterion", "ClassImplicit"),
    "queries": ("setpoint.solvers.queries.criterion", "QueryImplicit"),
}
"""For each kind of problem, where its subclass of :class:`Implicit` is; loaded when needed."""


def criterion_of(kind: str) -> Any:
    """The subclass of :class:`Implicit` that trains problems of this kind."""
    module, name = CRITERIA[kind]
    return getattr(import_module(module), name)
