"""Change one operator or number of the package at a time: do the tests of its room notice?

    python tests/mutants.py --count 300 --minutes 60 --seed 0
    python tests/mutants.py --only certificates/drift.py --count 20

Each mutant is a copy of the source with one change, put before the package on the path. It runs the
tests of its room (``tests/<room>``), the golden files and the laws, and is *noticed* if one fails
or does not end. Survivors are listed with their line: equivalent, or a test is missing. Sampled
with a seed, so that a run can be repeated; not part of CI.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "setpoint"
SWAPS = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And},
}
WHOLE = ["tests/golden", "tests/test_laws.py"]
"""What runs the whole of the training side; the tests of the room come first."""


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
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


def changed(text: str, number: int) -> tuple[str, str]:
    """The source with its change of this number, and what it was in words."""
    tree = ast.parse(text)
    node, kind = list(places(tree))[number]
    before = ast.unparse(node)
    if kind == "operator":
        node.op = SWAPS[type(node.op)]()  # type: ignore[attr-defined]
    elif kind == "comparison":
        node.ops[0] = SWAPS[type(node.ops[0])]()  # type: ignore[attr-defined]
    elif kind == "number":
        node.value = node.value + 1  # type: ignore[attr-defined]
    else:
        node.op, node.operand = ast.UAdd(), ast.Call(ast.Name("bool"), [node.operand], [])  # type: ignore[attr-defined]
    where = f"line {node.lineno}: {before} -> {ast.unparse(node)}"  # type: ignore[attr-defined]
    return ast.unparse(ast.fix_missing_locations(tree)), where


def tests_of(file: Path) -> list[str]:
    """The tests of a file's room, and those of everything."""
    room = file.relative_to(SOURCE).parts[0].removesuffix(".py").strip("_")
    near = [ROOT / "tests" / room, ROOT / "tests" / f"test_{room}.py"]
    found = [str(path.relative_to(ROOT)) for path in near if path.exists()]
    return [*found, *WHOLE]


def noticed(folder: Path, tests: list[str], seconds: float) -> bool:
    """Whether a test fails, or does not end."""
    command = [
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not browser and not slow",
    ]
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, *command, *tests],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def sampled(count: int, seed: int, only: str) -> list[tuple[Path, int]]:
    """Files and numbers of changes, each change as likely as the next."""
    files = [p for p in sorted(SOURCE.rglob("*.py")) if only in str(p.relative_to(SOURCE))]
    every = [(p, i) for p in files for i in range(len(list(places(ast.parse(p.read_text())))))]
    return random.Random(seed).sample(every, min(count, len(every)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=60.0, help="start no mutant after")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds of a mutant's tests")
    given = parser.parse_args()
    end, survivors, count = time.monotonic() + 60 * given.minutes, [], 0
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "setpoint"
        shutil.copytree(SOURCE, package)
        for file, number in sampled(given.count, given.seed, given.only):
            if time.monotonic() > end:
                break
            inside = package / file.relative_to(SOURCE)
            text, where = changed(file.read_text(), number)
            inside.write_text(text)
            seen = noticed(Path(folder), tests_of(file), given.timeout)
            inside.write_text(file.read_text())
            count += 1
            line = f"{file.relative_to(SOURCE)} {where}"
            print("noticed " if seen else "SURVIVED", line, flush=True)
            survivors += [] if seen else [line]
    print(f"{count - len(survivors)} of {count} noticed; survivors:", *survivors, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
