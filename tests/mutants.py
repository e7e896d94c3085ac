"""Change one operator or number of the package at a time: do the tests that run it notice?

    python tests/mutants.py --record build/tests.json               # once: who calls which function
    python tests/mutants.py --map build/tests.json --count 300 --minutes 60 --seed 0
    python tests/mutants.py --map build/tests.json --only certificates/drift.py --count 20
    python tests/mutants.py --map build/tests.json --start 150      # the second half of the sample

Each mutant is a copy of the repository with one change. It runs the tests that call the changed
function (all of its file, if the line runs at import), those of its own room first, then the
fastest, until one fails or does not end: the mutant is *noticed*. Survivors are listed with their
line: equivalent, or a test is missing. Sampled with a seed, so that a run can be repeated; not part
of CI. A map goes by the names of functions, so it outlives changes above them.
"""

from __future__ import annotations

import argparse
import ast
import cProfile
import importlib
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
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
LONGEST = 30
"""Processor seconds of a file of tests; those that it does not reach are shown to no mutant."""
PARAMETERS = 1
"""So many of the parameters of a test."""
LIBRARIES = ("numpy", "scipy.stats", "torch", "pandas", "sklearn.base")
"""Imported once, before the processes of the mutants are forked."""
Callers = dict[str, dict[str, set[str]]]
"""By file and qualified name of a function, the tests that call it."""


# ---- which tests run a function -------------------------------------------------------------
class Recorder:
    """A plugin of pytest: writes the functions of the package that each test calls."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.profile = cProfile.Profile()
        self.seconds = 0.0

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Of a test with many parameters keep some: the others run the same lines."""
        kept: dict[str, int] = defaultdict(int)
        chosen = []
        for item in items:
            name = item.nodeid.split("[")[0]
            kept[name] += 1
            chosen += [item] if kept[name] <= PARAMETERS else []
        items[:] = chosen

    def pytest_runtest_logstart(self) -> None:
        self.seconds = 0.0
        self.profile = cProfile.Profile()
        self.profile.enable()

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds += float("inf") if report.failed else report.duration

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.profile.disable()
        files = ((getattr(e.code, "co_filename", ""), e.code) for e in self.profile.getstats())
        called = {
            (str(Path(file).relative_to(ROOT)), code.co_qualname.split(".<")[0])
            for file, code in files
            if file.startswith(str(ROOT / PACKAGE))
        }
        with self.file.open("a") as out:
            out.write(json.dumps([nodeid, self.seconds, sorted(called)]) + "\n")


