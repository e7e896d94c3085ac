"""Error against the gap between groups on test data, beside the libraries people use for it.

Twenty core-minutes in all; rows are appended to benchmarks/results/fairness.jsonl, those already
there are skipped, so a run that was stopped goes on. What is not installed is left out: fairlearn
and fairret go into the same environment, TFCO into one of its own (benchmarks/peers).

    python -m benchmarks.fairness --quick            # two minutes, another file
    python -m benchmarks.fairness --minutes 20
    python -m benchmarks.fairness --methods TFCO     # in TFCO's environment
    python -m benchmarks.fairness --docs             # the tables into docs/groups.md
"""

import argparse
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import process_time
from typing import NamedTuple

from benchmarks.common import results
from benchmarks.common.pages import fill
from benchmarks.fairness.data import NAMES, parts
from benchmarks.fairness.report import table

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "fairness.jsonl"
PAGE = ROOT / "docs" / "groups.md"


class Cell(NamedTuple):
    """One method on one split, for all its tolerances."""

    data: str
    seed: int
    rule: str
    method: str


def main() -> None:
    options = results.parser(
        __doc__,
        "table",
        "docs",
        "out",
        quick="one seed of the smallest set",
        seeds=10,
        minutes=20.0,
    )
    options.add_argument("--methods", nargs="*", default=[""], help="only names that begin so")
    given = options.parse_args()
    out = given.out or (RESULTS.with_stem("fairness_quick") if given.quick else RESULTS)
    if not (given.table or given.docs):
        run(out, list(cells(given)), 2.0 if given.quick else given.minutes)
    shown = table(results.read(out))
    if given.docs:
        fill(PAGE, "table", shown)
    print(shown)


def cells(given: argparse.Namespace) -> Iterator[Cell]:
    """Seed by seed: a cut run is an even one. What is not installed is left out."""
    from benchmarks.fairness.methods import METHODS, NEEDS, RULES

    missing = [name for name, package in NEEDS.items() if find_spec(package) is None]
    for seed in range(1 if given.quick else given.seeds):
        for data in NAMES[:1] if given.quick else NAMES:
            for rule in RULES:
                for method in METHODS:
                    wanted = any(method.startswith(name) for name in given.methods)
                    if wanted and not any(method.startswith(name) for name in missing):
                        yield Cell(data, seed, rule, method)


def run(out: Path, todo: list[Cell], minutes: float) -> None:
    from benchmarks.fairness.judging import judged
    from benchmarks.fairness.methods import METHODS

    done = {Cell(*(row["cell"][name] for name in Cell._fields)) for row in results.read(out)}
    for cell in results.pending(todo, done.__contains__, minutes):
        method, tolerances = METHODS[cell.method]
        train, test = parts(cell.data, cell.seed)
        start = process_time()
        chances = method(train, test, cell.rule, tolerances, cell.seed)
        seconds = process_time() - start
        found = {f"{t:g}": judged(cell.rule, c, test) for t, c in chances.items()}
        row = {"cell": cell._asdict(), "seconds": seconds, "found": found}
        results.append(out, row, packages=("fairlearn", "fairret"))
        shown = {t: (round(f["error"], 4), round(f["gap"], 4)) for t, f in found.items()}
        print(*cell, round(seconds, 1), shown, flush=True)


if __name__ == "__main__":
    main()
