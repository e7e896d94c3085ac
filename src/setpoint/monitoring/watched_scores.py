"""Evidence that scores have changed, without labels: the share of alerts, and all ranks.

Scores and feature columns are compared with a reference sample: calibration scores that were
passed on, or else the first :data:`REFERENCE_ROWS` rows that come.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Floats
from setpoint.certificates import Certificate
from setpoint.certificates.goals import as_capacity
from setpoint.certificates.martingales import bernoulli_gains
from setpoint.certificates.polya_urn import (
    SHIFTS,
    RankCells,
    UrnEvidence,
    alert_evidence,
    rank_evidence,
)
from setpoint.monitoring.history import change_point
from setpoint.rates import Where

REFERENCE_ROWS = 1000
MISSING_FEATURE = -1e300
"""What stands for a missing value of a feature: below all others, so that its rank is tested."""
_BINS = 30


@dataclass
class AlertWatch:
    """The share of alerts at one threshold against that of the calibration sample."""

    name: str
    where: Where
    alerts: int
    """How many calibration rows were alerts."""
    rows: int
    urn: UrnEvidence | None = None
    """None without calibration rows."""
    counted: ClassVar[str] = "alerts"

    def expect(self, level: float) -> None:
        """Begin, with a chance of a false alarm of ``level``."""
        self.urn = alert_evidence(self.alerts, self.rows, level)

    @property
    def share(self) -> float:
        """The share of alerts to be expected."""
        return self.alerts / self.rows if self.rows else 0.0

    def ratio(self, share: float) -> float:
        """How many times the expected share; that is half an alert at least."""
        return share / max(self.share, 0.5 / max(self.rows, 1))

    def change(self, counts: Floats) -> int:
        """The period with which a change most likely began, from alerts and rows."""
        share = min(max(self.share, 1e-9), 1 - 1e-9)
        gains = bernoulli_gains(counts[:, 0], counts[:, 1], share, np.array(SHIFTS))
        return change_point(gains)

    def add(self, alerts: NDArray[np.bool_]) -> float:
        """Count rows; the largest log evidence on the way."""
        if self.urn is None or not len(alerts):
            return -np.inf
        return float(self.urn.add(alerts.astype(np.int64)).max())

    @property
    def log_evidence(self) -> float:
        """The logarithm of the evidence now."""
        return 0.0 if self.urn is None else self.urn.log_value

    def state(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        return {} if self.urn is None else self.urn.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Read :meth:`state` back."""
        if self.urn is not None:
            self.urn.restore(state)


def alert_watches(certificate: Certificate) -> list[AlertWatch]:
    """A watch for the threshold, or for that of each group; none where :func:`unlike` says why."""
    if unlike(certificate) is not None:
        return []
    found = []
    for point in certificate.points:
        column = certificate.column
        where: Where = ()
        name = "alerts"
        if column is not None and point.group is not None:
            where, name = ((column, point.group),), f"alerts on {column}={point.group!r}"
        found.append(AlertWatch(name, where, point.alerts, point.examples))
    return found


def unlike(certificate: Certificate) -> str | None:
    """Why the calibration rows are no sample of what is scored; None if they are one."""
    capacity = as_capacity(certificate.goal)
    if capacity is not None:
        return f"the draws are {capacity.period}s, and rows of one may be alike"
    if certificate.old_threshold is not None:
        return "the calibration rows were chosen by an older threshold"
    if certificate.prevalence is not None:
        return "the calibration rows have another share of positives than was declared"
    return None


def unranked(certificate: Certificate) -> str | None:
    """Why the ranks of all scores cannot be tested; None if they can."""
    if as_capacity(certificate.goal) is not None:
        return unlike(certificate)
    return "the outputs of a row are no independent draws" if certificate.outputs else None


