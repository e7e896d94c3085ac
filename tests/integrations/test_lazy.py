"""The room costs nothing until one of its files is asked for."""

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
