"""A library that is not installed: the error says which extra brings it."""

import subprocess
import sys

CASES = {
    "skorch": "setpoint.integrations.skorch",
    "metrics": "setpoint.integrations.metrics",
    "transformers": "setpoint.integrations.huggingface",
    "lightning": "setpoint.integrations.lightning",
}
LIBRARIES = ("skorch", "torchmetrics", "transformers", "lightning", "pytorch_lightning")


HIDDEN = f"""
import importlib, sys
sys.modules.update(dict.fromkeys({LIBRARIES}))
for name in {tuple(CASES.values())}:
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(error)
"""


def test_the_extra_is_named():
    run = [sys.executable, "-c", HIDDEN]
    found = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    for line, extra in zip(found, CASES, strict=True):
        assert f'is not installed: pip install "setpoint[{extra}]"' in line
