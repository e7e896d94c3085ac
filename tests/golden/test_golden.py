"""What came out when the golden files were recorded (``record.py``) comes out today.

The compiled cases take long and are compared in ``test_compiled.py``.
"""

import pytest
from golden.cases import FAMILIES
from golden.compare import check, recorded

CASES = [(family, name) for family in FAMILIES if family != "compiled" for name in FAMILIES[family]]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_files_hold_these_cases(family):
    assert list(recorded(family)) == list(FAMILIES[family])


@pytest.mark.parametrize(("family", "name"), CASES, ids=[": ".join(case) for case in CASES])
def test_the_numbers_are_those_recorded(family, name):
    check(family, name)
