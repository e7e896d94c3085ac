"""What new scores look like if nothing has changed: the Pólya urn, and evidence against it.

``n`` reference scores, cut at order statistics of ranks fixed in advance, make ``K`` cells. If new
scores are exchangeable with them, the next one falls into a cell with probability
``(gap of ranks + new scores there so far) / (n + 1 + new scores so far)``: an urn into which every
ball is put back with another of its colour. No distribution is assumed and the error of the
reference sample is included. Equal scores are ordered by lot, which keeps the law exact.

With two cells, above and not above a threshold of rank ``m + 1``, the number of alerts among new
rows is Beta-binomial. If the threshold has a rank among *some* rows only (the negatives), or was
fixed before the reference sample, the conservative law has ``m + 1`` against ``n - m`` balls for a
rise of the share, and ``m`` against ``n - m + 1`` for a fall (Clopper and Pearson's ends).

**Tails.** However many rows come, the share of alerts is known to the error of the reference sample
only, so the ratios above stay bounded where a change is not much larger than that error. If
nothing has changed, the share of new rows that are alerts is itself a draw from a Beta law; that it
lies in a tail of probability ``q`` has a posterior probability, which divided by ``q`` is a
martingale, too, and comes to ``1 / q`` if it does lie there. With ``q`` a little below the part of
the false alarms, that finds every change beyond the tail.

Alternatives multiply the odds of lying above a cell border. From the first row on they are urns
too, filled in other shares. Those that begin at a restart are fixed shares, compared with the urn
as it was when the number of rows had last doubled, so that a slow change does not become its own
reference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincc, betainccinv, betaincinv, gammaln

from setpoint.axes.arrays import Floats
from setpoint.certificates.martingales import Evidence

SHIFTS = (0.4, 0.65, 0.85, 0.95, 1.05, 1.15, 1.3, 1.6, 2.5)
"""By how much the odds of an alert are multiplied in each alternative."""
RANK_SHIFTS = (0.5, 0.8, 1.25, 2.0)
CUTS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995)
"""Shares of the reference scores below each border between cells."""
SPREAD = 100
"""Balls of the rarest cell in the urns of alternatives: a shift is known to about 10 %."""
FEWEST = 5
"""Reference scores that a cell must have."""


TAIL_PART = 0.3
"""The weight of each tail of the share of alerts."""
TAIL_ROOM = 0.75
"""How probable it must be that the share lies in the tail for an alarm."""


_TAIL_LOOKS = 32
"""How often tails are computed during one update."""


@dataclass(frozen=True)
class Tail:
    """Evidence that the share of alerts lies in a tail of the law it has if nothing has changed.

    Attributes:
        balls: The urn, ``(others, alerts)``.
        upper: Whether it is the upper tail.
        chance: Its probability if nothing has changed.
    """

    balls: tuple[float, float]
    upper: bool
    chance: float

    @property
    def edge(self) -> float:
        """The share of alerts at which the tail begins."""
        others, alerts = self.balls
        found = (betainccinv if self.upper else betaincinv)(alerts, others, self.chance)
        return float(found)

    def log_values(self, counts: Floats) -> Floats:
        """The logarithm of the martingale after counts ``[..., 2]``."""
        others, alerts = self.balls
        now = (counts[..., 1] + alerts, counts[..., 0] + others)
        inside = (betaincc if self.upper else betainc)(*now, self.edge)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(inside / self.chance))


@dataclass
class UrnEvidence:
    """Evidence that rows do not fall into cells as the urn has it.

    Attributes:
        balls: The urn before the first row, ``[j, K]``: one for each alternative.
        tilts: By what each alternative multiplies the cells, ``[j, K]``.
        spread: The number of balls in the urns of alternatives: how well each is known.
        evidence: The mixture.
        counts: The rows in each cell so far, ``[K]``.
        anchor: The rows in each cell at the last doubling, ``[K]``.
        tails: Evidence of another kind that has a part of the weight.
    """

    balls: Floats
    tilts: Floats
    spread: float
    evidence: Evidence
    counts: Floats
    anchor: Floats
    tails: tuple[Tail, ...] = ()

    def add(self, cells: NDArray[Any]) -> Floats:
        """Add rows by their cells, in order; the log evidence after each piece of them."""
        cuts = self.evidence.pieces(len(cells))
        size = self.balls.shape[1]
        piece = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
        counts = np.bincount(piece * size + cells, minlength=(len(cuts) - 1) * size)
        return self.add_counts(cuts, counts.reshape(-1, size).astype(float))

    def add_counts(self, cuts: Any, counts: Floats) -> Floats:
        """Add pieces of rows, ``counts [pieces, K]``, that end at ``cuts``."""
        before = self.counts + np.cumsum(counts, axis=0) - counts
        null = _log_urn(self.balls, counts, before)
        start = _log_urn(self._alternatives(self.spread), counts, before) - null
        restarts = self._log_products(cuts, counts, before) - null
        seen, self.counts = before + counts, self.counts + counts.sum(0)
        return self._with_tails(self.evidence.advance(cuts, start, restarts), seen)

    def _with_tails(self, log_values: Any, counts: Floats) -> Floats:
        """The mean of the mixture and the tails, which are looked at now and then."""
        found = np.log(1 - TAIL_PART * len(self.tails)) + np.atleast_1d(log_values)
        looks = np.unique(np.linspace(0, len(found) - 1, min(len(found), _TAIL_LOOKS)).astype(int))
        for tail in self.tails:
            also = np.log(TAIL_PART) + tail.log_values(np.atleast_2d(counts)[looks])
            found[looks] = np.logaddexp(found[looks], also)
        return np.asarray(found)

    @property
    def log_value(self) -> float:
        """The logarithm of the evidence now."""
        return float(self._with_tails(self.evidence.log_value, self.counts)[0])

    def _log_products(self, cuts: Any, counts: Floats, before: Floats) -> Floats:
        """The log probability of each piece in alternatives that restarts begin with."""
        found = np.empty((len(counts), len(self.balls)))
        block, rows = self.evidence.block, self.evidence.rows
        level = self._doublings((rows + cuts[:-1]) // block * block)
        now = self._doublings(max(rows - 1, 0) // block * block)
        for each in np.unique(level):
            inside = level == each
            if each > now:
                self.anchor = before[int(np.argmax(inside))]
            shares = self._alternatives(1.0, self.anchor)
            found[inside] = counts[inside] @ np.log(shares).T
        return found

    def _doublings(self, rows: Any) -> Any:
        """How often the number of rows in the urn has doubled."""
        return np.floor(np.log2(1 + np.asarray(rows) / self.balls[0].sum())).astype(int)

    def _alternatives(self, total: float, seen: Any = 0.0) -> Floats:
        """The urn of each alternative, ``[j, K]``, with so many balls in total."""
        tilted = (self.balls + seen) * self.tilts
        return np.asarray(total * tilted / tilted.sum(1, keepdims=True))

    def state(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        return {
            "counts": self.counts.tolist(),
            "anchor": self.anchor.tolist(),
            "evidence": self.evidence.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Read :meth:`state` back."""
        self.counts = np.array(state["counts"], float)
        self.anchor = np.array(state["anchor"], float)
        if not self.counts.shape == self.anchor.shape == self.balls[0].shape:
            raise ValueError("the urn has another number of cells")
        self.evidence.restore(state["evidence"])


