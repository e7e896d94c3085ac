"""Attacks by signals: a command is stopped at a random moment of its life, imports included.

A command runs as a shell starts it, in a folder of its own and with a folder of its own for
temporary files, and gets Ctrl-C or SIGTERM some time after its start. It must end with 130 or 143
and one line (or have been done already, with its usual exit code), leave what it read as it was
and what it writes whole or absent, and no drafts, locks or temporary files.

While Python itself starts, before ``main`` is called, nobody can answer: then it must have ended by
the signal, as every program of Python does.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from attacks.crashes import COMMANDS, REPLACES, UNFINISHED, content, stage

import setpoint

SCRIPT = "import sys; from setpoint.cli import main; sys.exit(main())"
"""What `pip` writes as the command `setpoint`."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def started(folder: Path, words: tuple[str, ...]) -> subprocess.Popen[str]:
    """A command in ``folder``, in a process of its own; temporary files go to a folder beside."""
    other = folder.with_name("temporary")
    other.mkdir(exist_ok=True)
    path = os.pathsep.join([str(Path(setpoint.__file__).parents[1]), *sys.path])
    env = {**os.environ, "TMPDIR": str(other), "PYTHONPATH": path}
    given: dict[str, Any] = {"cwd": folder, "env": env, "text": True}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **given,
    )


@cache
def usual(name: str) -> tuple[float, int, Any]:
    """The seconds of a command, its exit code, and what it leaves."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "w"
        shutil.copytree(stage(), folder)
        start = time.monotonic()
        process = started(folder, COMMANDS[name])
        _, said = process.communicate()
        assert process.returncode in (0, 1), (name, said)
        return time.monotonic() - start, process.returncode, content(folder)


def stopped_at(name: str, moment: float, number: int) -> str:
    """Send the signal so many seconds after the start; "early", "stopped" or "done"."""
    _, code, whole = usual(name)
    before = content(stage())
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "w"
        shutil.copytree(stage(), folder)
        process = started(folder, COMMANDS[name])
        time.sleep(moment)
        process.send_signal(number)
        _, said = process.communicate(timeout=300)
        after = content(folder)
        told = (name, moment, number, process.returncode, said, sorted(after))
        changed = REPLACES.get(name, ())
        assert all(after.get(read) == before[read] for read in before if read not in changed), told
        assert all(after.get(one) in (before[one], whole[one]) for one in changed), told
        debris = {one for one in set(after) - set(whole) if not UNFINISHED.fullmatch(one)}
        assert not debris, (told, debris)
        for made in set(after) & set(whole) - set(before):
            parts = made == "front" and after[made].items() <= whole[made].items()
            assert parts or after[made] == whole[made], told  # points that the next front keeps
        left = [p.name for p in folder.with_name("temporary").iterdir() if "torch" not in p.name]
        assert not left, (told, left)
        return _verdict(process.returncode, code, number, said, told)


def _verdict(ended: int, code: int, number: int, said: str, told: Any) -> str:
    if ended == code:
        assert "Stopped" not in said, told
        return "done"
    if "Fatal Python error: init" in said:  # not even Python was ready
        return "early"
    if ended == -number:  # Python was not ready
        assert "in main" not in said, told
        return "early"
    assert ended == 128 + number, told
    assert "Traceback" not in said, told
    assert said.endswith("Stopped.\n"), told
    assert said.count("Stopped.") == 1, told
    return "stopped"


def interrupt(random: Random) -> None:
    """A random command, moment and signal."""
    name = random.choice(sorted(COMMANDS))
    stopped_at(name, random.random() * usual(name)[0], random.choice(SIGNALS))
