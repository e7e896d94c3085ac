"""Test martingales: evidence against a hypothesis that may be looked at after every row.

A likelihood ratio of an alternative to the hypothesis is, as long as the hypothesis is true, a
nonnegative martingale that starts at 1. So is every average of such ratios with weights fixed in
advance. By Ville's inequality the chance that it ever reaches ``1 / delta`` is at most ``delta``,
however often one looks. Two averages are taken:

* over alternatives: odds multiplied by factors on a coarse grid, which finds large breaks quickly,
  and on a fine one, which finds small breaks at all;
* over the row at which a break begins: three quarters of the weight on the first row, the rest on
  restarts every ``block`` rows. Without restarts a long quiet time would have to be made up for
  first. The weights of restarts fall slowly: the ``r``-th costs a factor of about
  ``r * log(r)**2``.

The sum over restarts needs one number for each alternative: at each restart
``S <- (S + w_r) * ratio of the rows up to the next``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit

from setpoint.axes.arrays import Floats

COARSE = {1.6: 0.15, 3.3: 0.52, 6.0: 0.20}
FINE = {1.05: 0.03, 1.1: 0.04, 1.25: 0.06}
FACTORS = np.array([*COARSE, *FINE])
"""By how much the odds of an unwanted event are multiplied in each alternative."""
WEIGHTS = np.array([*COARSE.values(), *FINE.values()])
MOST_LOST = 0.95
"""The part of its capital that a bet may lose on one row."""
_BETS = 0.9 * 3.0 ** -np.arange(9.0)
"""Of :func:`ratio_sequence`, times the largest row."""
FROM_START = 0.75
"""The weight of a break at the first row; restarts share the rest."""


def tail_weight(restarts: Any) -> Any:
    """The weight of all restarts that are still to come: ``1 / (1 + log(1 + r))``."""
    return 1 / (1 + np.log1p(restarts))


def restart_weight(restart: Any) -> Any:
    """The weight of the ``restart``-th restart, counted from 1; all of them add up to 1."""
    restart = np.asarray(restart, float)
    return tail_weight(restart - 1) - tail_weight(restart)


def log_mixture(log_start: Any, log_restarts: Any, restarts: Any, weights: Any = WEIGHTS) -> Any:
    """The logarithm of the whole average.

    Args:
        log_start: For each alternative (last axis) the log ratio since the first row.
        log_restarts: The logarithm of the weighted sum of ratios since each restart.
        restarts: How many restarts there were.
        weights: Of the alternatives.
    """
    with np.errstate(divide="ignore"):
        both = np.logaddexp(
            np.log(FROM_START * weights) + log_start,
            np.log((1 - FROM_START) * weights) + log_restarts,
        )
    to_come = np.log((1 - FROM_START) * tail_weight(restarts))
    return np.logaddexp(np.logaddexp.reduce(both, axis=-1), to_come)


def finite_or_none(logs: Floats) -> list[float | None]:
    """Logarithms for JSON: None is that of zero."""
    return [x if np.isfinite(x) else None for x in logs.reshape(-1).tolist()]


def from_finite(logs: list[float | None]) -> Floats:
    """Read :func:`finite_or_none` back."""
    return np.array([-np.inf if x is None else x for x in logs], float)


@dataclass
class Evidence:
    """The average of likelihood ratios over alternatives and over restarts, row by row.

    Attributes:
        weights: Of the alternatives, ``[j]``.
        block: How many rows lie between two restarts.
        rows: How many rows were seen.
        opened: The number of the latest restart: at the first cut after so many times ``block``.
        log_start: See :func:`log_mixture`.
        log_restarts: The same.
    """

    weights: Floats
    block: int
    rows: int = 0
    opened: int = 0
    log_start: Floats = field(default_factory=lambda: np.zeros(0))
    log_restarts: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not len(self.log_start):
            self.log_start = np.zeros(len(self.weights))
            self.log_restarts = np.full(len(self.weights), -np.inf)

    @property
    def log_value(self) -> float:
        """The logarithm of the evidence now."""
        return float(log_mixture(self.log_start, self.log_restarts, self.opened, self.weights))

    def state(self) -> dict[str, Any]:
        """Plain numbers for JSON; a logarithm of zero is None."""
        return {
            "block": self.block,
            "rows": self.rows,
            "opened": self.opened,
            "log_start": finite_or_none(self.log_start),
            "log_restarts": finite_or_none(self.log_restarts),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Read :meth:`state` back."""
        self.block, self.rows = int(state["block"]), int(state["rows"])
        self.opened = int(state["opened"])
        self.log_start = from_finite(state["log_start"])
        self.log_restarts = from_finite(state["log_restarts"])
        if not self.log_start.shape == self.log_restarts.shape == self.weights.shape:
            raise ValueError("the evidence has another number of alternatives")

    def give_up(self, lost: Any) -> None:
        """Set the capital of some alternatives to 0."""
        self.log_start = np.where(lost, -np.inf, self.log_start)
        self.log_restarts = np.where(lost, -np.inf, self.log_restarts)

    def pieces(self, rows: int) -> Any:
        """Where to cut the next ``rows`` rows so that restarts lie on cuts: ``[0, ..., rows]``."""
        first = -self.rows % self.block
        inner = np.arange(first, rows, self.block)
        return np.unique(np.concatenate([[0], inner, [rows]])).astype(np.int64)

    def advance(self, cuts: Any, start: Floats, restarts: Floats | None = None) -> Floats:
        """Add the log ratios of consecutive pieces of rows.

        Args:
            cuts: From :meth:`pieces`.
            start: ``[pieces, j]``: each piece's log ratio, for breaks at the first row.
            restarts: The same for breaks at restarts; by default ``start``.

        Returns:
            The logarithm of the evidence after each piece.
        """
        after = start if restarts is None else restarts
        number = (self.rows + cuts[:-1]) // self.block
        opens = np.diff(number, prepend=self.opened) > 0
        with np.errstate(divide="ignore"):
            entering = np.where(opens, np.log(restart_weight(np.maximum(number, 1))), -np.inf)
        total = np.cumsum(after, axis=0)
        before = np.concatenate([np.zeros_like(total[:1]), total[:-1]])
        sums = np.concatenate([self.log_restarts[None], entering[:, None] - before])
        path = np.logaddexp.accumulate(sums, axis=0)[1:] + total
        starts = self.log_start + np.cumsum(start, axis=0)
        self.rows += int(cuts[-1])
        if len(path):
            self.opened = int(number[-1])
            self.log_start, self.log_restarts = starts[-1], path[-1]
        return np.asarray(log_mixture(starts, path, number, self.weights))


