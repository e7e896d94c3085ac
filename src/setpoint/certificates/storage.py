"""The fields of a file that nobody vouches for: every one has a type, and is checked."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from setpoint.certificates.dtypes import NAMES
from setpoint.certificates.goals import read_goal
from setpoint.certificates.records import CERTIFIED, STATUSES, Claim, Estimate, Point

if TYPE_CHECKING:
    from setpoint.certificates.certificate import Certificate


LARGEST = 50_000_000
"""Characters of a file that are read at all."""
MOST = sys.float_info.max
R = TypeVar("R")


def json_object(text: object) -> dict[str, Any]:
    """The object in a JSON text; NaN and infinities are no JSON."""
    if not isinstance(text, str):
        raise TypeError(f"from_json reads a text; got {type(text).__name__}.")
    need(len(text) <= LARGEST, f"it is longer than {LARGEST:,} characters")
    try:
        body = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This is no certificate: it is not JSON ({error}).") from None
    if not isinstance(body, dict):
        raise ValueError("This is no certificate: the file holds no JSON object.")
    return body


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def need(right: bool, why: str) -> None:
    """Refuse the file unless it is right."""
    if not right:
        raise ValueError(f"This is no valid certificate: {why}.")


def list_of(body: dict[str, Any], name: str) -> list[Any]:
    """A field that must be a list."""
    need(isinstance(body.get(name), list), f"{name} is a list")
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


def record(cls: type[R], given: object, where: str) -> R:
    """An entry with exactly the fields of ``cls``, each of its type."""
    names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    need(isinstance(given, dict) and set(given) == set(names), f"{where} hold {', '.join(names)}")
    assert isinstance(given, dict)
    for name, value in given.items():
        allowed = _TYPES[name]
        right = isinstance(value, allowed) and (not isinstance(value, bool) or bool in allowed)
        if _COUNT[0] in allowed and float not in allowed and isinstance(value, int):
            right = right and value >= 0
        if float in allowed and right and value is not None and not isinstance(value, str):
            right = -MOST < value < MOST
        need(right, f"{name} in {where} cannot be {value!r:.60}")
    return cls(**given)


# A certificate as JSON and back.
#
# Nothing is believed: every field is checked, and a checksum tells whether the file was changed
# since it was written. It is no signature: whoever wants to forge a certificate can compute a new
# one.


KIND, VERSION = "setpoint certificate", 1


def to_json(certificate: Certificate) -> str:
    """The certificate with its checksum. Minus infinity (accept all) is written as null."""
    body: dict[str, Any] = {"kind": KIND, "version": VERSION, **asdict(certificate)}
    for point in body["points"]:
        if point["threshold"] == -math.inf:
            point["threshold"] = None
    body = json.loads(json.dumps(body, allow_nan=False))
    return json.dumps({**body, "checksum": checksum(body)}, indent=1)


def from_json(cls: type[Certificate], text: str) -> Certificate:
    """A checked certificate."""
    body = json_object(text)
    for name, value in (("kind", KIND), ("version", VERSION)):
        if body.get(name) != value or isinstance(body.get(name), bool):
            got = repr(body.get(name))[:60]
            raise ValueError(
                f"This is no certificate that can be read: {name} is {got}, not {value!r}."
            )
    found = body.pop("checksum", None)
    if found != checksum(body):
        raise ValueError(
            "The checksum does not fit: the certificate was changed after it was written."
        )
    names = {field.name for field in fields(cls)} | {"kind", "version"}
    need(set(body) == names, f"it has fields {sorted(set(body) ^ names)} too many or too few")
    given = {name: value for name, value in body.items() if name not in ("kind", "version")}
    for name, kind in (("points", Point), ("claims", Claim), ("objective", Estimate)):
        given[name] = tuple(record(kind, entry, name) for entry in list_of(given, name))
    for name in ("assumptions", "notes", "advice"):
        lines = list_of(given, name)
        need(all(isinstance(line, str) for line in lines), f"{name} are sentences")
        given[name] = tuple(lines)
    _check_settings(given)
    given["points"] = _thresholds(given)
    return cls(**given)


def checksum(body: dict[str, Any]) -> str:
    """A fingerprint of what a certificate says."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _check_settings(given: dict[str, Any]) -> None:
    need(given["status"] in STATUSES, f"status is one of {', '.join(STATUSES)}")
    need(given["guarantee"] in ("pac", "mean"), 'guarantee is "pac" or "mean"')
    need(given["dtype"] in NAMES, f"dtype is one of {', '.join(NAMES)}")
    need(isinstance(given["column"], (str, type(None))), "column is a name or null")
    for name in ("confidence", "prevalence"):
        value = given[name]
        inside = isinstance(value, float) and 0 < value < 1
        need(inside or (value is None and name == "prevalence"), f"{name} is between 0 and 1")
    count = given["candidates"]
    need(type(count) is int and count >= 1, "candidates is a whole number of at least 1")
    need(isinstance(given["goal"], str), "goal is a sentence")
    try:
        read_goal(given["goal"])
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(
            f"This is no valid certificate: its goal cannot be read. {error}"
        ) from None


def _thresholds(given: dict[str, Any]) -> tuple[Point, ...]:
    """Null is minus infinity (accept all) in a certificate that is certified, else no threshold."""
    points: tuple[Point, ...] = given["points"]
    need(bool(points), "it has at least one point")
    need(given["column"] is not None or len(points) == 1, "one threshold, or a column of groups")
    need(all((p.group is None) == (given["column"] is None) for p in points), "groups have names")
    need(len({p.group for p in points}) == len(points), "groups are all different")
    for p in points:
        need(p.alerts <= p.examples, "there are no more alerts than examples")
    if given["status"] != CERTIFIED:
        need(all(p.threshold is None for p in points), "only a certified goal has a threshold")
        return points
    return tuple(
        replace(p, threshold=-math.inf if p.threshold is None else float(p.threshold))
        for p in points
    )
