"""What the scan needs to know of sorted scores, in rows or query by query."""

from __future__ import annotations

from typing import Any, Protocol

from setpoint.rates import Array, Tables


class AnyCuts(Protocol):
    """Counts at every cut; ``r`` is the number of rows or of queries, ``m`` of thresholds."""

    @property
    def xp(self) -> Any:
        """Numpy or torch."""

    @property
    def present(self) -> Array:
        """How many examples there are, ``[r]``."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of what is known at every cut."""

    def tables(self) -> Tables:
        """The counts at all cuts, in this shape."""

    def tables_at(self, cut: Array) -> Tables:
        """The counts at one cut for each threshold, ``[r, m]``."""

    def valid(self) -> Array:
        """Which cuts split no equal scores."""

    def over(self, reduce: str, values: Array) -> Array:
        """The least (``"amin"``) or largest (``"amax"``) over all cuts, ``[r, m]``."""

    def along(self, values: Array) -> Array:
        """What belongs to thresholds ``[r, m]``, at every cut."""

    def positions(self) -> Array:
        """How many examples every cut accepts."""

    def score(self, rank: Array) -> Array:
        """The score of the given rank (0: the highest), ``[r, m]``."""

    def above(self, values: Array, *, equal: bool = False) -> Array:
        """How many scores are above ``values`` [r, m] (or equal)."""
