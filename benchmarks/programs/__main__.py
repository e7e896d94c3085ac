"""Every benchmark of docs/programs.md, one after the other, then the page.

    python -m benchmarks.programs                # at most an hour
    python -m benchmarks.programs --quick        # each for a look, at most two minutes in all

Each writes its rows as they are made, so one that runs out of its minutes keeps what it has.
"""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.common import results
from benchmarks.common.folder import ROOT

SHARES = {  # of the time, at most; what a part does not use goes to the next
    "speed": 0.2,
    "batches": 0.1,
    "large": 0.1,
    "backward": 0.05,
    "game": 0.1,
    "predicted": 0.1,
    "tables": 1.0,
}


def main() -> None:
    parser = results.parser(__doc__, "fresh", quick="a look")
    parser.add_argument("--minutes", type=float, default=None, help="of the clock, for all")
    options = parser.parse_args()
    minutes = options.minutes or (2 if options.quick else 58)
    ends = time.monotonic() + 60 * minutes
    flags = ["--quick"] * options.quick + ["--fresh"] * options.fresh
    for name, share in SHARES.items():
        seconds = min(share * 60 * minutes, ends - time.monotonic())
        command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.programs.{name}", *flags]
        print(f"\n{name}, at most {seconds:.0f} s", flush=True)
        try:
            subprocess.run(command, cwd=ROOT, timeout=max(seconds, 1), check=False)
        except subprocess.TimeoutExpired:
            print(f"{name} has used its time", flush=True)
    if not options.quick:
        page = [sys.executable, "-m", "benchmarks.programs.page"]
        subprocess.run(page, cwd=ROOT, check=False)


if __name__ == "__main__":
    main()
