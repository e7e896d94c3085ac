"""``setpoint train`` under torchrun: killed on two processes, gone on with three, as if by one."""

import json
import os
import subprocess
import sys
from time import time

import numpy as np
import pytest
from cli.shell import run
from safetensors.numpy import load_file

from setpoint.train import load_checkpoint

GOAL = "maximize recall subject to fpr <= 0.1"
EPOCHS, ROWS = 5, 1203

# rank 1 is killed (kill -9) in the middle of the fourth pass, if asked for
PROGRAM = """
import os, pathlib, signal, sys, time
from setpoint import cli
from setpoint.train import loop
step = loop.Run.step
def dying(self, batch):
    if os.environ["RANK"] == "1" and len(self.progress.history) == 3 and self.losses:
        pathlib.Path(os.environ["DIES"]).write_text(str(time.time()))
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, batch)
if os.environ.get("DIES"):
    loop.Run.step = dying
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.fixture
def data(tmp_path):
    """Three parquet files of different lengths that are one table."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    y = rng.random(ROWS) < 0.3
    x = rng.normal(size=(ROWS, 3)) + y[:, None]
    city = np.where(rng.random(ROWS) < 0.5, "Oslo", "Rome")
    table = {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "city": city, "y": y.astype(int)}
    folder = tmp_path / "shards"
    folder.mkdir()
    for i, (start, stop) in enumerate([(0, 100), (100, 900), (900, ROWS)]):
        part = {name: column[start:stop] for name, column in table.items()}
        parquet.write_table(arrow.table(part), folder / f"part-{i}.parquet")
    return folder


def command(data, out):
    given = ("train", data, "--label", "y", "--goal", GOAL, "--out", out, "--model", "linear")
    return [*map(str, given), "--epochs", str(EPOCHS), "--batch-size", "64", "--no-baseline"]


def torchrun(folder, processes, arguments, **environment):
    """The finished process, and when that was."""
    program = folder / "program.py"
    program.write_text(PROGRAM)
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    done = subprocess.run(
        [sys.executable, *launcher, program, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done, time()


def history(folder):
    lines = (folder / "history.jsonl").read_text().splitlines()
    return [{k: v for k, v in json.loads(line).items() if k != "seconds"} for line in lines]


@pytest.mark.slow
def test_a_killed_rank_ends_all_and_another_number_of_processes_goes_on(data, tmp_path):
    out, unfinished = tmp_path / "run", tmp_path / ".run.unfinished"
    killed, ended = torchrun(tmp_path, 2, command(data, out), DIES=str(tmp_path / "moment"))
    assert killed.returncode != 0
    assert "another process of this run has ended" in killed.stderr
    assert "mistake of ours" not in killed.stderr
    assert ended - float((tmp_path / "moment").read_text()) < 60
    (checkpoint,) = unfinished.rglob("*.safetensors")
    _, record = load_checkpoint(checkpoint.parent)  # whole
    assert 1 <= len(record["progress"]["history"]) <= 3  # a pass may be too short for one
    assert not out.exists()

    done, _ = torchrun(tmp_path, 3, command(data, out))
    assert done.returncode == 0, done.stderr
    assert "Going on where a run that was stopped has left off." in done.stderr
    assert done.stdout.count("Written to") == 1  # by one of them
    assert not unfinished.exists()

    alone = tmp_path / "alone"
    assert run(*command(data, alone)) == 0
    ours, theirs = history(out), history(alone)
    assert len(ours) == len(theirs) == EPOCHS
    for one, other in zip(ours, theirs, strict=True):
        assert one["loss"] == pytest.approx(other["loss"], rel=1e-4)
        assert one["validation"] == pytest.approx(other["validation"], abs=0.01)
    ours, theirs = (load_file(folder / "scores.safetensors") for folder in (out, alone))
    assert ours.keys() == theirs.keys()
    for name in ours:
        if name.endswith("labels"):  # every example once, in the order of the file
            np.testing.assert_array_equal(ours[name], theirs[name])
        else:  # sums over three processes in another order, for 55 steps in single precision
            np.testing.assert_allclose(ours[name], theirs[name], atol=1e-3)
    assert (
        sum(len(ours[f"{part}/labels"]) for part in ("train", "validation", "calibration")) == ROWS
    )
    certificates = [json.loads((f / "certificate.json").read_text()) for f in (out, alone)]
    assert certificates[0]["status"] == certificates[1]["status"]
