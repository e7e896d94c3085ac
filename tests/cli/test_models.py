"""``setpoint train``: trees and stacks in a run folder."""

import json
import shutil
from dataclasses import replace

import lightgbm
import numpy as np
import pytest
from cli.shell import run
from safetensors.torch import load_file, save_file
from sklearn.metrics import roc_auc_score

from setpoint.runs import RunError
from setpoint.runs.folder import digest, read_manifest
from setpoint.runs.model import _trees as load_trees
from setpoint.runs.model import load_model

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


@pytest.fixture(scope="module")
def stacked(made):
    """A run with the default, on a ring, which no line can tell."""
    assert train(made / "ring.csv", made / "stacked", "--no-baseline") == 0
    return made / "stacked"


def test_the_default_is_a_sum_of_models_that_validation_rows_weigh(stacked, tmp_path, capsys):
    described = json.loads((stacked / "run.json").read_text())
    assert (described["model"], described["method"]) == ("stacked", "implicit")
    assert any(
        note.startswith("The model is cross-fitted: 3 of each") for note in described["notes"]
    )
    tensors = load_file(stacked / "model.safetensors")
    kinds = {name.split(".")[1] for name in tensors if name.startswith("members.")}
    assert kinds >= {"boosted_0", "boosted_2", "mlp_1"}
    new = write_rows(tmp_path / "new.csv", "ring", seed=1)
    out = tmp_path / "out.csv"
    assert run("predict", stacked, new, "--out", out) == 0
    scores, truth = np.loadtxt(out, delimiter=",", skiprows=1, usecols=(3, 2)).T
    assert roc_auc_score(truth, scores) > 0.95
    text = tensors["members.boosted_0.text"].numpy().tobytes().decode()
    model = load_model(stacked, read_manifest(stacked))
    assert model.members["boosted_0"].text == text
    assert run("check", stacked, new, "--label", "y") == 0
    assert "fpr" in capsys.readouterr().out
    assert run("report", stacked, "--out", tmp_path / "page.html") == 0
    assert "stacked" in (tmp_path / "page.html").read_text()


def test_a_line_needs_no_trees(tmp_path, capsys):
    data = write_rows(tmp_path / "line.csv", "line")
    assert train(data, tmp_path / "run", "--method", "cross_entropy", "--no-baseline") == 0
    told = capsys.readouterr().err
    assert "Without boosted trees: they are grown by log-loss, not by cross_entropy." in told
    assert "Validation rows give a weight to linear" in told
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t | {"weights": t["weights"][:1]}, "does not fit the columns and the model"),
        (lambda t: t | {"shift": t["shift"] * np.nan}, "weights that are not finite"),
        (lambda t: t | {"odd": t["shift"] + 1}, "does not fit the columns and the model"),
        (
            lambda t: {k: v for k, v in t.items() if "mlp_0.0.weight" not in k},
            "does not fit the columns and the model",
        ),
        (
            lambda t: t | {"members.boosted_1.text": t["members.boosted_1.text"][:50]},
            "is damaged; train again",
        ),
    ],
)
def test_changed_stacks_are_refused(stacked, tmp_path, change, message):
    """Also if somebody writes new digests."""
    folder = tmp_path / "run"
    shutil.copytree(stacked, folder)
    tensors = change(load_file(folder / "model.safetensors"))
    save_file({name: t.contiguous() for name, t in tensors.items()}, folder / "model.safetensors")
    manifest = read_manifest(folder)
    digests = dict(manifest.files)
    digests["model.safetensors"] = digest((folder / "model.safetensors").read_bytes())
    with pytest.raises(RunError, match=message):
        load_model(folder, replace(manifest, files=digests))


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
    manifest = read_manifest(made / "run")
    assert load_trees(path, path.read_bytes(), manifest).booster.num_feature() == 2
    fewer = replace(
        manifest, encoder=replace(manifest.encoder, columns=manifest.encoder.columns[:1])
    )
    for other in (fewer, replace(manifest, classes=("a", "b", "c"))):
        with pytest.raises(RunError, match="does not fit the columns and the model"):
            load_trees(path, path.read_bytes(), other)
    with pytest.raises(RunError, match="is damaged; train again"):
        load_trees(path, b"\xff", manifest)
