import os
import shutil
import subprocess
from pathlib import Path

import pytest
from browser.chromium import Chromium, find

AXE = "axe-core@4.10.3"


def pytest_configure(config):
    config.addinivalue_line("markers", "browser: looks at pages in a headless Chromium")


def give_up(missing):
    """Fail where all must be checked (`make test-browser`, CI), skip elsewhere."""
    (pytest.fail if os.environ.get("SETPOINT_BROWSER") == "required" else pytest.skip)(missing)


@pytest.fixture(scope="session")
def browser():
    program = find()
    if program is None:
        give_up("no Chromium found: `apt-get install chromium`, or name one in $CHROMIUM")
    opened = Chromium(program)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The source of axe-core, from npm into a folder that is kept between runs."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "setpoint-axe"
    source = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not source.exists():
        if shutil.which("npm") is None:
            give_up("no npm found: `apt-get install npm` for the check of accessibility")
        words = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), AXE]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode or not source.exists():
            give_up(f"npm could not install {AXE}: {done.stderr.strip()[-200:]}")
    return source.read_text(encoding="utf-8")
