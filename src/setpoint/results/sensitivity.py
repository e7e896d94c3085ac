"""What a slightly different threshold would do: more alerts and more found, or fewer of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.rates import fpr, precision, recall
from setpoint.results.decisions import Margins
from setpoint.results.measured import Measured, measure, tables_of

FACTORS = (0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)


@dataclass(frozen=True)
class Neighbour:
    """One row of the table: a threshold and what it does to the data at hand."""

    threshold: float
    fpr: Measured
    recall: Measured
    precision: Measured
    alerts_per_1000: float
    chosen: bool


def sensitivity(
    margins: Margins,
    labels: Any,
    *,
    confidence: float = 0.95,
    factors: Sequence[float] = FACTORS,
) -> list[Neighbour]:
    """Rates at thresholds that raise ``factors`` times the alerts of the present one.

    The thresholds are scores of these data, from strict to loose; ties may merge some of them.

    Example:
        >>> scores, labels = np.arange(100.0), np.arange(100) >= 95
        >>> [s.alerts_per_1000 for s in sensitivity(Margins(scores, 89.0), labels)]
        [50.0, 70.0, 90.0, 100.0, 110.0, 120.0, 150.0, 200.0]
    """
    y = np.asarray(labels) == 1
    ordered = np.sort(margins.values)[::-1]
    alerts = int(margins.accepted.sum())
    if not np.isfinite(margins.cut):
        return []
    places = {min(len(ordered) - 1, int(max(alerts, 1) * factor)) for factor in factors}
    cuts = {float(ordered[place]) for place in places if place != alerts} | {margins.cut}
    rows: dict[int, Neighbour] = {}
    for cut in sorted(cuts, key=lambda c: (c != margins.cut, -c)):  # the chosen one wins a draw
        accepted = margins.values > cut
        rows.setdefault(int(accepted.sum()), _step(cut, accepted, y, confidence, margins.cut))
    return [rows[count] for count in sorted(rows)]


def _step(cut: float, accepted: Any, labels: Any, confidence: float, chosen: float) -> Neighbour:
    tables = tables_of(accepted, labels, {})
    return Neighbour(
        cut,
        measure(fpr, tables, confidence),
        measure(recall, tables, confidence),
        measure(precision, tables, confidence),
        1000 * float(accepted.mean()),
        cut == chosen,
    )
