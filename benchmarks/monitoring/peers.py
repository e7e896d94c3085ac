"""Other monitors on the same streams; needs mapie and river, and nothing of setpoint.

python -m benchmarks.monitoring.peers --runs 40 --rows 40000      # prints JSON
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version

import numpy as np
from mapie.exchangeability_testing import RiskMonitoring
from river import drift

from benchmarks.common import results

BEFORE = 20_000
"""Negatives at the promised rate that detectors of changes see first."""


def mapie(events: np.ndarray, limit: float, *, default: bool = False) -> float:
    """MAPIE's lower bound of the risk, with the limit set by hand or as it is by default."""
    negatives, flagged = np.zeros(len(events), int), events.astype(int)
    if default:
        reference = (np.random.default_rng(1).random(BEFORE) < 0.007).astype(int)
        monitor = RiskMonitoring("fpr", warn=False)
        monitor.compute_threshold(np.zeros(BEFORE, int), reference)
    else:
        monitor = RiskMonitoring("fpr", threshold=limit, warn=False)
    monitor.update(negatives, flagged)
    above = monitor.online_risk_lower_bound_sequence_history > monitor.threshold
    return float(np.argmax(above) + 1) if above.any() else float("inf")


def river(events: np.ndarray, limit: float, make: object) -> float:
    """A detector of changes after negatives at the promised rate."""
    detector = make()
    for x in np.random.default_rng(int(events.sum())).random(BEFORE) < limit:
        detector.update(float(x))
    for row, x in enumerate(events, start=1):
        detector.update(float(x))
        if detector.drift_detected:
            return float(row)
    return float("inf")


WAYS = {
    "MAPIE, limit set by hand": lambda e, p: mapie(e, p),
    "MAPIE, default": lambda e, p: mapie(e, p, default=True),
    "ADWIN": lambda e, p: river(e, p, drift.ADWIN),
    "Page-Hinkley": lambda e, p: river(e, p, lambda: drift.PageHinkley(mode="up")),
    "Page-Hinkley, tuned": lambda e, p: river(
        e, p, lambda: drift.PageHinkley(delta=0.002, threshold=12, alpha=1.0, mode="up")
    ),
}


def main() -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--limit", type=float, default=0.01)
    parser.add_argument(
        "--shares", type=float, nargs="+", default=[0.01, 0.0125, 0.015, 0.02, 0.03]
    )
    given = parser.parse_args()
    found = {"versions": {name: version(name) for name in ("mapie", "river")}, "rows": given.rows}
    for share in given.shares:
        for name, way in WAYS.items():
            delays = []
            runs = max(2, given.runs // 4) if "MAPIE" in name else given.runs  # it takes seconds
            for seed in range(runs):
                events = np.random.default_rng([seed, 5]).random(given.rows) < share
                delays.append(way(events, given.limit))
            alarmed = float(np.isfinite(delays).mean())
            middle = float(np.median(delays))
            found[f"{name} | {share:g}"] = [alarmed, middle if np.isfinite(middle) else None]
            print(name, share, alarmed, middle, file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
