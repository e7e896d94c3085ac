"""Real streams in the order of time: when the monitor alarms, and what a user loses without it.

The first 40 % of the rows train a model, the next 20 % certify a threshold, the rest is the stream.
The control has the same rows in random orders: it must stay silent, but for 5 % of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common.folder import path
from benchmarks.monitoring.simulate import alarmed
from benchmarks.monitoring.streams import alarms_of
from benchmarks.monitoring.urn_streams import urn_alarms
from setpoint.certificates import Certificate, certify, exchangeability

STREAMS = {"electricity": 0.05, "weather_aus": 0.05, "fraud_handbook_sim": 0.01}
"""The bound on FPR."""
MODELS = {
    "trees": lambda: HistGradientBoostingClassifier(random_state=0),
    "linear": lambda: make_pipeline(
        SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000)
    ),
}


def load(name: str) -> tuple[Any, Any, Any]:
    """Features, labels and a number that rises with time."""
    data = np.load(path(f"{name}/{name}.npz"))
    x, y = data["X"].astype(float), data["y"].astype(bool)
    if name == "weather_aus":
        time = data["date"].astype(float)
    elif name == "fraud_handbook_sim":
        time = data["day"].astype(float)
    else:
        time = np.arange(len(y)) // 48.0  # half hours
    order = np.argsort(time, kind="stable")
    return x[order], y[order], time[order]


@dataclass
class Stream:
    """What a model says of the rows that certify a threshold, and of those that come after.

    Attributes:
        limit: The bound on FPR.
        scores: Of all these rows.
        labels: The same.
        time: When each came.
        cut: How many of them certify.
    """

    limit: float
    scores: Any
    labels: Any
    time: Any
    cut: int

    @staticmethod
    def of(name: str, model: str, *, mixed: bool = False) -> Stream:
        """Train on the first 40 % of the rows; with ``mixed`` on a random 40 %."""
        x, y, time = load(name)
        if mixed:
            order = np.random.default_rng(0).permutation(len(y))
            x, y = x[order], y[order]
        first, second = int(0.4 * len(y)), int(0.6 * len(y))
        fitted = MODELS[model]().fit(x[:first], y[:first])
        scores = fitted.predict_proba(x[first:])[:, 1]
        return Stream(STREAMS[name], scores, y[first:], time[first:], second - first)

    def watch(self, *, days_as_clusters: bool = False) -> tuple[Certificate, dict[str, int]]:
        """The certificate, and by test after how many rows it alarms; looked at every day.

        With ``days_as_clusters`` rows of one day are one draw (half hours of a market, stations of
        a country): a day counts once, by the mean over its rows.
        """
        scores, labels, time, cut = self.scores, self.labels, self.time, self.cut
        certificate = certify(scores[:cut], labels[:cut], f"fpr <= {self.limit}")
        alarms: dict[str, int] = {}
        if not certificate:
            return certificate, alarms
        monitor = certificate.monitor(reference=scores[:cut])
        days = np.flatnonzero(np.concatenate([[True], np.diff(time[cut:]) > 0]))
        for part in np.split(np.arange(cut, len(labels)), days[1:]):
            clusters = time[part] if days_as_clusters else None
            monitor.update(scores[part], labels[part], times=time[part], clusters=clusters)
            for test in monitor.alarms:
                alarms.setdefault(test, int(part[-1] - cut + 1))
        return certificate, alarms


def in_time(stream: Stream, *, days_as_clusters: bool = False) -> dict[str, Any]:
    """What is certified, when it alarms, and what the false positive rate was."""
    cut, limit = stream.cut, stream.limit
    known = stream.scores[:cut], stream.labels[:cut]
    before = exchangeability(*known, times=stream.time[:cut])
    certificate, alarms = stream.watch(days_as_clusters=days_as_clusters)
    rows = len(stream.labels) - cut
    found = {"rows": rows, "drift before": before.drifts, "status": certificate.status}
    if not certificate:
        return found
    alerts = stream.scores[cut:] > certificate.threshold
    negatives = ~stream.labels[cut:]
    quarters = np.array_split(np.arange(len(alerts)), 4)
    found["alarm after rows"] = alarms
    found["fpr by quarter"] = [float(alerts[q][negatives[q]].mean()) for q in quarters]
    at = min(alarms.values(), default=len(alerts))
    extra = (alerts & negatives)[at:].sum() - limit * negatives[at:].sum()
    found["false alarms beyond the promise after the alarm"] = round(max(0.0, float(extra)))
    return found


def first_alarms(stream: Stream, seed: int) -> tuple[dict[str, float], bool]:
    """After how many rows (of rates: negatives) each test alarms in a random order of the rows.

    It is looked at after every row, by the short cuts of the benchmark. The bool says whether the
    later rows do break the bound: one certificate in twenty may be wrong.
    """
    order = np.random.default_rng(seed).permutation(len(stream.labels))
    scores, labels = stream.scores[order], stream.labels[order]
    known, later = scores[: stream.cut], scores[stream.cut :]
    certificate = certify(known, labels[: stream.cut], f"fpr <= {stream.limit}")
    monitor = certificate.monitor(reference=known)
    monitor.expect(labelled=True)
    limits, ranks = monitor.limits, monitor.scores
    alerts = later > certificate.threshold
    events = alerts[~labels[stream.cut :]]
    rate = monitor.rates[0].name
    found = {rate: alarms_of(events[None], stream.limit, limits[rate])[0]}
    cells = ranks.cells.cells(later, np.random.default_rng(seed))
    for name, urn, where in (
        ("alerts", monitor.alerts[0].urn, alerts.astype(np.uint8)),
        ("scores", ranks.urn, cells.astype(np.uint8)),
    ):
        found[name] = urn_alarms(urn, where, math.exp(limits[name]), [1])[0]
    return {k: float(v) for k, v in found.items()}, bool(events.mean() > stream.limit)


def control(orders: int) -> Iterator[dict[str, Any]]:
    """In how many random orders of the rows of a table anything alarms; after every ten so far."""
    streams = {
        f"{name}, {model}": Stream.of(name, model, mixed=True)
        for name in STREAMS
        for model in MODELS
    }
    told: dict[str, list[tuple[dict[str, float], bool]]] = {key: [] for key in streams}
    for seed in range(1, orders + 1):
        for key, stream in streams.items():
            told[key].append(first_alarms(stream, seed))
        if seed % 10 == 0 or seed == orders:
            yield {key: _summary(alarms) for key, alarms in told.items()}


def _summary(told: list[tuple[dict[str, float], bool]]) -> dict[str, Any]:
    by_test = {test: alarmed(np.array([found[test] for found, _ in told])) for test in told[0][0]}
    every = np.array([min(found.values()) for found, _ in told])
    wrong = np.array([broken for _, broken in told])
    return {
        "orders": len(told),
        "any test": alarmed(every),
        **by_test,
        "orders whose later rows break the bound": int(wrong.sum()),
        "alarms in those": int(np.isfinite(every[wrong]).sum()),
        "rows until the alarms": sorted(every[np.isfinite(every)].tolist()),
    }


def main() -> Iterator[dict[str, Any]]:
    """Every stream, with both models, in the order of time."""
    found = {}
    for name in STREAMS:
        for model in MODELS:
            stream, key = Stream.of(name, model), f"{name}, {model}"
            found[f"{key}, in time"] = in_time(stream)
            if name != "fraud_handbook_sim":
                days = in_time(stream, days_as_clusters=True)
                found[f"{key}, in time, days as clusters"] = days
            yield found
