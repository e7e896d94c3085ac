"""Attacks on files: every command that writes is stopped before each of its file operations.

A command runs in a process of its own (forked from a server that has imported everything). Before
file operation number ``k`` inside its folder, as Python's audit events count them, it is killed,
stopped by Ctrl-C or SIGTERM, or the operation fails as on a full disk. Then: what was read is as
it was, what is written is the old content or the new, never a part and never nothing where there
was something; what ended by itself left no drafts and said one line; and the same command, given
again, ends as it would have without the accident, and leaves nothing else behind.
"""

from __future__ import annotations

import atexit
import errno
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import matplotlib.figure  # noqa: F401 (imported before processes are forked, as all below)
from cli.shell import run, write_data, write_scores

import setpoint.cli.watch
import setpoint.pareto
import setpoint.reports.watch_page
import setpoint.runs.training  # noqa: F401
from setpoint import cli

for command in cli.COMMANDS:
    cli.make_parser(command)

CONTEXT = multiprocessing.get_context("forkserver")
LATE = ("torch._dynamo", "lightgbm", "setpoint.axes.evaluation", "setpoint.pareto.goals")
"""What commands import as they go: seconds, which the server pays once."""
CONTEXT.set_forkserver_preload(["attacks.crashes", *LATE])
OPERATIONS = frozenset(
    {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "setpoint.exchange"}
)
SECONDS = 600.0
SCORED = ("s.csv", "--score", "s", "--label", "y", "--goal", "fpr <= 0.1")
GOAL = ("--label", "churn", "--goal", "maximize recall subject to fpr <= 0.1", "--out", "run")
SHORT = ("--epochs", "1", "--batch-size", "200", "--model", "linear", "--no-baseline")
BETWEEN = ("--label", "churn", "--points", "3", "--steps", "2", "--quiet", "--keep", "customer_id")
SCORES = ("s.csv", "--score", "s")
DECIDED = (*SCORES, "--certificate", "c.json")
LABELLED = (*SCORES, "--label", "y", "--certificate", "c.json")
WATCHED = ("watch", "c.json", *SCORES, "--label", "y", "--state", "w.json", "--recalibrate")
COMMANDS: dict[str, tuple[str, ...]] = {
    "certify": ("certify", *SCORED, "--out", "out"),
    "certify again": ("certify", *SCORED, "--confidence", "0.9", "--out", "c.json", "--force"),
    "certify with a page": (
        *("certify", *SCORED, "--out", "old", "--page", "old.html", "--no-script", "--force"),
    ),
    "decide": ("decide", *DECIDED, "--out", "out.csv"),
    "decide again": ("decide", *DECIDED, "--out", "old", "--force"),
    "card": ("card", "c.json", "--out", "out"),
    "card again": ("card", "c.json", "--out", "old", "--force"),
    "report": ("report", *LABELLED, "--out", "out"),
    "report again": ("report", *LABELLED, "--out", "old", "--force"),
    "report of a run": ("report", "run", "--force"),
    "plan": ("plan", *SCORES, "--goal", "fpr <= 0.1", "--out", "out.csv"),
    "plan again": ("plan", *SCORES, "--goal", "fpr <= 0.1", "--out", "old", "--force"),
    "check": ("check", "c.json", *SCORES, "--label", "y"),
    "watch": ("watch", "c.json", *SCORES, "--state", "state.json"),
    "watch with a page": ("watch", "c.json", *SCORES, "--state", "out", "--page", "out.html"),
    "recalibrate": (*WATCHED, "--out", "out"),
    "recalibrate again": (*WATCHED, "--out", "old", "--force"),
    "predict": ("predict", "run", "data.csv", "--out", "out.csv"),
    "predict again": ("predict", "run", "data.csv", "--out", "old", "--force"),
    "train": ("train", "data.csv", *GOAL[:-1], "new", *SHORT[:4]),  # a sum of three models
    "train again": ("train", "data.csv", *GOAL, *SHORT, "--seed", "1", "--force"),
    "front": ("front", "data.csv", *BETWEEN, "--out", "front"),
}
"""Of the commands that write all but the demo, which writes its folder as `train` does."""
AGAIN = {name: ("old",) for name in COMMANDS if name.endswith("again")}
REPLACES: dict[str, tuple[str, ...]] = {
    **AGAIN,
    "certify again": ("c.json",),
    "certify with a page": ("old", "old.html"),
    "report of a run": ("run",),
    "plan again": ("old", "old.plan.json"),
    "recalibrate": ("w.json",),
    "recalibrate again": ("w.json", "old"),
    "train again": ("run",),
}
"""What is there before: all of it is replaced, or nothing, once a next command has been there."""
ONCE = ("recalibrate", "recalibrate again")
"""What counts twice if it is done twice: it is done once if the accident came after it."""
OLD = "old", "old.html", "old.plan.json"
DRAFT = re.compile(r"\..*\.draft")
UNFINISHED = re.compile(r"\.(new|run)\.unfinished")


