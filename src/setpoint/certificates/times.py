"""When rows were measured: the period of a certificate, and rates by day, month or year.

Times are dates (ISO texts, datetimes, numpy or pandas) or numbers; numbers that look like seconds
(or thousandths, millionths, billionths of them) since 1970 are dates. A certificate of rows with
times says from when to when they were measured, and whether they drift meanwhile
(:mod:`setpoint.certificates.calibration_drift`): if they do, what it assumes is false.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import check_unmasked, to_numpy
from setpoint.batch import check_length
from setpoint.certificates.decisions import rounded
from setpoint.certificates.goals import goal_to_certify
from setpoint.certificates.regions import interval_at
from setpoint.certificates.sample import CalibrationSample, sample_of, scores_and_precision
from setpoint.certificates.text import share_text, value_text
from setpoint.rates import Bound, numeral
from setpoint.tables.values import DATE_ORDERS, NumberFormat, date_format

if TYPE_CHECKING:
    from setpoint.certificates.certificate import Certificate

PERIODS = {"hour": "h", "day": "D", "week": "W", "month": "M", "quarter": "M", "year": "Y"}
"""What rows with dates are put together by, with numpy's unit."""
_EPOCH_SECONDS = (1e9, 4.2e9)
"""Seconds since 1970 of the years 2001 to 2103."""


def read_times(
    times: Any, scores: Any = None, name: str = "times", order: str | None = None
) -> NDArray[Any]:
    """Times as numbers, or as dates to the second; one for each score, if scores are given.

    Args:
        times: Numbers, datetimes or texts.
        scores: As many as there must be times.
        name: What they are called in errors.
        order: ``"day/month"`` or ``"month/day"``, of dates like 03/04/2024 that may be either.

    Raises:
        ValueError: A time is missing, can be read neither as a date nor as a number, or may be two
            dates.

    Examples:
        >>> read_times([1709251202, 1709337602]).tolist()[0].isoformat()  # seconds since 1970
        '2024-03-01T00:00:02'
    """
    check_unmasked(times, name)
    array = np.asarray(times.detach().cpu() if hasattr(times, "detach") else times)
    if scores is not None:
        check_length(array, scores, name)
    if array.dtype.kind not in "iubfM":
        array = _read_texts(array, name, order)
    array = array.astype("datetime64[s]") if array.dtype.kind == "M" else _dates_of(array)
    missing = ~np.isfinite(array)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"{name} has no time in row {row}: fill it in, or leave the row out.")
    return np.asarray(array)


def times_of_rows(times: Any, sample: CalibrationSample) -> NDArray[Any]:
    """The times of the rows that have a label.

    Raises:
        ValueError: All have one time.
    """
    when = read_times(times, sample.scores if sample.kept is None else sample.kept)
    when = when if sample.kept is None else when[sample.kept]
    if when.min() == when.max():
        raise ValueError(
            f"All rows to certify on have one time, {when.min()}: there is no earlier and later to "
            "compare. Pass finer times (dates, not years), or leave times= out."
        )
    return when


def _dates_of(numbers: NDArray[Any]) -> NDArray[Any]:
    """Dates, if all are seconds since 1970 (or thousandths, millionths ...); else floats."""
    array = numbers.astype(float)
    low, high = _EPOCH_SECONDS
    for unit in (1.0, 1e3, 1e6, 1e9):
        if len(array) and array.min() >= low * unit and array.max() < high * unit:
            return np.asarray(np.floor(array / unit).astype("datetime64[s]"))
    return array


def _read_texts(array: NDArray[Any], name: str, order: str | None) -> NDArray[Any]:
    """Numbers if all texts are, else dates."""
    texts, which = np.unique(array.astype(str), return_inverse=True)
    try:
        return np.asarray(texts.astype(float)[which.reshape(-1)])
    except ValueError:
        pass
    there = [str(text) for text in texts if text != "NaT"]
    known = _agreed_format(there, name, order)
    days = [np.nan if text == "NaT" else known.number(str(text)) for text in texts]
    if None in days:
        unread = np.array([day is None for day in days])
        wrong = int(np.argmax(unread[which.reshape(-1)]))
        raise ValueError(
            f"{name} has {str(array[wrong])!r:.40} in row {wrong}: write ISO dates (2024-01-31, "
            "2024-01-31 12:00), 31.01.2024, 1/31/2024, or numbers."
        )
    seconds = np.round(np.array(days, float) * 86400).astype("datetime64[s]")
    return np.asarray(seconds[which.reshape(-1)])


def _agreed_format(texts: list[str], name: str, order: str | None) -> NumberFormat:
    """The format of dates, once it is clear which number is the month."""
    known = date_format(texts)
    if known not in DATE_ORDERS.values():
        return known
    if order is not None:
        return DATE_ORDERS[order]
    read = {key: [each.number(text) for text in texts] for key, each in DATE_ORDERS.items()}
    first, second = read.values()
    if first != second and None not in first and None not in second:
        text = next(text for text, a, b in zip(texts, first, second, strict=True) if a != b)
        raise ValueError(
            f"{name} may be day/month or month/day: all are like {text}. Write ISO dates "
            "(2024-01-31); `setpoint watch` takes --dates day/month or --dates month/day."
        )
    return known


