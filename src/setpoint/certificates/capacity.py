"""At most ``k`` alerts a day, on 95 % of days: a threshold from rows with times.

A day has more than ``k`` alerts at a threshold if and only if its ``(k + 1)``-th highest score lies
above. So the promise is about one number a day, and days are the independent draws: the bound "at
most 5 % of days lie above" is monotone in the threshold and is proved by an order statistic of
these numbers, like a cap on the share of alerts (:mod:`setpoint.certificates.order_statistics`).
Days with at most ``k`` rows cannot have more alerts; days without a row do not count.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint._checks import plural
from setpoint.certificates.calibration_drift import drift_caveat
from setpoint.certificates.certificate import Certificate, Claim, Point
from setpoint.certificates.decisions import halfway
from setpoint.certificates.drift import next_alerts
from setpoint.certificates.options import Options
from setpoint.certificates.proofs import CERTIFIED, INFEASIBLE, NOT_CERTIFIED
from setpoint.certificates.sample import (
    CalibrationSample,
    CannotPromise,
    calibration_sample,
)
from setpoint.certificates.tails import (
    allowed,
    allowed_on_average,
    needed,
    needed_on_average,
    upper,
)
from setpoint.certificates.text import useless
from setpoint.certificates.times import period_names, period_of, read_times
from setpoint.problems import Capacity


def certify_capacity(
    scores: Any,
    labels: Any,
    capacity: Capacity,
    asked: Options,
) -> Certificate:
    """A threshold with at most so many alerts in a period, on a share of the periods to come.

    Raises:
        CannotPromise: There are no times.
    """
    if asked.times is None:
        raise CannotPromise(
            f"`{capacity}` goes by time: pass times= (--time), when each row was measured."
        )
    sample = calibration_sample(scores, labels, None, ())
    if sample.kept is not None:  # alerts are alerts, with or without a label
        sample = calibration_sample(scores, None, None, ())
    when = read_times(asked.times, sample.scores)
    periods = period_names(when, capacity.period)
    values = next_alerts(sample.scores, periods, capacity.alerts)
    delta = asked.delta
    n, over, mean = len(values), 1 - capacity.share, asked.guarantee == "mean"
    m = allowed_on_average(n, over) if mean else allowed(n, over, delta)
    unit = capacity.period
    if m < 0:
        needs = needed_on_average(over) if mean else needed(over, delta)
        note = f"`{capacity}` needs {plural(needs or 0, unit)}, you have {n:,}"
        return _write(capacity, sample, when, None, INFEASIBLE, None, (note,), asked)
    threshold = halfway(float(np.sort(values)[n - m - 1]), np.sort(sample.scores), sample.precision)
    first = when[np.unique(periods, return_index=True)[1]]
    lowest = float(sample.scores.min())
    by_day = CalibrationSample(np.maximum(values, lowest), None, {}, sample.precision)
    drift = drift_caveat(by_day, first, threshold)
    if drift and not asked.accept_drift:
        return _write(capacity, sample, when, None, NOT_CERTIFIED, None, drift, asked)
    claim = Claim(
        str(capacity),
        float((values > threshold).mean()),
        (m + 1) / (n + 1) if mean else float(upper(m, n, delta)),
        f"{unit}s with more than {capacity.alerts:,} alerts, at most {m:,} of {n:,} {unit}s here",
    )
    made = _write(capacity, sample, when, threshold, CERTIFIED, claim, (), asked)
    return replace(made, caveats=(*made.caveats, *drift))


def _write(
    capacity: Capacity,
    sample: CalibrationSample,
    when: NDArray[Any],
    threshold: float | None,
    status: str,
    claim: Claim | None,
    notes: tuple[str, ...],
    asked: Options,
) -> Certificate:
    accepted = sample.scores > (np.inf if threshold is None else threshold)
    hits = None if sample.labels is None else int((accepted & sample.labels).sum())
    positives = None if sample.labels is None else int(sample.labels.sum())
    point = Point(None, threshold, len(accepted), positives, int(accepted.sum()), hits)
    unit = capacity.period
    return Certificate(
        goal=str(capacity),
        status=status,
        prevalence=None,
        dtype=sample.precision,
        column=None,
        points=(point,),
        claims=(Claim(str(capacity), None, None, "") if claim is None else claim,),
        objective=(),
        assumptions=(
            f"The {unit}s are independent draws from the {unit}s to come: no trend in scores or "
            f"in the number of rows a {unit}. A {unit} without rows does not count.",
            "The model was neither trained nor chosen on these rows."
            if asked.candidates == 1
            else f"Choosing among {asked.candidates} models on these rows is accounted for.",
            f"Decisions are score > threshold, with scores in {sample.precision}.",
        ),
        notes=notes,
        advice=() if status == CERTIFIED else (f"More {unit}s, more alerts, or a smaller share.",),
        caveats=tuple(useless((point,))) if status == CERTIFIED else (),
        fingerprint=sample.fingerprint,
        period=period_of(when),
        **asked.recorded,
    )
