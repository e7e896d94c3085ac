"""A library that is not installed: the error says which extra brings it."""

import subprocess
import sys

import pytest

CASES = {
    "skorch": "import setpoint.integrations.skorch",
    "metrics": "import setpoint.integrations.metrics",
    "transformers": "import setpoint.integrations.huggingface",
    "lightning": "import setpoint.integrations.lightning.library",
}
LIBRARIES = ("skorch", "torchmetrics", "transformers", "lightning", "pytorch_lightning")


@pytest.mark.parametrize("extra", CASES)
def test_the_extra_is_named(extra):
    hide = f"import sys; sys.modules.update(dict.fromkeys({LIBRARIES}))\n"
    found = subprocess.run(
        [sys.executable, "-c", hide + CASES[extra]], capture_output=True, text=True, check=False
    )
    assert f'is not installed: pip install "setpoint[{extra}]"' in found.stderr
