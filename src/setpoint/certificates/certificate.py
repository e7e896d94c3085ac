"""A certificate: a threshold, what is promised about it, and everything needed to judge that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from setpoint.certificates.drift import Check, check
from setpoint.certificates.dtypes import decide_by_group, exceeds
from setpoint.certificates.records import CERTIFIED, Claim, Estimate, Point
from setpoint.certificates.storage import from_json, to_json
from setpoint.certificates.text import as_html, as_text
from setpoint.rates import Value


@dataclass(frozen=True)
class Certificate:
    """What :func:`setpoint.certify` found: frozen, and readable by people and machines.

    ``print`` it for the whole story; in a notebook it shows itself. A certificate that is not
    certified has no threshold and refuses to decide.
    """

    goal: str
    """What was asked for; ``Problem.parse`` or ``certify`` read it back."""
    status: str
    """``"certified"``, ``"not certified"`` or ``"infeasible"`` (too few examples for any proof)."""
    confidence: float
    """How sure the promise is: it fails for at most this share (its complement) of samples."""
    guarantee: str
    """``"pac"``: with confidence, for this threshold. ``"mean"``: on average over samples."""
    candidates: int
    """Among how many models this one was chosen on the same data."""
    prevalence: float | None
    """The share of positives that was declared for deployment; None: as in the data."""
    dtype: str
    """The precision in which scores are compared."""
    column: str | None
    """The column that tells groups apart, if every group has its own threshold."""
    points: tuple[Point, ...]
    """The threshold, or one for each group, with the counts at it."""
    claims: tuple[Claim, ...]
    """For each bound what was measured and what is proved."""
    objective: tuple[Estimate, ...]
    """The objective at the threshold, with an interval of its own confidence."""
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    """Why the verdict is what it is, and what to notice."""
    advice: tuple[str, ...]
    """What would change the verdict."""

    @property
    def certified(self) -> bool:
        """Whether the promise is proved."""
        return self.status == CERTIFIED

    @property
    def exit_code(self) -> int:
        """0 if certified, 1 if not: what ``setpoint certify`` returns to the shell."""
        return 0 if self.certified else 1

    @property
    def threshold(self) -> float:
        """The one threshold; accept what is above it."""
        self._need_threshold()
        if self.column is not None:
            raise ValueError(f"There is one threshold for each {self.column}: see thresholds.")
        (point,) = self.points
        assert point.threshold is not None
        return point.threshold

    @property
    def thresholds(self) -> dict[Value, float]:
        """The threshold of each group."""
        self._need_threshold()
        if self.column is None:
            raise ValueError("There is one threshold for everyone: see threshold.")
        return {p.group: p.threshold for p in self.points if None not in (p.group, p.threshold)}  # type: ignore[misc]

    def decide(self, scores: Any, groups: Any = None) -> Any:
        """``score > threshold`` for new scores, numpy or torch, in the calibrated precision.

        Args:
            scores: New scores of the same model, of any shape.
            groups: The group of each score, if every group has its own threshold.

        Returns:
            Booleans of the shape (and, for torch, on the device) of the scores.
        """
        if self.column is None:
            return exceeds(scores, self.threshold, self.dtype)
        if groups is None:
            raise ValueError(f"There is one threshold for each {self.column}: pass groups=.")
        return decide_by_group(self.thresholds, self.column, self.dtype, scores, groups)

    def check(
        self, scores: Any, labels: Any = None, *, groups: Any = None, significance: float = 0.001
    ) -> Check:
        """Compare new data with the promise: does it still hold, do as many alerts come?

        Args:
            scores: New scores of the same model.
            labels: Their labels, if known by now: then the promised rates themselves are tested.
            groups: The group of each score, if the certificate is about groups.
            significance: How often to cry wolf: the chance of an alarm in a check without drift.

        Returns:
            A verdict in words, with its numbers and an exit code for cron.
        """
        self._need_threshold()
        return check(self, scores, labels, groups, significance)

    def to_json(self) -> str:
        """The certificate as JSON, with a checksum."""
        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read :meth:`to_json` back; anything else, or a changed file, is a ValueError."""
        return from_json(cls, text)

    def _need_threshold(self) -> None:
        if not self.certified:
            why = f": {self.notes[0]}" if self.notes else ""
            raise ValueError(f"There is no threshold, the goal is {self.status}{why}.")

    def __bool__(self) -> bool:
        return self.certified

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)
