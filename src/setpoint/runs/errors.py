"""What can be wrong with a run folder, in one line."""

from __future__ import annotations


class RunError(ValueError):
    """A run folder that cannot be written or must not be trusted."""