def alert_evidence(alerts: float, rows: float, level: float) -> UrnEvidence | None:
    """Evidence that the share of alerts has changed since ``alerts`` of ``rows``.

    Args:
        alerts: How many of the reference rows were alerts. If none or all of them were, the share
            can only be seen to move to the other side.
        rows: How many reference rows there were.
        level: The chance of a false alarm for which it is made; it is valid for any.

    Returns:
        None without reference rows.
    """
    if rows <= 0:
        return None
    rise, fall = (rows - alerts, alerts + 1.0), (rows - alerts + 1.0, alerts)
    sides = [(shift > 1, rise if shift > 1 else fall, shift) for shift in SHIFTS]
    sides = [(up, urn, shift) for up, urn, shift in sides if min(urn) > 0]
    tilts = np.array([(1.0, shift) for _, _, shift in sides])
    found = _urn(np.array([urn for _, urn, _ in sides], float), tilts, block=_block(alerts, rows))
    urns = dict.fromkeys((up, urn) for up, urn, _ in sides)
    chance = TAIL_ROOM * TAIL_PART * min(level, 0.5)
    found.tails = tuple(Tail(urn, up, chance) for up, urn in urns)
    return found


def _block(alerts: float, rows: float) -> int:
    """Rows between two restarts: about one alert, or one other row."""
    return int(np.ceil(rows / max(1.0, min(alerts, rows - alerts))))


