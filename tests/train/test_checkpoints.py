import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.testing import assert_close

from setpoint import Implicit, fnr_at_fpr
from setpoint.solvers import cross_entropy
from setpoint.train import (
    OtherRun,
    Stratified,
    Validation,
    fit,
    load_checkpoint,
    save_checkpoint,
)

# A process that has imported torch but computed nothing forks one trainer after the other and
# kills each a moment after its first checkpoint, wherever it is; the last one may finish.
KILLER = """
import json, os, signal, sys, time
import torch
import torch._dynamo  # optimizers import it at their first step: once here, not in every child
from torch import nn
from setpoint import Implicit, fnr_at_fpr
from setpoint.train import Stratified, Validation, fit

def train(folder, slow):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    y = (torch.rand(600) < 0.1).long()
    x = torch.randn(600, 3) + y[:, None]
    problem = fnr_at_fpr(0.05)
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))
    fitted = fit(
        model, Implicit(problem, steps=80, memory=100), x[:400], y[:400], steps=80, batch_size=100,
        learning_rate=0.02, seed=1, sampler=Stratified(100), checkpoint=folder,
        validation=Validation(problem, x[400:], y[400:]),
        on_step=lambda *_: time.sleep(0.003 if slow else 0),
    )
    history = [{k: v for k, v in row.items() if k != "seconds"} for row in fitted.history]
    for row in history:  # the rates of the last batches are not part of a checkpoint
        row["status"] = row["status"].partition("; over the last")[0]
    scores = fitted.model(x).detach()[:, 0].tolist()
    with open(folder + ".json", "w") as file:
        json.dump({"history": history, "best": fitted.best, "scores": scores}, file)
    os._exit(0)

def start(folder, slow):
    child = os.fork()
    if child == 0:
        train(folder, slow)
    return child

def version(folder):
    path = folder + "/killed/checkpoint.safetensors"
    return os.stat(path).st_ino if os.path.exists(path) else None

killed, folder = 0, sys.argv[1]
for attempt in range(4):
    before = version(folder)
    child = start(folder + "/killed", slow=True)
    while version(folder) == before and not os.waitpid(child, os.WNOHANG)[0]:
        time.sleep(0.001)
    time.sleep(0.004 * attempt)
    os.kill(child, signal.SIGKILL)
    killed += os.waitpid(child, 0)[1] == signal.SIGKILL
for name in ("killed", "whole"):
    assert os.waitpid(start(folder + "/" + name, slow=False), 0)[1] == 0
print(killed)
"""


