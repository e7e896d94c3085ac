"""Train a classifier for the operating point it is judged by.

The front door: public names only, each imported from its room on first use, so that
``import setpoint`` costs nothing and the torch-free rooms stay torch-free.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    pass

_ROOMS: dict[str, str] = {}

__all__ = ["__version__", *_ROOMS]  # noqa: PLE0604


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module 'setpoint' has no attribute {name!r}")
    value = getattr(import_module(f"setpoint.{_ROOMS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
