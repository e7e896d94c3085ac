"""Imported first by every room that trains: an error that names the extra if torch is missing."""

from setpoint._extras import advice

try:
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ModuleNotFoundError as missing:
    raise advice(missing) from None
