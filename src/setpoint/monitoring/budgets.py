"""What may be spent: false alarms by the tests of a monitor, confidence by its recalibrations.

A recalibration makes the same promise on new rows; the account says how much of the confidence
that uses up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._checks import share as check_share
from setpoint.certificates import Certificate, certify
from setpoint.certificates.goals import goal_to_certify

if TYPE_CHECKING:
    from setpoint.monitoring.monitor import Monitor

WATCHED = ("rates", "alerts", "scores")
LABELLED = {"rates": 0.85, "alerts": 0.11, "scores": 0.04, "features": 0.1}
"""The part of each kind of tests, before those not watched are left out."""
UNLABELLED = {"rates": 0.25, "alerts": 0.55, "scores": 0.20, "features": 0.1}
"""The same where the first rows have no labels and no ids to join labels to: rates can hardly be
tested there. It is decided before a row is counted."""


def renew(
    monitor: Monitor,
    scores: Any,
    labels: Any,
    spend: float | None,
    thresholds: Any,
    candidates: int | None,
    given: dict[str, Any],
) -> Certificate:
    """See :meth:`Monitor.recalibrate`; ``given`` are further columns."""
    old = monitor.certificate
    for name, needed, words in (
        ("clusters", old.clusters is not None, "a row of each cluster"),
        ("amounts", old.largest_amount is not None, "costs by amounts"),
        ("ids", bool(old.lots), "ties broken by lot"),
    ):
        if needed and given[name] is None:
            raise ValueError(f"The certificate is about {words}: pass {name}=.")
    if old.outputs and goal_to_certify(old.goal).wheres:
        raise ValueError(
            "Every output has a goal of its own: certify(scores, labels, {name: goal}, outputs=...)"
            " makes the new certificate, and its monitor() a new watch."
        )
    total, delta = _to_spend(monitor.spent, old, spend)
    found = certify(
        scores,
        labels,
        old.goal,
        confidence=1 - delta,
        candidates=old.candidates if candidates is None else candidates,
        guarantee=old.guarantee,  # type: ignore[arg-type]
        prevalence=old.prevalence,
        thresholds=_thresholds(old) if thresholds is None else thresholds,
        old_threshold=old.old_threshold,
        largest_amount=old.largest_amount,
        outputs=old.outputs or None,
        ties="lot" if old.lots else "reject",
        **{**given, "ids": given["ids"] if old.lots else None},
    )
    found = replace(found, label_names=old.label_names)
    periods = monitor.history.periods
    entry = {"of": total, "delta": delta, "period": periods[-1].name if periods else "update 0"}
    monitor.spent.append({**entry, "status": found.status, "before": monitor.status})
    if found:
        plain = found.column is None and found.prevalence is None and found.old_threshold is None
        monitor.begin(found, scores if plain and found.clusters is None else None)
        monitor.history.close()
        if given["ids"] is not None:  # they are no new rows to the certificate they made
            monitor.ids.add(np.asarray(given["ids"]))
    return found


def _thresholds(old: Certificate) -> Any:
    """The thresholds to prove again, if they were given and not found."""
    if not old.given_thresholds:
        return None
    return old.threshold if old.column is None else old.thresholds


def _to_spend(
    spent: list[dict[str, Any]], old: Certificate, part: float | None
) -> tuple[float, float]:
    """What there was to spend at first, and what is spent now.

    With ``r - 1`` entries before, what is left is divided by ``r + 1``.
    """
    total = spent[0]["of"] if spent else 1 - old.confidence
    left = total - sum(entry["delta"] for entry in spent)
    if part is None:
        return total, left / (len(spent) + 2)
    delta = total * check_share(part, "spend", ends=False)
    if delta > left * (1 + 1e-9):
        raise ValueError(
            f"spend={part:g} is more than is left of the confidence, {left / total:.3g} of it: "
            "leave spend out, or certify anew and start a new monitor."
        )
    return total, delta


def budget(
    false_alarm: float, tests: Mapping[str, Sequence[str]], *, labelled: bool
) -> dict[str, float]:
    """By test its part of ``false_alarm``, from the names of the tests of each kind.

    Examples:
        >>> found = budget(0.05, {"rates": ["fpr <= 0.01"], "alerts": ["alerts"]}, labelled=True)
        >>> {name: round(part, 4) for name, part in found.items()}
        {'fpr <= 0.01': 0.0443, 'alerts': 0.0057}
    """
    parts = LABELLED if labelled else UNLABELLED
    total = sum(parts[kind] for kind, names in tests.items() if names)
    return {
        name: false_alarm * parts[kind] / total / len(names)
        for kind, names in tests.items()
        for name in names
    }
