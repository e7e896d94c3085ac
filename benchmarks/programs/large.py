"""AUC of many scores: our loss up to a million, beside LibAUC's losses as far as they go.

    python -m benchmarks.programs.large               # a minute or two
    python -m benchmarks.programs.large --quick       # without a million

Writes benchmarks/results/programs_large.jsonl.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.programs.instances import draw
from benchmarks.programs.measure import peak_megabytes
from benchmarks.programs.rows import opened, parser

SIZES = (512, 4_096, 32_768, 1_000_000)
LONG = 3.0  # seconds after which a cell is not repeated
LARGEST = 32_768  # for LibAUC's pairs: 268 million of them, several gigabytes


def loss(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """A loss by its name."""
    if name == "auc_loss":
        from setpoint.losses import auc_loss

        return auc_loss
    from libauc.losses import AUCMLoss, PairwiseAUCLoss

    if name == "LibAUC AUCM":
        criterion = AUCMLoss()
        return lambda scores, labels: criterion(torch.sigmoid(scores), labels).sum()
    return PairwiseAUCLoss(surr_loss="squared_hinge")


NAMES = ("auc_loss", "LibAUC pairwise", "LibAUC AUCM")


def cell(name: str, n: int, rounds: int) -> dict[str, object]:
    """Seconds of CPU forward and backward, and the megabytes added at the peak."""
    criterion = loss(name)
    _once(criterion, 64)  # warms up
    times = [_once(criterion, n)]
    while len(times) < rounds and sum(map(sum, times)) < LONG:
        times.append(_once(criterion, n))
    forward, backward = zip(*times, strict=True)
    return {
        "forward_s": statistics.median(forward),
        "backward_s": statistics.median(backward),
        "megabytes": peak_megabytes(lambda: _once(criterion, n)),
        "forward": forward,
        "backward": backward,
    }


def _once(criterion: Callable[[Tensor, Tensor], Tensor], n: int) -> tuple[float, float]:
    scores, labels = draw(n)
    x = scores.float().requires_grad_()
    start = time.process_time()
    value = criterion(x, labels)
    middle = time.process_time()
    value.backward()
    return middle - start, time.process_time() - middle


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--rounds", type=int, default=3)
    options = asked.parse_args()
    rows = opened(options, "large")
    for n in SIZES[:3] if options.quick else SIZES:
        for name in NAMES:
            if rows.done({"n": n, "method": name}):
                continue
            if n > LARGEST and name == "LibAUC pairwise":
                pairs = (n // 2) ** 2
                reason = f"would hold {4e-9 * pairs:,.0f} GB for each array of pairs"
                rows.add({"n": n, "method": name}, skipped=reason)
            else:
                rows.add({"n": n, "method": name}, **cell(name, n, options.rounds))


if __name__ == "__main__":
    main()