def rank_evidence(balls: Floats) -> UrnEvidence:
    """Evidence that scores moved between cells; alternatives move all cells above one border."""
    borders = np.arange(1, len(balls))
    above = np.arange(len(balls)) >= borders[:, None]
    tilts = np.concatenate([np.where(above, shift, 1.0) for shift in RANK_SHIFTS])
    return _urn(np.tile(balls, (len(tilts), 1)), tilts, block=100)


def _urn(balls: Floats, tilts: Floats, block: int) -> UrnEvidence:
    weights, empty = np.full(len(tilts), 1 / len(tilts)), np.zeros(balls.shape[1])
    total = balls[0].sum()
    spread = min(total, SPREAD * total / balls.min())
    return UrnEvidence(balls, tilts, spread, Evidence(weights, block), empty, empty.copy())


def _log_urn(balls: Floats, counts: Floats, before: Floats) -> Floats:
    """The log probability of pieces of rows in urns ``balls [j, K]``, as ``[pieces, j]``."""
    found = np.empty((len(counts), len(balls)))
    kinds, which = np.unique(balls, axis=0, return_inverse=True)
    for i, own in enumerate(kinds):
        urn = own + before
        drawn = (gammaln(urn + counts) - gammaln(urn)).sum(1)
        total, size = urn.sum(1), counts.sum(1)
        value = drawn - gammaln(total + size) + gammaln(total)
        found[:, which.reshape(-1) == i] = value[:, None]
    return found


@dataclass
class RankCells:
    """Cells between order statistics of a reference sample.

    Attributes:
        borders: The order statistics, from low to high.
        lots: The lot of each among scores equal to it.
        balls: The gaps between their ranks, which add up to ``n + 1``.
    """

    borders: Floats
    lots: Floats
    balls: Floats

    @staticmethod
    def of(reference: Any, random: np.random.Generator) -> RankCells:
        """Cells at the shares :data:`CUTS` of the reference, as far as each has enough scores."""
        scores = np.asarray(reference, float)
        lots = random.random(len(scores))
        order = np.lexsort((lots, scores))
        ranks = np.unique(np.round(np.array(CUTS) * len(scores)).astype(int))
        ranks = ranks[(ranks >= FEWEST) & (len(scores) + 1 - ranks >= FEWEST)]
        keep = np.diff(np.concatenate([[0], ranks])) >= FEWEST
        ranks = ranks[keep]
        gaps = np.diff(np.concatenate([[0], ranks, [len(scores) + 1]])).astype(float)
        chosen = order[ranks - 1]
        return RankCells(scores[chosen], lots[chosen], gaps)

    def cells(self, scores: NDArray[Any], random: np.random.Generator) -> NDArray[np.int64]:
        """The cell of each score, from 0; scores equal to a border fall by lot."""
        low = np.searchsorted(self.borders, scores, "left")
        high = np.searchsorted(self.borders, scores, "right")
        found = low.astype(np.int64)
        tied = np.flatnonzero(low != high)
        if len(tied):
            mine = random.random(len(tied))
            above = (self.borders == scores[tied][:, None]) & (self.lots < mine[:, None])
            found[tied] += above.sum(1)
        return found
