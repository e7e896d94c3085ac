"""Implicit shifts of several classes (section 6.2 of the paper).

Scores ``[n, K]``, one shift a class, decisions ``argmax(score - shift)``. The shifts are chosen
together on hard counts, then held together while the gradient flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from setpoint.axes.class_data import read_data, top_ks
from setpoint.problems import Problem
from setpoint.solvers.classes.adjusted import Adjusted
from setpoint.solvers.classes.around import as_tensors, look
from setpoint.solvers.classes.batch import mixed_loss, read_batch
from setpoint.solvers.classes.checks import logarithm, refuse
from setpoint.solvers.classes.goal_weights import leans
from setpoint.solvers.classes.last import ClassLast
from setpoint.solvers.classes.losses import class_gradient
from setpoint.solvers.classes.opaque import as_operator
from setpoint.solvers.enrolled import Enrolled
from setpoint.solvers.implicit import Implicit
from setpoint.solvers.mix import Loss

Rule = Literal["shift", "weight"]
KEPT = 0.3  # of a main loss that leans: what is left of it at the end


class ClassImplicit(Enrolled, Implicit):
    """:class:`setpoint.Implicit` for several classes; made by ``Implicit(problem)``.

    Of the options of :class:`setpoint.Implicit` those remain that make sense for shifts found on
    every batch: ``share``, ``steps``, ``step`` (a ``Sigmoid``: its width or temperature is that of
    the softmax), ``widening`` and ``strict``. A class that a batch does not have is said in
    ``status``; the rest of the batch is trained on. Shifts are found in numpy: on a graphics card
    every step costs one transfer of the scores.

    Args:
        problem: What is wanted, of classes.
        classes: What the columns of the scores are called, in their order; without it a problem
            calls them by their numbers.
        rule: ``"shift"``: ``argmax(score - shift)``. ``"weight"``: ``argmax(weight * score)`` for
            scores that are positive; that is a shift of their logarithms, and ``thresholds`` are
            those shifts: the weights are ``exp(-thresholds)``.
        main: ``"adjusted"``: cross-entropy that leans towards classes as the goal does (balanced
            error: by the logarithm of their shares; plain error: not at all), see
            :class:`Adjusted`. ``"cross_entropy"``, ``"focal"``, or any callable.
        end: The share that the fade of the main loss ends with. By default 0.3 where it leans (it
            then is about the goal itself), else 0.
        **options: See above.

    Attributes:
        thresholds: The shifts of the last step, ``[K]``, adding up to zero.

    Example:
        >>> from setpoint import Implicit, Problem, coverage, macro, recall
        >>> goal = Problem(maximize=macro(recall), subject_to=coverage.of("cat").at(0.25))
        >>> criterion = Implicit(goal, classes=["cat", "dog", "bird"])
        >>> scores = torch.eye(3)[[0, 0, 1, 2]].requires_grad_()
        >>> criterion(scores, torch.tensor([0, 0, 1, 2])).shape
        torch.Size([])
    """

    _last: ClassLast | None  # type: ignore[assignment]

    def __init__(
        self,
        problem: Problem,
        *,
        classes: Sequence[Any] | None = None,
        rule: Rule = "shift",
        main: str | Loss = "adjusted",
        end: float | None = None,
        **options: Any,
    ) -> None:
        refuse(problem, options, rule)
        own = main == "adjusted"
        last = (KEPT if own and leans(problem, classes) else 0.0) if end is None else end
        super().__init__(problem, main="cross_entropy" if own else main, end=last, **options)
        self.main, self._usual_end = main, end is None
        self.classes = None if classes is None else tuple(classes)
        self.rule = rule
        self.enrol()  # by which compiled steps find it
        self._ks = top_ks(problem)
        self.adjusted = Adjusted(problem, classes=self.classes)

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
            scores: Logits, ``[n, K]``; positive numbers if the rule is ``"weight"``.
            labels: The column of each example's class, ``[n]``.
            weights: Optional, ``[n]``; weight 0 is absent.
            groups: A column of group values, or a dict of columns, for problems with slices.
            resampling: As for :class:`setpoint.Implicit`.
        """
        if scores.numel() == 0:
            return scores.sum()
        if self.rule == "weight":
            scores = logarithm(scores)
        labels, weights, counted = read_batch(scores, labels, weights, resampling)
        learns = torch.is_grad_enabled() and scores.requires_grad
        two = self._usual_end and scores.shape[1:] == (2,)  # then all is as for one threshold
        share = self.current_share(0.0 if two else None)
        if torch.compiler.is_compiling():
            value, gradient, shifts = as_operator(self, scores, labels, counted, share)
        else:
            value, gradient, shifts = self.read(scores, labels, counted, groups, share)
        if learns and self.training:  # a look at validation data is not a step
            self._step_taken(shifts)
            self.adjusted.count(scores, labels.long(), weights)
        own = self.main == "adjusted"
        slopes = self.adjusted.slopes if own else partial(class_gradient, self.main)
        main = partial(slopes, scores, labels.long(), weights)
        return mixed_loss(scores, value, gradient, share, None if self.share == 0 else main)

    def read(
        self, scores: Tensor, labels: Tensor, weights: Tensor | None, groups: Any, share: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The value, the implicit gradient ``[n, K]`` and the shifts ``[K]``, in float64."""
        data = read_data(self.problem, scores, labels, weights, groups, self.classes)
        self._last = look(self.problem, data, self.step, self.widening, share, self._ks)
        return as_tensors(self._last, scores)

    def _step_taken(self, shifts: Tensor) -> None:
        """Keep what a checkpoint needs."""
        if self.strict and not torch.compiler.is_compiling():
            assert self._last is not None
            self._last.raise_if_not_held()
        if self.thresholds.shape != shifts.shape or self.thresholds.device != shifts.device:
            self.thresholds = torch.empty_like(shifts)
        self.thresholds.copy_(shifts)
        self.step_count.add_(1)

    def __repr__(self) -> str:
        names = "" if self.classes is None else f", classes={list(self.classes)!r}"
        rule = "" if self.rule == "shift" else f", rule={self.rule!r}"
        return super().__repr__()[:-1] + f"{names}{rule})"
