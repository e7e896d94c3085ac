"""False alarms and delays of a monitor when labels are chosen, late, or both.

Rows are at the limit of the bound, or beyond it. What is labelled depends on the decision, on
chance and on the day; never on the true class. Every policy gives for a day of rows the delay in
days of each label; infinity: it never comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from setpoint.certificates import certify
from setpoint.monitoring import Monitor

NEVER = np.inf
Policy = Callable[[Any, Any, int], Any]


def everyone(random: Any, alerts: Any, day: int) -> Any:
    """All labels at once."""
    return np.zeros(len(alerts))


def alerts_only(random: Any, alerts: Any, day: int) -> Any:
    """Labels of alerts only."""
    return np.where(alerts, 0.0, NEVER)


def share_of_all(random: Any, alerts: Any, day: int) -> Any:
    """Labels of 30 % of all rows."""
    return np.where(random.random(len(alerts)) < 0.3, 0.0, NEVER)


def share_of_others(random: Any, alerts: Any, day: int) -> Any:
    """Labels of all alerts and of 30 % of the other rows."""
    return np.where(alerts | (random.random(len(alerts)) < 0.3), 0.0, NEVER)


def others_late(random: Any, alerts: Any, day: int) -> Any:
    """Labels of alerts at once, all others three days later."""
    return np.where(alerts, 0.0, 3.0)


def some_others_late(random: Any, alerts: Any, day: int) -> Any:
    """Labels of alerts at once, of 30 % of the other rows three days later."""
    late = np.where(random.random(len(alerts)) < 0.3, 3.0, NEVER)
    return np.where(alerts, 0.0, late)


def late_at_random(random: Any, alerts: Any, day: int) -> Any:
    """Every label after some days, two on average."""
    return random.geometric(1 / 3, len(alerts)) - 1.0


def alerts_in_the_end(random: Any, alerts: Any, day: int) -> Any:
    """All labels for ten days, then those of alerts only."""
    return (everyone if day < 10 else alerts_only)(random, alerts, day)


def by_turns(random: Any, alerts: Any, day: int) -> Any:
    """Another policy every ten days."""
    return POLICIES[list(POLICIES)[day // 10 % 4]](random, alerts, day)


POLICIES: dict[str, Policy] = {
    "all": everyone,
    "alerts only": alerts_only,
    "all alerts, 30 % of others": share_of_others,
    "30 % of all": share_of_all,
    "alerts at once, others 3 days late": others_late,
    "alerts at once, 30 % of others 3 days late": some_others_late,
    "late at random": late_at_random,
    "all for ten days, then alerts only": alerts_in_the_end,
    "by turns": by_turns,
}


def certificate_at(goal: str, alerts_of_negatives: float, alerts_of_positives: float) -> Any:
    """A certificate whose threshold 0 has the wanted rates on the rows it is made from."""
    random = np.random.default_rng(0)
    scores, labels = drawn(random, 20_000, alerts_of_negatives, alerts_of_positives)
    return certify(scores, labels, goal, thresholds=0.0)


def drawn(random: Any, n: int, fpr: float, tpr: float) -> tuple[Any, Any]:
    """Rows with a tenth of positives, and rates ``fpr`` and ``tpr`` at the threshold 0."""
    labels = random.random(n) < 0.1
    alerts = random.random(n) < np.where(labels, tpr, fpr)
    return np.where(alerts, 1.0, -1.0) * random.random(n), labels


def watched(
    monitor: Monitor,
    policy: Policy,
    rates: tuple[float, float],
    *,
    seed: int,
    days: int,
    per_day: int,
    parts: int = 1,
    stated: bool = False,
) -> float:
    """After how many days the monitor says broken; infinity: never.

    Args:
        monitor: Fresh.
        policy: Whose labels come, and when.
        rates: The share of alerts among negatives and among positives.
        seed: Of the rows.
        days: How many at most.
        per_day: Rows of a day.
        parts: Updates in a day.
        stated: Whether the shares of labels are passed on (all alerts, 30 % of others).
    """
    random = np.random.default_rng(seed)
    later: dict[int, list[tuple[Any, Any]]] = {}
    for day in range(days):
        scores, labels = drawn(random, per_day, *rates)
        delays = policy(random, scores > 0, day)
        ids = np.array([f"{day}-{row}" for row in range(per_day)])
        shares = np.where(scores > 0, 1.0, 0.3) if stated else None
        waits = bool((np.isfinite(delays) & (delays > 0)).any())
        for part in np.array_split(np.arange(per_day), parts):
            monitor.update(
                scores[part],
                np.where(delays[part] == 0, labels[part].astype(float), np.nan),
                times=np.full(len(part), np.datetime64("2024-01-01") + day),
                ids=ids[part] if waits else None,
                label_shares=None if shares is None else shares[part],
            )
        for delay in np.unique(delays[np.isfinite(delays) & (delays > 0)]):
            rows = delays == delay
            later.setdefault(day + int(delay), []).append((ids[rows], labels[rows]))
        for names, truth in later.pop(day, []):
            monitor.add_labels(names, truth)
        if monitor.verdict == "broken":
            return float(day + 1)
    return np.inf


def main(streams: int = 200, days: int = 60) -> Iterator[dict[str, Any]]:
    """By goal and policy: false alarms at the limit, median days until a doubled rate is found."""
    book: dict[str, Any] = {"streams": streams, "days": days, "rows a day": 300}
    for goal, limit, doubled in (
        ("fpr <= 0.02", (0.02, 0.9), (0.04, 0.9)),
        ("recall >= 0.9", (0.02, 0.9), (0.02, 0.8)),
        ("precision >= 0.7", (0.03857, 0.81), (0.07714, 0.81)),
    ):
        certificate = certificate_at(goal, 0.005, 0.97)
        cases = [(name, policy, False) for name, policy in POLICIES.items()]
        cases += [("all alerts, 30 % of others, shares stated", share_of_others, True)]
        for name, policy, stated in cases:
            alarms = [
                [
                    watched(
                        certificate.monitor(watch=["rates"]),
                        policy,
                        rates,
                        seed=seed,
                        days=days,
                        per_day=300,
                        stated=stated,
                    )
                    for seed in range(number)
                ]
                for rates, number in ((limit, streams), (doubled, min(streams, 40)))
            ]
            median = float(np.median(alarms[1]))
            book[f"{goal}, {name}"] = {
                "false alarms": float(np.isfinite(alarms[0]).mean()),
                "days until a doubled rate": median if np.isfinite(median) else None,
            }
            yield book
