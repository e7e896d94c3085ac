"""The shifts of several classes with what is promised about them, as text and as JSON."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from setpoint.certify.classes.check import check_classes
from setpoint.certify.fields import json_object, list_of, need, record
from setpoint.certify.records import CERTIFIED, INFEASIBLE, NOT_CERTIFIED, Claim
from setpoint.certify.storage import checksum
from setpoint.certify.text import WIDTH, columns, percent, share
from setpoint.certify.verdicts import Check
from setpoint.problems import Problem
from setpoint.rates import numeral

KIND, VERSION = "setpoint certificate of classes", 2
NO_CERTIFICATE = "no certificate"
STATUSES = (CERTIFIED, NOT_CERTIFIED, INFEASIBLE, NO_CERTIFICATE)
ASSUMED = (
    "The rows are independent draws from what the shifts will meet: no copies, no drift.",
    "Neither the model nor the shifts were chosen by looking at these rows.",
    "Decisions are the highest of score - shift, of equal ones the first.",
)


@dataclass(frozen=True)
class ClassCertificate:
    """What is promised of a classifier of several classes; see :func:`certify_shifts`."""

    goal: str
    status: str
    """``"certified"``, ``"not certified"``, ``"infeasible"`` (too few examples for any proof), or
    ``"no certificate"``: nothing can be promised."""
    confidence: float
    classes: tuple[str, ...]
    shifts: tuple[float, ...]
    """What is subtracted from the score of each class before the highest decides."""
    predicted: tuple[int, ...]
    """How many of the examples were decided to be each class."""
    right: int
    """How many of the examples are decided rightly."""
    claims: tuple[Claim, ...]
    notes: tuple[str, ...]

    @property
    def examples(self) -> int:
        """How many examples it rests on."""
        return sum(self.predicted)

    @property
    def certified(self) -> bool:
        """Whether every bound of the goal is proved."""
        return self.status == CERTIFIED

    @property
    def exit_code(self) -> int:
        """1 if a promise was wanted and is not proved, else 0."""
        return 1 if self.status in (NOT_CERTIFIED, INFEASIBLE) else 0

    def check(
        self, scores: Any, labels: Any = None, *, groups: Any = None, significance: float = 0.001
    ) -> Check:
        """Compare new data with the promise: does it hold, is every class predicted as often?

        Args:
            scores: New scores of the same model, ``[n, K]``.
            labels: The column of each example's class, if known by now: then the promised rates
                themselves are tested.
            groups: A column of group values, or a dict of columns, for bounds about slices.
            significance: How often to cry wolf: the chance of an alarm in a check without drift.

        Returns:
            A verdict in words, with its numbers and an exit code for cron.
        """
        return check_classes(self, scores, labels, groups, significance)

    def __bool__(self) -> bool:
        return self.certified

    def to_json(self) -> str:
        """The certificate as JSON, with a checksum."""
        body = {"kind": KIND, "version": VERSION, **asdict(self)}
        body = json.loads(json.dumps(body, allow_nan=False))
        return json.dumps({**body, "checksum": checksum(body)}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> ClassCertificate:
        """Read :meth:`to_json` back; anything else, or a changed file, is a ValueError."""
        body = json_object(text)
        found = body.pop("checksum", None)
        need(found == checksum(body), "its checksum does not fit: it was changed")
        need(body.pop("kind", None) == KIND, f"its kind is not {KIND!r}")
        version = body.pop("version", None)
        need(version == VERSION and version is not True, f"its version is not {VERSION}")
        names = {field.name for field in fields(cls)}
        need(set(body) == names, f"it has fields {sorted(set(body) ^ names)} too many or too few")
        body["claims"] = tuple(record(Claim, entry, "claims") for entry in list_of(body, "claims"))
        for name in ("classes", "shifts", "predicted", "notes"):
            body[name] = tuple(list_of(body, name))
        _check(body)
        return cls(**body)

    def __str__(self) -> str:
        sure = f"with {percent(self.confidence)} confidence"
        head = f"{self.status}: {self.goal} {sure if self.status != NO_CERTIFICATE else ''}".strip()
        return "\n".join([*textwrap.wrap(head, WIDTH), *columns(_rows(self))])


def _rows(c: ClassCertificate) -> Iterator[tuple[str, str]]:
    shifts = (f"{name!r}: {numeral(t)}" for name, t in zip(c.classes, c.shifts, strict=True))
    yield "shifts", ", ".join(shifts)
    yield "held-out rows", f"{c.right:,} of {c.examples:,} decided rightly"
    for claim in c.claims:
        side = "at most" if "<=" in claim.bound else "at least"
        if claim.measured is not None and claim.proved is not None:
            text = f"{share(claim.measured)} measured, {side} {share(claim.proved)} proved"
            yield claim.bound, f"{text}; {claim.counts}"
        else:
            yield claim.bound, "no example to measure it by"
    for i, line in enumerate(c.notes):
        yield ("" if i else "notes"), line
    for i, line in enumerate(ASSUMED if c.certified else ()):
        yield ("" if i else "assumes"), line


def _check(body: dict[str, Any]) -> None:
    for name in ("classes", "notes"):
        need(all(isinstance(x, str) for x in body[name]), f"{name} are texts")
    numbers = [x for x in body["shifts"] if isinstance(x, float) and math.isfinite(x)]
    need(len(numbers) == len(body["shifts"]), "shifts are numbers")
    need(len(numbers) == len(set(body["classes"])) >= 2, "every class has a name and a shift")
    need(body["status"] in STATUSES, f"status is one of {', '.join(STATUSES)}")
    sure = body["confidence"]
    need(isinstance(sure, float) and 0 < sure < 1, "confidence is between 0 and 1")
    counts = (body["right"], *body["predicted"])
    need(all(type(x) is int and x >= 0 for x in counts), "counts are counts")
    need(len(counts) == len(numbers) + 1, "every class was predicted so often")
    need(counts[0] <= sum(counts[1:]), "no more are right than there are")
    need(isinstance(body["goal"], str), "goal is a sentence")
    need(Problem.parse(body["goal"]).kind == "classes", "its goal is not about classes")
