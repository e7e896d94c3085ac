"""Train a classifier for the operating point it is judged by.

The public names and their rooms are listed in ``__init__.pyi``, which type checkers and editors
read. A name is imported from its room on first use, so that ``import setpoint`` costs nothing and
what needs no torch works without it. What is not listed there is imported from its room:
``setpoint.rates``, ``setpoint.fairness``, ``setpoint.losses``, ``setpoint.programs``,
``setpoint.solvers``, ``setpoint.train`` and others.
"""

from importlib import import_module as _import

from setpoint._extras import HIGHER
from setpoint._extras import modules_of_names as _modules_of_names
from setpoint._version import __version__ as __version__

_rooms: dict[str, str] = {}
HIGHER["Monitor"] = lambda: __getattr__("Monitor")  # for Certificate.monitor
HIGHER["ClassMonitor"] = lambda: _import("setpoint.monitoring").ClassMonitor
HIGHER["JointMonitor"] = lambda: _import("setpoint.monitoring").JointMonitor


def _read_rooms() -> dict[str, str]:
    """The module of every public name, as the stub imports it."""
    import ast
    from pkgutil import get_data

    if not _rooms:
        stub = ast.parse(get_data(__name__, "__init__.pyi") or b"")
        _rooms.update(_modules_of_names(stub.body))
    return _rooms


def __getattr__(name: str) -> object:
    if name == "__all__":
        return [name for name in sorted(_read_rooms()) if not name.startswith("_")]
    if name.startswith("_") or name not in _read_rooms():
        raise AttributeError(f"module 'setpoint' has no attribute {name!r}")
    try:
        value = getattr(_import(_rooms[name]), name)
    except ModuleNotFoundError as missing:
        from setpoint._extras import install_advice

        raise install_advice(missing) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_read_rooms())
