"""What a user may be told: an answer, or one clear refusal."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

LONGEST = 500
"""Characters of an error: what was wrong, with which value, and what to do."""
FOREIGN = ("object has no attribute", "unsupported operand", "Traceback", "__array")
ACCIDENTS = (UnicodeError, json.JSONDecodeError, np.linalg.LinAlgError)
"""Errors that are a ValueError by birth, but of others: they tell a user nothing."""


class Refused(str):
    """What was said."""


def attempt(
    call: Callable[[], Any],
    *,
    seconds: float = 5.0,
    allowed: type[Exception] | tuple[type[Exception], ...] = (ValueError, TypeError),
) -> Any:
    """What ``call`` gives, or what it refuses with; anything else is a finding.

    Raises:
        AssertionError: It took too long, or what it says is too long or not meant for users.
    """
    start = time.process_time()
    try:
        found = call()
    except allowed as error:
        found = Refused(error)
        foreign = isinstance(error, ACCIDENTS) or any(words in found for words in FOREIGN)
    else:
        foreign = False
    taken = time.process_time() - start
    assert taken < seconds, f"took {taken:.1f} s"
    assert not foreign, found
    if isinstance(found, Refused):
        assert 10 < len(found) <= LONGEST, f"{len(found)} characters: {found[:600]}"
    return found
