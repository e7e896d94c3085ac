"""Slack variables for an inequality (Kumar, Narasimhan, Cotter, 2021: ICO, section 6.1).

``g(s, t) <= 0`` becomes ``g(s, t) + slack = 0`` with ``slack >= 0``: the threshold holds the
bound's rate at its level less the slack, and the slack is trained like a weight.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._checks import at_least_zero
from setpoint.axes.everyone import Everyone, PlainOutcome
from setpoint.axes.sample import Sample
from setpoint.axes.scan import Placement, holds, place
from setpoint.problems import GoalLike
from setpoint.rates import Array, Bound
from setpoint.solvers.base import check_problem
from setpoint.solvers.closed_form import ExampleColumns
from setpoint.solvers.implicit import Implicit


class SlackAxis(Everyone):
    """One threshold for everyone that holds a bound as an equality, its level moved by a slack.

    Attributes:
        levels: The level of each output.
    """

    levels: tuple[float, ...] = ()

    def choose(self, sample: Sample) -> Placement:
        """The threshold of every output at its own level."""
        (target,) = self.targets
        every = place(sample.cuts, self.problem, [replace(target, levels=self.levels)])
        holding = [_own_level(held) for held in every.holding]
        return Placement(_own_level(every.threshold), _own_level(every.marginal), holding)


def _own_level(of_outputs_and_levels: Array) -> Array:
    """Of ``[c, c]``, every output at every level, each output at its own: ``[c, 1]``."""
    return np.diagonal(of_outputs_and_levels)[:, None].copy()


class SlackVariables(Implicit):
    """:class:`setpoint.Implicit` for one bound, held at a level that training may make stricter.

    Moving the slack moves the objective by the multiplier, so the slack descends that and is
    projected to what the bound leaves room for. One slack for each output.

    Args:
        problem: An objective with one bound, and one threshold for everyone.
        slack_rate: How far a slack moves for a multiplier of 1; 0 keeps it where it is.
        **options: Those of :class:`setpoint.Implicit`.

    Attributes:
        slack: One for each output.

    Examples:
        >>> from setpoint import Problem, precision, recall
        >>> criterion = SlackVariables(Problem(maximize=precision, subject_to=recall >= 0.5))
        >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.2, 0.1, -1.0], requires_grad=True)
        >>> criterion(scores, torch.tensor([1, 1, 0, 0, 1, 0])).backward()
        >>> criterion.slack.shape, bool(criterion.slack >= 0)
        (torch.Size([1]), True)
    """

    slack: Tensor
    _flexible: tuple[str, ...] = ("thresholds", "slack")

    def __init__(self, problem: GoalLike, *, slack_rate: float = 0.01, **options: Any) -> None:
        problem = check_problem(problem, type(self).__name__)
        bounds = problem.subject_to
        if problem.kind != "everyone" or len(bounds) != 1 or not isinstance(bounds[0], Bound):
            raise ValueError(
                "SlackVariables takes one bound and one threshold for everyone, such as "
                "Problem(maximize=precision, subject_to=recall >= 0.95); "
                f"got `{problem}`. Implicit trains for any problem."
            )
        super().__init__(problem, **options)
        self.bound, self.slack_rate = bounds[0], at_least_zero(slack_rate, "slack_rate")
        usual = self.axis
        self.axis = SlackAxis(problem, flatness=usual.flatness, slope_floor=usual.slope_floor)
        equality = self.bound.expression.at(self.bound.level)
        self.axis.targets = holds(problem.changed(subject_to=(equality,)))
        self.register_buffer("slack", torch.zeros(1, dtype=torch.float64))

    def value_and_gradient(
        self, scores: Tensor, labels: Any, learns: bool, columns: ExampleColumns
    ) -> tuple[Tensor | float, Tensor]:
        """As :class:`setpoint.Implicit`; a step moves the slack, too."""
        outputs = scores.shape[1] if scores.ndim == 2 else 1
        if len(self.slack) != outputs:
            self.slack = self.slack.new_zeros(outputs)
        level, upper = self.bound.level, self.bound.sense == "<="
        assert isinstance(self.axis, SlackAxis)
        self.axis.levels = tuple((level + (-1 if upper else 1) * self.slack).tolist())
        found = super().value_and_gradient(scores, labels, learns, columns)
        if learns and self.training:
            moved = self.slack - self.slack_rate * torch.nan_to_num(self.by_slack())
            self.slack = moved.clamp(0.0, level if upper else 1 - level)
        return found

    def by_slack(self) -> Tensor:
        """How the objective of the last batch changes with each slack, ``[c]``."""
        outcome = self.outcome
        assert isinstance(outcome, PlainOutcome)
        assert outcome.held is not None
        multiplier = torch.from_numpy(outcome.held.multipliers[:, 0, 0]).to(self.slack.device)
        return multiplier if self.bound.sense == "<=" else -multiplier

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, slack_rate={self.slack_rate!r})"
