"""How often the monitor raises false alarms, how soon a true one, on real streams and beside peers.

    python -m benchmarks monitoring                 # everything but peers, about 25 minutes
    python -m benchmarks monitoring --quick         # two minutes
    python -m benchmarks monitoring --only delays   # one part
    python -m benchmarks monitoring --peers peers/bin/python   # a Python with mapie and river
    python -m benchmarks monitoring --picture       # docs/images/monitoring.png from the results

Results go to benchmarks/results/monitoring.json, part by part.
"""

from __future__ import annotations

import json
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from benchmarks.common import results
from benchmarks.monitoring import label_policies, real, simulate, year
from setpoint import __version__
from setpoint.certificates import certify

HERE = Path(__file__).parent
RESULTS = HERE.parent / "results" / "monitoring.json"


def speed(rows: int) -> dict[str, float]:
    """Rows per second of one core: certified rate, alerts and ranks, in updates of a million."""
    random = np.random.default_rng(0)
    labels = random.random(1_000_000) < 0.1
    scores = random.normal(size=len(labels)) + 2 * labels
    monitor = certify(scores[:20_000], labels[:20_000], "fpr <= 0.01").monitor()
    began = time.process_time()
    for _ in range(rows // len(scores)):
        monitor.update(scores, labels)
    took = time.process_time() - began
    return {"rows": float(monitor.rows), "seconds": took, "state bytes": len(monitor.to_json())}


def parts(quick: bool, book: dict[str, Any], most: int) -> dict[str, Any]:
    """By name what to run: an iterable of results, each with more than the one before."""
    streams, shrink = (100, 20) if quick else (2000, 1)
    return {
        "false alarms": lambda: [simulate.false_alarms(streams, shrink)],
        "delays": lambda: [simulate.delays(100 if quick else 2000)],
        "label-free false alarms": lambda: simulate.label_free_false_alarms(
            min(streams, most), shrink, book.get("label-free false alarms")
        ),
        "label-free delays": lambda: [simulate.label_free_delays(10 if quick else 100)],
        "labels": lambda: label_policies.main(*(10, 20) if quick else (200, 60)),
        "real streams": real.main,
        "random orders": lambda: real.control(10 if quick else 200),
        "a year": lambda: [year.main(2 if quick else 20)],
        "speed": lambda: [speed(5_000_000 if quick else 100_000_000)],
    }


def main() -> None:
    """Run the parts that were asked for and write the results."""
    parser = results.parser(__doc__, quick="a look")
    parser.add_argument("--picture", action="store_true")
    parser.add_argument("--only", nargs="+")
    more = "label-free false alarms: go on up to so many streams"
    parser.add_argument("--streams", type=int, default=2000, help=more)
    parser.add_argument("--peers", metavar="PYTHON")
    given = parser.parse_args()
    path = RESULTS.with_name("monitoring_quick.json") if given.quick else RESULTS
    book = json.loads(path.read_text()) if path.exists() else {}
    if given.picture:
        from benchmarks.monitoring.pictures import draw

        draw(book)
        return
    versions = {"setpoint": __version__, "numpy": np.__version__, "scipy": scipy.__version__}
    book["versions"] = {**versions, "python": platform.python_version()}
    todo = parts(given.quick, book, given.streams)
    if given.peers:
        todo = {"peers": lambda: [peers(given.peers, given.quick)]}
    for name, part in todo.items():
        if given.only and name not in given.only:
            continue
        began = time.perf_counter()
        for found in part():
            book[name] = found
            results.write_document(path, book)
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
        for key, value in book[name].items():
            print(f"  {key}: {value}", flush=True)


def peers(python: str, quick: bool) -> dict[str, Any]:
    """The delays of other monitors, in an environment of their own."""
    words = ["--runs", "2", "--rows", "20000"] if quick else ["--runs", "30", "--rows", "40000"]
    told = subprocess.run(
        [python, "-m", "benchmarks.monitoring.peers", *words],
        stdout=subprocess.PIPE,
        check=True,
        cwd=HERE.parents[1],
    )
    found: dict[str, Any] = json.loads(told.stdout)
    return found


if __name__ == "__main__":
    main()
