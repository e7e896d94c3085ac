"""What a check of new data found, in words and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from setpoint.certify.html import COLORS, OTHER, table
from setpoint.certify.records import CERTIFIED
from setpoint.certify.text import columns, share

OK, DRIFT, BROKEN = "ok", "drift", "broken"


@dataclass(frozen=True)
class Finding:
    """One comparison of new data with the certificate."""

    name: str
    expected: str
    measured: float | None
    chance: float | None
    """How likely chance alone is to do this or worse; None if only the alarm was computed."""
    alarm: bool


@dataclass(frozen=True)
class Check:
    """The verdict on new data: ``"ok"``, ``"drift"`` (of the alerts) or ``"broken"``."""

    verdict: str
    goal: str
    examples: int
    labelled: bool
    significance: float
    findings: tuple[Finding, ...]
    counted: str = "alerts"
    """What is counted without labels."""

    @property
    def exit_code(self) -> int:
        """0 if all is well, 1 if somebody should look."""
        return 0 if self.verdict == OK else 1

    def __bool__(self) -> bool:
        return self.verdict == OK

    def __str__(self) -> str:
        return "\n".join([self._headline(), *columns(self._rows())])

    def _repr_html_(self) -> str:
        color = COLORS[CERTIFIED] if self.verdict == OK else OTHER
        return table(self._headline(), color, self._rows())

    def _headline(self) -> str:
        words = {
            OK: "the promise fits the new data"
            if self.labelled
            else f"as many {self.counted} as expected",
            DRIFT: f"the share of {self.counted} is not that of the calibration data",
            BROKEN: "the new data contradict the promise",
        }
        return f"{self.verdict}: {words[self.verdict]} ({self.goal}; {self.examples:,} new rows)"

    def _rows(self) -> Iterator[tuple[str, str]]:
        for finding in self.findings:
            seen = "undefined" if finding.measured is None else share(finding.measured)
            chance = "" if finding.chance is None else f"; chance {share(finding.chance)}"
            alarm = " - ALARM" if finding.alarm else ""
            yield finding.name, f"{seen} now, {finding.expected}{chance}{alarm}"
        yield "alarm", f"if chance alone would do this less often than {share(self.significance)}"
