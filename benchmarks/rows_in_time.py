"""Real data in time order: promised and realised rates, by how calibration rows were chosen.

python -m benchmarks rows_in_time            # four tables, ten minutes of one core
python -m benchmarks rows_in_time --quick    # one draw of the two small tables
python -m benchmarks rows_in_time --table    # run nothing, print the table and draw the picture

The first 60 % of the rows are the past: boosted trees are trained and certified there, by
``CertifiedThreshold``, with rows drawn by lot, with whole clusters, in the order of time, or both.
The later rows are the future, month by month. A fifth of the clusters is kept out of the past
altogether: new customers (days) of the same months.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks.common import folder, results
from benchmarks.common.pages import DOCS, fill
from setpoint.estimators import CertifiedThreshold, CopiedRowsWarning, NotCertifiedWarning

FILE = results.RESULTS / "rows_in_time.jsonl"
PICTURE = folder.ROOT / "docs" / "images" / "rows_in_time.png"
PAST, NEW = 0.6, 0.2
WAYS = ("lot", "clusters", "time", "clusters and time")
QUICK = ("electricity", "fraud_oracle")


@dataclass
class RowsInTime:
    """Rows in the order of time, with the period of each, its cluster, and what is promised."""

    x: NDArray[Any]
    y: NDArray[Any]
    times: NDArray[Any]
    periods: NDArray[Any]
    clusters: NDArray[Any] | None
    level: float


def fraud_handbook() -> RowsInTime:
    """Simulated card payments of six weeks; clusters are customers."""
    z = np.load(folder.path("fraud_handbook_sim/fraud_handbook_sim.npz"))
    day = z["day"].astype(int)
    day -= day.min()
    weeks = np.array([f"week {1 + d // 7}" for d in day])
    return RowsInTime(z["X"], z["y"], day, weeks, z["customer_id"], 0.005)


def weather() -> RowsInTime:
    """Rain tomorrow at Australian stations; clusters are days, on which stations are alike."""
    z = np.load(folder.path("weather_aus/weather_aus.npz"))
    day = z["date"].astype(int)
    return RowsInTime(z["X"], z["y"], day, (day // 100).astype(str), day, 0.05)


def electricity() -> RowsInTime:
    """Price up or down every half hour; clusters are days, periods are 30 days."""
    z = np.load(folder.path("electricity/electricity.npz"))
    at = np.arange(len(z["y"]))
    periods = np.array([f"m{1 + i // 1440}" for i in at])
    return RowsInTime(z["X"], z["y"], at, periods, at // 48, 0.1)


def fraud_oracle() -> RowsInTime:
    """Insurance claims by year and month; every claim is a cluster of its own."""
    import pandas as pd

    table = pd.read_csv(folder.path("fraud_oracle/fraud_oracle.csv.gz"))
    months = [pd.to_datetime(name, format="%b").month for name in table["Month"]]
    when = table["Year"].to_numpy() * 100 + np.array(months)
    order = np.argsort(when, kind="stable")
    left = table.drop(columns=["FraudFound_P", "PolicyNumber", "Year"])
    x = np.column_stack([pd.factorize(left[name], sort=True)[0] for name in left])
    y = table["FraudFound_P"].to_numpy()
    return RowsInTime(x[order], y[order], when[order], when[order].astype(str), None, 0.1)


DATA = {
    "fraud_handbook_sim": fraud_handbook,
    "weather_aus": weather,
    "electricity": electricity,
    "fraud_oracle": fraud_oracle,
}


def main() -> None:
    parser = results.parser(__doc__, "table", "fresh", quick="a look", seeds=5, minutes=15.0)
    given = parser.parse_args()
    if given.fresh:
        FILE.unlink(missing_ok=True)
    if not given.table:
        names = QUICK if given.quick else tuple(DATA)
        seeds = 1 if given.quick else given.seeds
        loaded: dict[str, RowsInTime] = {}
        cells = [(n, way, seed) for n in names for seed in range(seeds) for way in WAYS]
        done = {(row["data"], row["way"], row["seed"]) for row in results.read(FILE)}
        for name, way, seed in results.pending(cells, done.__contains__, given.minutes):
            data = loaded.setdefault(name, DATA[name]())
            if data.clusters is not None or "clusters" not in way:
                row = {"data": name, "way": way, "seed": seed, **run(data, way, seed)}
                results.append(FILE, row, packages=("scikit-learn",))
                print(json.dumps({k: v for k, v in row.items() if k != "future"}), flush=True)
    rows = results.read(FILE)
    fill(DOCS / "rows.md", "table", table(rows))
    print(table(rows))
    if not given.quick:
        draw(rows)


def run(data: RowsInTime, way: str, seed: int) -> dict[str, Any]:
    """Train and certify on the past, and measure the rate on later rows and on new clusters."""
    random = np.random.default_rng(seed)
    past = np.arange(len(data.y)) < PAST * len(data.y)
    new = np.zeros(len(data.y), bool)
    if data.clusters is not None:
        names = np.unique(data.clusters)
        new = np.isin(data.clusters, random.choice(names, round(NEW * len(names)), replace=False))
    rows = np.flatnonzero(past & ~new)
    given: dict[str, Any] = {}
    if "clusters" in way and data.clusters is not None:
        given["clusters"] = data.clusters[rows]
    if "time" in way:
        given["order"] = data.times[rows]
    model = CertifiedThreshold(
        HistGradientBoostingClassifier(max_iter=100, random_state=seed),
        goal=f"fpr <= {data.level}",
        accept_drift=True,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CopiedRowsWarning)
        warnings.simplefilter("ignore", NotCertifiedWarning)
        model.fit(data.x[rows], data.y[rows], **given)
    certificate = model.certificate_
    assert certificate is not None
    later = {str(p): rate(model, data, ~past & (data.periods == p)) for p in periods(data, ~past)}
    return {
        "promised": data.level,
        "certified": certificate.certified,
        "drift found": any("drift" in caveat for caveat in certificate.caveats),
        "calibration rows": len(model.splits_["calibration"]),
        "new clusters": rate(model, data, past & new) if new.any() else None,
        "all later rows": rate(model, data, ~past),
        "future": later,
    }


def periods(data: RowsInTime, inside: NDArray[Any]) -> list[Any]:
    """The periods of some rows, in the order of time; very short ones are left out."""
    names, counts = np.unique(data.periods[inside], return_counts=True)
    first = {name: np.argmax(data.periods == name) for name in names}
    many = [name for name, count in zip(names, counts, strict=True) if count >= 100]
    return sorted(many, key=first.__getitem__)


def rate(model: CertifiedThreshold, data: RowsInTime, inside: NDArray[Any]) -> float:
    """The share of negatives that is accepted."""
    rows = np.flatnonzero(inside & (data.y == 0))
    return round(float(np.mean(model.predict(data.x[rows]) == 1)), 5)


def table(rows: list[dict[str, Any]]) -> str:
    """For each table and way the mean over draws."""
    lines = [
        "| data | promised fpr | calibration rows | certified | drift found | fpr, new clusters | "
        "fpr, later rows | months above the promise | worst month |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name in DATA:
        for way in WAYS:
            own = [row for row in rows if (row["data"], row["way"]) == (name, way)]
            if own:
                lines.append(_line(name, way, own))
    return "\n".join(lines)


def _line(name: str, way: str, own: list[dict[str, Any]]) -> str:
    promised = own[0]["promised"]
    later = np.array([list(row["future"].values()) for row in own])
    new = [row["new clusters"] for row in own if row["new clusters"] is not None]
    count = later.shape[1]
    above = float((later > promised).sum(1).mean())
    cells = (
        name,
        f"{100 * promised:g} %",
        way,
        f"{sum(row['certified'] for row in own)} of {len(own)}",
        f"{sum(row['drift found'] for row in own)} of {len(own)}",
        f"{100 * float(np.mean(new)):.2f} %" if new else "",
        f"{100 * float(np.mean([row['all later rows'] for row in own])):.2f} %",
        f"{above:.1f} of {count}",
        f"{100 * float(later.mean(0).max()):.2f} %",
    )
    return f"| {' | '.join(cells)} |"


def draw(rows: list[dict[str, Any]]) -> None:
    """The rate of every later period beside what was promised."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = [name for name in DATA if any(row["data"] == name for row in rows)]
    figure, axes = pyplot.subplots(2, 2, figsize=(9, 6), layout="constrained")
    colors = dict(zip(WAYS, ("#b35900", "#6639ba", "#0969da", "#1a7f37"), strict=True))
    for name, axis in zip(names, axes.flat, strict=False):
        for way in WAYS:
            own = [row for row in rows if (row["data"], row["way"]) == (name, way)]
            if own:
                later = np.array([list(row["future"].values()) for row in own])
                axis.plot(100 * later.mean(0), color=colors[way], label=way, lw=1.6)
        own = [row for row in rows if row["data"] == name]
        ticks = list(own[0]["future"])
        step = max(1, len(ticks) // 4)
        axis.set_xticks(range(0, len(ticks), step), ticks[::step], fontsize=8)
        axis.axhline(100 * own[0]["promised"], color="black", lw=1, ls="--")
        axis.set_ylim(bottom=0)
        axis.set_title(name, fontsize=10, loc="left")
        axis.set_ylabel("false alarms, %", fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    lines = axes.flat[0].get_lines()[: len(WAYS)]
    told = [f"calibration rows by {way}" for way in WAYS]
    figure.legend(lines, told, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
