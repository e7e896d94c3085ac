"""``python -m benchmarks``: every benchmark by its name."""

import re
import subprocess
import sys
from pathlib import Path

from benchmarks.__main__ import known, main

ROOT = Path(__file__).parents[2]


def test_every_quick_benchmark_is_known_and_every_name_has_a_line():
    (quick,) = re.findall(r"^QUICK := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    names = known()
    assert set(quick.split()) <= set(names)
    assert all(names.values())


def test_an_unknown_name_lists_the_known_ones(capsys):
    assert main(["nothing"]) == 2
    assert "peers.reach" in capsys.readouterr().out


def test_options_go_to_the_benchmark(monkeypatch):
    calls = []
    monkeypatch.setattr(subprocess, "call", lambda command: calls.append(command) or 3)
    assert main(["peers.reach", "--quick"]) == 3
    assert calls == [[sys.executable, "-m", "benchmarks.peers.reach", "--quick"]]
