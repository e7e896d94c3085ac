"""Many streams of a certified rate at once: the evidence after every row, by our own formulas.

Between two events the evidence against an upper bound falls, so it is looked at after each event,
which are all the looks that matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.stats import binom

from setpoint.certificates.martingales import (
    FACTORS,
    WEIGHTS,
    bernoulli_gains,
    log_mixture,
    restart_weight,
)

Array = Any


def first_alarms(
    random: np.random.Generator,
    streams: int,
    rows: int,
    limit: float,
    log_alarm: float,
    shares: Any,
    every: int = 1,
) -> Array:
    """After how many relevant rows each stream alarms; infinity if it does not.

    Args:
        random: Where events come from.
        streams: How many.
        rows: The length of each, in relevant rows.
        limit: The certified share of events.
        log_alarm: The log evidence of an alarm.
        shares: ``[(rows, share), ...]``: the true share of events from one row to the next.
        every: Looks after so many rows; 1: after every row.
    """
    block = int(np.ceil(3 / limit))

    def draw(start: int) -> Array:
        share = next(s for until, s in shares if start < until)
        return random.random((streams, block), dtype=np.float32) < share

    return _alarms(
        (draw(start) for start in range(0, rows - block + 1, block)), block, limit, log_alarm, every
    )


def alarms_of(events: Array, limit: float, log_alarm: float, every: int = 1) -> Array:
    """The same for given events ``[streams, rows]``; the rows after the last whole block too."""
    block = int(np.ceil(3 / limit))
    parts = (events[:, start : start + block] for start in range(0, events.shape[1], block))
    return _alarms(parts, block, limit, log_alarm, every)


def _alarms(
    blocks: Iterable[Array], block: int, limit: float, log_alarm: float, every: int
) -> Array:
    found: Array = None
    for number, happened in enumerate(blocks):
        streams, size = happened.shape
        if found is None:
            found = np.full(streams, np.inf)
            log_start, log_restarts = (np.full((streams, len(FACTORS)), x) for x in (0.0, -np.inf))
        start = number * block
        if number:
            log_restarts = np.logaddexp(log_restarts, np.log(restart_weight(number)))
        which, place = np.nonzero(happened)
        sums = np.cumsum(happened, axis=1)
        place = np.minimum(((start + place) // every + 1) * every - start, size)  # the next look
        gains = bernoulli_gains(sums[which, place - 1], place, limit)
        value = log_mixture(log_start[which] + gains, log_restarts[which] + gains, number, WEIGHTS)
        hit = value >= log_alarm
        np.minimum.at(found, which[hit], start + place[hit])
        gains = bernoulli_gains(sums[:, -1], size, limit)
        log_start, log_restarts = log_start + gains, log_restarts + gains
        if np.isfinite(found).all():
            break
    return found


def daily_check(
    random: np.random.Generator, streams: int, days: int, per_day: int, limit: float,
    share: float, level: float,
) -> Array:  # fmt: skip
    """After how many rows an exact binomial test, once a day at ``level``, alarms."""
    events = random.binomial(per_day, share, (streams, days))
    alarm = binom.sf(events - 1, per_day, limit) < level
    first = np.where(alarm.any(1), alarm.argmax(1) + 1.0, np.inf)
    return first * per_day
