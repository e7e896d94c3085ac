"""Several monitors of the same rows that share the false alarms: both sides of three ways, classes.

Of several classes every certified bound is watched by itself. A bound on a rate of a class
(``recall of "cat" >= 0.9``) is one on two classes, this one against the rest: a row is an alert if
it is decided to be of the class. One on right and wrong decisions (``accuracy >= 0.9``) counts the
rows whose label is known; a wrong decision is the alert. Each has an equal part of the false
alarms.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.axes.arrays import Bools, Floats
from setpoint.batch import check_length
from setpoint.certificates import Certificate, ClassCertificate
from setpoint.certificates.certificate import Claim, Point
from setpoint.certificates.class_bounds import ClassCost, class_shares
from setpoint.certificates.classes import read_class_labels
from setpoint.certificates.storage import json_object
from setpoint.monitoring.monitor import Monitor
from setpoint.monitoring.status import BROKEN, DRIFTING, HOLDS
from setpoint.problems import Problem
from setpoint.rates import Across, Bound, ClassSet

_ORDER = (HOLDS, DRIFTING, BROKEN)
WRONG: ClassSet = ()
"""Instead of the classes of a bound: it is about right and wrong decisions."""


class JointMonitor:
    """Watches a three-way certificate; made by :meth:`ThreeWayCertificate.monitor`.

    Attributes:
        parts: A monitor for each side, by name.

    Examples:
        >>> import numpy as np
        >>> from setpoint.certificates import certify_three_way
        >>> y = np.arange(20_000) % 5 == 0
        >>> s = np.random.default_rng(0).normal(size=20_000) + 4 * y
        >>> both = certify_three_way(s, y, "precision >= 0.99", "npv >= 0.99").monitor()
        >>> sorted(both.parts)
        ['accept', 'reject']
    """

    kind = "setpoint joint monitor"

    def __init__(self, parts: Mapping[str, Monitor]) -> None:
        self.parts = dict(parts)

    @property
    def first(self) -> Monitor:
        """The part that knows what all have in common: rows, files, ids, features, periods."""
        return next(iter(self.parts.values()))

    @property
    def rows(self) -> int:
        """How many rows have been counted."""
        return self.first.rows

    @property
    def false_alarm(self) -> float:
        """The chance of ever raising a false alarm, of all parts together."""
        return sum(part.false_alarm for part in self.parts.values())

    def counted_before(self, ids: Any) -> NDArray[np.bool_]:
        """See :meth:`Monitor.counted_before`."""
        return self.first.counted_before(ids)

    def update(self, scores: Any, labels: Any = None, **columns: Any) -> str:
        """Count new rows in every part, with the columns of :meth:`Monitor.update`; the status."""
        features = columns.pop("features", None)
        for part in self.parts.values():
            part.update(
                scores, labels, features=features if part.feature_names else None, **columns
            )
        return self.status

    def add_labels(self, ids: Any, labels: Any, *, label_shares: Any = None) -> str:
        """Labels of rows that were counted before; see :meth:`Monitor.add_labels`."""
        for part in self.parts.values():
            part.add_labels(ids, labels, label_shares=label_shares)
        return self.status

    @property
    def verdict(self) -> str:
        """The worst of the parts: ``"holds"``, ``"drifting"`` or ``"broken"``."""
        return max((part.verdict for part in self.parts.values()), key=_ORDER.index)

    @property
    def status(self) -> str:
        """``holds``, or what has changed in each part that does not hold, the worst first."""
        moved = [(name, part) for name, part in self.parts.items() if not part]
        moved.sort(key=lambda each: -_ORDER.index(each[1].verdict))
        return "; ".join(f"{name}: {part.status}" for name, part in moved) or HOLDS

    @property
    def exit_code(self) -> int:
        """0 if every part holds, else 1."""
        return 0 if self else 1

    def __bool__(self) -> bool:
        return all(self.parts.values())

    def __str__(self) -> str:
        return "\n".join(f"{name}: {part}" for name, part in self.parts.items())

    def metrics(self) -> dict[str, float]:
        """The numbers of :meth:`Monitor.metrics`, after the name of the part and a slash."""
        return {
            f"{name}/{key}": value
            for name, part in self.parts.items()
            for key, value in part.metrics().items()
        }

    def to_json(self) -> str:
        """All parts as JSON, each with its checksum."""
        parts = {name: json.loads(part.to_json()) for name, part in self.parts.items()}
        return json.dumps({"kind": self.kind, "parts": parts})

    @classmethod
    def from_json(cls, text: str) -> JointMonitor:
        """Read :meth:`to_json` back; anything else, or a changed file, is a ValueError."""
        body = json_object(text, "state of a joint monitor")
        parts = body.get("parts")
        if body.get("kind") != cls.kind or not isinstance(parts, dict) or not parts:
            raise ValueError(f"This is no state of a joint monitor: kind {body.get('kind')!r:.40}.")
        return cls({name: Monitor.from_json(json.dumps(part)) for name, part in parts.items()})


class ClassMonitor(JointMonitor):
    """Watches a certificate of several classes; made by :meth:`ClassCertificate.monitor`.

    Attributes:
        certificate: What is watched.
        parts: A monitor for each bound, by its text.

    Examples:
        >>> from setpoint import Problem
        >>> from setpoint.certificates import certify_shifts
        >>> random = np.random.default_rng(0)
        >>> def rows(n, blur=1.0):
        ...     labels = random.integers(0, 3, n)
        ...     return blur * random.normal(size=(n, 3)) + 3 * np.eye(3)[labels], labels
        >>> goal = Problem.parse("maximize accuracy subject to recall of 2 >= 0.9")
        >>> monitor = certify_shifts(*rows(3000), goal, np.zeros(3), classes=[0, 1, 2]).monitor()
        >>> monitor.update(*rows(2000)), monitor.update(*rows(2000, 2.0)).split(":")[0]
        ('holds', 'recall of 2 >= 0.9')
    """

    kind = "setpoint monitor of classes"

    def __init__(self, certificate: ClassCertificate, parts: Mapping[str, Monitor]) -> None:
        super().__init__(parts)
        self.certificate = certificate
        self._classes = {name: each for name, each, _ in _watched(certificate)}

    @classmethod
    def of(cls, certificate: ClassCertificate, false_alarm: float, by: str) -> ClassMonitor:
        """A new monitor of a certified certificate."""
        watched = sorted(_watched(certificate), key=lambda each: each[1] == WRONG)
        parts: dict[str, Monitor] = {}
        seen: set[ClassSet] = set()
        for name, classes, one in watched:
            fresh = classes != WRONG and classes not in seen
            kinds = ["rates", "alerts"] if fresh else ["rates"]
            parts[name] = one.monitor(false_alarm / len(watched), watch=kinds, by=by)
            seen.add(classes)
        return cls(certificate, parts)

    @property
    def rows(self) -> int:
        """How many rows have been counted."""
        return max(part.rows for part in self.parts.values())

    def update(self, scores: Any, labels: Any = None, **columns: Any) -> str:
        """Count new rows; the status.

        Args:
            scores: ``[n, K]``, of the model that was certified.
            labels: The column of each row's class if it is known by now, else None, NaN or -1.
            **columns: Those of :meth:`Monitor.update`, but amounts and features.
        """
        decided = self.certificate.decide(scores)
        truth = self._read_labels(labels, decided)
        for name, part in self.parts.items():
            score, label, kept = self._one(name, decided, truth)
            given = {key: _rows_of(column, kept, key) for key, column in columns.items()}
            part.update(score[kept], label[kept], **given)
        return self.status

    def add_labels(self, ids: Any, labels: Any, *, label_shares: Any = None) -> str:
        """Labels of rows that were counted before, as for :meth:`Monitor.add_labels`."""
        names = [name for name, classes in self._classes.items() if classes == WRONG]
        if names:
            raise ValueError(
                f"`{names[0]}` counts right and wrong decisions of rows whose label is known when "
                "they come: give these rows when their labels have come, without ids=."
            )
        truth = self._read_labels(labels, np.asarray(ids))
        for name, part in self.parts.items():
            known = self._inside(name, truth)
            part.add_labels(ids, known, label_shares=label_shares)
        return self.status

    def _one(self, name: str, decided: NDArray[Any], truth: Floats) -> tuple[Floats, Floats, Bools]:
        """The rows of one bound: 1 for an alert, the label of two classes, which rows count."""
        if self._classes[name] == WRONG:
            wrong = (decided != truth).astype(float)
            return wrong, np.zeros(len(truth)), ~np.isnan(truth)
        alerts = self._inside(name, decided.astype(float))
        return alerts, self._inside(name, truth), np.ones(len(truth), bool)

    def _inside(self, name: str, columns: Floats) -> Floats:
        """Whether each is one of the classes of a bound: 1 or 0, NaN if it is not known."""
        own = [self.certificate.classes.index(each) for each in self._classes[name]]
        return np.where(np.isnan(columns), np.nan, np.isin(columns, own))

    def _read_labels(self, labels: Any, rows: NDArray[Any]) -> Floats:
        if labels is None:
            return np.full(len(rows), np.nan)
        return read_class_labels(labels, rows, self.certificate.classes)

    def to_json(self) -> str:
        """The certificate and all parts as JSON, each with its checksum."""
        parts = {name: json.loads(part.to_json()) for name, part in self.parts.items()}
        known = json.loads(self.certificate.to_json())
        return json.dumps({"kind": self.kind, "certificate": known, "parts": parts})

    @classmethod
    def from_json(cls, text: str) -> ClassMonitor:
        """Read :meth:`to_json` back; anything else, or a changed file, is a ValueError."""
        body = json_object(text, "state of a monitor of classes")
        if body.get("kind") != cls.kind or not isinstance(body.get("parts"), dict):
            raise ValueError(
                f"This is no state of a monitor of classes: kind {body.get('kind')!r:.40}."
            )
        certificate = ClassCertificate.from_json(json.dumps(body.get("certificate")))
        parts = {name: Monitor.from_json(json.dumps(part)) for name, part in body["parts"].items()}
        if set(parts) != {name for name, *_ in _watched(certificate)}:
            raise ValueError("This is no state of a monitor of classes: its bounds are others.")
        return cls(certificate, parts)


def _rows_of(column: Any, kept: Bools, name: str) -> Any:
    """Some of the rows of a column, or of each column of a dict; None and single numbers stay."""
    if isinstance(column, Mapping):
        return {key: _rows_of(each, kept, key) for key, each in column.items()}
    if column is None or np.ndim(column) == 0:
        return column
    found = np.asarray(column)
    check_length(found.reshape(len(found), -1)[:, 0], kept, name)
    return found[kept]


def _watched(certificate: ClassCertificate) -> Iterator[tuple[str, ClassSet, Certificate]]:
    """For each proved bound its text, its classes, and what is proved as one of two classes.

    Raises:
        ValueError: The certificate is not certified, or proves the mean of a cost matrix.
    """
    if not certificate.certified:
        raise ValueError(f"There is nothing to watch, the goal is {certificate.status}.")
    names, n = certificate.classes, certificate.examples
    none = np.zeros((1, len(names)))
    problem = Problem.parse(certificate.goal)
    for bound, shares in class_shares(
        problem, none, [0], certificate.shifts, classes=names, groups=_any_group(problem)
    ).items():
        for place, share in enumerate(shares):
            if isinstance(share, ClassCost):
                raise ValueError(
                    f"`{bound}` is the mean of a cost matrix, which has no monitor: use "
                    "check(scores, labels)."
                )
            (rate,) = share.bound.expression.rates()
            every = isinstance(bound.expression, Across)
            classes = (names[place],) if every else tuple(map(str, rate.classes))
            alerts = sum(certificate.predicted[names.index(each)] for each in classes)
            alerts = alerts if classes else n - certificate.right
            one = Bound(replace(rate, classes=()), share.bound.sense, share.bound.level)
            point = Point(None, 0.5, n, None, alerts, None)
            yield str(share), classes, _as_two_classes(certificate, str(one), point)


def _as_two_classes(certificate: ClassCertificate, goal: str, point: Point) -> Certificate:
    return Certificate(
        goal=goal,
        status=certificate.status,
        confidence=certificate.confidence,
        guarantee="pac",
        candidates=1,
        prevalence=None,
        dtype="float64",
        column=None,
        points=(point,),
        claims=(Claim(goal, None, None, ""),),
        objective=(),
        assumptions=(),
        notes=(f"one bound of: {certificate.goal}",),
        advice=(),
        given_thresholds=True,
        clusters=certificate.clusters,
    )


def _any_group(problem: Problem) -> dict[str, list[Any]] | None:
    """A row of some group, for a problem with slices."""
    columns = {name: [value] for where in problem.slices for name, value in where}
    return columns or None
