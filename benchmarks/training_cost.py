"""What `setpoint train` costs: seconds of one core by rows, columns and model.

    python -m benchmarks training_cost            # some minutes
    python -m benchmarks training_cost --quick    # the two rows with a limit

Each row is a fresh process with one thread: reading the csv file, training, the baseline (of
linear and mlp), the certificate and the page. Rows with a limit fail the benchmark when they take
longer.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.common import results

HERE = Path(__file__).parent
CACHE = str(Path(tempfile.gettempdir()) / "setpoint_bytecode")
GOAL = "maximize recall subject to fpr <= 0.1"
SHELL = "import sys; from setpoint.cli import main; sys.exit(main())"
LIMITS = {(1_100, 5, "linear"): 5.0, (1_100, 5, "auto"): 7.0, (100_000, 20, "auto"): 30.0}
CASES = [
    (rows, columns, model)
    for rows, columns in ((1_100, 5), (10_000, 20), (100_000, 20), (100_000, 100))
    for model in ("linear", "mlp", "auto")
]


def write(path: Path, rows: int, columns: int) -> None:
    """Normal features, two of which say something about the label."""
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, columns))
    y = x[:, 0] + 0.5 * x[:, 1] + random.normal(size=rows) > 1.5
    names = ",".join(f"x{i}" for i in range(columns)) + ",y"
    np.savetxt(path, np.column_stack([x, y]), "%.5g", ",", header=names, comments="")


def seconds(rows: int, columns: int, model: str) -> float:
    """Processor time of one training in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "table.csv", rows, columns)
        train = ["train", "table.csv", "--out=run", "--label=y", f"--goal={GOAL}", "--quiet"]
        # bytecode beside the sources as in any installation: compiling it is not training
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": CACHE}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", SHELL, *train, f"--model={model}"]
        subprocess.run(command, cwd=folder, env=env, stdout=subprocess.DEVNULL, check=False)
        if not (Path(folder) / "run" / "run.json").exists():  # 1 may only mean: not certified
            raise RuntimeError(
                f"setpoint train of {rows:,} rows with --model={model} wrote no run."
            )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Measure, print a table and write the results; 1 if a limit is broken."""
    parser = results.parser(__doc__, quick="only the rows with a limit")
    cases = list(LIMITS) if parser.parse_args().quick else CASES
    seconds(1_100, 5, "auto")  # fills the cache of bytecode, that of LightGBM too
    found, broken = [], False
    print("| rows | columns | model | seconds | limit |\n| ---: | ---: | --- | ---: | ---: |")
    for case in cases:
        taken, limit = seconds(*case), LIMITS.get(case)
        broken |= limit is not None and taken > limit
        found.append({"rows": case[0], "columns": case[1], "model": case[2], "seconds": taken})
        shown = "" if limit is None else f"{limit:g}"
        print(f"| {case[0]:,} | {case[1]} | {case[2]} | {taken:.1f} | {shown} |", flush=True)
    if cases is CASES:
        results.rewrite(results.RESULTS / "training_cost.jsonl", found)
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
