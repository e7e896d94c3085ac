"""torchmetrics: the goal as a metric, batch by batch, and rates at a fixed threshold.

pip install "setpoint[metrics]" && python examples/torchmetrics_goal.py
"""

import torch
from torchmetrics import MetricCollection

from setpoint import fpr, pr_auc, recall, tpr_at_fpr
from setpoint.integrations.metrics import GoalMetric, RatesAt


def batches(seed: int):
    """Scores and labels, a thousand at a time."""
    random = torch.Generator().manual_seed(seed)
    for _ in range(10):
        y = (torch.rand(1000, generator=random) < 0.2).long()
        yield torch.randn(1000, generator=random) + 2 * y, y


def main() -> None:
    goal = tpr_at_fpr(0.01)
    metrics = MetricCollection({"tpr": GoalMetric(goal), "area": GoalMetric(pr_auc(points=10))})
    for scores, labels in batches(0):
        metrics.update(scores, labels)
    print({name: round(float(value), 4) for name, value in metrics.compute().items()})
    at = metrics["tpr"].thresholds[0]
    rates = RatesAt(at, fpr, recall)  # constant memory, sums over ranks
    for scores, labels in batches(1):
        rates.update(scores, labels)
    print({name: round(float(value), 4) for name, value in rates.compute().items()})


if __name__ == "__main__":
    main()