def odds_times(share: Any, factor: Any) -> Any:
    """The share whose odds are ``factor`` times those of ``share``."""
    return factor * share / (1 - share + factor * share)


def bets_of(limit: Any, factors: Any = FACTORS) -> Floats:
    """The bet of each alternative on the *excess* of a row over ``limit``.

    The excess of an event is ``1 - limit``, that of another relevant row ``-limit``. A bet
    multiplies the capital by ``1 + bet * excess``; with these bets that is the likelihood ratio of
    odds that are ``factors`` times those of ``limit``.
    """
    return np.asarray((odds_times(limit, factors) - limit) / (limit * (1 - limit)))


def bernoulli_gains(events: Any, rows: Any, limit: float, factors: Floats = FACTORS) -> Floats:
    """The log ratios ``[..., j]`` of ``events`` among ``rows`` to a share of ``limit``.

    If the true share is at most ``limit``, the ratio of every alternative above it has a mean of at
    most 1.
    """
    bets = bets_of(limit, factors)
    events, rows = np.asarray(events, float)[..., None], np.asarray(rows, float)[..., None]
    return np.asarray(
        events * np.log1p(bets * (1 - limit)) + (rows - events) * np.log1p(-bets * limit)
    )


def weighted_gains(bets: Any, excess: Any, scales: Any) -> Floats:
    """The log gains ``[n, ...]`` of bets ``[...]`` on rows with any excess ``[n]``.

    If the mean excess of a row is at most 0, ``1 + bet * scale * excess`` has a mean of at most 1.
    Excesses may be means over a cluster, costs, or divided by the probability with which the label
    was to be known. Scales must be known before the row.
    """
    shape = (-1,) + (1,) * np.ndim(bets)
    scaled = np.asarray(scales) * np.asarray(excess)
    return np.asarray(np.log1p(np.asarray(bets) * scaled.reshape(shape)))


def overdrawn(bets: Any, limit: Any, scale: float, least_share: float) -> NDArray[np.bool_]:
    """Which bets could lose all on a row whose label was to be known with ``least_share``.

    They are given up: their capital is 0 from then on. That keeps the mean at most 1 if it is done
    whatever the label is, since the excess of a row is at least ``-limit`` on average over the
    draw of labels, and ``bet * limit < 1``.
    """
    most = np.where(np.asarray(bets) > 0, limit, 1 - np.asarray(limit)) * np.abs(bets)
    return np.asarray(most * scale / least_share >= MOST_LOST)


