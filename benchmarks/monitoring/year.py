"""A year of a drifting stream: how long the rate is above its bound, by what one does about it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from setpoint.certificates import certify

PER_DAY, LIMIT = 1000, 0.05
FRESH_DAYS = 5
"""Days of labelled rows that are collected after an alarm, to recalibrate on."""


def shift(day: int) -> float:
    """How far the scores have moved: a jump, a slow drift, and a way back."""
    return 0.3 * (day >= 60) + 0.5 * np.clip((day - 150) / 120, 0, 1) - 0.4 * (day >= 320)


def rows(random: np.random.Generator, n: int, moved: float) -> tuple[Any, Any]:
    """Scores and labels of rows with a tenth of positives."""
    labels = random.random(n) < 0.1
    return random.normal(size=n) + 2.5 * labels + moved, labels


def run(seed: int, way: str) -> tuple[float, float, int]:
    """The share of days above the bound, the mean recall, and how often it was recalibrated.

    Args:
        seed: Of the stream.
        way: ``"never"``, ``"after an alarm"`` or ``"every 30 days"``; the last is a rolling window
            that spends a twelfth of the confidence each time.
    """
    random = np.random.default_rng(seed)
    certificate = certify(*rows(random, 10_000, 0.0), f"fpr <= {LIMIT}")
    monitor = certificate.monitor(watch=["rates", "alerts"])
    broken, found, fresh = 0, [], []
    for day in range(365):
        moved = shift(day)
        threshold = monitor.certificate.threshold
        broken += norm.sf(threshold - moved) > LIMIT
        found.append(norm.sf(threshold - moved - 2.5))
        today = rows(random, PER_DAY, moved)
        alarmed = monitor.verdict != "holds"
        monitor.update(*today)
        if (way == "after an alarm" and alarmed) or way == "every 30 days":
            fresh.append(today)
        due = len(fresh) == (FRESH_DAYS if way == "after an alarm" else 30)
        if fresh and due:
            latest = fresh[-FRESH_DAYS:]
            columns = (np.concatenate(column) for column in zip(*latest, strict=True))
            monitor.recalibrate(*columns, spend=1 / 12.2 if way == "every 30 days" else None)
            fresh = []
    return broken / 365, float(np.mean(found)), len(monitor.spent)


def main(seeds: int) -> dict[str, Any]:
    """The mean of each over several streams."""
    found = {}
    for way in ("never", "after an alarm", "every 30 days"):
        each = np.array([run(seed, way) for seed in range(seeds)])
        share, recall, times = each.mean(0).tolist()
        found[way] = {"days above the bound": share, "recall": recall, "recalibrations": times}
    return found
