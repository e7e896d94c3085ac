"""The room costs nothing until one of its files is asked for; a missing library names its extra."""

import pytest

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


@pytest.fixture
def loaded_after(fresh_python):
    """The libraries that importing a module imports."""
    shown = f"print(*(name for name in {LIBRARIES} if name in sys.modules))"
    return lambda module: set(fresh_python(f"import sys, {module}; {shown}").split())


def test_the_room_imports_no_library(loaded_after):
    assert loaded_after("setpoint.integrations") == set()


def test_boosting_and_scalars_import_neither_library_before_they_train(loaded_after):
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


def test_the_extra_is_named(fresh_python):
    for line, extra in zip(fresh_python(HIDDEN).splitlines(), CASES, strict=True):
        assert f'is not installed: pip install "setpoint[{extra}]"' in line
