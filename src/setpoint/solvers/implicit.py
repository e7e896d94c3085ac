"""Implicit thresholds (Kumar, Narasimhan, Cotter: Implicit rate-constrained optimization, 2021).

Choose the thresholds on hard counts, then hold what was chosen: every threshold becomes a function
of the scores whose gradient is known, and training is one forward and one backward pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from setpoint._checks import at_least_zero, positive
from setpoint._checks import whole as whole_number
from setpoint.axes.scan import holds
from setpoint.distributed import Reduction
from setpoint.problems import Problem
from setpoint.solvers.held import hold_thresholds
from setpoint.solvers.kinds import criterion_of
from setpoint.solvers.mix import Loss, example_weights, product
from setpoint.solvers.placing import Placing, check
from setpoint.solvers.schedule import Schedule
from setpoint.solvers.snapshot import Snapshot
from setpoint.steps import Sigmoid, Softplus, Step
from setpoint.thresholds import Memory


class Implicit(Placing):
    """A criterion that trains for the operating point: ``criterion(model(x), y).backward()``.

    The value it returns is the objective's rate on the batch, with soft counts (negated when it is
    maximized); the gradient is the mix of a main loss and the implicit loss described below.

    Args:
        problem: What is wanted.
        main: The loss that shapes features: ``"cross_entropy"``, ``"focal"`` or any callable
            ``loss(scores, labels)``.
        share: The share of the main loss: a number, or ``"fade"``, linearly from 1 to ``end`` over
            ``steps`` (0.3 throughout when ``steps`` is not given). 0 is the bare implicit loss.
        steps: The number of training steps planned, for the fade.
        end: The share that the fade ends with.
        step: The soft step that counts are made differentiable with.
        widening: While the main loss has all of the share, steps are wider by this factor; they
            narrow as it fades (``width * widening ** share``). First many examples show the way,
            then the few at the threshold decide.
        memory: How many recent scores thresholds and slopes also look at.
        correct_every: Find the thresholds anew every so many steps (1: at every step).
        correction_batches: On the scores of so many last batches.
        follow: Parameters of the model: between corrections the threshold follows them linearly
            (Algorithm 1, line 10), at the price of one more backward pass.
        flatness: Weight of ``(width * d gap / d threshold)^2`` (section 3.4): prefers models whose
            held rate is not sensitive to the threshold.
        slope_floor: Smallest ``|width * d gap / d threshold|`` divided by. 0: no floor; only
            thresholds that were found on other batches need one.
        strict: Raise when a batch cannot hold the targets, instead of saying so in ``status``.
        reduction: Under ``torch.distributed``, what becomes of the ranks' gradients: ``"mean"``,
            ``"sum"`` or ``"none"``; :meth:`attach` finds it out.

    Example:
        >>> from setpoint import Implicit, Problem, fnr, fpr
        >>> criterion = Implicit(Problem(minimize=fnr, subject_to=fpr <= 0.25))
        >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.2, 0.1, -1.0], requires_grad=True)
        >>> criterion(scores, torch.tensor([1, 0, 1, 0, 0, 0])).backward()
        >>> criterion.thresholds, criterion.status
        (tensor([0.2000], dtype=torch.float64), 'held')
    """

    def __new__(cls, problem: Problem | None = None, **options: Any) -> Implicit:
        """The criterion of the problem's kind: one threshold, or one per group, class or query."""
        kind = getattr(problem, "kind", "plain")  # what is no problem is refused by __init__
        found = criterion_of(kind) if cls is Implicit and kind != "plain" else cls
        made: Implicit = super().__new__(found)
        return made

    def __init__(
        self,
        problem: Problem,
        *,
        main: str | Loss = "cross_entropy",
        share: float | Literal["fade"] = "fade",
        steps: int | None = None,
        end: float = 0.0,
        step: Step = Sigmoid(),  # noqa: B008 (frozen)
        widening: float = 5.0,
        memory: int = 0,
        correct_every: int = 1,
        correction_batches: int = 1,
        follow: Iterable[nn.Parameter] | None = None,
        flatness: float = 0.0,
        slope_floor: float = 0.0,
        strict: bool = False,
        reduction: Reduction | None = None,
    ) -> None:
        super().__init__()
        self.reduction = reduction
        self.problem = problem
        self._fade(main, share, steps, end)
        self.step = step
        self.widening = positive(widening, "widening")
        self.flatness = at_least_zero(flatness, "flatness")
        self.slope_floor = at_least_zero(slope_floor, "slope_floor")
        self.strict = strict
        check(problem, step, self.share, memory)
        self._targets = holds(problem)
        self._slices = problem.slices
        self._points = points = len(problem.points)
        self.memory = Memory(whole_number(memory, "memory", least=0))
        self.schedule = Schedule(points, correct_every, correction_batches, follow)
        self.register_buffer("thresholds", torch.full((points,), torch.nan, dtype=torch.float64))
        self._last: Snapshot | None = None

    @classmethod
    def as_published(
        cls,
        problem: Problem,
        *,
        temperature: float = 1.0,
        surrogate: Literal["sigmoid", "softplus"] = "sigmoid",
        correct_every: int = 1000,
        correction_batches: int = 10,
        follow: Iterable[nn.Parameter] | None = None,
        flatness: float = 0.0,
    ) -> Implicit:
        """The paper's settings: no main loss, a fixed temperature, rare corrections.

        Args:
            problem: What is wanted.
            temperature: The paper's: the step is ``surrogate(temperature * (score - threshold))``.
            surrogate: ``"sigmoid"`` (the text of section 5.1) or ``"softplus"`` (its appendix).
            correct_every: Steps between corrections.
            correction_batches: Batches a correction looks at.
            follow: The model's parameters, for the linear update between corrections.
            flatness: Weight of the regularizer of section 3.4.
        """
        kind = {"sigmoid": Sigmoid, "softplus": Softplus}.get(surrogate)
        if kind is None:
            raise ValueError(f"surrogate must be 'sigmoid' or 'softplus'; got {surrogate!r}.")
        return cls(
            problem,
            share=0.0,
            step=kind(temperature=1 / positive(temperature, "temperature")),
            correct_every=correct_every,
            correction_batches=correction_batches,
            follow=follow,
            flatness=flatness,
            slope_floor=1e-5,
        )

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
            scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs.
            labels: 0 or 1, in the shape of the scores.
            weights: Optional, ``[n]`` or in the shape of the scores; weight 0 is absent.
            groups: A column of group values, or a dict of columns, for problems with slices.
            resampling: Weights that undo the choice of a sampler, such as
                :class:`setpoint.Stratified`: rates and thresholds count by them (times
                ``weights``), while the main loss takes the batch as it was drawn.
        """
        if scores.numel() == 0:
            return scores.sum()
        if weights is not None:
            weights = example_weights(weights, scores)
        counted = weights
        if resampling is not None:
            counted = product(weights, example_weights(resampling, scores, "resampling"))
        learns = torch.is_grad_enabled() and scores.requires_grad
        steps = learns and self.training  # a look at validation data is not a step
        batch = self._sample(scores, labels, counted, groups)
        share = self.current_share()
        reading, seat = self._read(batch, steps, share)
        held = hold_thresholds(
            self.problem,
            self._targets,
            self._slices,
            reading,
            seat,
            flatness=self.flatness,
            slope_floor=self.slope_floor,
        )
        main = self._main(scores, labels, weights)
        self._last = Snapshot(self.problem, self._slices, reading, seat, held, share, main)
        if steps:
            self._remember(scores, batch, seat)
        return self._loss(scores, held.value, held.gradient, held.sound, main, share)

    @property
    def status(self) -> str:
        """How the last batch went: *held*, *drifting*, *infeasible*, *flat*, or what is missing."""
        return "not started" if self._last is None else self._last.status

    def stats(self) -> dict[str, Any]:
        """The last batch in plain numbers, for any logger (lists for several thresholds)."""
        return {"status": self.status} if self._last is None else self._last.stats()