def arrange(folder: Path) -> None:
    """The files that the commands read, and what they replace."""
    os.chdir(folder)
    write_scores(folder / "s.csv", rows=300)
    write_data(folder / "data.csv", rows=400)
    for name in OLD:
        (folder / name).write_text("old")
    write_scores(folder / "before.csv", rows=200, seed=1)
    state = ("watch", "c.json", "before.csv", "--score", "s", "--label", "y", "--state", "w.json")
    first = ("certify", *SCORED, "--out", "c.json")
    for words in (first, ("train", "data.csv", *GOAL, *SHORT), state):
        assert run(*words) in (0, 1)


def child(folder: str, words: tuple[str, ...], stop_at: int, how: str, output: str) -> None:
    """Run a command, stopped at a file operation; its output and operations go to files."""
    handle = os.open(output, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(handle, stream)
    os.chdir(folder)
    from setpoint import _files

    exchange, count = _files._exchange, 0

    def heard(*names: Path) -> bool:
        sys.audit("setpoint.exchange", *map(str, names))
        return exchange(*names)

    def hook(event: str, given: tuple[Any, ...]) -> None:
        nonlocal count
        if event not in OPERATIONS or not _is_inside(folder, event, given):
            return
        count += 1
        if count == stop_at + 1:
            _stop(how)

    _files._exchange = heard
    sys.addaudithook(hook)
    code = run(*words)
    sys.stdout.flush()
    os.write(handle, f"\nOPERATIONS {count}\n".encode())
    os._exit(code)


def _is_inside(folder: str, event: str, given: tuple[Any, ...]) -> bool:
    """Whether a file in the folder is changed, by what Python audits."""
    path, mode = given[0], given[1] if event == "open" else ""
    if isinstance(path, int) or path is None:
        return False
    reads = event == "open" and (
        (isinstance(mode, str) and not set(mode) & set("wax+"))
        or (mode is None and not given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    )
    return not reads and os.path.abspath(os.fsdecode(path)).startswith(folder)


def _stop(how: str) -> None:
    if how == "full disk":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.kill(os.getpid(), getattr(signal, how))


def launched(
    folder: Path, words: tuple[str, ...], stop_at: int = -1, how: str = ""
) -> tuple[int, str, int]:
    """The exit code of a command in ``folder``, what it said, and how often it touched a file."""
    with tempfile.TemporaryDirectory() as other:
        output = Path(other) / "said"
        given = (str(folder), words, stop_at, how, str(output))
        process = CONTEXT.Process(target=child, args=given)
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            raise AssertionError(f"{words} still runs after {SECONDS:.0f} s")
        said, _, count = output.read_text(errors="replace").partition("\nOPERATIONS ")
    return process.exitcode, said, int(count or 0)


def content(path: Path, top: bool = True) -> Any:
    """A file without what time and place change in it; a folder's files by name.

    Drafts inside of a run's folder are left out: the next program that writes there removes them.
    """
    if path.is_dir():
        inside = (one for one in sorted(path.iterdir()) if not DRAFT.fullmatch(one.name) or top)
        return {one.name: content(one, top=False) for one in inside}
    if path.parent.name.startswith("point-"):  # with the seconds that it took
        return "the weights of a point"
    text = path.read_bytes()
    if path.suffix == ".jsonl":  # notes of the same check, once more
        text = b"\n".join(text.splitlines()[:1])
    for odd in (
        rb'"(created|seconds|digest|sha256:)[^,}\n]*',
        rb"sha256:[0-9a-f]+",
        rb"\d{4}-\d\d-\d\dT[^\"<]*",
    ):
        text = re.sub(odd, b"", text)
    return re.sub(rb"\d+\.\d+ ?(s|seconds)\b", b"", text)


@cache
def stage() -> Path:
    """A folder with the files that the commands read, to be copied."""
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # for the server
    made = Path(tempfile.mkdtemp(prefix="setpoint-attack-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    process = CONTEXT.Process(target=arrange, args=(made,))
    process.start()
    process.join()
    assert process.exitcode == 0
    return made


@cache
def undisturbed(name: str) -> tuple[int, int, Any]:
    """The exit code of a command, how many file operations it takes, and what it leaves."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "w"
        shutil.copytree(stage(), folder)
        code, said, count = launched(folder, COMMANDS[name])
        assert code in (0, 1), (name, said)
        return code, count, content(folder)


def stopped(name: str, stop_at: int, how: str) -> None:
    """One accident, and the same command after it."""
    code, _, whole = undisturbed(name)
    before = content(stage())
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "w"
        shutil.copytree(stage(), folder)
        ended, said, _ = launched(folder, COMMANDS[name], stop_at, how)
        after = content(folder)
        told = (name, stop_at, how, ended, said, sorted(after))
        changed = REPLACES.get(name, ())
        assert all(after.get(read) == before[read] for read in before if read not in changed), told
        for one in changed:
            assert after.get(one) in (before[one], whole[one]), told
        there = {read: after.get(read) == before[read] for read in changed}
        assert ended == -signal.SIGKILL or len(set(there.values())) < 2, told
        if ended != -signal.SIGKILL:
            _left_in_order(ended, said, how, set(after) - set(whole), told)
        if name in ONCE:  # any command that names the state finishes what was begun
            launched(folder, ("watch", "c.json", "s.csv", "--score", "z", "--state", "w.json"))
            found = {one: told for one, told in content(folder).items() if not DRAFT.match(one)}
            if found["w.json"] != before["w.json"]:
                assert found == whole, (told, sorted(found))
                return
            assert not any(found.get(one) == whole[one] != before.get(one) for one in whole), told
        again, said, _ = launched(folder, COMMANDS[name])
        if again == 2 and "--force" in said:  # the accident came after the last name was given
            again, said, _ = launched(folder, (*COMMANDS[name], "--force"))
        assert again == code, (told, again, said)
        last = content(folder)
        assert last == whole, (told, sorted(last), sorted(whole), said)


def _left_in_order(ended: int, said: str, how: str, debris: set[str], told: Any) -> None:
    """What a command that ended by itself says and leaves."""
    kept = {name for name in debris if UNFINISHED.fullmatch(name)}  # of use to the next run
    assert debris == kept, (told, debris)
    if how == "full disk":
        assert ended in (0, 1, 2), told
        assert "Traceback" not in said, told
        assert ended != 2 or "No space left on device" in said, told
    elif ended not in (0, 1):  # it may have been done already
        assert ended == 128 + getattr(signal, how), told
        assert said.strip().endswith("Stopped."), told


HOWS = ("SIGKILL", "SIGINT", "SIGTERM", "full disk")


def crash(random: Random) -> None:
    """A random command, operation and accident."""
    name = random.choice(sorted(COMMANDS))
    stopped(name, random.randrange(undisturbed(name)[1]), random.choice(HOWS))
