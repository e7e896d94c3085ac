import os

import pytest
from browser.chromium import Chromium, find


def pytest_configure(config):
    config.addinivalue_line("markers", "browser: looks at pages in a headless Chromium")


@pytest.fixture(scope="session")
def browser():
    program = find()
    if program is None:
        missing = "no Chromium found: `apt-get install chromium`, or name one in $CHROMIUM"
        if os.environ.get("SETPOINT_BROWSER") == "required":  # `make test-browser`, CI
            pytest.fail(missing)
        pytest.skip(missing)
    opened = Chromium(program)
    yield opened
    opened.close()
