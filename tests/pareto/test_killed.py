import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from pareto.toys import Number, losses, noisy_data, patient, squares, x_of
from torch import nn

from setpoint import pareto_front
from setpoint.pareto import Front

PLAN = {"points": 6, "steps": 20, "order": "inward", "measure": x_of}

# A process that has imported torch but trained nothing forks one front after the other and kills
# each a moment after it has finished one more point; the last one may run to its end.
KILLER = """
import glob, os, signal, sys, time
import torch, torch._dynamo
from pareto.test_killed import PLAN
from pareto.toys import Number, patient
from setpoint import pareto_front

def start():
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        pareto_front(Number, patient, folder=sys.argv[1], **PLAN)
        os._exit(0)
    return child

def finished():
    return len(glob.glob(sys.argv[1] + "/point-*/checkpoint.safetensors"))

killed = 0
for attempt in range(3):
    before, child = finished(), start()
    while finished() == before and not os.waitpid(child, os.WNOHANG)[0]:
        time.sleep(0.001)
    time.sleep(0.01 * attempt)
    os.kill(child, signal.SIGKILL)
    killed += os.waitpid(child, 0)[1] == signal.SIGKILL
assert os.waitpid(start(), 0)[1] == 0
print(killed)
"""


def timeless(front):
    """All numbers but the seconds."""
    return [replace(point, seconds=0.0) for point in front.points]


def in_process(code, folder, **options):
    paths = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.fixture(scope="module")
def whole():
    """The front that nobody interrupts, on one process."""
    return pareto_front(Number, squares, **PLAN)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_front_killed_at_any_moment_ends_with_the_same_numbers(tmp_path, whole):
    out, error = in_process(KILLER, tmp_path / "front").communicate(timeout=300)
    assert out.strip() == "3", error
    assert timeless(Front.load(tmp_path / "front")) == timeless(whole)
    left = [path.name for path in (tmp_path / "front").rglob("*") if path.is_file()]
    assert sorted(left) == ["checkpoint.safetensors"] * 6 + ["front.json"]


PARENT = """
import sys
from pareto.test_killed import PLAN
from pareto.toys import Number, patient
from setpoint import pareto_front

if __name__ == "__main__":
    pareto_front(Number, patient, folder=sys.argv[1], processes=2, **PLAN)
"""


@pytest.mark.slow
def test_processes_give_the_same_numbers_and_leave_with_a_killed_parent(tmp_path, whole):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    code = f"import runpy, sys; runpy.run_path({str(script)!r}, run_name='__main__')"
    folder = tmp_path / "front"
    parent = in_process(code, folder, start_new_session=True)
    while not list(folder.glob("point-*/checkpoint.safetensors")):
        assert parent.poll() is None, parent.communicate()[1]
        time.sleep(0.01)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()  # ends when the last worker has let go of the pipe
    first = Front.load(folder)
    assert 1 <= len(first.points) < 6
    done = pareto_front(Number, squares, folder=folder, processes=2, **PLAN)
    assert timeless(done) == timeless(whole)


def test_finished_points_are_read_back_and_not_trained_again(tmp_path):
    first = pareto_front(Number, squares, folder=tmp_path, **PLAN)

    def untouchable(model):
        found = squares(model)
        if torch.is_grad_enabled():
            pytest.fail("trained again")
        return found

    again = pareto_front(Number, untouchable, folder=tmp_path, **PLAN)
    assert again.points == first.points
    written = json.loads((tmp_path / "front.json").read_text())
    assert len(written["points"]) == 6
    (tmp_path / "point-002" / "checkpoint.safetensors").unlink()
    with pytest.raises(pytest.fail.Exception, match="trained again"):
        pareto_front(Number, untouchable, folder=tmp_path, **PLAN)


@pytest.mark.parametrize(
    ("change", "named"),
    [({"steps": 21}, "steps"), ({"seed": 1}, "seed"), ({"method": "linear"}, "method")],
)
def test_the_folder_of_another_front_is_refused(tmp_path, change, named):
    options = {"points": 3, "steps": 2}
    pareto_front(Number, squares, folder=tmp_path, **options)
    with pytest.raises(ValueError, match=f"holds another front \\({named} was"):
        pareto_front(Number, squares, folder=tmp_path, **(options | change))


def test_other_data_need_another_folder(tmp_path):
    x, y = noisy_data()
    options = {"points": 3, "steps": 2, "folder": tmp_path}
    pareto_front(make_linear, losses, (x, y), **options)
    with pytest.raises(ValueError, match="holds another front \\(data was '400 rows"):
        pareto_front(make_linear, losses, (x, 1 - y), **options)


def make_linear():
    return nn.Linear(3, 1)


def test_functions_that_cannot_be_sent_are_told_before_anything_starts(tmp_path):
    with pytest.raises(TypeError, match=r"Define them at the top of a file.*processes=1"):
        pareto_front(lambda: Number(), patient, points=3, steps=2, processes=2)


@pytest.mark.slow
def test_an_error_in_a_worker_comes_back():
    with pytest.raises(ValueError, match="trouble in a worker"):
        pareto_front(Number, troubled, points=3, steps=2, processes=2)


def troubled(model):
    if torch.is_grad_enabled():
        raise ValueError("trouble in a worker")
    return squares(model)
