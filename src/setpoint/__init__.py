"""Train a classifier for the operating point it is judged by.

The public names and their rooms are listed in ``__init__.pyi``, which type checkers and editors
read. A name is imported from its room on first use, so that ``import setpoint`` costs nothing and
what needs no torch works without it. What is not listed there is imported from its room:
``setpoint.rates``, ``setpoint.fairness``, ``setpoint.losses``, ``setpoint.programs``,
``setpoint.solvers``, ``setpoint.train`` and others.
"""

import ast
from importlib import import_module
from pkgutil import get_data

from setpoint._extras import install_advice
from setpoint._version import __version__ as __version__


def _rooms() -> dict[str, str]:
    """The module of every public name, as the stub imports it."""
    stub = ast.parse(get_data(__name__, "__init__.pyi") or b"")
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {name.name: str(node.module) for node in imports for name in node.names}


_ROOMS = _rooms()
__all__ = sorted(_ROOMS)


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module 'setpoint' has no attribute {name!r}")
    try:
        value = getattr(import_module(_ROOMS[name]), name)
    except ModuleNotFoundError as missing:
        raise install_advice(missing) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
