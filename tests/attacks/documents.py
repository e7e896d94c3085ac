"""Attacks on what is read from JSON: forged certificates and runs whose checksums fit."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from attacks.refusals import Refused, attempt
from certificates.test_storage import FOUND, forged
from runs.test_manifest import example, rewrite
from strategies import LETTERS, number

from setpoint.certificates import Certificate
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


def text(random: Random) -> None:
    """Any bytes of a certificate, cut, doubled or changed, are refused unless they say the same."""
    name = random.choice(sorted(FOUND))
    whole = FOUND[name].to_json()
    at, until = sorted(random.choices(range(len(whole)), k=2))
    new = random.choice(["", " ", whole[at:until] * 2, json.dumps(value(random, 1))[:50]])
    spoilt = whole[:at] + new + whole[until if random.random() < 0.5 else at :]
    found = attempt(lambda: Certificate.from_json(spoilt))
    assert isinstance(found, Refused) or found == FOUND[name]
