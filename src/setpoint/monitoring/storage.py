"""The state of a monitor as JSON and back, with its certificate and a checksum."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._checks import quoted_list
from setpoint.certificates import Certificate
from setpoint.certificates.storage import checksum, json_object, need
from setpoint.monitoring.counted_rows import CountedIds, SeenClusters
from setpoint.monitoring.history import Alarm, History
from setpoint.monitoring.label_selection import LabelSelection
from setpoint.monitoring.pending_labels import PendingLabels

if TYPE_CHECKING:
    from setpoint.monitoring.monitor import Monitor


def to_json(monitor: Monitor) -> str:
    """See :meth:`Monitor.to_json`."""
    body = {
        "kind": monitor.kind,
        "version": monitor.version,
        "certificate": json.loads(monitor.certificate.to_json()),
        "false_alarm": monitor.false_alarm,
        "watch": list(monitor.watch),
        "features": list(monitor.feature_names),
        "by": monitor.by,
        "rows": monitor.rows,
        "updates": monitor.updates,
        "latest": monitor.latest,
        "labelled": monitor.labelled,
        "selection": monitor.selection.state(),
        "tests": {name: test.state() for name, test in monitor.tests.items()},
        "history": monitor.history.state(),
        "alarms": [vars(alarm) for alarm in monitor.alarms.values()],
        "pending": monitor.pending.state(),
        "clusters": monitor.clusters.state(),
        "ids": monitor.ids.state(),
        "files": monitor.files,
        "spent": monitor.spent,
    }
    body = json.loads(json.dumps(body, allow_nan=False))
    return json.dumps({**body, "checksum": checksum(body)})


def from_json(cls: type[Monitor], text: str) -> Monitor:
    """See :meth:`Monitor.from_json`."""
    body = json_object(text, "state of a monitor")
    if body.get("kind") != cls.kind or body.get("version") != cls.version:
        raise ValueError(
            f"This is no state of a monitor that can be read: kind {body.get('kind')!r:.40}, "
            f"version {body.get('version')!r:.20}."
        )
    if body.pop("checksum", None) != checksum(body):
        raise ValueError("The checksum does not fit: the state was changed or is damaged.")
    try:
        certificate = Certificate.from_json(json.dumps(body["certificate"]))
        options = {name: body[name] for name in ("watch", "features", "by")}
        monitor = cls(certificate, body["false_alarm"], **options)
        with np.errstate(divide="raise", invalid="raise"):
            _restore(monitor, body)
            str(monitor)  # what cannot be told is none
        written = json.loads(to_json(monitor))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        why = error if isinstance(error, ValueError) else "a field is missing or of another type"
        raise ValueError(f"This is no valid state of a monitor: {why!s:.300}") from None
    changed = [name for name, value in body.items() if written.get(name) != value]
    need(not changed, f"{quoted_list(changed)} cannot be so", "state of a monitor")
    return monitor


def _restore(monitor: Monitor, body: dict[str, Any]) -> None:
    if body["labelled"] is not None:
        monitor.expect(labelled=body["labelled"])
    for name in ("rows", "updates", "latest", "files", "spent"):
        setattr(monitor, name, body[name])
    monitor.history = History.restore(body["history"])
    monitor.selection = LabelSelection.restore(body["selection"])
    monitor.alarms = {alarm["test"]: Alarm(**alarm) for alarm in body["alarms"]}
    monitor.history.kept = {alarm.since for alarm in monitor.alarms.values()}
    monitor.pending = PendingLabels.restore(body["pending"])
    monitor.clusters = SeenClusters.restore(body["clusters"])
    monitor.ids = CountedIds.restore(body["ids"])
    tests = monitor.tests
    if set(tests) != set(body["tests"]):
        raise ValueError("This is no valid state of a monitor: its tests are others.")
    for name, state in body["tests"].items():
        tests[name].restore(state)
