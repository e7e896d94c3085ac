"""The room costs nothing until one of its files is asked for; a missing library names its extra."""

import subprocess
import sys

LIBRARIES = [
    "lightgbm",
    "lightning",
    "pytorch_lightning",
    "skorch",
    "torch",
    "torchmetrics",
    "transformers",
    "xgboost",
]


def loaded_after(module):
    code = f"import sys, {module}; print(*(name for name in {LIBRARIES} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(run.stdout.split())


def test_the_room_imports_no_library():
    assert loaded_after("setpoint.integrations") == set()


def test_boosting_and_scalars_import_neither_library_before_they_train():
    assert loaded_after("setpoint.integrations.shared, setpoint.integrations.boosting") == {"torch"}


CASES = {
    "skorch": "setpoint.integrations.skorch",
    "metrics": "setpoint.integrations.metrics",
    "transformers": "setpoint.integrations.huggingface",
    "lightning": "setpoint.integrations.lightning",
}
HIDDEN_LIBRARIES = ("skorch", "torchmetrics", "transformers", "lightning", "pytorch_lightning")


HIDDEN = f"""
import importlib, sys
sys.modules.update(dict.fromkeys({HIDDEN_LIBRARIES}))
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
