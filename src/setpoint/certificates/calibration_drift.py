"""Do rows in the order of time look as if their order did not matter? Before a certificate is made.

A certificate assumes that calibration rows are drawn from what the threshold will meet. Rows that
drift while they are collected refute that. The first fifth is the reference; the later rows follow
one by one, as they would after deployment, and the evidence is that of the monitor
(:mod:`setpoint.certificates.polya_urn`): a conformal test martingale on the ranks of the scores,
of all rows and of each class, and on the share of positives. Each of these tests gets an equal
part of the chance of a false alarm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from setpoint._checks import share as check_share
from setpoint.axes.arrays import Floats
from setpoint.certificates.sample import (
    CalibrationSample,
    binary_labels,
    scores_and_precision,
)
from setpoint.certificates.text import share_text

DRIFTS = "these rows drift"
"""How the reason of a drift begins."""
PARTS = 5
FEWEST_TO_TEST = 50
"""Reference rows below which ranks are tested for a trend, and shares are not tested."""
_FEWEST_FOR_TREND = 20
_DRIFT = 0.001
"""The chance that rows without drift are refused as rows that drift."""
WORTH_NAMING = 0.15
"""A column is named if values of the last fifth beat those of the first by this much over half."""
_MOST_VALUES = 10
_MOST_IN_ORDER = 20_000
_USUAL_BETWEEN = 9.49
"""The 95 % quantile of chi-square with four degrees of freedom (Kruskal and Wallis)."""


@dataclass(frozen=True)
class Exchangeability:
    """Whether rows drift, with the evidence of each test and what the fifths look like."""

    drifts: bool
    significance: float
    evidence: dict[str, float]
    """By test the largest evidence against exchangeability; the logarithm to base e."""
    limit: float
    """The log evidence at which a test alarms."""
    alert_shares: tuple[float, ...]
    """The share of alerts in each fifth."""
    positive_shares: tuple[float, ...] | None
    """The share of positives in each fifth, if there are labels."""

    @property
    def reason(self) -> str:
        """One sentence: ``these rows drift: alert share 3 % in the first fifth, 31 % in ...``."""
        if not self.drifts:
            return "no drift found among these rows"
        first, last = (share_text(self.alert_shares[i]) for i in (0, -1))
        text = f"alert share {first} in the first fifth, {last} in the last"
        if self.positive_shares is not None and self.evidence.get("labels", 0) >= self.limit:
            first, last = (share_text(self.positive_shares[i]) for i in (0, -1))
            text += f"; positives {first} in the first fifth, {last} in the last"
        moved = [name for name, value in self.evidence.items() if value >= self.limit]
        return (
            f"{DRIFTS}: {text} (found in the {' and the '.join(moved)}); a certificate of "
            "the latest fifth is the one to use"
        )

    def __bool__(self) -> bool:
        return not self.drifts


def exchangeability(
    scores: Any,
    labels: Any = None,
    *,
    times: Any = None,
    threshold: float | None = None,
    significance: float = 0.01,
) -> Exchangeability:
    """Test whether rows drift with time.

    Args:
        scores: One score per row, from the earliest row to the latest.
        labels: 0 or 1 for each, if they are known.
        times: When each row came; by default rows are in the order of time. The order of rows of
            one time does not matter.
        threshold: Where alerts begin, for the words; by default the highest tenth of the first
            fifth.
        significance: The chance of an alarm if rows do not drift.

    Returns:
        True if no drift was found; ``reason`` says what was.

    Examples:
        >>> import numpy as np
        >>> random = np.random.default_rng(0)
        >>> scores = random.normal(size=4000)
        >>> bool(exchangeability(scores)), bool(exchangeability(scores + np.linspace(0, 1, 4000)))
        (True, False)
    """
    level = check_share(significance, "significance", ends=False)
    array = scores_and_precision(scores)[0].astype(float)
    known = None if labels is None else binary_labels(labels, array)
    random = _tie_breaker()
    if times is not None:
        order = order_of_time(times, random)
        array, known = array[order], None if known is None else known[order]
    found = {"scores": _rank_test(array, random)}
    if known is not None:
        found["labels"] = _share_test(known, level / 4)
        found["scores of negatives"] = _rank_test(array[~known], random)
        found["scores of positives"] = _rank_test(array[known], random)
    tests = {name: value for name, value in found.items() if value is not None}
    limit = float(np.log(max(len(tests), 1) / level))
    at = _usual_threshold(array) if threshold is None else threshold
    return Exchangeability(
        drifts=any(value >= limit for value in tests.values()),
        significance=level,
        evidence=tests,
        limit=limit,
        alert_shares=_by_part(array > at),
        positive_shares=None if known is None else _by_part(known),
    )


def _tie_breaker() -> np.random.Generator:
    """A generator with a fixed seed that orders equal scores and equal times.

    Its seed differs from those of simulations, whose rows would otherwise depend on that order.
    """
    return np.random.default_rng([5, 20, 31])


def order_of_time(times: Any, random: np.random.Generator) -> NDArray[np.intp]:
    """From the earliest row to the latest; rows of one time in a random order.

    What comes first in a file (often sorted by score, label or customer) says nothing of time.
    """
    array = np.asarray(times)
    return np.lexsort((random.random(len(array)), array))


def _rank_test(scores: Floats, random: np.random.Generator) -> float | None:
    """The largest log evidence that later scores rank differently; None for too few rows."""
    first = len(scores) // PARTS
    if first < FEWEST_TO_TEST:
        return _trend(scores, random)
    from setpoint.certificates.polya_urn import RankCells, rank_evidence

    cells = RankCells.of(scores[:first], random)
    return float(rank_evidence(cells.balls).add(cells.cells(scores[first:], random)).max())


def _trend(scores: Floats, random: np.random.Generator) -> float | None:
    """Minus the log p-value of Spearman's rank correlation with time, for few rows."""
    n = len(scores)
    if n < _FEWEST_FOR_TREND:
        return None
    ranks = np.argsort(np.lexsort((random.random(n), scores)))
    rho = float(np.corrcoef(ranks, np.arange(n))[0, 1])
    deviate = rho * np.sqrt((n - 2) / max(1 - rho**2, 1e-12))
    return -float(np.log(max(2 * stdtr(n - 2, -abs(deviate)), 1e-300)))


