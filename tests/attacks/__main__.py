"""New cases of all attacks, until the time is up: ``python -m attacks --minutes 60``.

Says how many cases were run, and shows what was found with the numbers that make it again:
``python -m attacks --only "goals: spoilt" --case 1234``.
"""

import argparse
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from attacks.catalogue import ATTACKS, run

SLICE = 50  # cases of one attack at a time


def attack(name: str, start: int) -> tuple[str, int, list[str]]:
    """A slice of cases, warnings being errors as in the tests."""
    warnings.simplefilter("error")
    return (name, *run(name, range(start, start + SLICE), most=SLICE))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
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
    end, counts, findings = time.monotonic() + 60 * given.minutes, dict.fromkeys(given.only, 0), 0
    with ProcessPoolExecutor(given.jobs) as pool:
        for start in range(given.first, 10**12, SLICE):
            for name, count, found in pool.map(partial(attack, start=start), given.only):
                counts[name] += count
                findings += len(found)
                print(*found, sep="\n", end="\n" if found else "", flush=True)
            if time.monotonic() > end:
                break
    for name, count in counts.items():
        print(f"{count:10,} {name}")
    print(f"{sum(counts.values()):10,} cases from {given.first:,} on, {findings} findings")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
