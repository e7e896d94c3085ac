"""What is imported on first use: optional libraries, names of a room, names of higher rooms."""

from __future__ import annotations

TYPE_CHECKING = False  # `import setpoint` imports nothing: see setpoint.cli on Ctrl-C
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_EXTRAS = {
    "torch": "train",
    "safetensors": "train",
    "sklearn": "sklearn",
    "pyarrow": "data",
    "matplotlib": "demo",
    "rich": "demo",
    "lightgbm": "boosting",
    "xgboost": "boosting",
    "lightning": "lightning",
    "pytorch_lightning": "lightning",
    "torchmetrics": "metrics",
    "skorch": "skorch",
    "transformers": "transformers",
    "accelerate": "transformers",
    "onnx": "onnx",
    "onnxscript": "onnx",
    "onnxruntime": "onnx",
    "ray": "ray",
}

HIGHER: dict[str, Callable[[], Any]] = {}
"""Names of a higher room that a lower one returns, each with a function that imports it.

A room never imports from above. Where the public API goes in a circle (a certificate makes a
monitor, a monitor makes certificates), ``setpoint/__init__.py``, which stands above all rooms and
runs before any of them, puts the name here.
"""


def install_advice(missing: ModuleNotFoundError) -> ModuleNotFoundError:
    """The same error with the extra that installs the library, if it is one of ours.

    Examples:
        >>> install_advice(ModuleNotFoundError("No module named 'torch'", name="torch"))
        ModuleNotFoundError('torch is not installed: pip install "setpoint[train]"')
    """
    library = (missing.name or "").partition(".")[0]
    if library not in _EXTRAS:
        return missing
    cure = f'pip install "setpoint[{_EXTRAS[library]}]"'
    return ModuleNotFoundError(f"{library} is not installed: {cure}", name=library)


def optional(library: str) -> Any:
    """An optional library; the error says what installs it if it is not there.

    Examples:
        >>> optional("json").loads("[1]")
        [1]
    """
    from importlib import import_module

    try:
        return import_module(library)
    except ModuleNotFoundError as missing:
        raise install_advice(missing) from None


def import_lazily(room: str) -> Callable[[str], object]:
    """The ``__getattr__`` of a room: its imports for type checkers are made on first use.

    Args:
        room: The room, ``__name__``; its ``__init__.py`` has a block ``if TYPE_CHECKING:``.
    """
    places: dict[str, str] = {}

    def find(name: str) -> object:
        if not name.startswith("_") and not places:
            places.update(_typed_imports(room))
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(optional(places[name]), name)

    return find


def _typed_imports(room: str) -> dict[str, str]:
    """The module of every name that a room imports if TYPE_CHECKING."""
    import ast
    from pkgutil import get_data

    own = ast.parse(get_data(room, "__init__.py") or b"").body
    typed = [b for b in own if isinstance(b, ast.If) and ast.unparse(b.test) == "TYPE_CHECKING"]
    return modules_of_names(statement for block in typed for statement in block.body)


def modules_of_names(statements: Iterable[object]) -> dict[str, str]:
    """The module of every name that these statements import."""
    import ast

    imports = [node for node in statements if isinstance(node, ast.ImportFrom)]
    return {name.name: str(node.module) for node in imports for name in node.names}
