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
from scipy.special import betaln, xlog1py, xlogy

from setpoint.axes.arrays import Floats

COARSE = {1.6: 0.15, 3.3: 0.52, 6.0: 0.20}
FINE = {1.05: 0.03, 1.1: 0.04, 1.25: 0.06}
FACTORS = np.array([*COARSE, *FINE])
"""By how much the odds of an unwanted event are multiplied in each alternative."""
WEIGHTS = np.array([*COARSE.values(), *FINE.values()])
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


@dataclass
class Evidence:
    """The average of likelihood ratios over alternatives and over restarts, row by row.

    Attributes:
        weights: Of the alternatives, ``[j]``.
        block: How many rows lie between two restarts.
        rows: How many rows were seen.
        log_start: See :func:`log_mixture`.
        log_restarts: The same.
    """

    weights: Floats
    block: int
    rows: int = 0
    log_start: Floats = field(default_factory=lambda: np.zeros(0))
    log_restarts: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not len(self.log_start):
            self.log_start = np.zeros(len(self.weights))
            self.log_restarts = np.full(len(self.weights), -np.inf)

    @property
    def log_value(self) -> float:
        """The logarithm of the evidence now."""
        restarts = max(0, (self.rows - 1) // self.block)
        return float(log_mixture(self.log_start, self.log_restarts, restarts, self.weights))

    def state(self) -> dict[str, Any]:
        """Plain numbers for JSON; a logarithm of zero is None."""
        return {
            "block": self.block,
            "rows": self.rows,
            "log_start": self.log_start.tolist(),
            "log_restarts": [x if np.isfinite(x) else None for x in self.log_restarts.tolist()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Read :meth:`state` back."""
        self.block, self.rows = int(state["block"]), int(state["rows"])
        self.log_start = np.array(state["log_start"], float)
        past = [-np.inf if x is None else x for x in state["log_restarts"]]
        self.log_restarts = np.array(past, float)
        if not self.log_start.shape == self.log_restarts.shape == self.weights.shape:
            raise ValueError("the evidence has another number of alternatives")

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
        begins = self.rows + cuts[:-1]
        opens = (begins > 0) & (begins % self.block == 0)
        number = begins // self.block
        with np.errstate(divide="ignore"):
            entering = np.where(opens, np.log(restart_weight(np.maximum(number, 1))), -np.inf)
        total = np.cumsum(after, axis=0)
        before = np.concatenate([np.zeros_like(total[:1]), total[:-1]])
        sums = np.concatenate([self.log_restarts[None], entering[:, None] - before])
        path = np.logaddexp.accumulate(sums, axis=0)[1:] + total
        starts = self.log_start + np.cumsum(start, axis=0)
        self.rows += int(cuts[-1])
        if len(path):
            self.log_start, self.log_restarts = starts[-1], path[-1]
        return np.asarray(log_mixture(starts, path, number, self.weights))


def odds_times(share: Any, factor: Any) -> Any:
    """The share whose odds are ``factor`` times those of ``share``."""
    return factor * share / (1 - share + factor * share)


def bernoulli_gains(events: Any, rows: Any, limit: float, factors: Floats = FACTORS) -> Floats:
    """The log ratios ``[..., j]`` of ``events`` among ``rows`` to a share of ``limit``.

    If the true share is at most ``limit``, the ratio of every alternative above it has a mean of at
    most 1. ``events`` may be a sum of numbers between 0 and 1 (means of clusters): the ratio is
    convex in each of them, hence below that of a biased coin with the same mean.
    """
    other = odds_times(limit, factors)
    yes, no = np.log(other / limit), np.log((1 - other) / (1 - limit))
    events, rows = np.asarray(events, float)[..., None], np.asarray(rows, float)[..., None]
    return np.asarray(events * yes + (rows - events) * no)


def weighted_gains(
    excess: Any, least_share: float, limit: float, factors: Floats = FACTORS
) -> Floats:
    """The log gains ``[n, j]`` of bets on rows whose labels were drawn with known shares.

    ``excess`` is ``(event - limit * relevant) / share`` of a labelled row and 0 of every other: its
    mean is at most 0 if the share of events among relevant rows is at most ``limit``. A bet
    multiplies the capital by ``1 + bet * excess``, a supermartingale for every fixed bet that keeps
    it positive; the smallest ``share`` bounds the bets.
    """
    other = odds_times(limit, factors)
    bets = least_share * (other - limit) / (limit * (1 - limit))
    return np.asarray(np.log1p(np.asarray(excess, float)[..., None] * bets))


def confidence_sequence(events: float, rows: float, delta: float) -> tuple[float, float]:
    """An interval for a constant share that holds at all times at once, but for ``delta``.

    The shares whose likelihood ratio to a Beta(1/2, 1/2) mixture has not reached ``1 / delta``
    (Robbins 1970). For means of clusters it holds all the same, see :func:`bernoulli_gains`.

    Examples:
        >>> low, high = confidence_sequence(18, 1000, 0.05)
        >>> round(low, 4), round(high, 4)
        (0.0066, 0.0379)
    """
    if rows <= 0:
        return 0.0, 1.0
    k, n = float(events), float(rows)
    mixture = betaln(k + 0.5, n - k + 0.5) - betaln(0.5, 0.5)
    floor = mixture + np.log(delta)

    def root(inside: float, outside: float) -> float:
        for _ in range(60):
            middle = (inside + outside) / 2
            plausible = xlogy(k, middle) + xlog1py(n - k, -middle) > floor
            inside, outside = (middle, outside) if plausible else (inside, middle)
        return outside

    measured = k / n
    low = 0.0 if k == 0 else root(measured, 0.0)
    return low, (1.0 if k == n else root(measured, 1.0))
