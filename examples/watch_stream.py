"""A certificate in production: a stream of parquet files, labels two days late, a break, a page.

Run it: python examples/watch_stream.py
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from setpoint import Monitor, certify
from setpoint.reports.watch_page import watch_page

PER_DAY = 2000
LATE = 2  # days until a label is known


def day_of_rows(day: int, random: np.random.Generator) -> pd.DataFrame:
    """Rows with scores, and labels that are not known yet; from day 12 on scores are higher."""
    fraud = random.random(PER_DAY) < 0.1
    scores = random.normal(size=PER_DAY) + 2.5 * fraud + 0.25 * (day >= 12)
    ids = [f"{day}-{i}" for i in range(PER_DAY)]
    return pd.DataFrame({"id": ids, "score": scores, "fraud": fraud})


def main() -> None:
    random = np.random.default_rng(0)
    calibration = day_of_rows(0, random)
    for _ in range(4):
        calibration = pd.concat([calibration, day_of_rows(0, random)])
    certificate = certify(calibration["score"], calibration["fraud"], "fpr <= 0.02")
    monitor = certificate.monitor(false_alarm=0.05, reference=calibration["score"])

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for day in range(25):
            day_of_rows(day, random).to_parquet(folder / f"{day:02d}.parquet")
        start = np.datetime64("2024-05-01")
        for day, file in enumerate(sorted(folder.glob("*.parquet"))):
            rows = pd.read_parquet(file, columns=["id", "score"])
            times = np.full(len(rows), start + day)
            status = monitor.update(rows["score"], ids=rows["id"], times=times)
            if day >= LATE:
                known = pd.read_parquet(folder / f"{day - LATE:02d}.parquet")
                status = monitor.add_labels(known["id"], known["fraud"])
            print(start + day, status)
            monitor = Monitor.from_json(monitor.to_json())  # what cron would keep in a file
            if monitor.verdict == "broken":
                break
        page = folder / "watch.html"
        page.write_text(watch_page(monitor), encoding="utf-8")
        print(f"the page has {page.stat().st_size:,} bytes")

    latest = pd.concat([day_of_rows(13, random) for _ in range(5)])
    renewed = monitor.recalibrate(latest["score"], latest["fraud"])
    print(f"recalibrated: score > {renewed.threshold:.3f} with {renewed.confidence:.1%} confidence")


if __name__ == "__main__":
    main()
