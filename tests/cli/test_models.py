"""``setpoint train --model boosted | auto``: trees in a run folder."""

import json
import shutil

import lightgbm
import numpy as np
import pytest
from cli.shell import run

from setpoint.runs import RunError
from setpoint.runs.model import _trees as load_trees

GOAL = "maximize recall subject to fpr <= 0.1"


def write_rows(path, shape, rows=1500, seed=0):
    """Two columns, and a label that is 1 in a ring, or to one side of a line."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 2))
    inside = np.abs(np.hypot(*x.T) - 1.2) < 0.35 if shape == "ring" else x.sum(1) > 0.5
    y = inside ^ (random.random(rows) < 0.02)
    np.savetxt(path, np.column_stack([x, y]), "%.9g", ",", header="a,b,y", comments="")
    return path


def train(data, out, *more):
    return run("train", data, "--label", "y", "--goal", GOAL, "--out", out, *more)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    assert train(write_rows(folder / "ring.csv", "ring"), folder / "run", "--model", "boosted") == 0
    return folder


@pytest.fixture
def copy(made, tmp_path):
    shutil.copytree(made / "run", tmp_path / "run")
    return tmp_path / "run"


def rows_of(path):
    return np.loadtxt(path, delimiter=",", skiprows=1, usecols=(0, 1))


def test_a_run_keeps_trees_as_text_and_predicts_with_them(made, tmp_path, capsys):
    described = json.loads((made / "run" / "run.json").read_text())
    assert (described["model"], described["method"]) == ("boosted", "log_loss")
    assert "model.txt" in described["files"]
    assert "model.safetensors" not in described["files"]
    new = write_rows(tmp_path / "new.csv", "ring", seed=1)
    out = tmp_path / "out.csv"
    assert run("predict", made / "run", new, "--out", out) == 0
    scores = np.loadtxt(out, delimiter=",", skiprows=1, usecols=3)
    booster = lightgbm.Booster(model_file=made / "run" / "model.txt")
    centre, scale = np.transpose(
        [(column["mean"], column["scale"]) for column in described["columns"]]
    )
    raw = booster.predict((rows_of(new) - centre) / scale, raw_score=True)
    assert np.corrcoef(scores, raw)[0, 1] > 0.999
    capsys.readouterr()
    assert run("check", made / "run", new, "--label", "y") == 0
    assert "fpr" in capsys.readouterr().out


def test_auto_keeps_the_model_that_is_best_on_validation_rows(tmp_path, capsys):
    for shape, expected in (("ring", {"boosted", "mlp"}), ("line", {"linear"})):
        data = write_rows(tmp_path / f"{shape}.csv", shape)
        out = tmp_path / shape
        assert train(data, out, "--model", "auto", "--epochs", 40, "--no-baseline") == 0
        told = capsys.readouterr().err
        kept = json.loads((out / "run.json").read_text())["model"]
        assert kept in expected
        assert f"The best on validation rows: {kept}." in told
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:200], "was changed after the run was written"),
        (lambda text: "", "was changed after the run was written"),
    ],
)
def test_changed_trees_are_refused(copy, made, tmp_path, capsys, change, message):
    path = copy / "model.txt"
    path.write_text(change(path.read_text()))
    assert run("predict", copy, made / "ring.csv", "--out", tmp_path / "out.csv") == 2
    assert message in capsys.readouterr().err


def test_options_of_networks_are_refused(made, tmp_path, capsys):
    for option in (("--epochs", 3), ("--learning-rate", 0.1), ("--method", "tfco")):
        assert train(made / "ring.csv", tmp_path / "run", "--model", "boosted", *option) == 2
        assert f"{option[0]} {option[1]} is for networks" in capsys.readouterr().err


def test_trees_of_other_columns_or_no_trees_are_refused(made):
    path = made / "run" / "model.txt"
    assert load_trees(path, path.read_bytes(), 2, 1).booster.num_feature() == 2
    for columns, outputs in ((3, 1), (2, 3)):
        with pytest.raises(RunError, match="does not fit the columns and the model"):
            load_trees(path, path.read_bytes(), columns, outputs)
    with pytest.raises(RunError, match="is damaged; train again"):
        load_trees(path, b"\xff", 2, 1)
