"""Train on a parquet file of five million rows: seconds and memory of `setpoint train`.

python -m benchmarks large_table                 # some minutes on one core, 400 MB of disk
python -m benchmarks large_table --rows 200000   # a corner of it
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

CHUNK = 100_000
GOAL = "maximize recall subject to fpr <= 0.05"


def main() -> None:
    parser = results.parser(__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "table.parquet", rows)
        shell = "import sys; from setpoint.cli import main; sys.exit(main())"
        options = ["--label=y", f"--goal={GOAL}", "--model=linear", "--epochs=1", "--no-baseline"]
        train = ["train", "table.parquet", "--out=run", *options, "--batch-size=4096", "--quiet"]
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", shell, *train], cwd=folder, check=False)
        seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{rows:,} rows of 11 columns: exit code {done.returncode}, {seconds:.0f} s "
        f"({used.ru_utime:.0f} s of processor time), {used.ru_maxrss / 1024:,.0f} MB at the most"
    )


def write(path: Path, rows: int) -> None:
    """Ten numbers, a city and a label, some rows at a time."""
    random = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, CHUNK):
        size = min(CHUNK, rows - start)
        y = (random.random(size) < 0.2).astype(int)
        columns = {f"x{i}": random.normal(size=size) + 0.5 * y for i in range(10)}
        cities = np.array(["Rome", "Oslo"])[random.integers(0, 2, size)]
        table = pa.table(columns | {"city": cities, "y": y})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


if __name__ == "__main__":
    main()
