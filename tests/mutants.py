"""Change one operator or number of the package at a time: do the tests that run it notice?

    python tests/mutants.py --record build/tests.json               # once: who calls which function
    python tests/mutants.py --map build/tests.json --count 300 --minutes 60 --seed 0
    python tests/mutants.py --map build/tests.json --only certificates/drift.py --count 20
    python tests/mutants.py --map build/tests.json --start 150      # the second half of the sample

Each mutant is the package with one change. It runs the tests that call the changed function, those
of its own room first, then the fastest, until one fails or does not end: the mutant is *noticed*.
Survivors are listed with their line: equivalent, or a test is missing. Sampled with a seed, so that
a run can be repeated; not part of CI. A map goes by the names of functions, so it outlives changes
above them. The map may have holes (a test that takes long, or whose file does): tests of the same
room that no map has are shown to the mutant, too.

All tests are imported once, in a copy of the repository; each mutant is a fork of that process
whose functions get the changed code. A change of what runs at import (a constant, a default) has a
process of its own, and the tests of its whole file.
"""

from __future__ import annotations

import argparse
import ast
import cProfile
import gc
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
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
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
UNKNOWN = 0.5
"""Seconds of a test that no map knows."""
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


def tests_of(path: Path, inside: str, callers: Callers, unknown: Iterable[str]) -> list[str]:
    """The tests that call a function, those of the whole file if it has no name.

    And of ``unknown`` tests, which no map has, those of the room.
    """
    by_name = callers[str(path)]
    found = by_name[inside] if inside else {test for tests in by_name.values() for test in tests}
    return sorted(found | {test for test in unknown if f"tests/{room_of(path)}/" in test})


def room_of(path: Path) -> str:
    """The folder of tests that belongs to a file of the package."""
    return path.relative_to(PACKAGE).parts[0]


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
    kept = set(found)
    others = sorted(test for test in found if test not in set(leaders))
    return [*(test for test in reversed(leaders) if test in kept), *others]


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


def changed(text: str, number: int) -> tuple[ast.Module, str, str]:
    """The tree with its change of this number, the function around it, the change in words."""
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
        node.op, node.operand = (
            ast.UAdd(),
            ast.Call(ast.Name("bool", ast.Load()), [node.operand], []),
        )
    where = f"line {node.lineno}: {before} -> {ast.unparse(node)}"
    return ast.fix_missing_locations(tree), around, where


def sampled(count: int, seed: int, only: str) -> list[tuple[Path, int]]:
    """Files and numbers of changes, each change as likely as the next."""
    files = [p for p in sorted((ROOT / PACKAGE).rglob("*.py")) if only in str(p)]
    every = [(p, i) for p in files for i in range(len(list(places(ast.parse(p.read_text())))))]
    return random.Random(seed).sample(every, min(count, len(every)))


def swap(path: Path, tree: ast.Module) -> bool:
    """Give the functions of a file the code of ``tree``; False if none of them changes."""
    new: dict[tuple[str, int], CodeType] = {}
    todo = [compile(tree, str(path), "exec")]
    while todo:
        code = todo.pop()
        new[code.co_qualname, code.co_firstlineno] = code
        todo += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    changes = 0
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename == str(path):
            code = new.get((one.__code__.co_qualname, one.__code__.co_firstlineno), one.__code__)
            changes += code != one.__code__
            one.__code__ = code
    return changes > 0


