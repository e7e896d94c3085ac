"""Several monitors of the same rows that share the false alarms: both sides of three ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setpoint.certificates.storage import json_object
from setpoint.monitoring.monitor import Monitor
from setpoint.monitoring.status import BROKEN, DRIFTING, HOLDS


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


_ORDER = (HOLDS, DRIFTING, BROKEN)
