"""Compare values with those recorded, to what processors may round differently.

Floats agree to ``rtol`` of their own size, or to a hundredth of it of the largest in their list (of
1, where they stand alone: rates and multipliers are of that order): a sum of a few hundred terms
in another order moves by some 1e-14 of its largest terms, which is more than 1e-12 of what is left
where these cancel. ``rtol`` is 1e-12; where rounding errors are larger or magnified, it stands in
``RTOLS``, two to ten times what was measured with the instruction sets of seven processors
(``ATEN_CPU_CAPABILITY``, ``OPENBLAS_CORETYPE``, ``MKL_CBWR``, ``NPY_DISABLE_CPU_FEATURES``).
Numbers of certificates are compared exactly, and so are counts, texts and decisions.

New entries in what a criterion says about itself are allowed; missing ones are not.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import torch
from golden.cases import FAMILIES

HERE = Path(__file__).parent
RTOL = 1e-12
RTOLS = {  # by words in the name of the case or of the value; the first that is found counts
    "trained: train": 1e-5,  # float32, many steps
    "trained: ranker": 1e-7,  # the bias: a gradient of rounding errors alone, which Adam magnifies
    "float32": 1e-6,
    "float16": 1e-3,
    "/multiplier": 1e-10,  # a linear system's solution, times its condition number
}
EXACT = {"certificates"}


@cache
def recorded(family):
    return json.loads((HERE / f"{family}.json").read_text())


def check(family, name):
    """Run a case and compare it with its record."""
    torch.manual_seed(0)
    found = json.loads(json.dumps(FAMILIES[family][name]()))
    place = f"{family}: {name}"
    wrong = list(differences(found, recorded(family)[name], place, exact=family in EXACT))
    assert not wrong, "\n".join(wrong[:20])


def rtol_of(place):
    """The relative tolerance of a value."""
    return next((rtol for word, rtol in RTOLS.items() if word in place), RTOL)


def differences(found, expected, place, scale=0.0, *, exact):
    """Where two values differ, in words."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key not in found:
                yield f"{place}/{key} is missing"
            else:
                yield from differences(found[key], value, f"{place}/{key}", 1.0, exact=exact)
    elif isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            yield f"{place} has {len(found)} entries, not {len(expected)}"
            return
        scale = max([scale, *largest_of(expected)])
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from differences(one, other, f"{place}/{i}", scale, exact=exact)
    elif isinstance(expected, float) and isinstance(found, (int, float)) and not exact:
        rtol = rtol_of(place)
        if not np.isclose(found, expected, rtol=rtol, atol=rtol / 100 * scale, equal_nan=True):
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
