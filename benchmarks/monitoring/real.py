"""Real streams in the order of time: when the monitor alarms, and what a user loses without it.

The first 40 % of the rows train a model, the next 20 % certify a threshold, the rest is the stream.
The control has the same rows in random order: it must stay silent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common.folder import path
from setpoint.certificates import certify, exchangeability

STREAMS = {"electricity": 0.05, "weather_aus": 0.05, "fraud_handbook_sim": 0.01}
"""The bound on FPR."""
ORDERS = 5
"""Random orders of each stream: the control."""
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


def run(
    name: str, model: str, shuffled: int | None = None, days_as_clusters: bool = False
) -> dict[str, Any]:
    """One stream: what is certified, when it alarms, what the false positive rate was.

    Args:
        name: Of the table.
        model: Of :data:`MODELS`.
        shuffled: The control: all rows in a random order of this seed.
        days_as_clusters: Rows of one day are one draw (half hours of a market, stations of a
            country): a day counts once, by the mean over its rows.
    """
    x, y, time = load(name)
    if shuffled is not None:
        mixed = np.random.default_rng(shuffled).permutation(len(y))
        x, y = x[mixed], y[mixed]
    first, second = int(0.4 * len(y)), int(0.6 * len(y))
    fitted = MODELS[model]().fit(x[:first], y[:first])
    scores = fitted.predict_proba(x[first:])[:, 1]
    labels, time = y[first:], time[first:]
    cut = second - first
    limit = STREAMS[name]
    before = exchangeability(scores[:cut], labels[:cut])
    certificate = certify(scores[:cut], labels[:cut], f"fpr <= {limit}")
    found = {"rows": len(labels) - cut, "drift before": before.drifts, "status": certificate.status}
    if not certificate:
        return found
    monitor = certificate.monitor(reference=scores[:cut])
    alarms: dict[str, int] = {}
    days = np.flatnonzero(np.concatenate([[True], np.diff(time[cut:]) > 0]))
    for part in np.split(np.arange(cut, len(labels)), days[1:]):
        clusters = time[part] if days_as_clusters else None
        monitor.update(scores[part], labels[part], times=time[part], clusters=clusters)
        for test in monitor.alarms:
            alarms.setdefault(test, int(part[-1] - cut + 1))
    alerts = scores[cut:] > certificate.threshold
    negatives = ~labels[cut:]
    quarters = np.array_split(np.arange(len(alerts)), 4)
    found["alarm after rows"] = alarms
    found["fpr by quarter"] = [float(alerts[q][negatives[q]].mean()) for q in quarters]
    at = min(alarms.values(), default=len(alerts))
    extra = (alerts & negatives)[at:].sum() - limit * negatives[at:].sum()
    found["false alarms beyond the promise after the alarm"] = round(max(0.0, float(extra)))
    return found


def main() -> dict[str, Any]:
    """Every stream, with both models, in the order of time and at random."""
    found = {}
    for name in STREAMS:
        for model in MODELS:
            for order in (None, *range(ORDERS)):
                key = "in time" if order is None else f"random order {order}"
                found[f"{name}, {model}, {key}"] = run(name, model, order)
            if name != "fraud_handbook_sim":
                key = f"{name}, {model}, in time, days as clusters"
                found[key] = run(name, model, days_as_clusters=True)
    return found
