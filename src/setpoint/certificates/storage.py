"""Certificates as JSON and back.

Nothing in a file is trusted: every field is checked, and a checksum tells whether the file was
changed since it was written. It is no signature: whoever wants to forge a certificate can compute a
new one.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from setpoint.certificates.certificate import Record

_Dataclass = TypeVar("_Dataclass")
_LONGEST = 50_000_000
"""Characters of a file that are read at all."""


def to_json(certificate: Record) -> str:
    """The certificate with its checksum. Minus infinity (accept all) is written as null."""
    body = {"kind": certificate.kind, "version": certificate.version, **asdict(certificate)}
    for point in body.get("points", ()):
        if point["threshold"] == -math.inf:
            point["threshold"] = None
    body = json.loads(json.dumps(body, allow_nan=False))
    return json.dumps({**body, "checksum": checksum(body)}, indent=1)


def checksum(body: dict[str, Any]) -> str:
    """A fingerprint of what a certificate says."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def read_fields(cls: type[Record], text: object) -> dict[str, Any]:
    """The fields of a certificate; lists are checked entry by entry, single values not yet.

    Raises:
        TypeError: It is no text.
        ValueError: It is not JSON, no certificate of this kind and version, has been changed, or
            has wrong fields.
    """
    body = json_object(text)
    for name, value in (("kind", cls.kind), ("version", cls.version)):
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
    later = {field.name: field.default for field in fields(cls) if field.name in cls.added}
    body = {**later, **body}
    names = {field.name for field in fields(cls)} | {"kind", "version"}
    odd = ", ".join(sorted(set(body) ^ names))
    need(set(body) == names, f"it has fields {odd:.200} too many or too few")
    hints = get_type_hints(cls)
    return {
        name: _checked_entries(hints[name], value, name)
        if get_origin(hints[name]) is tuple
        else value
        for name, value in body.items()
        if name not in ("kind", "version")
    }


def json_object(text: object, what: str = "certificate") -> dict[str, Any]:
    """The object in a JSON text; NaN and infinities are no JSON. ``what`` it is, for messages."""
    if not isinstance(text, str):
        raise TypeError(f"from_json reads a text; got {type(text).__name__}.")
    need(len(text) <= _LONGEST, f"it is longer than {_LONGEST:,} characters")
    try:
        body = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This is no {what}: it is not JSON ({error}).") from None
    if not isinstance(body, dict):
        raise ValueError(f"This is no {what}: the file holds no JSON object.")
    return body


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def need(right: bool, why: str, what: str = "certificate") -> None:
    """Refuse the file unless it is right."""
    if not right:
        raise ValueError(f"This is no valid {what}: {why}.")


def checked_record(of: type[_Dataclass], given: object, what: str) -> _Dataclass:
    """An object of a dataclass from JSON, every field that counts in comparisons checked.

    Raises:
        ValueError: A field is missing, too much, or not of the type that it says.
    """
    hints = get_type_hints(of)
    names = [field.name for field in fields(of) if field.compare]  # type: ignore[arg-type]
    right = isinstance(given, dict) and set(given) == set(names)
    need(right, f"it holds {', '.join(names)}", what)
    assert isinstance(given, dict)
    found = {}
    for name, value in given.items():
        need(_is_of(hints[name], value), f"{name} cannot be {value!r:.60}", what)
        found[name] = tuple(value) if get_origin(hints[name]) is tuple else value
    return of(**found)


def need_label_names(given: dict[str, Any]) -> None:
    """Refuse the file unless its two classes have different names, or none."""
    names = given["label_names"]
    need(len(names) in (0, 2) and len(set(names)) == len(names), "label_names are two names")


def need_clusters_and_period(given: dict[str, Any]) -> None:
    """Refuse the file unless the number of clusters is one, and a period has two ends."""
    clusters = given["clusters"]
    right = clusters is None or (type(clusters) is int and clusters >= 1)
    need(right, "clusters is a whole number of at least 1, or null")
    need(len(given["period"]) in (0, 2), "period has a beginning and an end")


def _checked_entries(hint: Any, given: object, where: str) -> tuple[Any, ...]:
    """The entries of a list, each of the type that ``hint`` (``tuple[type, ...]``) says."""
    need(isinstance(given, list), f"{where} is a list")
    assert isinstance(given, list)
    of = get_args(hint)[0]
    if not is_dataclass(of):
        for value in given:
            need(_is_of(of, value), f"{where} cannot hold {value!r:.60}")
        return tuple(given)
    hints = get_type_hints(of)
    for entry in given:
        right = isinstance(entry, dict) and set(entry) == set(hints)
        need(right, f"{where} hold {', '.join(hints)}")
        for name, value in entry.items():
            need(_is_of(hints[name], value), f"{name} in {where} cannot be {value!r:.60}")
    return tuple(of(**entry) for entry in given)  # type: ignore[operator]


def _is_of(hint: Any, value: object) -> bool:
    """Whether a value is of a type; counts are not negative, and numbers are finite."""
    if get_origin(hint) is tuple:
        return isinstance(value, list) and all(_is_of(get_args(hint)[0], one) for one in value)
    if get_origin(hint) is Mapping:
        of = get_args(hint)[1] | None
        return isinstance(value, dict) and all(_is_of(of, one) for one in value.values())
    types = get_args(hint) or (hint,)
    if type(value) not in types and not (type(value) is int and float in types):
        return False
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return True
    if float not in types:
        return value >= 0
    return -sys.float_info.max <= value <= sys.float_info.max
