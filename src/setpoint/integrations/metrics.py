"""Metrics with the contract of torchmetrics: ``update``, ``compute``, ``reset``, on several ranks.

torchmetrics' own metrics apply a sigmoid to a batch whose scores lie outside [0, 1] and to no
other, so logits end on two scales; here scores stay what they are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from setpoint._checks import number
from setpoint._extras import install_advice
from setpoint.batch import check_labels, check_scores
from setpoint.integrations.shared import best_choice, scalars
from setpoint.problems import PER_GROUP, Choice, GoalLike, as_problem
from setpoint.rates import Counts, Rate, Tables

try:
    from torchmetrics import Metric
except ModuleNotFoundError as missing:
    raise install_advice(missing) from None

_PRECISIONS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


class GoalMetric(Metric):  # type: ignore[misc]
    """The true value of a goal on all data seen, at the best thresholds there.

    Where no threshold reaches the targets, or a class is missing, it is the worst share there is,
    and ``status`` says so. ``thresholds`` are those of the last ``compute``.

    Args:
        problem: The goal, with shared thresholds and no slices.
        **options: Those of ``torchmetrics.Metric``, such as ``sync_on_compute``.

    Examples:
        >>> from setpoint import tpr_at_fpr
        >>> metric = GoalMetric(tpr_at_fpr(0.5))
        >>> metric.update(torch.tensor([0.9, 0.8]), torch.tensor([1, 0]))
        >>> metric.update(torch.tensor([0.7, 0.6]), torch.tensor([1, 0]))
        >>> float(metric.compute()), metric.thresholds
        (1.0, (0.6000000238418579,))
    """

    is_differentiable = False
    full_state_update = False
    scores: list[Tensor]
    labels: list[Tensor]
    precision: Tensor

    def __init__(self, problem: GoalLike, **options: Any) -> None:
        super().__init__(**options)
        problem = as_problem(problem, type(self).__name__)
        if problem.slices != ((),) or problem.thresholds == PER_GROUP:
            raise ValueError(
                f"`{problem}` looks at groups, and a metric sees scores and labels only. Collect "
                "the groups too and call problem.evaluate(scores, labels, groups=...)."
            )
        self.problem = problem
        self.status = "not started"
        self.choice: Choice = Choice((), 0.0, {})
        self.add_state("scores", [], dist_reduce_fx="cat")
        self.add_state("labels", [], dist_reduce_fx="cat")
        self.add_state("precision", torch.tensor(-1), dist_reduce_fx="max")

    @property
    def higher_is_better(self) -> bool:
        """Whether the goal is maximized: what schedulers and trackers ask."""
        return bool(self.problem.maximize)

    def update(self, scores: Tensor, labels: Tensor) -> None:
        """Take in scores ``[n]`` or ``[n, 1]`` of any floating precision, and labels of 0 and 1."""
        flat, target = scores.detach().reshape(-1), labels.detach().reshape(-1)
        check_scores(flat)
        check_labels(target, flat)
        self.precision.clamp_(min=_PRECISIONS.index(flat.dtype))
        self.scores.append(flat.double())
        self.labels.append(target.double())

    def compute(self) -> Tensor:
        """The goal's value."""
        self.choice, self.status = best_choice(self.problem, *self.seen())
        return torch.tensor(self.choice.value, device=self.device)

    def seen(self) -> tuple[Tensor, Tensor]:
        """All scores so far, in the precision they came in, and their labels."""
        none = torch.empty(0, dtype=torch.float64, device=self.device)
        scores, labels = (
            torch.cat([none, *states]) if isinstance(states, list) else states
            for states in (self.scores, self.labels)
        )
        return scores.to(_PRECISIONS[max(0, int(self.precision))]), labels

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Where to decide, as of the last ``compute``; empty if nothing reaches the targets."""
        found: tuple[float, ...] = self.choice.thresholds
        return found

    def _sync_dist(self, *given: Any, **options: Any) -> None:
        """Give a rank without data empty states of the right type, so that it can take part."""
        for states in (self.scores, self.labels):
            if isinstance(states, list) and not states:
                states.append(torch.empty(0, dtype=torch.float64, device=self.device))
        super()._sync_dist(*given, **options)


class RatesAt(Metric):  # type: ignore[misc]
    """Rates of decisions at a fixed threshold, ``score > threshold``, in constant memory.

    Args:
        threshold: Such as a certificate's; ``-inf`` accepts everybody, ``inf`` nobody.
        *rates: Such as ``fpr, recall``; those that are 0/0 so far are left out.
        **options: Those of ``torchmetrics.Metric``.

    Examples:
        >>> from setpoint import fpr, recall
        >>> metric = RatesAt(0.0, fpr, recall)
        >>> metric.update(torch.tensor([1.0, -1.0, 2.0]), torch.tensor([1, 1, 0]))
        >>> sorted(float(value) for value in metric.compute().values())
        [0.5, 1.0]
    """

    is_differentiable = False
    full_state_update = False
    counts: Tensor

    def __init__(self, threshold: float, *rates: Rate, **options: Any) -> None:
        super().__init__(**options)
        endless = isinstance(threshold, float) and abs(threshold) == float("inf")
        self.threshold = threshold if endless else number(threshold, "threshold")
        self.rates = rates
        self.add_state("counts", torch.zeros(4, dtype=torch.long), dist_reduce_fx="sum")

    def update(self, scores: Tensor, labels: Tensor) -> None:
        """Count the decisions on these scores."""
        flat, target = scores.detach().reshape(-1), labels.detach().reshape(-1)
        check_scores(flat)
        check_labels(target, flat)
        yes, true = flat > self.threshold, target > 0
        cells = (yes & true, yes & ~true, ~yes & true, ~yes & ~true)
        self.counts += torch.stack([cell.sum() for cell in cells])

    def compute(self) -> dict[str, Tensor]:
        """Each rate by its key, such as ``setpoint/fpr``."""
        tp, fp, fn, tn = self.counts.double()
        tables: Tables = {(): Counts(tp, fp, fn, tn, tp + fn, fp + tn)}
        keys = [next(iter(scalars({str(rate): 0}, "setpoint/"))) for rate in self.rates]
        values = [torch.as_tensor(rate.of(tables)) for rate in self.rates]
        found = dict(zip(keys, values, strict=True))
        return {name: value for name, value in found.items() if bool(value.isfinite())}
