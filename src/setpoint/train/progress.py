"""One line on stderr that says how far a run is; nothing where nobody watches."""

from __future__ import annotations

import sys
from time import perf_counter

WIDTH = 30
EVERY = 0.1
"""Seconds between two looks."""


class ProgressLine:
    """A bar that is drawn over itself.

    Args:
        total: The number of steps.
        shown: False: draw nothing.
    """

    def __init__(self, total: int, *, shown: bool) -> None:
        self.total, self.shown = total, shown
        self._start = perf_counter()
        self._drawn = -EVERY

    def update(self, done: int, note: str = "") -> None:
        """Draw the bar, unless that was done a moment ago."""
        elapsed = perf_counter() - self._start
        if not self.shown or (elapsed - self._drawn < EVERY and done < self.total):
            return
        self._drawn = elapsed
        filled = round(WIDTH * done / self.total)
        bar = "█" * filled + "░" * (WIDTH - filled)
        sys.stderr.write(f"\r{bar} {done:,}/{self.total:,} steps, {elapsed:.0f} s  {note}\x1b[K")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave the line."""
        if self.shown:
            sys.stderr.write("\n")