@dataclass
class RankWatch:
    """All scores, or a column of features, against a reference sample."""

    name: str
    cells: RankCells | None = None
    """None until there are enough reference rows."""
    urn: UrnEvidence | None = None
    waiting: Floats = field(default_factory=lambda: np.zeros(0))
    """The first rows, until there are enough."""
    edges: Floats = field(default_factory=lambda: np.zeros(0))
    """Of the histogram."""
    reference: Floats = field(default_factory=lambda: np.zeros(0))
    """The histogram of the reference sample."""
    counted: ClassVar[str] = "cells"

    def change(self, counts: Floats) -> int:
        """The period with which a change most likely began, from rows by cell."""
        if self.urn is None or not counts.size:
            return 0
        then = self.urn.balls[0] / self.urn.balls[0].sum()
        tilted = then * self.urn.tilts
        return change_point(counts @ np.log(tilted / tilted.sum(1, keepdims=True) / then).T)

    def refer_to(self, sample: Any, random: np.random.Generator) -> None:
        """Take a reference sample."""
        values = np.asarray(sample, float)
        self.cells = RankCells.of(values, random)
        self.urn = rank_evidence(self.cells.balls)
        low, high = np.quantile(values, [0.001, 0.999])
        room = 0.1 * (high - low) or 0.5
        self.edges = np.linspace(low - room, high + room, _BINS + 1)
        self.reference = self.histogram(values)

    def histogram(self, values: NDArray[Any]) -> Floats:
        """How many values lie in each bin; those beyond the ends in the outer bins."""
        if not len(self.edges):
            return np.zeros(0)
        inside = np.clip(values, self.edges[0], self.edges[-1])
        return np.histogram(inside, self.edges)[0].astype(float)

    def add(self, values: NDArray[Any], random: np.random.Generator) -> tuple[Floats, float]:
        """Count rows; how many fell into each cell, and the largest log evidence on the way."""
        if self.cells is None:
            missing = REFERENCE_ROWS - len(self.waiting)
            self.waiting = np.concatenate([self.waiting, values[:missing].astype(float)])
            values = values[missing:]
            if len(self.waiting) < REFERENCE_ROWS:
                return np.zeros(0), -np.inf
            self.refer_to(self.waiting, random)
            self.waiting = np.zeros(0)
        assert self.cells is not None and self.urn is not None  # noqa: PT018
        cells = self.cells.cells(values, random)
        counts = np.bincount(cells, minlength=len(self.cells.balls)).astype(float)
        return counts, float(self.urn.add(cells).max()) if len(values) else -np.inf

    @property
    def log_evidence(self) -> float:
        """The logarithm of the evidence now."""
        return 0.0 if self.urn is None else self.urn.evidence.log_value

    def moved(self, counts: Floats, threshold: float | None) -> tuple[str, float]:
        """Which part moved, and by which factor its share was multiplied.

        Args:
            counts: The rows in each cell since the change.
            threshold: What separates ``below`` from ``above``; its own cell is ``at``.

        Returns:
            The part whose rows speak most against the reference.
        """
        assert self.cells is not None
        borders = self.cells.borders
        middle = float(borders[len(borders) // 2]) if threshold is None else threshold
        own, place = np.searchsorted(self.cells.borders, middle, "left"), np.arange(len(counts))
        words = [f"scores {side} the threshold" for side in ("below", "at", "above")]
        if threshold is None:
            words = [f"{size} values" for size in ("low or missing", "middle", "high")]
        expected = self.cells.balls / self.cells.balls.sum()
        seen = (counts + 0.5 * expected) / (counts.sum() + 0.5)
        found = []
        for word, inside in zip(words, (place < own, place == own, place > own), strict=True):
            then, now = float(expected[inside].sum()), float(seen[inside].sum())
            if then and (threshold is not None or now > then):  # of features what has become more
                found.append((abs(now - then) / then**0.5, word, now / then))
        return max(found, default=(0.0, words[1], 1.0))[1:]

    def state(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        if self.cells is None or self.urn is None:
            return {"waiting": self.waiting.tolist()}
        return {
            "borders": self.cells.borders.tolist(),
            "lots": self.cells.lots.tolist(),
            "balls": self.cells.balls.tolist(),
            "edges": self.edges.tolist(),
            "reference": self.reference.tolist(),
            "urn": self.urn.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Read :meth:`state` back."""
        if "waiting" in state:
            self.waiting = np.array(state["waiting"], float)
            return
        parts = (np.array(state[name], float) for name in ("borders", "lots", "balls"))
        self.cells = RankCells(*parts)
        self.urn = rank_evidence(self.cells.balls)
        self.edges, self.reference = np.array(state["edges"]), np.array(state["reference"])
        self.urn.restore(state["urn"])
