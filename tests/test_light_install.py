"""The core needs numpy, scipy and Jinja2: what works without torch, what is said otherwise."""

import json

import pytest
from cli.shell import run, write_data, write_scores

BLOCK = """
import json, sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.abc import MetaPathFinder
from io import StringIO

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "safetensors", "pyarrow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""
LIGHT = (
    BLOCK
    + """
import numpy as np
from sklearn.linear_model import LogisticRegression
from setpoint import CertifiedThreshold, Problem, certify, fnr, fpr

rng = np.random.default_rng(0)
y = (rng.random(2000) < 0.3).astype(int)
x = rng.normal(size=(2000, 3)) + 2 * y[:, None]
problem = Problem(minimize=fnr, subject_to=fpr <= 0.1)
assert 0 < problem.evaluate(x[:, 0], y) < 1
assert certify(x[:, 0], y, fpr <= 0.1).certified
model = CertifiedThreshold(LogisticRegression(), goal="fpr <= 0.1", random_state=0).fit(x, y)
assert model.certificate_.certified
"""
)
COMMANDS = (
    BLOCK
    + """
from setpoint import cli

found = []
for words in json.loads(sys.argv[1]):
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.main(words)
    found.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(found))
"""
)
NAMES = (
    BLOCK
    + """
import importlib
room, name = sys.argv[1:]
try:
    getattr(importlib.import_module(room), name)
except ImportError as error:
    print(error)
"""
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run, its data, and scores."""
    folder = tmp_path_factory.mktemp("light")
    write_scores(folder / "scores.csv")
    write_data(folder / "data.csv")
    goal = "--goal=maximize recall subject to fpr <= 0.3"
    options = ("--label=churn", goal, "--model=linear", "--epochs=1", "--quiet")
    assert run("train", folder / "data.csv", *options, f"--out={folder / 'run'}") in (0, 1)
    return folder


def test_certificates_metrics_and_thresholds_of_scikit_learn(fresh_python):
    fresh_python(LIGHT)


def test_commands_without_torch(fresh_python, folder):
    scores, made, page = folder / "scores.csv", folder / "made.json", folder / "run" / "report.html"
    page.unlink()
    columns, goal = ["--score=s", "--label=y"], "--goal=maximize recall subject to fpr <= 0.3"
    words = [
        ["certify", scores, *columns, "--goal=fpr <= 0.1", "--out", made],
        ["check", made, scores, *columns],
        ["decide", scores, "--certificate", made, "--score=s", "--out", folder / "decided.csv"],
        ["watch", made, scores, "--score=s", "--state", folder / "state.json"],
        ["plan", scores, "--score=s", "--goal=fpr <= 0.1", "--out", folder / "to_label.csv"],
        ["report", folder / "run"],
        ["card", folder / "run"],
        ["train", folder / "data.csv", "--label=churn", goal, "--out", folder / "other"],
        ["check", folder / "run", folder / "data.csv", "--label=churn"],
    ]
    found = json.loads(
        fresh_python(COMMANDS, json.dumps([[str(w) for w in line] for line in words]))
    )
    for code, _, error in found[:7]:
        assert (code, error) == (0, "")
    assert "certified: fpr <= 0.1" in found[0][1]
    assert page.read_text().startswith("<!")
    for code, _, error in found[7:]:
        assert code == 2
        assert error.endswith(' is not installed: pip install "setpoint[train]"\n')
        assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("room", "name"),
    [
        ("setpoint", "Implicit"),
        ("setpoint", "Classifier"),
        ("setpoint.solvers", "Implicit"),
        ("setpoint.train", "fit"),
        ("setpoint.losses", "auc_loss"),
        ("setpoint.programs", "linear_program"),
        ("setpoint.pareto", "pareto_front"),
        ("setpoint.distributed", "workers"),
    ],
)
def test_training_names_the_extra_in_one_line(fresh_python, room, name):
    message = fresh_python(NAMES, room, name)
    assert "torch" in message
    assert 'pip install "setpoint[train]"' in message
    assert "\n" not in message
