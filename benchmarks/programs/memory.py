"""Peak memory of one loss and its backward pass, in a process of its own.

python -m benchmarks.programs.memory auc layer 512          # prints megabytes
"""

from __future__ import annotations

import sys

import torch

from benchmarks.programs.instances import draw
from benchmarks.programs.measure import own_peak
from benchmarks.programs.methods import METHODS


def main() -> None:
    metric, name, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(1)
    run(metric, name, 8)  # whatever is imported and compiled on first use
    before = own_peak()
    run(metric, name, n)
    print(own_peak() - before)


def run(metric: str, name: str, n: int) -> None:
    scores, labels = draw(n)
    METHODS[name].build(metric, labels)(scores.requires_grad_()).backward()


if __name__ == "__main__":
    main()
