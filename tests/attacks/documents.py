"""Attacks on what is read from JSON: forged certificates and runs whose checksums fit."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from attacks.refusals import Refused, attempt
from certificates.test_storage import FOUND, forged
from runs.test_manifest import example, rewrite
from strategies import LETTERS, number

from setpoint import certify, fnr_at_fpr
from setpoint.certificates import Certificate, label_plan
from setpoint.certificates.storage import checksum
from setpoint.comparison import Comparison, MethodTrial
from setpoint.pareto import Front, FrontPoint
from setpoint.runs import Manifest, RunError, read_manifest

ODD = [
    None,
    True,
    False,
    0,
    -1,
    10**400,
    -(10**30),
    1e308,
    5e-324,
    -0.0,
    "",
    "nan",
    "\ud800",
    [],
    {},
]


def value(random: Random, depth: int = 3) -> Any:
    """Anything that JSON can say; sometimes much of it."""
    kind = random.randrange(8) if depth else 0
    if kind < 3:
        return random.choice(ODD)
    if kind == 3:
        return number(random)
    if kind == 4:
        return "".join(random.choice(LETTERS) for _ in range(random.choice([1, 5, 20_000])))
    if kind == 5:
        return [value(random, depth - 1)] * random.choice([1, 2, 3])
    if kind == 6:
        return random.choice([nested(10), nested(90), nested(200), [0] * 5000, [{}] * 5000])
    return {str(value(random, 0)): value(random, depth - 1) for _ in range(random.randrange(3))}


def nested(depth: int) -> Any:
    """Lists in lists."""
    found: Any = []
    for _ in range(depth):
        found = [found]
    return found


def spoil(random: Random, body: Any) -> None:
    """Put something somewhere; or leave out, or double, what was there."""
    place = body
    while True:
        key = random.choice(list(place) if isinstance(place, dict) else range(len(place)))
        inner = place[key]
        if isinstance(inner, (dict, list)) and inner and random.random() < 0.7:
            place = inner
            continue
        act = random.randrange(6)
        if act == 0:
            del place[key]
        elif act == 1 and isinstance(place, list):
            place.append(inner)
        elif act == 1:
            place[str(value(random, 0))] = inner
        else:
            place[key] = value(random)
        return


def certificate(random: Random) -> None:
    """A forged certificate is refused, or it reads back, prints itself and decides."""
    name = random.choice(sorted(FOUND))

    def change(body: dict[str, Any]) -> None:
        for _ in range(random.randrange(1, 3)):
            spoil(random, body)

    try:
        text = forged(change, name)
    except (UnicodeError, IndexError):  # the forger's own trouble
        return
    found = attempt(lambda: Certificate.from_json(text))
    if isinstance(found, Refused):
        return
    assert isinstance(str(found), str)
    assert Certificate.from_json(found.to_json()) == found
    scores = np.array([number(random) for _ in range(5)])
    groups = random.choice([None, ["a"] * 5, np.arange(5)])
    attempt(lambda: found.decide(scores, groups=groups))


def manifest(random: Random) -> None:
    """A forged run is refused in a line, or it is a manifest that writes itself as it was read."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.json"
        file.write_bytes(example().to_bytes())
        try:
            rewrite(Path(folder), lambda body: spoil(random, body))
        except (UnicodeError, IndexError):
            return
        found = attempt(lambda: read_manifest(Path(folder)), allowed=RunError)
        if isinstance(found, Refused):
            assert "\n" not in found
            return
        assert isinstance(found, Manifest)
        file.write_bytes(found.to_bytes())
        assert read_manifest(Path(folder)) == found


@cache
def others() -> dict[str, tuple[Any, str]]:
    """Other documents, each with the class that reads it."""
    rng = np.random.default_rng(0)
    labels = rng.random(800) < 0.3
    scores = rng.normal(size=800) + 2 * labels
    monitor = certify(scores, labels, "fpr <= 0.1").monitor(by="week")
    monitor.update(scores[:400] + 1, labels[:400], times=np.arange(400))
    points = [FrontPoint(i, 0.5 - i / 9, i / 9, measures={"error": i / 9}) for i in range(3)]
    front = Front(("misses", "false_alarms"), "ours", tuple(points), recipe={"seed": 0})
    trial = MethodTrial("implicit", 0, 0.1, None, 0.2, 0.01, 8, 1.5, "ok")
    compared = Comparison(fnr_at_fpr(0.1), (trial, replace(trial, seed=1)))
    made = (label_plan(scores, "fpr <= 0.1", 100), monitor, front, compared)
    return {type(one).__name__: (type(one), one.to_json()) for one in made}


def other(random: Random) -> None:
    """A forged plan, monitor, front or comparison is refused, or reads back and prints itself."""
    cls, whole = others()[random.choice(sorted(others()))]
    body = json.loads(whole)
    signed = body.pop("checksum", None) is not None
    for _ in range(random.randrange(1, 3)):
        spoil(random, body)
    if signed:
        body["checksum"] = checksum(body)
    found = attempt(lambda: cls.from_json(json.dumps(body)))
    if not isinstance(found, Refused):
        assert isinstance(str(found), str)
        assert cls.from_json(found.to_json()).to_json() == found.to_json()


def text(random: Random) -> None:
    """Any bytes of a certificate, cut, doubled or changed, are refused unless they say the same."""
    name = random.choice(sorted(FOUND))
    whole = FOUND[name].to_json()
    at, until = sorted(random.choices(range(len(whole)), k=2))
    new = random.choice(["", " ", whole[at:until] * 2, json.dumps(value(random, 1))[:50]])
    spoilt = whole[:at] + new + whole[until if random.random() < 0.5 else at :]
    found = attempt(lambda: Certificate.from_json(spoilt))
    assert isinstance(found, Refused) or found == FOUND[name]
