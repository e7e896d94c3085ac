"""setpoint from a shell."""

from __future__ import annotations


def main() -> None:
    """Entry point of the ``setpoint`` command."""