def record(file: Path, tests: list[str]) -> int:
    """Write what the tests call; each file of tests has a process and :data:`LONGEST` seconds."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    found = sorted(one for path in tests for one in _test_files(ROOT / path))
    for library in LIBRARIES:
        importlib.import_module(library)
    for one in found:

        def work(one: Path = one) -> int:
            resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
            return int(pytest.main([*USUAL, str(one)], plugins=[Recorder(file)]))

        print(one.relative_to(ROOT), forked(work, 60.0 * LONGEST), flush=True)
    return 0


def _test_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    named = [*path.rglob("test_*.py"), *(path / "setpoint").glob("*/__init__.py")]
    found = (one.parent if one.name == "__init__.py" else one for one in named)
    return [one for one in found if not set(one.parts) & {"browser", "benchmarks", "attacks"}]


def read_maps(files: list[Path]) -> tuple[dict[str, float], Callers]:
    """The seconds of all tests, and the tests that call each function."""
    seconds: dict[str, float] = {}
    callers: Callers = defaultdict(lambda: defaultdict(set))
    for line in (line for file in files for line in file.read_text().splitlines()):
        test, seconds[test], called = json.loads(line)
        for path, name in called:
            callers[path][name].add(test)
    return seconds, callers


def tests_of(path: str, inside: str, callers: Callers) -> list[str]:
    """The tests that call a function; those of the whole file if it has no name."""
    if inside:
        return sorted(callers[path][inside])
    return sorted({test for tests in callers[path].values() for test in tests})


def fastest(tests: list[str], seconds: dict[str, float], most: float, room: str = "") -> list[str]:
    """The fastest tests, ``most`` seconds of them; the fastest of every file comes first.

    Tests of ``room`` come before all others.
    """
    known = (test for test in tests if seconds[test] < most)
    ordered = sorted(known, key=lambda test: (f"/{room}/" not in test, seconds[test]))
    leaders = list({test.split("::")[0]: test for test in reversed(ordered)}.values())
    found, total = [], 0.0
    for test in [*reversed(leaders), *(test for test in ordered if test not in set(leaders))]:
        total += seconds[test]
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


def function_at(tree: ast.Module, line: int) -> str:
    """The qualified name of the outermost function around a line; "" outside of all."""
    names: list[str] = []
    body: list[Any] = list(tree.body)
    while body:
        inner = body.pop()
        if getattr(inner, "end_lineno", 0) < line or getattr(inner, "lineno", line + 1) > line:
            continue
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return ".".join([*names, inner.name])
        names += [inner.name] if isinstance(inner, ast.ClassDef) else []
        body = list(getattr(inner, "body", []))
    return ""


def changed(text: str, number: int) -> tuple[str, str, str]:
    """The source with its change of this number, the function around it, the change in words."""
    tree = ast.parse(text)
    node, kind = list(places(tree))[number]
    around = function_at(tree, node.lineno)
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
    return ast.unparse(ast.fix_missing_locations(tree)), around, where


def sampled(count: int, seed: int, only: str) -> list[tuple[Path, int]]:
    """Files and numbers of changes, each change as likely as the next."""
    files = [p for p in sorted((ROOT / PACKAGE).rglob("*.py")) if only in str(p)]
    every = [(p, i) for p in files for i in range(len(list(places(ast.parse(p.read_text())))))]
    return random.Random(seed).sample(every, min(count, len(every)))


def noticed(folder: Path, tests: list[str], seconds: float) -> bool:
    """Whether one of the tests fails, or they take more than ``seconds`` of the processor."""

    def work() -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1,) * 2)
        os.chdir(folder)
        sys.path[:0] = [str(folder / "src"), str(folder / "tests"), str(folder)]
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:3])
        return int(pytest.main(["-x", *USUAL, *tests]))

    return forked(work, 60 + 20 * seconds) != 0  # a machine in use, or tests that wait


def collected(folder: Path, tests: set[str]) -> set[str]:
    """Those of the tests that exist; an unknown one would look like a failure."""

    class Collector:
        def pytest_collection_finish(self, session: pytest.Session) -> None:
            (folder / "collected.json").write_text(json.dumps([i.nodeid for i in session.items]))

    def work() -> int:
        os.chdir(folder)
        sys.path[:0] = [str(folder / "src"), str(folder / "tests"), str(folder)]
        files = sorted({test.split("::")[0] for test in tests})
        there = [file for file in files if (folder / file).exists()]
        return int(pytest.main([*USUAL, "--collect-only", *there], plugins=[Collector()]))

    forked(work, 1200.0)
    return tests & set(json.loads((folder / "collected.json").read_text()))


def forked(work: Callable[[], int], seconds: float) -> int:
    """What ``work`` returns in a process of its own, silently; not 0 if it takes too long."""
    child = os.fork()
    if child == 0:
        os.setsid()
        sink = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(sink, stream)
        os._exit(work())
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


def copy_repository(folder: Path) -> None:
    """The files of the last commit."""
    content = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(content.stdout)) as archive:
        archive.extractall(folder, filter="data")


def run(given: argparse.Namespace) -> int:
    """Try the mutants; print each, then the survivors."""
    seconds, callers = read_maps(given.map)
    for library in LIBRARIES:
        importlib.import_module(library)
    end, survivors, count = time.monotonic() + 60 * given.minutes, [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_repository(folder)
        known = collected(folder, set(seconds))
        some = fastest(sorted(known), seconds, 5.0)[:20]
        if noticed(folder, some, 300.0):
            raise RuntimeError(f"Without any change these tests fail: {some}")
        for file, number in sampled(given.count, given.seed, given.only)[given.start :]:
            if time.monotonic() > end:
                break
            path = file.relative_to(ROOT)
            text, around, where = changed(file.read_text(), number)
            tests = [test for test in tests_of(str(path), around, callers) if test in known]
            room = path.relative_to(PACKAGE).parts[0].replace("monitoring", "monitor")
            chosen = fastest(tests, seconds, given.seconds, room)
            (folder / path).write_text(text)
            limit = 30 + 4 * sum(seconds[test] for test in chosen)
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
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="write who calls which function"
    )
    parser.add_argument(
        "--tests", nargs="+", default=["tests", "src"], help="with --record: these alone"
    )
    parser.add_argument("--map", type=Path, nargs="+", metavar="FILE", help="what --record wrote")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=60.0, help="start no mutant after")
    parser.add_argument("--seconds", type=float, default=20.0, help="of tests for each mutant")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="leave out so many of the sample")
    parser.add_argument("--only", default="", help="files whose path contains this")
    given = parser.parse_args()
    if given.record is None and given.map is None:
        parser.error("name --record FILE or --map FILE")
    if given.record is not None:
        return record(given.record, given.tests)
    return run(given)


if __name__ == "__main__":
    sys.exit(main())
