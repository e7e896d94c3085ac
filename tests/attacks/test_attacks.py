"""A minute of every attack, the same cases every time. An hour of new ones: ``make attack``."""

import pytest
from attacks.catalogue import ATTACKS, run

CASES = {
    "documents: other": 150,
    "goals: long": 40,
    "goals: spoilt": 200,
    "goals: choice": 300,
    "documents: text": 300,
    "arrays: names": 60,
    "arrays: models": 120,
    "tables: formats": 250,
    "tables: damaged": 120,
    "tables: columns": 120,
    "tables: cells": 120,
    "tables: monsters": 40,
}
SLOW = {"files: crash", "signals: interrupt"}  # test_crashes.py has some of them


@pytest.mark.parametrize("name", [name for name in ATTACKS if name not in SLOW])
def test_nothing_is_found(name):
    _, found = run(name, range(CASES.get(name, 400)))
    assert not found, found[0]
