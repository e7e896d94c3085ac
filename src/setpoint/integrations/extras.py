"""What to install when a library is not there."""

from __future__ import annotations


def advice(missing: ModuleNotFoundError, extra: str) -> ModuleNotFoundError:
    """The same error, with the extra that brings the library."""
    return ModuleNotFoundError(
        f'{missing.name} is not installed: pip install "setpoint[{extra}]"', name=missing.name
    )
