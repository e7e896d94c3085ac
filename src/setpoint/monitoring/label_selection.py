"""Whose labels are known: of alerts and of other rows equally often, or not."""

from __future__ import annotations

from typing import Any

from setpoint.axes.arrays import Floats
from setpoint.certificates.drift import chance_of_difference
from setpoint.certificates.text import share_text

_ALL_ALERTS = 1000
"""After so many alerts and no other row, every row is taken to be an alert."""
_ALIKE = 1e-4
"""Labels of alerts and of other rows are equally frequent unless chance is rarer than this."""


class LabelSelection:
    """How many labels are known of how many rows, among alerts and among the others."""

    def __init__(self, alerts: Any = (0, 0), others: Any = (0, 0)) -> None:
        self.alerts, self.others = list(alerts), list(others)

    def add(self, alerts: Any, known: Any, *, new: bool) -> None:
        """Count rows by their decision; ``new``: and not only their labels."""
        for counts, inside in ((self.alerts, alerts), (self.others, ~alerts)):
            counts[0] += int((known & inside).sum())
            counts[1] += int(inside.sum()) if new else 0

    @property
    def alike(self) -> bool:
        """Whether labels are known equally often of alerts and of other rows.

        Not before labels of both kinds have come: labels of alerts alone are no sample. Where every
        row is an alert, there is no other kind to wait for.
        """
        (k, n), (new, size) = self.alerts, self.others
        if k and not new:
            return not size and n > _ALL_ALERTS
        return not n or not size or chance_of_difference(new, size, k, n) >= _ALIKE

    @property
    def reason(self) -> str | None:
        """Why bounds on all rows are not tested; None if they are."""
        (k, n), (new, size) = self.alerts, self.others
        if self.alike or not size:
            return None
        return (
            f"labels are known of {share_text(k / n)} of the alerts and of "
            f"{share_text(new / size)} of the other rows: such a choice says nothing about rows "
            "that were not chosen. Label other rows as often, or at random with a known share "
            "(label_shares)"
        )

    def state(self) -> dict[str, list[int]]:
        """Plain numbers for JSON."""
        return {"alerts": self.alerts, "others": self.others}


def least_share(shares: Floats | None) -> float:
    """The smallest probability with which the label of a row was to be known."""
    return 1.0 if shares is None or not len(shares) else float(shares.min())