def _share_test(events: NDArray[np.bool_], level: float) -> float | None:
    """The largest log evidence that the share of events changes; None for too few rows."""
    first = len(events) // PARTS
    if first < FEWEST_TO_TEST:
        return None
    from setpoint.certificates.polya_urn import alert_evidence

    urn = alert_evidence(float(events[:first].sum()), first, level)
    return None if urn is None else float(urn.add(events[first:].astype(np.int64)).max())


def _usual_threshold(scores: Floats) -> float:
    return float(np.quantile(scores[: max(1, len(scores) // PARTS)], 0.9))


def _by_part(events: NDArray[np.bool_]) -> tuple[float, ...]:
    parts = np.array_split(events, PARTS)
    return tuple(float(part.mean()) if len(part) else float("nan") for part in parts)


def order_note(scores: Any, labels: Any, significance: float = 0.001) -> str | None:
    """A sentence if the order of rows matters, and nobody said that it is time's; else None.

    Rows that are sorted by label or by score say nothing. Of very many rows every tenth (or so) is
    looked at, and only if the fifths of the rows differ at first sight.
    """
    known = [np.asarray(each) for each in (scores, labels) if each is not None]
    columns = [x[:: max(1, len(x) // _MOST_IN_ORDER)].astype(float) for x in known]
    if not any(_fifths_differ(column) for column in columns):
        return None
    pairs = [(column[:-1], column[1:]) for column in columns]
    if any((one <= next_).all() or (one >= next_).all() for one, next_ in pairs):
        return None
    found = exchangeability(*columns, significance=significance)
    if not found.drifts:
        return None
    return (
        f"In the order they came {found.reason}. If that is the order of time, pass times= "
        "(--time COLUMN); if neighbours belong together, pass clusters= (--clusters COLUMN)"
    )


def _fifths_differ(values: Floats) -> bool:
    """Whether the mean ranks of the fifths differ more than those of 19 in 20 random orders do."""
    n = len(values)
    if n < _FEWEST_FOR_TREND:
        return False
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2)[places.reshape(-1)]
    parts = np.array_split(ranks, PARTS)
    between = sum(len(part) * (part.mean() - ranks.mean()) ** 2 for part in parts)
    return bool(between > _USUAL_BETWEEN * ranks.var())


@dataclass(frozen=True)
class MovingColumn:
    """A column whose values move with time."""

    name: str
    first: str
    """What is typical in the first fifth."""
    last: str
    extrapolates: bool
    """Whether most values of the last fifth lie outside those of the first."""

    def __str__(self) -> str:
        text = f"{self.name}: {self.first} in the first fifth, {self.last} in the last"
        return f"{text}; the model extrapolates" if self.extrapolates else text


def moving_columns(
    columns: Mapping[str, Any], *, times: Any = None, significance: float = 0.01
) -> list[MovingColumn]:
    """The columns that move with time, those that move most first.

    Args:
        columns: Numbers (NaN: missing) or texts by name, from the earliest row to the latest.
        times: When each row came; by default rows are in the order of time.
        significance: The chance that any column is named although none moves.

    Examples:
        >>> import numpy as np
        >>> rate = np.repeat([4.8, 4.1, 3.0, 2.2, 1.3], 200)
        >>> age = np.random.default_rng(0).normal(40, 9, 1000)
        >>> [str(column) for column in moving_columns({"age": age, "euro rate": rate})]
        ['euro rate: 4.8 in the first fifth, 1.3 in the last; the model extrapolates']
    """
    level = check_share(significance, "significance", ends=False)
    order = None if times is None else order_of_time(times, _tie_breaker())
    limit = float(np.log(max(len(columns), 1) / level))
    found = []
    for name, values in columns.items():
        column = np.asarray(values) if order is None else np.asarray(values)[order]
        moved = _moved_number if column.dtype.kind in "biuf" else _moved_text
        found.append(moved(name, column, limit))
    there = [each for each in found if each is not None]
    return [column for _, column in sorted(there, key=lambda pair: -pair[0])]


def _moved_number(
    name: str, column: NDArray[Any], limit: float
) -> tuple[float, MovingColumn] | None:
    values = column.astype(float)
    values = values[np.isfinite(values)]
    evidence = _rank_test(values, _tie_breaker())
    if evidence is None or evidence < limit:
        return None
    parts = np.array_split(values, PARTS)
    first, last = np.sort(parts[0]), parts[-1]
    wins = (np.searchsorted(first, last, "left") + np.searchsorted(first, last, "right")) / 2
    effect = abs(float(wins.mean()) / len(first) - 0.5)
    if effect < WORTH_NAMING:
        return None
    low, high = np.quantile(first, [0.01, 0.99])
    beyond = float(np.mean((last < low) | (last > high)))
    early, late = (f"{float(np.median(part)):.3g}" for part in (first, last))
    return effect, MovingColumn(name, early, late, extrapolates=beyond > 0.5)


def _moved_text(name: str, column: NDArray[Any], limit: float) -> tuple[float, MovingColumn] | None:
    """The value whose share changes most, of the most frequent ones."""
    texts = column.astype(str)
    values, counts = np.unique(texts, return_counts=True)
    best: tuple[float, MovingColumn] | None = None
    for value in values[np.argsort(-counts)][:_MOST_VALUES]:
        events = texts == value
        level = float(np.exp(-limit) / _MOST_VALUES)
        evidence, shares = _share_test(events, level), _by_part(events)
        effect = abs(shares[-1] - shares[0])
        evident = evidence is not None and evidence >= limit + np.log(_MOST_VALUES)
        if evident and effect >= WORTH_NAMING and (best is None or effect > best[0]):
            first, last = (f"{share_text(shares[i])} {str(value)!r:.30}" for i in (0, -1))
            best = effect, MovingColumn(name, first, last, extrapolates=False)
    return best


def drift_caveat(
    sample: CalibrationSample, times: NDArray[Any], threshold: float | None = None
) -> tuple[str, ...]:
    """A caveat if rows drift from the first to the last; alerts begin at ``threshold``."""
    if sample.drawn is not None:  # rows of a cluster are alike: one of each
        times = times[sample.drawn]
    found = exchangeability(
        sample.scores, sample.labels, times=times, threshold=threshold, significance=_DRIFT
    )
    return () if found else (found.reason,)
