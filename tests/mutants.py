"""Change one operator or number of the package at a time: do the tests that run it notice?

    python tests/mutants.py --record build/tests.json               # once: who runs which line
    python tests/mutants.py --map build/tests.json --count 300 --minutes 60 --seed 0
    python tests/mutants.py --map build/tests.json --only certificates/drift.py --count 20

Each mutant is a copy of the repository with one change. It runs the tests that execute the changed
line (those of its file, if the line runs at import), fastest first, until one fails or does not
end: the mutant is *noticed*. Survivors are listed with their line: equivalent, or a test is
missing. Sampled with a seed, so that a run can be repeated; not part of CI.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src") / "setpoint"
SWAPS = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And},
}
USUAL = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not browser and not slow")
LONGEST = 4.0
"""Processor seconds of a test that mutants are shown to."""
LIBRARIES = ("numpy", "scipy.stats", "torch", "pandas", "sklearn.base", "hypothesis")
"""Imported once, before the processes of the mutants are forked."""
Lines = dict[str, dict[int, list[str]]]
"""The tests that run each line of each file."""


# ---- which tests run a line -----------------------------------------------------------------
class Recorder:
    """A plugin of pytest: the lines that each test runs, and its seconds."""

    def __init__(self) -> None:
        coverage: Any = importlib.import_module("coverage")
        self.coverage = coverage.Coverage(
            data_file=None, source=[str(ROOT / PACKAGE)], config_file=False
        )
        self.seconds: dict[str, float] = defaultdict(float)
        signal.signal(signal.SIGPROF, _too_long)
        self.coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.coverage.switch_context(nodeid)
        signal.setitimer(signal.ITIMER_PROF, LONGEST)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += 1e6 if report.failed else report.duration

    def pytest_runtest_logfinish(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self.coverage.switch_context("")

    def save(self, file: Path) -> None:
        """Write the seconds of the tests, and their lines by file."""
        self.coverage.stop()
        data = self.coverage.get_data()
        lines = {
            str(Path(path).relative_to(ROOT)): {
                str(line): sorted(set(tests) - {""})
                for line, tests in data.contexts_by_lineno(path).items()
            }
            for path in data.measured_files()
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"seconds": self.seconds, "lines": lines}))


def _too_long(*_: Any) -> None:
    pytest.fail(f"takes more than {LONGEST} s: no mutant will wait for it")


def read_maps(files: list[Path]) -> tuple[dict[str, float], Lines]:
    """The seconds of all tests, and the tests of each line."""
    seconds: dict[str, float] = {}
    lines: Lines = defaultdict(lambda: defaultdict(list))
    for file in files:
        content = json.loads(file.read_text())
        seconds |= content["seconds"]
        for path, tests in content["lines"].items():
            for line, names in tests.items():
                lines[path][int(line)] += names
    return seconds, lines


def tests_of(path: str, first: int, last: int, lines: Lines) -> list[str]:
    """The tests that run one of these lines; those of the whole file if none does."""
    here = {test for line in range(first, last + 1) for test in lines[path][line]}
    return sorted(here or {test for tests in lines[path].values() for test in tests})


def fastest(tests: list[str], seconds: dict[str, float], most: float) -> list[str]:
    """The fastest tests, ``most`` seconds of them; the fastest of every file comes first."""
    known = (test for test in tests if seconds.get(test, 0.0) < 1e6)
    ordered = sorted(known, key=lambda test: seconds.get(test, 0.0))
    leaders = list({test.split("::")[0]: test for test in reversed(ordered)}.values())
    found, total = [], 0.0
    for test in [*reversed(leaders), *(test for test in ordered if test not in set(leaders))]:
        total += seconds.get(test, 0.0)
        if total > most and found:
            break
        found.append(test)
    return found


# ---- mutants --------------------------------------------------------------------------------
def places(tree: ast.AST) -> Iterator[tuple[Any, str]]:
    """The nodes that can be changed, and how."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in SWAPS:
            yield node, "operator"
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            yield node, "comparison"
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, "number"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node, "not"


def changed(text: str, number: int) -> tuple[str, Any, str]:
    """The source with its change of this number, the node, and the change in words."""
    tree = ast.parse(text)
    node, kind = list(places(tree))[number]
    before = ast.unparse(node)
    if kind == "operator":
        node.op = SWAPS[type(node.op)]()
    elif kind == "comparison":
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif kind == "number":
        node.value = node.value + 1
    else:
        node.op, node.operand = ast.UAdd(), ast.Call(ast.Name("bool"), [node.operand], [])
    where = f"line {node.lineno}: {before} -> {ast.unparse(node)}"
    return ast.unparse(ast.fix_missing_locations(tree)), node, where


def sampled(count: int, seed: int, only: str) -> list[tuple[Path, int]]:
    """Files and numbers of changes, each change as likely as the next."""
    files = [p for p in sorted((ROOT / PACKAGE).rglob("*.py")) if only in str(p)]
    every = [(p, i) for p in files for i in range(len(list(places(ast.parse(p.read_text())))))]
    return random.Random(seed).sample(every, min(count, len(every)))


def noticed(folder: Path, tests: list[str], seconds: float) -> bool:
    """Whether one of the tests fails, or they do not end; in a process of their own."""
    child = os.fork()
    if child == 0:
        os.setsid()
        sink = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(sink, stream)
        os.chdir(folder)
        sys.path[:0] = [str(folder / "src"), str(folder / "tests"), str(folder)]
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:3])
        os._exit(int(pytest.main(["-x", *USUAL, *tests])))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status != 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def copy_repository(folder: Path) -> None:
    """The files of the last commit."""
    content = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(content.stdout)) as archive:
        archive.extractall(folder, filter="data")


def run(given: argparse.Namespace) -> int:
    """Try the mutants; print each, then the survivors."""
    seconds, lines = read_maps(given.map)
    for library in LIBRARIES:
        importlib.import_module(library)
    end, survivors, count = time.monotonic() + 60 * given.minutes, [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_repository(folder)
        for file, number in sampled(given.count, given.seed, given.only):
            if time.monotonic() > end:
                break
            path = file.relative_to(ROOT)
            text, node, where = changed(file.read_text(), number)
            tests = tests_of(str(path), node.lineno, node.end_lineno, lines)
            chosen = fastest(tests, seconds, given.seconds)
            (folder / path).write_text(text)
            limit = 60 + 10 * sum(seconds.get(test, 0.0) for test in chosen)
            seen = bool(chosen) and noticed(folder, chosen, limit)
            (folder / path).write_text(file.read_text())
            count += 1
            line = f"{path.relative_to(PACKAGE)} {where} ({len(chosen)} of {len(tests)} tests)"
            print("noticed " if seen else "SURVIVED", line, flush=True)
            survivors += [] if seen else [line]
    print(f"{count - len(survivors)} of {count} noticed; survivors:", *survivors, sep="\n  ")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path, metavar="FILE", help="write who runs which line")
    parser.add_argument("--tests", nargs="+", default=[], help="with --record: these alone")
    parser.add_argument("--map", type=Path, nargs="+", metavar="FILE", help="what --record wrote")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=60.0, help="start no mutant after")
    parser.add_argument("--seconds", type=float, default=20.0, help="of tests for each mutant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="files whose path contains this")
    given = parser.parse_args()
    if given.record is None and given.map is None:
        parser.error("name --record FILE or --map FILE")
    if given.record is not None:
        recorder = Recorder()
        code = pytest.main([*USUAL, *given.tests], plugins=[recorder])
        recorder.save(given.record)
        return int(code)
    return run(given)


if __name__ == "__main__":
    sys.exit(main())
