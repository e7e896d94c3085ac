"""Compiled steps give the numbers that were recorded."""

import pytest
from golden.cases import COMPILED
from golden.compare import check


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_the_numbers_are_those_recorded(name):
    check("compiled", name)
