"""A capacity: how many alerts there may be in a day, and on how many days that must hold."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint._checks import share, whole
from setpoint.rates import numeral

PERIOD_WORDS = ("hour", "day", "week", "month", "quarter", "year")
BY_TIME = (
    "Alerts per {period} go by time, and only certificates do: 'alerts <= 50 per {period} on 95 % "
    "of {period}s'. Elsewhere bound their share, as in 'coverage <= 2 %', or quote a column of "
    "that name."
)


@dataclass(frozen=True)
class Capacity:
    """At most ``alerts`` rows above the threshold in a period, on a share of the periods.

    Attributes:
        alerts: How many can be handled.
        period: ``"hour"``, ``"day"``, ``"week"``, ``"month"``, ``"quarter"`` or ``"year"``.
        share: On what share of the periods that must be enough, such as 0.95.

    Examples:
        >>> print(Capacity(200, "day", 0.95))
        alerts <= 200 per day on 0.95 of days
    """

    alerts: int
    period: str
    share: float

    def __post_init__(self) -> None:
        whole(self.alerts, "The number of alerts", least=0)
        share(self.share, "The share of periods", ends=False)
        if self.period not in PERIOD_WORDS:
            raise ValueError(f"A period is one of {', '.join(PERIOD_WORDS)}; got {self.period!r}.")

    def __str__(self) -> str:
        share = numeral(self.share)
        return f"alerts <= {self.alerts} per {self.period} on {share} of {self.period}s"
