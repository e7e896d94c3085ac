"""`setpoint certify` on parquet files that do not fit into memory: seconds and memory.

python -m benchmarks distributed.scores                        # 100,000,000 rows, 1.3 GB of disk
python -m benchmarks distributed.scores --millions 1000        # ten times as long, 13 GB of disk
python -m benchmarks distributed.scores --quick                # 5,000,000 rows
python -m benchmarks distributed.scores --ray                  # by workers of Ray, too
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import results

CHUNK = 1_000_000
IN_A_FILE = 10  # million rows
GOALS = ("fpr <= 0.001", "recall >= 0.95", "precision >= 0.9")
SHELL = "import sys; from setpoint.cli import main; sys.exit(main())"


def main() -> None:
    parser = results.parser(__doc__, quick="a look")
    parser.add_argument("--millions", type=int, default=100)
    parser.add_argument("--goals", nargs="+", default=GOALS)
    parser.add_argument("--ray", action="store_true")
    given = parser.parse_args()
    count = 5 if given.quick else given.millions
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        write(Path(folder), count)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        seconds = time.perf_counter() - start
        print(
            f"{count:,} million rows: {size / 1e9:.1f} GB, written in {seconds:.0f} s", flush=True
        )
        for goal in given.goals:
            certify(folder, goal)
            if given.ray:
                certify(folder, goal, "--ray")


def certify(folder: str, goal: str, *more: str) -> None:
    """Run the command in a process of its own, so that its memory is known."""
    words = ["certify", folder, "--score", "s", "--label", "y", "--goal", goal, *more]
    start, before = time.perf_counter(), _processor_time()
    done = subprocess.run(
        [sys.executable, "-c", SHELL, *words], check=False, capture_output=True, text=True
    )
    seconds, spent = time.perf_counter() - start, _processor_time() - before
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    told = (done.stdout or done.stderr).splitlines()
    print(
        f"{' '.join([goal, *more])}: exit code {done.returncode}, {seconds:.0f} s "
        f"({spent:.0f} s of one core), "
        f"{peak:,.0f} MB at the most; {' '.join(told[1].split())}",
        flush=True,
    )


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write(folder: Path, millions: int) -> None:
    """Files of ten million rows: scores in double precision, a tenth of the rows positive."""
    for first in range(0, millions, IN_A_FILE):
        writer = None
        for seed in range(first, min(first + IN_A_FILE, millions)):
            random = np.random.default_rng(seed)
            y = (random.random(CHUNK) < 0.1).astype(np.int8)
            table = pa.table({"s": random.standard_normal(CHUNK) + 3 * y, "y": y})
            path = folder / f"{first:05}.parquet"
            writer = writer or pq.ParquetWriter(path, table.schema, use_dictionary=["y"])
            writer.write_table(table)
        if writer is not None:
            writer.close()


if __name__ == "__main__":
    main()