class Trials:
    """A plugin of pytest: instead of the tests, runs those of every mutant in a fork."""

    def __init__(self, folder: Path, given: argparse.Namespace) -> None:
        self.folder, self.given = folder, given
        self.seconds, self.callers = read_maps(given.map)
        self.items: dict[str, pytest.Item] = {}
        self.unknown: list[str] = []
        self.sound: dict[str, bool] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        named = {test.split("[")[0] for test in self.seconds}
        first = {test.split("[")[0]: test for test in reversed(self.items)}
        self.unknown = [test for name, test in first.items() if name not in named]
        self.seconds.update(dict.fromkeys(self.unknown, UNKNOWN))
        given, survivors, count = self.given, [], 0
        end = time.monotonic() + 60 * given.minutes
        again = None if given.again is None else given.again.read_text()
        for file, number in sampled(given.count, given.seed, given.only)[given.start :]:
            where = changed(file.read_text(), number)[2]
            mutant = f"SURVIVED {file.relative_to(ROOT / PACKAGE)} {where} ("
            if time.monotonic() < end and (again is None or mutant in again):
                found, line = self.tried(session, file.relative_to(ROOT), number)
                print("noticed " if found else "SURVIVED", line, found, flush=True)
                survivors += [] if found else [line]
                count += 1
        print(f"{count - len(survivors)} of {count} noticed; survivors:", *survivors, sep="\n  ")
        return True

    def tried(self, session: pytest.Session, path: Path, number: int) -> tuple[str, str]:
        """What notices a mutant, "" if nothing does, and the mutant in words."""
        file = self.folder / path
        before = file.read_text()
        tree, around, where = changed(before, number)
        tests = tests_of(path, around, self.callers, self.unknown)
        tests = [test for test in tests if test in self.items]
        chosen = fastest(tests, self.seconds, self.given.seconds, room_of(path))
        line = f"{path.relative_to(PACKAGE)} {where} ({len(chosen)} of {len(tests)} tests)"
        while True:
            file.write_text(ast.unparse(tree))  # for tests that start processes
            found = self.noticed(session, lambda: swap(file, tree), chosen)
            file.write_text(before)
            if found not in chosen or self.passes(session, found):
                return found, line
            chosen.remove(found)

    def passes(self, session: pytest.Session, test: str) -> bool:
        """Whether a test passes without any change, in a fork like those of the mutants."""
        if test not in self.sound:
            self.sound[test] = not self.noticed(session, lambda: True, [test])
        return self.sound[test]

    def noticed(self, session: pytest.Session, change: Callable[[], bool], tests: list[str]) -> str:
        """The test that fails, or "time" if they take too much of the processor; "" if all pass."""
        limit = int(30 + 4 * sum(self.seconds[test] for test in tests))
        items = [self.items[test] for test in tests]
        note = self.folder / "failed"

        def work() -> int:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            if not change():
                note.write_text("a process of its own")
                os.execv(sys.executable, [sys.executable, "-m", "pytest", "-x", *USUAL, *tests])
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    note.write_text(item.nodeid)
                    return 1
            return 0

        note.write_text("time")
        return note.read_text() if tests and forked(work, 60 + 20 * limit) != 0 else ""


def forked(work: Callable[[], int], seconds: float) -> int:
    """What ``work`` returns in a process of its own, silently; not 0 if it takes too long."""
    child = os.fork()
    if child == 0:
        os.setsid()
        told, sink = os.dup(2), os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(sink, stream)
        code = 1
        try:
            code = work()
        except BaseException:
            os.write(told, traceback.format_exc().encode())  # a mistake of this program
        finally:
            os._exit(code)
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
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_repository(folder)
        trials = Trials(folder, given)
        os.chdir(folder)
        sys.path[:0] = [str(folder / "src"), str(folder / "tests"), str(folder)]
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:3])
        there = sorted(map(str, (*_test_files(folder / "tests"), *_test_files(folder / "src"))))
        base = f"--basetemp={folder / 'temporary'}"
        return int(pytest.main(["-s", base, *USUAL, *there], plugins=[trials]))


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
    parser.add_argument("--again", type=Path, help="of the sample, the survivors in this output")
    given = parser.parse_args()
    if given.record is None and given.map is None:
        parser.error("name --record FILE or --map FILE")
    if given.record is not None:
        return record(given.record, given.tests)
    return run(given)


if __name__ == "__main__":
    sys.exit(main())
