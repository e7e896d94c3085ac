import pytest
from browser.chromium import Chromium, find


def pytest_configure(config):
    config.addinivalue_line("markers", "browser: looks at pages in a headless Chromium")


@pytest.fixture(scope="session")
def browser():
    program = find()
    if program is None:
        pytest.skip("no Chromium found: `apt-get install chromium`, or name one in $CHROMIUM")
    opened = Chromium(program)
    yield opened
    opened.close()
