"""Fixtures that tests of several rooms use. Data are made by the functions of ``samples.py``."""

import subprocess
import sys

import pytest


@pytest.fixture(scope="session")
def fresh_python():
    """Run code in a python that has imported nothing yet: gives what it printed."""

    def run(code: str, *arguments: object) -> str:
        command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
