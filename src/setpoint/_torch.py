"""Imported first by every room that trains: an error that names the extra if torch is missing."""

from importlib import import_module

from setpoint._extras import install_advice

try:
    for library in ("torch", "safetensors"):
        import_module(library)
except ModuleNotFoundError as missing:
    raise install_advice(missing) from None
