"""One certified threshold among very many scores: seconds and memory, the scores never stored.

python -m benchmarks.distributed.scores                        # 100,000,000 on one core
python -m benchmarks.distributed.scores --millions 1000        # ten times as long
python -m benchmarks.distributed.scores --quick                # 5,000,000
"""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import results
from setpoint import fpr
from setpoint.train.streaming_certificate import certified_threshold

CHUNK = 1_000_000


def main() -> None:
    parser = results.parser(__doc__, quick="a look")
    parser.add_argument("--millions", type=int, default=100)
    given = parser.parse_args()
    count = 5 if given.quick else given.millions
    spent = {"drawing": 0.0}

    def chunks() -> Iterator[tuple[NDArray[np.float32], NDArray[np.int8]]]:
        """A million scores at a time, made anew on every pass as a file would be read anew."""
        labels = (np.arange(CHUNK) % 10 == 0).astype(np.int8)
        for seed in range(count):
            start = time.process_time()
            scores = np.random.default_rng(seed).standard_normal(CHUNK, np.float32)
            spent["drawing"] += time.process_time() - start
            yield scores, labels

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.process_time()
    found = certified_threshold(chunks, fpr <= 0.001)
    seconds = time.process_time() - start - spent["drawing"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count:,} million scores: threshold {found.threshold:.6f}, {found.note}")
    print(f"{seconds:.1f} s of one core, without making the scores; {peak - before:.0f} MB")


if __name__ == "__main__":
    main()
