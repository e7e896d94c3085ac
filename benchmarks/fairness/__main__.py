"""Error against the gap between groups on test data, deterministic or not.

Twenty core-minutes in all; rows are appended to benchmarks/results/fairness.jsonl, those already
there are skipped, so a run that was stopped goes on (TFCO in an environment of its own):

    python -m benchmarks.fairness --quick            # two minutes, another file
    python -m benchmarks.fairness --minutes 15
    python -m benchmarks.fairness --table            # of what has been run so far
    python -m benchmarks.fairness --docs             # the same into docs/groups.md
"""

import argparse
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.fairness.data import NAMES, parts
from benchmarks.fairness.report import table

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "fairness.jsonl"
PAGE = ROOT / "docs" / "groups.md"
NEEDS = {"fairlearn": "fairlearn", "fairret": "fairret", "TFCO": "tensorflow"}


class Cell(NamedTuple):
    """One classifier."""

    data: str
    seed: int
    rule: str
    method: str
    tolerance: float


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--minutes", type=float, default=15.0, help="of one core; start no more")
    options.add_argument("--methods", nargs="*", default=[""], help="only names that begin so")
    options.add_argument("--quick", action="store_true", help="one seed of the smallest set")
    options.add_argument("--table", action="store_true", help="run nothing, print the table")
    options.add_argument("--docs", action="store_true", help="write the table into the page")
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    out = given.out or (RESULTS.with_stem("fairness_quick") if given.quick else RESULTS)
    if not (given.table or given.docs):
        run(out, list(cells(given)), 2.0 if given.quick else given.minutes)
    shown = table(read(out))
    if given.docs:
        page = PAGE.read_text()
        start, end = (page.index(f"<!-- {mark} -->") for mark in ("table", "end of table"))
        PAGE.write_text(f"{page[:start]}<!-- table -->\n{shown}\n{page[end:]}")
    print(shown)


def read(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.open()] if file.exists() else []


def cells(given: argparse.Namespace) -> Iterator[Cell]:
    """Rule by rule, seed by seed: a cut run is an even one. What is not installed is left out."""
    from benchmarks.fairness.methods import METHODS, RULES

    missing = [name for name, package in NEEDS.items() if find_spec(package) is None]
    for rule in reversed(RULES):
        for seed in range(1 if given.quick else given.seeds):
            for data in NAMES[:1] if given.quick else NAMES:
                for method, (_, tolerances) in METHODS.items():
                    wanted = any(method.startswith(name) for name in given.methods)
                    if wanted and not any(method.startswith(name) for name in missing):
                        yield from (Cell(data, seed, rule, method, t) for t in tolerances)


def run(out: Path, todo: list[Cell], minutes: float) -> None:
    from benchmarks.fairness.methods import METHODS

    done = {Cell(*(row["cell"][name] for name in Cell._fields)) for row in read(out)}
    end = process_time() + 60 * minutes
    for cell in todo:
        if cell in done:
            continue
        if process_time() > end:
            print("Time is up; run again to go on.")
            return
        train, test = parts(cell.data, cell.seed)
        start = process_time()
        chances = METHODS[cell.method][0](train, test, cell.rule, cell.tolerance, cell.seed)
        seconds = process_time() - start
        row = {"cell": cell._asdict(), **judged(cell.rule, chances, test), "seconds": seconds}
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        shown = {name: round(row[name], 4) for name in ("error", "gap", "gap_low", "seconds")}
        print(*cell, shown, flush=True)


def judged(rule: str, chances: np.ndarray, test: Any) -> dict[str, Any]:
    """Error, rates by group, the gap and what it is at least, on the test part."""
    from setpoint.results.intervals import clopper_pearson

    rates, ends = {}, []
    for name in sorted(set(test.g)):
        inside = test.g == name
        own = chances[inside & (test.y == 1) if rule == "equal opportunity" else inside]
        rates[name] = float(own.mean())
        sure = 1 - 0.05 / (2 * len(set(test.g)))
        ends.append(clopper_pearson(round(own.sum()), len(own), sure))
    low = max(0.0, max(end.low for end in ends) - min(end.high for end in ends))
    wrong = np.where(test.y == 1, 1 - chances, chances)
    gap = max(rates.values()) - min(rates.values())
    dice = float(np.mean((chances > 0.01) & (chances < 0.99)))
    return {"error": float(wrong.mean()), "gap": gap, "gap_low": low, "rates": rates, "dice": dice}


if __name__ == "__main__":
    main()
