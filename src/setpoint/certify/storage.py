"""A certificate as JSON and back.

Nothing is believed: every field is checked, and a checksum tells whether the file was changed since
it was written. It is no signature: whoever wants to forge a certificate can compute a new one.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from setpoint.certify.dtypes import NAMES
from setpoint.certify.goals import read_goal
from setpoint.certify.records import CERTIFIED, STATUSES, Claim, Estimate, Point

if TYPE_CHECKING:
    from setpoint.certify.certificate import Certificate

KIND, VERSION = "setpoint certificate", 1
LARGEST = 50_000_000
"""Characters of a file that are read at all."""
R = TypeVar("R")


def to_json(certificate: Certificate) -> str:
    """The certificate with its checksum. Minus infinity (accept all) is written as null."""
    body: dict[str, Any] = {"kind": KIND, "version": VERSION, **asdict(certificate)}
    for point in body["points"]:
        if point["threshold"] == -math.inf:
            point["threshold"] = None
    body = json.loads(json.dumps(body, allow_nan=False))
    return json.dumps({**body, "checksum": _checksum(body)}, indent=1)


def from_json(cls: type[Certificate], text: str) -> Certificate:
    """A checked certificate."""
    body = _object(text)
    for name, value in (("kind", KIND), ("version", VERSION)):
        if body.get(name) != value or isinstance(body.get(name), bool):
            got = repr(body.get(name))[:60]
            raise ValueError(
                f"This is no certificate that can be read: {name} is {got}, not {value!r}."
            )
    checksum = body.pop("checksum", None)
    if checksum != _checksum(body):
        raise ValueError(
            "The checksum does not fit: the certificate was changed after it was written."
        )
    names = {field.name for field in fields(cls)} | {"kind", "version"}
    _need(set(body) == names, f"it has fields {sorted(set(body) ^ names)} too many or too few")
    given = {name: value for name, value in body.items() if name not in ("kind", "version")}
    given["points"] = tuple(_record(Point, p, "points") for p in _list(given, "points"))
    given["claims"] = tuple(_record(Claim, c, "claims") for c in _list(given, "claims"))
    given["objective"] = tuple(_record(Estimate, e, "objective") for e in _list(given, "objective"))
    for name in ("assumptions", "notes", "advice"):
        lines = _list(given, name)
        _need(all(isinstance(line, str) for line in lines), f"{name} are sentences")
        given[name] = tuple(lines)
    _check_settings(given)
    given["points"] = _thresholds(given)
    return cls(**given)


def _object(text: object) -> dict[str, Any]:
    if not isinstance(text, str):
        raise TypeError(f"from_json reads a text; got {type(text).__name__}.")
    _need(len(text) <= LARGEST, f"it is longer than {LARGEST:,} characters")
    try:
        body = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This is no certificate: it is not JSON ({error}).") from None
    if not isinstance(body, dict):
        raise ValueError("This is no certificate: the file holds no JSON object.")
    return body


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _checksum(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _need(right: bool, why: str) -> None:
    if not right:
        raise ValueError(f"This is no valid certificate: {why}.")


def _list(body: dict[str, Any], name: str) -> list[Any]:
    _need(isinstance(body.get(name), list), f"{name} is a list")
    found: list[Any] = body[name]
    return found


_NUMBER, _COUNT, _TEXT = (int, float), (int,), (str,)
_NOTHING = type(None)
_TYPES: dict[str, tuple[type, ...]] = {
    "group": (str, int, float, bool, _NOTHING),
    "threshold": (*_NUMBER, _NOTHING),
    "positives": (*_COUNT, _NOTHING),
    "true_alerts": (*_COUNT, _NOTHING),
    "examples": _COUNT,
    "alerts": _COUNT,
    "bound": _TEXT,
    "counts": _TEXT,
    "name": _TEXT,
    "measured": (*_NUMBER, _NOTHING),
    "proved": (*_NUMBER, _NOTHING),
    **dict.fromkeys(("value", "low", "high"), _NUMBER),
}


def _record(cls: type[R], given: object, where: str) -> R:
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    _need(isinstance(given, dict) and set(given) == set(names), f"{where} hold {', '.join(names)}")
    assert isinstance(given, dict)
    for name, value in given.items():
        allowed = _TYPES[name]
        right = isinstance(value, allowed) and (not isinstance(value, bool) or bool in allowed)
        if _COUNT[0] in allowed and float not in allowed and isinstance(value, int):
            right = right and value >= 0
        _need(right, f"{name} in {where} cannot be {value!r:.60}")
    return cls(**given)


def _check_settings(given: dict[str, Any]) -> None:
    _need(given["status"] in STATUSES, f"status is one of {', '.join(STATUSES)}")
    _need(given["guarantee"] in ("pac", "mean"), 'guarantee is "pac" or "mean"')
    _need(given["dtype"] in NAMES, f"dtype is one of {', '.join(NAMES)}")
    _need(isinstance(given["column"], (str, _NOTHING)), "column is a name or null")
    for name in ("confidence", "prevalence"):
        value = given[name]
        inside = isinstance(value, float) and 0 < value < 1
        _need(inside or (value is None and name == "prevalence"), f"{name} is between 0 and 1")
    count = given["candidates"]
    _need(type(count) is int and count >= 1, "candidates is a whole number of at least 1")
    _need(isinstance(given["goal"], str), "goal is a sentence")
    try:
        read_goal(given["goal"])
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"This is no valid certificate: its goal cannot be read. {error}"
        ) from None


def _thresholds(given: dict[str, Any]) -> tuple[Point, ...]:
    """Null is minus infinity (accept all) in a certificate that is certified, else no threshold."""
    points: tuple[Point, ...] = given["points"]
    _need(bool(points), "it has at least one point")
    _need(given["column"] is not None or len(points) == 1, "one threshold, or a column of groups")
    _need(all((p.group is None) == (given["column"] is None) for p in points), "groups have names")
    _need(len({p.group for p in points}) == len(points), "groups are all different")
    for p in points:
        _need(p.alerts <= p.examples, "there are no more alerts than examples")
    if given["status"] != CERTIFIED:
        _need(all(p.threshold is None for p in points), "only a certified goal has a threshold")
        return points
    return tuple(
        replace(p, threshold=-math.inf if p.threshold is None else float(p.threshold))
        for p in points
    )