def tempered(bets: Any, limit: Any, weight: float) -> Floats:
    """Bets on rows of up to a weight, made smaller where one row could take too much.

    It may take a quarter of the capital, or what a row of weight 1 takes.
    """
    most = np.where(np.asarray(bets) > 0, limit, 1 - np.asarray(limit)) * np.abs(bets)
    return np.asarray(bets * np.minimum(1.0, np.maximum(1.0, 0.25 / most) / weight))


def confidence_sequence(events: Any, rows: Any, delta: Any) -> tuple[Any, Any]:
    """An interval for a constant share that holds at all times at once, but for ``delta``.

    The shares whose likelihood ratio to a Beta(1/2, 1/2) mixture has not reached ``1 / delta``
    (Robbins 1970). All arguments may be arrays.

    Examples:
        >>> low, high = confidence_sequence(18, 1000, 0.05)
        >>> round(float(low), 4), round(float(high), 4)
        (0.0066, 0.0379)
    """
    k, n, delta = (np.asarray(x, float) for x in np.broadcast_arrays(events, rows, delta))
    floor = betaln(k + 0.5, n - k + 0.5) - betaln(0.5, 0.5) + np.log(delta)
    low, other = expit(_least_log_odds(np.stack([k, n - k]), n, floor))
    return np.where(k <= 0, 0.0, low), np.where(k >= n, 1.0, 1 - other)


def _least_log_odds(events: Floats, rows: Floats, floor: Floats) -> Floats:
    """Where ``events * u - rows * log(1 + exp(u))`` rises to ``floor``, by Newton's method.

    The function is concave and below its left asymptote ``events * u``: steps that begin where
    that is ``floor`` never pass the root, so that an end is outside of the interval if anything.
    """
    events = np.maximum(events, 1e-300)
    found = floor / events
    for _ in range(60):
        value = events * found - rows * np.logaddexp(0, found)
        slope = np.maximum(events - rows * expit(found), 1e-300)
        step = np.where(value < floor, (floor - value) / slope, 0.0)
        found = found + step
        if (step <= 1e-12 * np.abs(found)).all():
            break
    return np.asarray(found)


def moments(events: Floats, relevant: Floats, number: Any = 1.0) -> Floats:
    """What :func:`ratio_sequence` needs of rows: five sums."""
    products = events, relevant, events**2, events * relevant, relevant**2
    return np.array([float((number * each).sum()) for each in products])


def ratio_sequence(sums: Floats, largest: float, delta: float) -> tuple[float, float]:
    """An interval for a ratio of means that holds at all times at once, but for ``delta``.

    A bet multiplies the capital by ``1 + bet * excess``; ``excess = event - share * relevant`` of a
    row is at least ``-share * largest``. Fan, Grama and Liu (2015) bound the logarithm from below
    by ``bet * excess - c * (bet * excess)**2`` with ``c = (-log(1 - x) - x) / x**2`` and
    ``x = bet * share * largest``, whose sum over rows is a function of five sums. A share is too
    small once the average over bets has reached ``2 / delta``, too large once that of the rest has;
    with bets up to ``0.9 / largest`` every smaller one is too small then, too.

    Args:
        sums: From :func:`moments`, of ``0 <= events <= relevant <= largest``.
        largest: Known before the labels of any row.
        delta: The chance that the ratio is ever outside.
    """
    e, r, ee, er, rr = sums
    if r <= 0:
        return 0.0, 1.0
    low = _least_ratio(sums, largest, delta)
    return low, 1.0 - _least_ratio(
        np.array([r - e, r, rr - 2 * er + ee, rr - er, rr]), largest, delta
    )


def _least_ratio(sums: Floats, largest: float, delta: float) -> float:
    """The largest share that is too small, to 1 in 60,000 of the ratio."""
    e, r, ee, er, rr = sums
    low, high, bets = 0.0, min(max(e / r, 0.0), 1.0), _BETS[:, None] / largest
    for _ in range(3):
        shares = np.linspace(low, high, 40)
        lost = _BETS[:, None] * shares
        factor = np.where(lost < 1e-4, 0.5 + lost / 3, _fan(np.maximum(lost, 1e-4)))
        squares = ee - 2 * shares * er + shares**2 * rr
        capital = bets * (e - shares * r) - factor * bets**2 * squares
        small = np.logaddexp.reduce(capital, axis=0) >= np.log(2 * len(_BETS) / delta)
        last = int(np.flatnonzero(np.append(True, small[1:]))[-1])
        low, high = shares[last], shares[min(last + 1, 39)]
    return float(low)


def _fan(lost: Floats) -> Floats:
    return np.asarray((-np.log1p(-lost) - lost) / lost**2)
