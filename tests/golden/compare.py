"""Compare values with those recorded.

Floats agree to 1e-12 of their own size, or to 1e-14 of the largest in their list (of 1, where they
stand alone: rates and multipliers are of that order): a sum of a few
hundred float64 terms in another order moves by some 1e-14 of its largest terms, which is more than
1e-12 of what is left where these cancel. Nothing else than the order of sums may change. Numbers of
certificates are compared exactly, and so are counts, texts and decisions. Multipliers solve a
linear system, whose condition number magnifies how processors round: they agree to 1e-10.

New entries in what a criterion says about itself are allowed; missing ones are not.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import torch
from golden.cases import FAMILIES

HERE = Path(__file__).parent
RTOL, ATOL = 1e-12, 1e-14
SOLVED_RTOL = 1e-10
EXACT = {"certificates"}


@cache
def recorded(family):
    return json.loads((HERE / f"{family}.json").read_text())


def check(family, name):
    """Run a case and compare it with its record."""
    torch.manual_seed(0)
    found = json.loads(json.dumps(FAMILIES[family][name]()))
    wrong = list(differences(found, recorded(family)[name], family in EXACT))
    assert not wrong, "\n".join(wrong[:20])


def differences(found, expected, exact, place="", scale=0.0):
    """Where two values differ, in words."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key not in found:
                yield f"{place}/{key} is missing"
            else:
                yield from differences(found[key], value, exact, f"{place}/{key}", 1.0)
    elif isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            yield f"{place} has {len(found)} entries, not {len(expected)}"
            return
        scale = max([scale, *largest_of(expected)])
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from differences(one, other, exact, f"{place}/{i}", scale)
    elif isinstance(expected, float) and isinstance(found, (int, float)) and not exact:
        rtol = SOLVED_RTOL if "/multiplier" in place else RTOL
        if not np.isclose(found, expected, rtol=rtol, atol=ATOL * scale, equal_nan=True):
            yield f"{place} is {found!r}, was {expected!r} ({found - expected:.1e})"
    elif found != expected and not (found != found and expected != expected):  # NaN is NaN
        yield f"{place} is {found!r}, was {expected!r}"


def largest_of(values):
    """The size of the largest number in nested lists."""
    for value in values:
        if isinstance(value, list):
            yield from largest_of(value)
        elif isinstance(value, (int, float)) and np.isfinite(value):
            yield abs(value)