def period_units(times: NDArray[Any], by: str) -> NDArray[Any]:
    """The period of each row: a date, or the whole part of a number."""
    if times.dtype.kind != "M":
        return np.asarray(np.floor(times).astype(np.int64))
    periods = times.astype(f"datetime64[{PERIODS[by]}]")
    if by == "quarter":
        periods = periods - periods.astype(int) % 3
    if by == "week":  # named by its Monday; weeks of numpy begin on Thursdays, as 1970 did
        days = times.astype("datetime64[D]")
        periods = days - (days.astype(int) + 3) % 7
    return np.asarray(periods)


def period_names(times: NDArray[Any], by: str) -> NDArray[Any]:
    """The name of each row's period."""
    units, which = np.unique(period_units(times, by), return_inverse=True)
    return np.asarray(units.astype(str)[which.reshape(-1)])


def period_of(times: NDArray[Any]) -> tuple[str, str]:
    """The first and the last time, in words."""
    return time_text(times.min()), time_text(times.max())


def later(times: NDArray[Any], end: str) -> bool:
    """Whether all times are after ``end``, a time as :func:`period_of` tells it."""
    last = read_times(np.array([end]))
    return times.dtype.kind != last.dtype.kind or bool((times > last[0]).all())


def time_text(time: Any) -> str:
    """``2024-01-31``, with the time of day unless it is midnight; numbers as they are."""
    if time.dtype.kind != "M":
        return numeral(float(time))
    return str(np.datetime_as_string(time, unit="s")).removesuffix("T00:00:00").replace("T", " ")


@dataclass(frozen=True)
class PeriodRate:
    """The rate of one bound in one period, with a two-sided interval of the given confidence."""

    period: str
    rows: int
    alerts: float
    bound: str
    value: float | None
    low: float | None
    high: float | None

    def __str__(self) -> str:
        text = f"{self.period}: {self.rows:,} rows, {share_text(self.alerts)} accepted"
        if self.value is None or self.low is None or self.high is None:
            return f"{text}; {self.bound}: nothing to measure it by"
        ends = (self.value, self.low, self.high)
        value, low, high = (value_text(self.bound, end) for end in ends)
        return f"{text}; {self.bound}: {value} ({low} to {high})"


def rates_by_period(
    certificate: Certificate,
    scores: Any,
    labels: Any,
    times: Any,
    unit: str,
    ids: Any = None,
    clusters: Any = None,
    amounts: Any = None,
) -> Iterator[PeriodRate]:
    """The certified rates in each day, week, month, quarter or year.

    Of clusters they are means over those of the period, with intervals from one row of each.

    Args:
        certificate: With one threshold for everyone, and bounds that name no group.
        scores: Of the rows to look at.
        labels: Theirs.
        times: When they were measured.
        unit: A key of :data:`PERIODS`.
        ids: The id of each row, if ties are broken by lot.
        clusters: What each row belongs to, if the certificate is about clusters.
        amounts: What each row is worth, if costs go by amounts.
    """
    from setpoint.certificates.clusters import ClusterSample, cluster_codes
    from setpoint.certificates.costs import with_amounts

    scores = certificate.resolve_ties(scores, ids) if certificate.lots else scores
    array = rounded(scores_and_precision(scores)[0], certificate.dtype)
    when = read_times(times, array)
    if when.dtype.kind != "M":
        raise ValueError(f"Rates by {unit} need dates; times are numbers.")
    every = sample_of(array, certificate.dtype, labels, {}, None)
    kept = np.ones(len(array), bool) if every.kept is None else every.kept
    when = when[kept]
    codes = None if certificate.clusters is None else cluster_codes(clusters)[kept]
    goal = goal_to_certify(certificate.goal)
    bounds = [b for b in goal.bounds if not _names_groups(b)]
    largest = certificate.largest_amount
    if largest is not None and amounts is None:
        raise ValueError("The certificate is about costs by amounts: pass amounts=.")
    worth = None if largest is None else np.minimum(to_numpy(amounts, "amounts"), largest)[kept]
    tail = (1 - certificate.confidence) / 2
    periods = period_names(when, unit)
    for period in np.unique(periods):
        inside = periods == period
        part, rows = every.rows(inside), int(inside.sum())
        if codes is not None:
            part = ClusterSample(part, np.unique(codes[inside], return_inverse=True)[1])
        seen = part.measured((), certificate.threshold)
        accepted = float((seen.tp + seen.fp) / (seen.positives + seen.negatives))
        if worth is not None:
            part = with_amounts(part, goal, worth[inside], largest)
        for bound in bounds:
            told = _measured(bound, part, certificate.threshold, tail)
            yield PeriodRate(str(period), rows, accepted, str(bound), *told)


def _measured(
    bound: Bound, part: CalibrationSample, threshold: float, tail: float
) -> tuple[float | None, float | None, float | None]:
    """The value of a bound's rate on some rows, with an interval; None where there is none."""
    expression = bound.expression
    if part.prices(expression):
        low, high = part.cost_bounds(expression, threshold, tail)
        return float(part.values(expression, threshold)), low, high
    with np.errstate(all="ignore"):
        value = float(expression.of({(): part.measured((), threshold)}))
    if not np.isfinite(value):
        return None, None, None
    return value, *(interval_at(expression, {(): part.table((), threshold)}, tail) or (None, None))


def _names_groups(bound: Any) -> bool:
    return any(rate.where for rate in bound.expression.rates())
