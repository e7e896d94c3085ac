"""How the chance of a false alarm is divided among the tests of a monitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

WATCHED = ("rates", "alerts", "scores")
LABELLED = {"rates": 0.85, "alerts": 0.11, "scores": 0.04, "features": 0.1}
"""The part of each kind of tests, before those not watched are left out."""
UNLABELLED = {"rates": 0.25, "alerts": 0.55, "scores": 0.20, "features": 0.1}
"""The same where the first rows have no labels and no ids to join labels to: rates can hardly be
tested there. It is decided before a row is counted."""


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
