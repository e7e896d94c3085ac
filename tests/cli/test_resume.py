"""A killed ``setpoint train`` goes on by itself and ends with the same numbers."""

import json
import signal
import subprocess
import sys

import pytest
from cli.shell import run, write_data

GOAL = "maximize recall subject to fpr <= 0.1"
EPOCHS = 6


def command(folder, out, epochs=2):
    given = ("train", folder / "data.csv", "--label", "churn", "--goal", GOAL, "--out", out)
    return [*given, "--epochs", epochs, "--batch-size", 64, "--model", "linear", "--no-baseline"]


def numbers(folder):
    """Everything in a run but the seconds, the date, and the rates of batches of one process."""
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    for entry in history:
        del entry["seconds"]
        entry["status"] = entry["status"].partition("; over the last")[0]
    files = [(folder / name).read_bytes() for name in ("model.safetensors", "scores.safetensors")]
    return history, files, json.loads((folder / "certificate.json").read_text())


# kill -9 in the middle of the fourth pass; tests/train kills at any moment
DIES = """
import os, signal, sys
from setpoint import cli
from setpoint.train import loop
step = loop.Run.step
def dying(self, batch):
    if len(self.progress.history) == 3 and self.losses:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, batch)
loop.Run.step = dying
cli.main(sys.argv[1:])
"""


def test_a_killed_run_ends_with_the_same_numbers(tmp_path, capsys):
    write_data(tmp_path / "data.csv")
    arguments = [str(part) for part in command(tmp_path, tmp_path / "killed", EPOCHS)]
    killed = subprocess.run(
        [sys.executable, "-c", DIES, *arguments], capture_output=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert list((tmp_path / ".killed.unfinished").rglob("checkpoint.safetensors"))
    assert not (tmp_path / "killed").exists()
    assert run(*command(tmp_path, tmp_path / "killed", EPOCHS)) == 0
    assert "Going on where a run that was stopped has left off." in capsys.readouterr().err
    assert run(*command(tmp_path, tmp_path / "whole", EPOCHS)) == 0
    assert "Going on" not in capsys.readouterr().err
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "whole")
    assert len(numbers(tmp_path / "whole")[0]) == EPOCHS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "killed", "whole"]


@pytest.mark.parametrize("what", ["settings", "data", "damage"])
def test_what_another_run_left_is_not_continued_and_kept(tmp_path, capsys, monkeypatch, what):
    write_data(tmp_path / "data.csv")
    whole = command(tmp_path, tmp_path / "run")
    monkeypatch.setattr("setpoint.runs.training.Finished.write", lambda *_, **__: 1 / 0)
    assert run(*whole) == 2  # everything was trained and then it died
    monkeypatch.undo()
    (checkpoint,) = (tmp_path / ".run.unfinished").rglob("checkpoint.safetensors")
    if what == "data":
        write_data(tmp_path / "data.csv", seed=1)
    if what == "damage":
        checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    before = checkpoint.read_bytes()
    seed = ("--seed", 7) if what == "settings" else ()
    capsys.readouterr()
    assert run(*whole, *seed) == 0
    assert ("it is kept as" in capsys.readouterr().err) == (what != "settings")
    (kept,) = (tmp_path / ".run.unfinished").rglob("checkpoint.safetensors")
    assert kept.read_bytes() == before
    assert run(*command(tmp_path, tmp_path / "fresh"), *seed) == 0
    assert numbers(tmp_path / "run") == numbers(tmp_path / "fresh")


def test_a_mistyped_seed_does_not_lose_a_run(tmp_path, capsys, monkeypatch):
    write_data(tmp_path / "data.csv")
    whole = command(tmp_path, tmp_path / "run")
    monkeypatch.setattr("setpoint.runs.training.Finished.write", lambda *_, **__: 1 / 0)
    assert run(*whole) == run(*whole, "--seed", 7) == 2
    monkeypatch.undo()
    assert "Going on" not in capsys.readouterr().err
    assert run(*whole) == 0
    assert "Going on" in capsys.readouterr().err


def test_stopping_by_hand_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    from setpoint.train.loop import Run

    write_data(tmp_path / "data.csv")
    step = Run.step

    def stopped(self, batch):
        if self.progress.history:
            raise KeyboardInterrupt
        return step(self, batch)

    monkeypatch.setattr(Run, "step", stopped)
    assert run(*command(tmp_path, tmp_path / "run")) == 130
    error = capsys.readouterr().err
    assert "The same command goes on from the last pass." in error
    assert "Traceback" not in error
