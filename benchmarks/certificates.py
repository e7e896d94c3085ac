"""Do certificates keep their promise, and at what price? Simulation with known truth.

    python -m benchmarks certificates            # every cell, about 50 minutes on one core
    python -m benchmarks certificates --minutes 20   # so many of them; the next run goes on
    python -m benchmarks certificates --quick    # two minutes: fewer cells, 300 draws each
    python -m benchmarks certificates --mapie    # fill MAPIE's column (pip install mapie)
    python -m benchmarks certificates --large    # 10,000,000 scores: time and memory
    python -m benchmarks certificates --shell    # `setpoint certify` on 10,000 rows, five times
    python -m benchmarks certificates --docs     # the tables into docs/certificates_measured.md

Scores are Gaussian (the positives 2.5 deviations higher), as they are or tied: rounded to halves,
to 21 whole numbers, to bfloat16. So the true rates at any threshold are known, and broken promises
can be counted. Beside each certificate stand the naive threshold (the best on the same data)
and, where it has the goal, MAPIE's risk control. Results are appended to a JSON file, cell by cell;
cells that are there already are not run again, unless they have fewer draws or are marked "old"
(recorded by earlier code).
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import fields
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.common import results
from benchmarks.simulation.goals import NAMES, cells
from benchmarks.simulation.methods import MAPIE_GOALS
from benchmarks.simulation.page import write
from benchmarks.simulation.running import beside, fine, line, run
from benchmarks.simulation.truth import Cell
from setpoint import __version__

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "certificates.json"
PAGE = HERE.parent / "docs" / "certificates_measured.md"
LARGE = """
import json, resource, sys, time
import numpy as np
from setpoint.certificates import certify
random = np.random.default_rng(0)
y = random.random(10_000_000) < 0.1
s = random.normal(size=len(y)) + 2.5 * y
began = time.perf_counter(), time.process_time()
c = certify(s, y, sys.argv[1])
took = time.perf_counter() - began[0], time.process_time() - began[1]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([c.status, *took, peak, "torch" in sys.modules]))
"""


def main() -> None:
    parser = results.parser(__doc__)
    for flag in ("quick", "mapie", "large", "shell", "docs"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--minutes", type=float, default=None, help="start no cell after so many")
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    path = given.out or (RESULTS.with_name("certificates_quick.json") if given.quick else RESULTS)
    book = json.loads(path.read_text()) if path.exists() else {"rows": []}
    book |= {"setpoint": __version__, "numpy": np.__version__, "python": platform.python_version()}
    book["order"] = list(NAMES)
    path.parent.mkdir(exist_ok=True)
    if given.large:
        book["large"] = large()
        save(path, book)
    elif given.shell:
        book["shell"] = shell()
        save(path, book)
    elif given.mapie:
        fill_mapie(book, path, given.minutes)
    elif not given.docs:
        simulate(book, path, given.quick, given.minutes)
    if given.docs:
        write(PAGE, book)


def simulate(book: dict[str, Any], path: Path, quick: bool, minutes: float | None) -> None:
    """Run what is missing."""
    began = time.monotonic()
    done = {_cell(row) for row in book["rows"] if not row.get("old")}
    wanted = list(cells(quick))
    for cell in wanted:
        late = minutes is not None and time.monotonic() - began > 60 * minutes
        if cell in done or late:
            continue
        row = run(cell)
        book["rows"] = [other for other in book["rows"] if _place(other) != _place(row)] + [row]
        save(path, book)
        print(line(row), flush=True)
    bad = [row for row in book["rows"] if not fine(row)]
    print(f"{len(book['rows'])} of {len(wanted)} cells, {len(bad)} with too many broken promises")
    sys.exit(1 if bad else 0)


def fill_mapie(book: dict[str, Any], path: Path, minutes: float | None) -> None:
    """MAPIE on the same draws, where it has the goal."""
    import mapie

    book["mapie"], began = mapie.__version__, time.monotonic()
    for row in book["rows"]:
        if row["name"] not in MAPIE_GOALS or "MAPIE" in row["found"]:
            continue
        if minutes is not None and time.monotonic() - began > 60 * minutes:
            return
        row["found"] |= beside(_cell(row))
        save(path, book)
        print(line(row), flush=True)


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row is about, whatever the number of draws."""
    return tuple(row[field.name] for field in fields(Cell) if field.name != "draws")


def _cell(row: dict[str, Any]) -> Cell:
    return Cell(**{field.name: row[field.name] for field in fields(Cell)})


def large() -> dict[str, Any]:
    """10,000,000 scores, each goal in a process of its own."""
    found = {}
    for goal in ("fpr <= 0.001", "recall >= 0.95", "precision >= 0.9", "f_score(1) >= 0.6"):
        out = subprocess.run(
            [sys.executable, "-c", LARGE, goal], capture_output=True, text=True, check=True
        )
        status, seconds, cpu, peak, torch_too = json.loads(out.stdout)
        assert not torch_too, "certify imports torch"
        found[goal] = {"status": status, "seconds": seconds, "cpu": cpu, "megabytes": peak}
        print(f"{goal:20} {status}  {seconds:.1f} s, {cpu:.1f} of CPU  {peak:.0f} MB", flush=True)
    return found


def shell() -> dict[str, float]:
    """The whole command, import included, after one to warm up: medians of five."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.csv"
        random = np.random.default_rng(0)
        y = random.random(10_000) < 0.2
        table = np.column_stack([random.normal(size=10_000) + 2.5 * y, y])
        np.savetxt(file, table, delimiter=",", header="s,y", comments="", fmt=["%.17g", "%d"])
        program = str(Path(sys.executable).with_name("setpoint"))
        command = [program, "certify", str(file), "--score=s", "--label=y", "--goal=fpr <= 0.01"]
        wall, cpu = [], []
        for _ in range(6):
            began, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, capture_output=True)
            now = resource.getrusage(resource.RUSAGE_CHILDREN)
            wall.append(time.perf_counter() - began)
            cpu.append(now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)
    found = {"seconds": median(wall[1:]), "cpu": median(cpu[1:])}
    print(f"setpoint certify, 10,000 rows: {found['seconds']:.2f} s, {found['cpu']:.2f} of CPU")
    return found


def save(path: Path, book: dict[str, Any]) -> None:
    """Completely or not at all."""
    part = path.with_suffix(".part")
    results.write_document(part, book)
    os.replace(part, path)


if __name__ == "__main__":
    main()