@pytest.mark.slow  # tests/cli/test_resume.py kills a run, too
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_killed_at_any_moment_ends_with_the_same_numbers(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 3, "the test must really kill runs that are under way"
    killed, whole = (json.loads((tmp_path / f"{n}.json").read_text()) for n in ("killed", "whole"))
    assert killed == whole
    assert len(whole["history"]) == 20
    assert [path.name for path in (tmp_path / "killed").iterdir()] == ["checkpoint.safetensors"]


def data() -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(5)
    y = (torch.rand(300, generator=random) < 0.3).long()
    return torch.randn(300, 3, generator=random) + y[:, None], y


class Stopped(Exception):
    pass


def train(folder: Path | None, *, stop_after: int | None = None, **changes):
    x, y = data()
    torch.manual_seed(2)
    problem = fnr_at_fpr(0.1)

    def on_step(step, _loss):
        if step == stop_after:
            raise Stopped

    options = {"steps": 20, "batch_size": 50, "learning_rate": 0.05, "seed": 3, **changes}
    return fit(
        *(nn.Linear(3, 1), Implicit(problem, steps=20), x, y),
        checkpoint=folder,
        validation=Validation(problem, x, y),
        on_step=on_step,
        **options,
    )


@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("stop_after", [0, 5, 12, 19])
def test_stopped_runs_go_on(tmp_path, monkeypatch, stop_after, averaged):
    monkeypatch.setattr("setpoint.train.loop._SECONDS_LOST", 0.0)
    whole = train(None, averaged=averaged)
    with pytest.raises(Stopped):
        train(tmp_path, stop_after=stop_after, averaged=averaged)
    resumed = train(tmp_path, averaged=averaged)
    assert_close(resumed.model.state_dict(), whole.model.state_dict(), rtol=0, atol=0)
    assert [r["loss"] for r in resumed.history] == [r["loss"] for r in whole.history]


@pytest.mark.parametrize(("seconds", "written"), [(0.0, 4), (60.0, 2)])
def test_short_passes_have_no_checkpoint_each(tmp_path, monkeypatch, seconds, written):
    """The first pass has one, and the last."""
    count = []

    def write(*given):
        count.append(given[2]["progress"]["step"])
        return save_checkpoint(*given)

    monkeypatch.setattr("setpoint.train.loop._SECONDS_LOST", seconds)
    monkeypatch.setattr("setpoint.train.loop.save_checkpoint", write)
    train(tmp_path)
    assert (len(count), count[0], count[-1]) == (written, 6, 20)


def test_a_finished_run_is_read_back_and_not_trained_again(tmp_path):
    first = train(tmp_path)
    again = train(tmp_path, stop_after=0)  # would raise at the first step
    assert_close(again.model.state_dict(), first.model.state_dict(), rtol=0, atol=0)
    assert again.history == first.history


@pytest.mark.parametrize("part", ["x", "y", "weights", "groups", "validation", "start"])
def test_the_checkpoint_of_other_data_is_refused(tmp_path, part):
    problem = fnr_at_fpr(0.1)

    def train_on(change):
        x, y = data()
        weights, sex = torch.ones(300), np.array(["f", "m"] * 150)
        given = {"x": x, "y": y.double(), "weights": weights, "groups": sex, "start": torch.ones(1)}
        given["validation"] = x[100:200].clone()
        if change == "groups":
            sex[7] = "f"
        elif change:
            given[change].reshape(-1)[7 if change != "start" else 0] += 1e-6
        model = nn.Linear(3, 1)
        nn.init.constant_(model.weight, float(given["start"]))
        nn.init.zeros_(model.bias)
        judge = Validation(problem, given["validation"], y[100:200])
        options = {"steps": 5, "batch_size": 50, "learning_rate": 0.05, "seed": 3}
        given_too = {"weights": weights, "groups": {"sex": sex}, "validation": judge}
        fit(model, cross_entropy, x, given["y"], checkpoint=tmp_path, **options, **given_too)

    train_on(None)
    train_on(None)  # the same again: read back
    named = part if part in ("validation", "start") else "data"
    with pytest.raises(OtherRun, match=f"of another run.*{named}"):
        train_on(part)


@pytest.mark.parametrize("change", [{"seed": 4}, {"learning_rate": 0.1}, {"steps": 30}])
def test_the_checkpoint_of_another_run_is_refused(tmp_path, change):
    train(tmp_path)
    with pytest.raises(ValueError, match=f"of another run.*{next(iter(change))}"):
        train(tmp_path, **change)


def test_what_is_saved_is_what_is_loaded(tmp_path):
    assert load_checkpoint(tmp_path) is None
    tensors = {"a": torch.arange(3), "b": torch.zeros(()), "c": torch.empty(0, 0)}
    save_checkpoint(tmp_path, tensors, {"step": 3})
    loaded, record = load_checkpoint(tmp_path)
    assert record == {"step": 3}
    assert_close(loaded, tensors, rtol=0, atol=0)


@pytest.mark.parametrize("damage", ["truncated", "empty", "pickle"])
def test_a_damaged_checkpoint_is_a_clear_error(tmp_path, damage):
    path = save_checkpoint(tmp_path, {"a": torch.arange(100)}, {})
    if damage == "pickle":
        torch.save({"a": 1}, path)
    else:
        path.write_bytes(path.read_bytes()[: 60 if damage == "truncated" else 0])
    with pytest.raises(ValueError, match="not a checkpoint of setpoint, or it is damaged"):
        load_checkpoint(tmp_path)


def test_state_that_is_no_tensor_is_refused(tmp_path):
    class Odd(nn.Linear):
        def get_extra_state(self):
            return {"code": 1}

        def set_extra_state(self, state):
            pass

    x, y = data()
    with pytest.raises(TypeError, match="checkpoints hold tensors only"):
        fit(
            *(Odd(3, 1), cross_entropy, x, y),
            **{"steps": 2, "batch_size": 50, "learning_rate": 0.1, "seed": 0},
            sampler=Stratified(50),
            checkpoint=tmp_path,
        )
