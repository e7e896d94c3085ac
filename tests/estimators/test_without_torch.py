"""CertifiedThreshold needs numpy, scipy and scikit-learn; only what trains needs torch."""

import subprocess
import sys

CODE = """
import sys
from importlib.abc import MetaPathFinder


class NoTorch(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")


sys.meta_path.insert(0, NoTorch())
import numpy as np
from sklearn.linear_model import LogisticRegression

from setpoint import CertifiedThreshold

rng = np.random.default_rng(0)
y = (rng.random(2000) < 0.3).astype(int)
x = rng.normal(size=(2000, 3)) + y[:, None]
model = CertifiedThreshold(LogisticRegression(), goal="fpr <= 0.1", random_state=0).fit(x, y)
assert model.certificate_.certified
assert 0 < model.predict(x).mean() < 1

from setpoint.estimators import Classifier
"""


def test_a_threshold_is_certified_without_torch_and_training_names_the_extra():
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert run.returncode == 1
    message = run.stderr.splitlines()[-1]
    assert message == 'ModuleNotFoundError: torch is not installed: pip install "setpoint[train]"'
