"""New cases of all attacks, until the time is up: ``python -m attacks --minutes 60``.

Says how many cases were run, and shows what was found with the numbers that make it again:
``python -m attacks --only "goals: spoilt" --case 1234``.
"""

import argparse
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor

from attacks.catalogue import ATTACKS, run

SLICE = 2.0  # seconds of one attack at a time: all get the same time


def size(rate: float) -> int:
    """The cases of a slice."""
    return max(1, int(rate * SLICE))


def attack(name: str, numbers: range) -> tuple[str, int, float, list[str]]:
    """A slice of cases with its seconds, warnings being errors as in the tests."""
    warnings.simplefilter("error")
    start = time.monotonic()
    count, found = run(name, numbers, most=len(numbers))
    return name, count, time.monotonic() - start, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--cases", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--only", choices=ATTACKS, nargs="+", default=list(ATTACKS))
    parser.add_argument("--first", type=int, default=1_000_000, help="the number of the first case")
    parser.add_argument("--case", type=int, help="this case alone")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    if given.case is not None:
        warnings.simplefilter("error")
        found = [text for name in given.only for text in run(name, [given.case])[1]]
        print(*found or ["nothing"], sep="\n")
        return bool(found)
    end, findings = time.monotonic() + 60 * given.minutes, 0
    counts, rates = dict.fromkeys(given.only, 0), dict.fromkeys(given.only, 1.0)
    with ProcessPoolExecutor(given.jobs) as pool:
        while time.monotonic() < end and sum(counts.values()) < given.cases:
            parts = {
                name: range(given.first + counts[name], given.first + counts[name] + size(r))
                for name, r in rates.items()
            }
            for name, count, seconds, found in pool.map(attack, parts, parts.values()):
                counts[name] += count
                rates[name] = count / seconds
                findings += len(found)
                print(*found, sep="\n", end="\n" if found else "", flush=True)
            print(f"\r{sum(counts.values()):,} cases", end="", file=sys.stderr, flush=True)
    for name, count in counts.items():
        print(f"{count:10,} {name}")
    print(f"{sum(counts.values()):10,} cases from {given.first:,} on, {findings} findings")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
