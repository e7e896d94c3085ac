"""Pipes, closed streams and signals: one line, the right exit code, nothing left behind."""

import os
import signal
import subprocess
import sys

import pytest
from cli.shell import run, write_data, write_scores

GOAL = ("--score", "s", "--label", "y", "--goal", "fpr <= 0.1")
MAIN = "import sys; from setpoint.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    return write_scores(tmp_path_factory.mktemp("streams") / "s.csv")


def shell(command, *words, script=MAIN, **how):
    """Run ``command`` in a shell, with the words of setpoint as "$@"."""
    given = [sys.executable, "-c", script, *map(str, words)]
    how = {"capture_output": True, "check": False, **how}
    return subprocess.run(["bash", "-c", command, "bash", *given], **how)


def test_a_pipe_and_standard_input_are_read(scores):
    direct = shell('"$@"', "certify", scores, *GOAL)
    assert direct.returncode == 0
    for name in ("-", "/dev/stdin"):
        piped = shell(f'cat {scores} | "$@"', "certify", name, *GOAL)
        assert (piped.returncode, piped.stdout) == (0, direct.stdout)
    substituted = shell(
        f'"$@" <(gzip -c {scores}) {" ".join(GOAL[:4])} --goal "fpr <= 0.1"', "certify"
    )
    assert substituted.stdout == direct.stdout


@pytest.mark.parametrize(("goal", "code"), [("fpr <= 0.1", 0), ("fpr <= 0.0001", 1)])
def test_a_reader_that_leaves_does_not_change_the_verdict(scores, goal, code):
    words = ("certify", scores, "--score", "s", "--label", "y", "--goal", goal, "--json")
    left = shell('"$@" | head -c 1 > /dev/null; exit ${PIPESTATUS[0]}', *words)
    assert (left.returncode, left.stderr) == (code, b"")
    gone = shell('"$@" | true; exit ${PIPESTATUS[0]}', *words)
    assert (gone.returncode, gone.stderr) == (code, b"")


def test_closed_streams(scores, tmp_path):
    words = ("certify", scores, *GOAL, "--out", tmp_path / "c.json")
    told = shell('"$@" >&-', *words)
    assert (told.returncode, told.stderr.count(b"\n")) == (0, 1)
    assert b"standard output is closed" in told.stderr
    assert shell('"$@" >&- 2>&- <&-', *words, "--force").returncode == 0
    assert shell('"$@" >&- 2>&-', "certify", "gone.csv", *GOAL).returncode == 2
    nothing = shell('"$@" <&-', "certify", "-", *GOAL)
    assert nothing.returncode == 2
    assert b"-: is empty" in nothing.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("check", "ENDLESS", "s.csv", "--score", "s", "--label", "y"),
        ("card", "ENDLESS"),
        ("decide", "s.csv", "--score", "s", "--certificate", "ENDLESS", "--out", "out"),
        ("watch", "c.json", "s.csv", "--score", "s", "--state", "ENDLESS"),
        (*("certify", "s.csv", *GOAL[:2], *GOAL[4:]), *("--plan", "ENDLESS", "--labels", "s.csv")),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("endless", ["/dev/zero", "pipe"])
def test_a_document_without_an_end_is_refused(
    scores, tmp_path, monkeypatch, capsys, words, endless
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").symlink_to(scores)
    assert run("certify", "s.csv", *GOAL, "--out", "c.json") == 0
    os.mkfifo("pipe")
    capsys.readouterr()
    assert run(*(endless if word == "ENDLESS" else word for word in words)) == 2
    assert f"{endless}" in capsys.readouterr().err


def test_a_full_disk_behind_standard_output(scores):
    full = shell('"$@" > /dev/full', "certify", scores, *GOAL)
    assert full.returncode == 2
    assert full.stderr.count(b"\n") == 1
    assert b"No space left on device" in full.stderr


STOPPED_IN = """
import os, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), int(sys.argv[2]))

sys.meta_path.insert(0, Finder())
from setpoint.cli import main
sys.argv[1:] = sys.argv[3:]
"""
DURING_IMPORT = STOPPED_IN.replace("sys.argv[1:] = ", "words = ") + "sys.exit(main(words))"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["setpoint.cli.common", "numpy", "setpoint.certificates.search"])
def test_a_signal_during_imports(scores, tmp_path, module, number):
    words = (module, int(number), "certify", scores, *GOAL, "--out", tmp_path / "c.json")
    stopped = shell('"$@"', *words, script=DURING_IMPORT)
    assert (stopped.returncode, stopped.stderr) == (128 + number, b"Stopped.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_imports_leaves_no_lock_and_no_draft(tmp_path, number):
    """`front` imports its training while it holds its lock, `predict` the model beside a draft."""
    data = write_data(tmp_path / "data.csv", rows=300)
    common = ("train", data, "--label", "churn", "--goal", "fpr <= 0.2", "--out", tmp_path / "run")
    assert run(*common, "--epochs", 1, "--model", "linear", "--no-baseline") in (0, 1)
    front = ("front", data, "--label", "churn", "--points", 3, "--out", tmp_path / "front")
    predict = ("predict", tmp_path / "run", data, "--out", tmp_path / "out.csv")
    for module, words in (("setpoint.pareto.goals", front), ("setpoint.runs.model", predict)):
        stopped = shell('"$@"', module, int(number), *words, script=DURING_IMPORT)
        assert stopped.returncode == 128 + number
        assert stopped.stderr.endswith(b"Stopped.\n")
    assert {path.name for path in tmp_path.iterdir()} == {"data.csv", "run", "front"}


DURING_WRITING = """
import os, sys
number = int(sys.argv[1])
fsync = os.fsync
def stopped(handle):
    os.kill(os.getpid(), number)
    fsync(handle)
os.fsync = stopped
from setpoint.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_file_is_written(scores, tmp_path, number):
    words = (int(number), "certify", scores, *GOAL, "--out", tmp_path / "c.json")
    stopped = shell('"$@"', *words, script=DURING_WRITING)
    assert (stopped.returncode, stopped.stderr) == (128 + number, b"Stopped.\n")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_a_draft_that_the_next_one_removes(scores, tmp_path):
    words = (int(signal.SIGKILL), "certify", scores, *GOAL, "--out", tmp_path / "c.json")
    assert shell('exec "$@"', *words, script=DURING_WRITING).returncode == -signal.SIGKILL
    (draft,) = tmp_path.iterdir()
    assert draft.name.endswith(".draft")
    assert run(*words[1:]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


def test_handlers_are_those_of_before(scores):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert run("certify", scores, *GOAL) == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_errors_are_short(tmp_path, capsys):
    long = "x" * 5000
    (tmp_path / "s.csv").write_text("s,y\n1,0\n")
    for words in (
        ("certify", tmp_path / "s.csv", "--score", long, "--goal", "coverage <= 0.5"),
        ("certify", tmp_path / "s.csv", "--score", "s", "--goal", long),
        ("certify", tmp_path / "s.csv", f"--{long}"),
        ("certify", os.path.join(tmp_path, "y" * 3000), *GOAL),
    ):
        assert run(*words) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert len(error) < 560  # 500 and the name of the program
