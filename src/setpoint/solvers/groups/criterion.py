"""Implicit thresholds with one threshold per group (ICO, example 6).

The groups' thresholds are one inner problem: coupled by what must hold between groups, chosen
together on hard counts, then held together while the gradient flows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from setpoint.axes.group_cells import cells_of, key_of
from setpoint.problems import Problem
from setpoint.solvers.enrolled import Enrolled
from setpoint.solvers.groups.checks import check_groups, judged_among
from setpoint.solvers.groups.held import GroupCounts, hold_groups
from setpoint.solvers.groups.last import GroupLast
from setpoint.solvers.groups.opaque import Compiled, Held, as_operator
from setpoint.solvers.groups.seats import seat_groups
from setpoint.solvers.implicit import Implicit
from setpoint.solvers.mix import example_weights
from setpoint.solvers.schedule import Seat, representable
from setpoint.thresholds import Sample, read

END = 0.5
"""The share of the main loss that its fade ends with."""


class GroupImplicit(Enrolled, Implicit):
    """:class:`setpoint.Implicit` with one threshold per group; made by ``Implicit(problem)``.

    The options are those of :class:`setpoint.Implicit`, but for corrections every so many steps,
    ``follow``, ``flatness`` and ``slope_floor``, which move a single threshold. A group that is
    small or missing in a batch is best pooled over batches with ``memory``; without it the rest of
    the batch is trained on, and ``status`` says who is missing.

    The fade ends at 0.5 (``end``): with the few examples that a batch has around the threshold of
    each group, the main loss is needed to the last (docs/groups.md).

    Attributes:
        groups: The groups, in the order of ``thresholds``: values, or tuples of them.

    Example:
        >>> from setpoint import Implicit, Problem, error
        >>> from setpoint.fairness import demographic_parity
        >>> fair = demographic_parity(0.2, sex=["f", "m"])
        >>> criterion = Implicit(Problem(minimize=error, subject_to=fair, thresholds="per group"))
        >>> scores = torch.linspace(-1, 1, 20).requires_grad_()
        >>> sex = ["f", "m"] * 10
        >>> criterion(scores, torch.arange(20) // 12, groups=sex).backward()
        >>> criterion.status, criterion.groups
        ('held', ('f', 'm'))
    """

    _last: GroupLast | Compiled | None  # type: ignore[assignment]
    kept: GroupLast | None = None

    def __init__(self, problem: Problem, **options: Any) -> None:
        fixed: dict[str, Any] = {"correct_every": 1, "correction_batches": 1, "follow": None}
        fixed |= {"flatness": 0.0, "slope_floor": 0.0}
        wrong = [name for name, usual in fixed.items() if options.get(name, usual) != usual]
        if wrong:
            raise ValueError(
                f"With one threshold per group all are found on every batch: leave {wrong[0]}= out "
                "(memory= pools scores over batches)."
            )
        super().__init__(problem, **{"end": END, **options})
        if not self.step.complementary:
            raise ValueError(f"Groups are held by steps such as Sigmoid(); got {self.step!r}.")
        self.enrol()  # by which compiled steps find it
        self._wheres = cells_of(problem)
        if not self._wheres:
            raise ValueError(
                f"`{problem}` names no group to train a threshold for. Name them, as in "
                'subject_to=demographic_parity(0.02, sex=["f", "m"]).'
            )
        self.groups = tuple(key_of(where) for where in self._wheres)
        empty = torch.full((len(self._wheres),), torch.nan, dtype=torch.float64)
        self.register_buffer("thresholds", empty)

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        weights: Tensor | None = None,
        groups: Any = None,
        resampling: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch.

        Args:
            scores: Logits, ``[n]`` or ``[n, 1]``.
            labels: 0 or 1, in the shape of the scores.
            weights: Optional, ``[n]``; weight 0 is absent.
            groups: The column of group values, or a dict of columns.
            resampling: Weights that undo the choice of a sampler, for everything but the main loss.
        """
        if scores.numel() == 0:
            return scores.sum()
        if weights is not None:
            weights = example_weights(weights, scores)
        counted = weights
        if resampling is not None:
            drawn = example_weights(resampling, scores)
            counted = drawn if weights is None else weights * drawn
        batch = read(((), *self._wheres), scores, labels, counted, groups)
        compiled = torch.compiler.is_compiling()
        if not compiled:
            check_groups(batch)
        learns = torch.is_grad_enabled() and scores.requires_grad
        whole = own = batch
        if self.memory.capacity:
            whole = batch.joined(self.memory.sample(batch))
            own = batch.standing_for(whole)
        if not (compiled or float(whole.totals[0, :2].sum())):  # nobody is there
            return (0 * scores).sum()
        share = self.current_share()
        read_ = partial(as_operator, self) if compiled else self.read
        value, gradient, found, sound = read_(whole, own, share, scores.dtype)
        main = self._main(scores, labels, weights)
        if compiled:
            self._last = Compiled(self.number, share, main)
        elif self.kept is not None:
            self._last = replace(self.kept, main=main)
        if learns and self.training:  # a look at validation data is not a step
            self._step_taken(batch, found)
        return self._loss(scores, value[None], gradient, sound, main, share)

    def read(self, whole: Sample, own: Sample, share: Any, dtype: torch.dtype) -> Held:
        """Choose the thresholds on ``whole``, and hold them."""
        wider = self.widening ** float(share)
        seats = seat_groups(self.problem, self._wheres, whole, self.step, wider)
        sign = -1.0 if self.problem.maximize else 1.0
        objective = judged_among(self.problem.objective, seats)
        held = hold_groups(objective, sign, seats, GroupCounts(seats, self.step, whole, own))
        self.kept = GroupLast(self.problem, self._wheres, seats, held, share)
        sound = (held.gradient.sum() + held.value).isfinite() & (whole.totals[:, :2].amin(-1) > 0)
        found = whole.scores.new_full((len(self._wheres),), torch.nan)
        found[seats.present] = representable(Seat(seats.marginal, seats.threshold, ()), dtype)
        return held.value, held.gradient, found, sound

    def __getstate__(self) -> dict[str, Any]:
        # what happened last is not for copies
        return {**self.__dict__, "_last": None, "kept": None}

    def _step_taken(self, batch: Sample, found: Tensor) -> None:
        """Keep what the next step, or a checkpoint, needs."""
        if self.strict and isinstance(self._last, GroupLast):
            self._last.raise_if_not_held()
        found = found.to(self.thresholds)
        self.thresholds.copy_(torch.where(found.isnan(), self.thresholds, found))
        self.step_count.add_(1)
        if self.memory.capacity:
            self.memory.add(batch)
