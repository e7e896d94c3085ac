"""Implicit thresholds (Kumar, Narasimhan, Cotter: Implicit rate-constrained optimization, 2021).

Choose the thresholds on hard counts, then hold what was chosen: every threshold becomes a function
of the scores whose gradient is known, and training is one forward and one backward pass. Who shares
a threshold, and how it is chosen and held, is the business of :mod:`setpoint.axes`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._checks import at_least_zero, positive
from setpoint._checks import share as share_between
from setpoint._checks import whole as whole_number
from setpoint.axes import axis_of
from setpoint.axes.axis import DEFAULTS, Outcome
from setpoint.axes.everyone import Everyone, PlainOutcome
from setpoint.axes.outputs import check_output_columns, output_names
from setpoint.axes.sample import Sample, exact
from setpoint.batch import ScoredExamples, describe
from setpoint.distributed import Reduction
from setpoint.losses import exact_type, example_weights, labelled
from setpoint.losses.log_likelihood import Loss
from setpoint.problems import GoalLike, Problem, as_problem
from setpoint.rates import Array, Rate
from setpoint.solvers.closed_form import ClosedForm, ExampleColumns, gradient_like
from setpoint.solvers.logit_adjustment import Adjusted, leans
from setpoint.solvers.main_loss import ADJUSTED, blended, check_main, main_gradient
from setpoint.solvers.memory import Memory, Schedule
from setpoint.solvers.status import RecentBatches, Snapshot, by_output
from setpoint.steps import Hard, Sigmoid, Softplus, Step

FIRST_BATCHES = 20
"""The first batches, by which a criterion judges whether batches are large enough."""
SHARE_WITHOUT_STEPS = 0.3
"""The share of the main loss when the number of steps is not known."""
Rule = Literal["shift", "weight"]


class StarvedBatchWarning(UserWarning):
    """Most batches have too few examples to hold what is asked for."""


class Implicit(ClosedForm):
    """A criterion that trains for the operating point: ``criterion(model(x), y).backward()``.

    The value it returns is the objective's rate on the batch, with soft counts (negated when it is
    maximized); the gradient is the mix of a main loss and the implicit loss described below.

    One criterion serves every axis: one threshold for everyone, one per group
    (``thresholds="per group"``), one shift per class (goals of classes), one threshold per query
    (``problem.per("query")``). Defaults that differ by axis are in
    :data:`setpoint.axes.DEFAULTS`. Thresholds are found in numpy: on a graphics card every step
    costs one transfer of the scores.

    Args:
        problem: What is wanted: a problem, a sentence such as ``"minimize fnr subject to
            fpr <= 1 %"``, or bounds.
        main: The loss that shapes features: ``"cross_entropy"``, ``"focal"`` or any callable
            ``loss(scores, labels)``. For classes also ``"adjusted"`` (the default): cross-entropy
            that leans towards classes as the goal does, see :class:`Adjusted`. For queries also
            ``"listwise"`` (the default): within a query, every relevant document against the
            others.
        share: The share of the main loss: a number, or ``"fade"``, linearly from 1 to ``end`` over
            ``steps`` (0.3 throughout when ``steps`` is not given). 0 is the bare implicit loss.
        steps: The number of training steps planned, for the fade.
        end: The share that the fade ends with: 0 for everyone, 0.5 for groups, 0.4 for queries,
            for classes 0.3 if the main loss leans and 0 if not.
        step: The soft step that counts are made differentiable with. For classes a ``Sigmoid``,
            whose width or temperature is that of the softmax.
        widening: While the main loss has all of the share, steps are wider by this factor; they
            narrow as it fades (``width * widening ** share``). First many examples show the way,
            then the few at the threshold decide.
        memory: How many recent scores thresholds and slopes also look at (everyone and groups). A
            group that is small or missing in a batch is best pooled over batches with it.
        correct_every: Find the thresholds anew every so many steps (1: at every step; everyone).
        correction_batches: On the scores of so many batches.
        correct_on: The ``"last"`` batches at hand when a correction is due, or the ``"next"``
            ones (as the paper does): thresholds then change when these have been seen.
        follow: Parameters of the model: between corrections the threshold follows them linearly
            (Algorithm 1, line 10), at the price of one more backward pass.
        flatness: Weight of ``(width * d gap / d threshold)^2`` (section 3.4): prefers models whose
            held rate is not sensitive to the threshold.
        slope_floor: Smallest ``|width * d gap / d threshold|`` divided by. 0: no floor; only
            thresholds that were found on other batches need one.
        classes: What the columns of the scores are called, in their order, for goals of classes;
            without it a problem calls them by their numbers.
        outputs: What the columns of the scores are called if each is a binary output with a
            threshold of its own; ``status`` and ``stats()`` then call them by these names.
        rule: How classes are decided. ``"shift"``: ``argmax(score - shift)``. ``"weight"``:
            ``argmax(weight * score)`` for positive scores; that is a shift of their logarithms,
            and ``thresholds`` are those shifts: the weights are ``exp(-thresholds)``.
        strict: Raise when a batch cannot hold the targets, instead of saying so in ``status``.
        reduction: Under ``torch.distributed``, what becomes of the ranks' gradients: ``"mean"``,
            ``"sum"`` or ``"none"``; :meth:`attach` finds it out.

    Attributes:
        thresholds: Those of the last step: ``[m]``, ``[c, m]`` for several outputs, one per group
            in the order of :attr:`groups`, one shift per class, or ``[q, m]`` for queries.

    Examples:
        >>> from setpoint import Implicit, Problem, fnr, fpr
        >>> criterion = Implicit(Problem(minimize=fnr, subject_to=fpr <= 0.25))
        >>> scores = torch.tensor([2.0, 1.0, 0.5, 0.2, 0.1, -1.0], requires_grad=True)
        >>> criterion(scores, torch.tensor([1, 0, 1, 0, 0, 0])).backward()
        >>> criterion.thresholds, criterion.status
        (tensor([0.2000], dtype=torch.float64), 'held')

        The same in words:

        >>> Implicit("minimize fnr subject to fpr <= 25 %").problem == criterion.problem
        True

        One threshold per group:

        >>> from setpoint import error
        >>> from setpoint.fairness import demographic_parity
        >>> fair = demographic_parity(0.2, sex=["f", "m"])
        >>> criterion = Implicit(Problem(minimize=error, subject_to=fair, thresholds="per group"))
        >>> scores = torch.linspace(-1, 1, 20).requires_grad_()
        >>> criterion(scores, torch.arange(20) // 12, groups=["f", "m"] * 10).backward()
        >>> criterion.status, criterion.groups
        ('held', ('f', 'm'))
    """

    thresholds: Tensor
    step_count: Tensor
    _flexible: tuple[str, ...] = ("thresholds",)

    def __init__(
        self,
        problem: GoalLike,
        *,
        main: str | Loss | None = None,
        share: float | Literal["fade"] = "fade",
        steps: int | None = None,
        end: float | None = None,
        step: Step | None = None,
        widening: float | None = None,
        memory: int = 0,
        correct_every: int = 1,
        correction_batches: int = 1,
        correct_on: Literal["last", "next"] = "last",
        follow: Iterable[nn.Parameter] | None = None,
        flatness: float = 0.0,
        slope_floor: float = 0.0,
        classes: Sequence[Any] | None = None,
        outputs: Sequence[str] | None = None,
        rule: Rule = "shift",
        strict: bool = False,
        reduction: Reduction | None = None,
    ) -> None:
        super().__init__()
        self.problem = problem = as_problem(problem, "Implicit")
        self.kind, usual = problem.kind, DEFAULTS[problem.kind]
        given: dict[str, Any] = {"memory": memory, "correct_every": correct_every, "follow": follow}
        given |= {"correction_batches": correction_batches, "classes": classes, "rule": rule}
        given |= {"flatness": flatness, "slope_floor": slope_floor, "outputs": outputs}
        _refuse_options(self.kind, usual.refused, given)
        self.main = check_main(usual.main if main is None else main, self.kind)
        self.share = _checked_share(share, memory)
        self.steps = None if steps is None else whole_number(steps, "steps", least=1)
        self.step = _checked_step(usual.step if step is None else step, self.kind)
        self.widening = positive(usual.widening if widening is None else widening, "widening")
        self.strict, self.rule, self.reduction = strict, rule, reduction
        self.outputs = None if outputs is None else output_names(outputs)
        self.axis = axis_of(
            problem,
            classes=None if classes is None else tuple(classes),
            flatness=at_least_zero(flatness, "flatness"),
            slope_floor=at_least_zero(slope_floor, "slope_floor"),
        )
        self.memory = Memory(whole_number(memory, "memory", least=0))
        points = len(problem.points)
        self.schedule = Schedule(points, correct_every, correction_batches, follow, correct_on)
        self._on_its_own = not memory and self.schedule.every_batch  # every batch stands for itself
        self._usual_end = end is None
        self.end = share_between(self._end_of(usual.end) if end is None else end, "end")
        self._register_state(len(self.groups) or points)

    def _end_of(self, usual: float) -> float:
        """The end of the fade by default: 0 for a main loss of classes that does not lean."""
        lean = self.main == ADJUSTED and leans(self.problem, self.axis.classes)
        return usual if lean or self.kind != "classes" else 0.0

    def _register_state(self, thresholds: int) -> None:
        """Buffers for so many thresholds, and the parts that have state of their own."""
        if self.kind == "classes":
            self.adjusted = Adjusted(self.problem, classes=self.axis.classes)
        found = torch.full((thresholds,), torch.nan, dtype=torch.float64)
        self.register_buffer("thresholds", found)
        self.register_buffer("step_count", torch.zeros((), dtype=torch.long))
        self._last: Snapshot | None = None
        self._recent = RecentBatches(self.problem)
        self._watched = self._starved = 0
        self._fewest = _fewest(self.problem)

    @classmethod
    def as_published(
        cls,
        problem: GoalLike,
        *,
        temperature: float = 1.0,
        surrogate: Literal["sigmoid", "softplus"] = "sigmoid",
        correct_every: int = 1000,
        correction_batches: int = 10,
        correct_on: Literal["last", "next"] = "last",
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
            correct_on: The ``"last"`` batches, or the ``"next"`` ones, as in section 5.1.
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
            correct_on=correct_on,
            follow=follow,
            flatness=flatness,
            slope_floor=1e-5,
        )

    @property
    def groups(self) -> tuple[Any, ...]:
        """The groups, in the order of ``thresholds``: values of a column, or tuples of them."""
        return self.axis.keys

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        weights: Tensor | None = None,
        groups: Any = None,
        queries: Any = None,
        resampling: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch.

        Args:
            scores: Logits, ``[n]`` or ``[n, 1]``; ``[n, c]`` for ``c`` binary outputs, ``[n, K]``
                for K classes (positive numbers if the rule is ``"weight"``).
            labels: 0 or 1, in the shape of the scores (NaN or -1: absent); of classes, the column
                of each example.
            weights: Optional, ``[n]`` or in the shape of the scores; weight 0 is absent.
            groups: A column of group values, or a dict of columns, for problems with slices.
            queries: The query of each document, ``[n]``: numbers or strings, in any order. It may
                also be the column of this name in ``groups``.
            resampling: Weights that undo the choice of a sampler, such as
                :class:`setpoint.Stratified`: rates and thresholds count by them (times
                ``weights``), while the main loss takes the batch as it was drawn.
        """
        columns = ExampleColumns(weights, resampling, groups, queries)
        loss = self.loss(scores, labels, columns)
        if self.training and not self._on_its_own and loss.requires_grad and len(scores):
            self.schedule.watch(scores, self.outcome, self._row_of_all)
        return loss

    def value_and_gradient(
        self, scores: Tensor, labels: Any, learns: bool, columns: ExampleColumns
    ) -> tuple[Tensor | float, Tensor]:
        """The loss of a batch and its gradient on the scores; in training, state changes."""
        given = scores
        if self.rule == "weight":
            scores = _logarithm(scores)
        weights, resampling, groups, queries = columns
        if queries is not None:
            self._refuse_queries()
        if weights is not None:
            weights = example_weights(weights, scores)
        counted = weights if resampling is None else _resampled(weights, resampling, scores)
        if self.outputs is not None:
            check_output_columns(self.outputs, 1 if scores.ndim == 1 else scores.shape[1])
        batch = self.axis.read(ScoredExamples(scores, labels, counted, groups, queries))
        if isinstance(batch, Sample) and batch.unlabelled:
            labels, weights = labelled(scores, labels, weights)
        elif self.kind == "classes":
            labels = torch.as_tensor(labels, device=scores.device).reshape(-1).long()
        share, steps = self.current_share(scores), learns and self.training
        with np.errstate(all="ignore"):  # 0/0 is a value here, not an accident
            if self._on_its_own:
                outcome = self.axis.hold(batch, batch, self.step, self.widening**share)
            else:
                outcome = self._hold(batch, share, steps)
            if steps and self.kind == "classes":
                self.adjusted.count(scores, labels, weights)
            main = None
            if learns and self.share != 0:
                if self.main == ADJUSTED:
                    main = exact(self.adjusted.slopes(scores, labels, weights)).reshape(1, -1)
                else:
                    main = main_gradient(self.main, batch, outcome, scores, labels, weights)
            last = Snapshot(self.problem, self.axis.advice, outcome, share, main, self.outputs)
            self.__dict__["_last"] = last  # a module would look whether it is a parameter
            if steps:  # a look at validation data is not a step
                self._remember(batch, outcome, scores.dtype)
            value, slopes = blended(outcome, main, share)
        gradient = gradient_like(scores, slopes)
        return value, gradient / given if self.rule == "weight" else gradient

    def _hold(self, batch: Any, share: float, steps: bool) -> Outcome:
        """Choose and hold the thresholds with the memory of other batches."""
        widening = self.widening**share
        whole = own = batch
        if self.memory.capacity:
            whole = batch.joined(self.memory.sample(batch))
            own = batch.standing_for(whole)
        if self.schedule.every_batch or not isinstance(self.axis, Everyone):
            return self.axis.hold(whole, own, self.step, widening)
        placed = self.schedule.placement(batch, self.axis, steps)
        return self.axis.hold(whole, own, self.step, widening, placed)

    def _remember(self, batch: Any, outcome: Outcome, dtype: torch.dtype) -> None:
        """A step was taken: keep what the next one, or a checkpoint, needs."""
        if self.strict and self._last is not None:
            self._last.raise_if_not_held()
        found, before = outcome.threshold, self.thresholds
        if dtype != torch.float64 and outcome.marginal is not found:
            found = _representable(found, outcome.marginal, dtype)
        if self.kind == "everyone" and len(found) == 1:  # of one output [m], not [1, m]
            found = found[0]
        if before.shape != found.shape:
            self.thresholds = before = before.new_empty(found.shape)
        if self.kind == "groups":  # one without examples keeps its threshold
            found = np.where(np.isnan(found), before.cpu().numpy(), found)
        before.copy_(torch.from_numpy(found))
        self.step_count.add_(1)
        if isinstance(outcome, PlainOutcome):
            self._recent.add(outcome)
        if self._on_its_own and self._watched < FIRST_BATCHES:
            self._watch(batch)
        if not self._on_its_own and self.memory.capacity:
            self.memory.add(batch)

    def _watch(self, batch: Any) -> None:
        """Warn if most of the first batches have too few examples of a class for the goal."""
        self._watched += 1
        if isinstance(batch, Sample):
            self._starved += bool((batch.totals[:, :2] < self._fewest).any())
        if self._watched == FIRST_BATCHES and 2 * self._starved >= FIRST_BATCHES:
            warnings.warn(
                f"{self._starved} of the first {FIRST_BATCHES} batches are too small for "
                f"`{self.problem}`, which takes at least {describe(*self._fewest)}. Use larger "
                "batches, draw the rarer class more often with Stratified(labels, batch_size), or "
                "pool scores over batches with Implicit(..., memory=1000).",
                StarvedBatchWarning,
                stacklevel=2,
            )

    def _refuse_queries(self) -> None:
        if self.kind != "queries":
            raise ValueError(
                "queries= was given, and the problem is not asked of queries: write "
                'problem.per("query"), or leave queries= out.'
            )

    def current_share(self, scores: Tensor | None = None) -> float:
        """The main loss's share at this step (of classes, the number of columns matters)."""
        end = self.end
        if self._usual_end and scores is not None and self.kind == "classes":
            end = 0.0 if scores.shape[1:] == (2,) else end  # two: all is as for one threshold
        if self.share != "fade":
            return self.share
        if self.steps is None:
            return SHARE_WITHOUT_STEPS
        return max(1 - (1 - end) * int(self.step_count) / max(1, self.steps - 1), end)

    @property
    def outcome(self) -> Outcome | None:
        """What holding the thresholds of the last batch gave; None before the first."""
        return None if self._last is None else self._last.outcome

    @property
    def status(self) -> str:
        """How the last batch went: *held*, *drifting*, *infeasible*, *flat*, *tied*, or what lacks.

        From the second step on followed by the rates that the last batches reach together.
        """
        if self._last is None:
            return "not started"
        word = self._last.status
        return f"{word}; {self._recent.text(self.outputs)}" if len(self._recent) > 1 else word

    @property
    def statuses(self) -> dict[str, str]:
        """How the last batch went for each output, by its name (its number without names)."""
        return {} if self._last is None else self._last.statuses

    def stats(self) -> dict[str, Any]:
        """The last batch in plain numbers, for any logger (lists for several thresholds).

        Of several outputs with names, dicts by name. ``recent`` holds the rates that the last
        batches reach together.
        """
        if self._last is None:
            return {"status": self.status}
        found = {**self._last.stats(), "status": self.status}
        recent = self._recent.rates()
        if recent:
            found["recent"] = {name: by_output(v, self.outputs) for name, v in recent.items()}
        return found

    def note_undefined(self) -> None:
        """A compiled step had scores that are not finite."""
        self._last = Snapshot(self.problem, self.axis.advice, None, self.current_share())

    def __getstate__(self) -> dict[str, Any]:
        new = RecentBatches(self.problem)
        return {**self.__dict__, "_last": None, "_recent": new}  # what happened is not for copies

    def __repr__(self) -> str:
        follow = None if self.schedule.follow is None else f"{len(self.schedule.follow)} parameters"
        options: dict[str, Any] = {
            "main": self.main,
            "share": self.share,
            "steps": self.steps,
            "end": self.end,
            "step": self.step,
            "widening": self.widening,
            "memory": self.memory.capacity,
            "correct_every": self.schedule.correct_every,
            "correction_batches": self.schedule.correction_batches,
            "follow": follow,
            "flatness": self.axis.flatness,
            "slope_floor": self.axis.slope_floor,
            "strict": self.strict,
        }
        if self.schedule.delay:
            options["correct_on"] = "next"
        if self.axis.classes is not None:
            options["classes"] = list(self.axis.classes)
        if self.outputs is not None:
            options["outputs"] = list(self.outputs)
        if self.rule != "shift":
            options["rule"] = self.rule
        recipe = ", ".join([str(self.problem), *(f"{k}={v!r}" for k, v in options.items())])
        return f"{type(self).__name__}({recipe})"


_WITHOUT_OPTION = {
    "everyone": "The goal is not of classes: leave {}= out.",
    "groups": "With one threshold per group all are found on every batch: leave {}= out "
    "(memory= pools scores over batches).",
    "classes": "Shifts of classes are found on every batch: leave {}= out.",
    "queries": "A query's threshold is found on its own documents whenever it is seen: leave {}= "
    "out.",
}
_UNUSED: dict[str, Any] = {"memory": 0, "correct_every": 1, "correction_batches": 1, "follow": None}
_UNUSED |= {"flatness": 0.0, "slope_floor": 0.0, "classes": None, "rule": "shift"}


def _refuse_options(kind: str, refused: Sequence[str], given: dict[str, Any]) -> None:
    """Raise for options that make no sense for a kind of problem."""
    if given["rule"] not in ("shift", "weight"):
        raise ValueError(f"rule must be 'shift' or 'weight'; got {given['rule']!r}.")
    if given["outputs"] is not None and kind != "everyone":
        raise ValueError(f"outputs= names binary outputs; this goal is of {kind}: leave it out.")
    wrong = [name for name in refused if given[name] != _UNUSED[name]]
    if wrong:
        raise ValueError(_WITHOUT_OPTION[kind].format(wrong[0]))


def _checked_share(share: object, memory: int) -> float | Literal["fade"]:
    if isinstance(share, str):
        if share != "fade":
            raise ValueError(f"share must be 'fade' or a number from 0 to 1; got {share!r}.")
        return "fade"
    found = share_between(share, "share")
    if found == 0 and memory:
        raise ValueError(
            "A memory needs a main loss (share > 0): with the bare loss thresholds from old scores "
            "make networks collapse."
        )
    return found


def _checked_step(step: Step, kind: str) -> Step:
    """A step that the axis can be held by, or an error."""
    if not isinstance(step, Step):
        raise TypeError(f"step must be a step such as Sigmoid(); got {step!r}.")
    if isinstance(step, Hard):
        raise ValueError("A hard step has no gradient; train with Sigmoid(), and evaluate hard.")
    if kind == "groups" and not step.complementary:
        raise ValueError(f"Groups are held by steps such as Sigmoid(); got {step!r}.")
    if kind == "classes" and not isinstance(step, Sigmoid):
        raise ValueError(f"Classes are decided by a softmax: step is Sigmoid(); got {step}.")
    return step


def _logarithm(scores: Tensor) -> Tensor:
    """The logarithm of positive scores: shifting it is weighting them."""
    if not bool((scores > 0).all()):
        lowest = float(scores.detach().min())
        raise ValueError(
            f"rule='weight' multiplies scores, which must be positive; got {lowest:g}. Pass "
            "probabilities, or use rule='shift' for logits."
        )
    return scores.to(exact_type(scores)).log()


def _resampled(weights: Tensor | None, resampling: Tensor, scores: Tensor) -> Tensor:
    """What examples count for in rates: their weights, and what undoes the sampler's choice.

    One of them may be ``[n]`` and the other ``[n, c]``.
    """
    more = example_weights(resampling, scores, "resampling")
    if weights is None or weights.ndim == more.ndim:
        return more if weights is None else weights * more
    rows, whole = sorted((weights, more), key=lambda w: w.ndim)
    return rows[:, None] * whole


def _fewest(problem: Problem) -> tuple[float, float]:
    """How many positives and negatives a batch needs for one of them to be a finer step than asked.

    Of a range, the levels nearest to its ends are finer than most batches, which does no harm.
    """
    needed = [1.0, 1.0]
    for target in problem.points[0] if problem.swept is None else ():
        rate = target.expression
        if isinstance(rate, Rate) and rate.is_share and rate.direction:
            aim, below = min(target.level, 1 - target.level), rate.denominator
            for i, (own, other) in enumerate(((below.tp, below.fp), (below.fp, below.tp))):
                if own and not other and not rate.where and aim > 0:
                    needed[i] = max(needed[i], math.ceil(1 / aim - 1e-9))
    return needed[0], needed[1]


def _representable(threshold: Array, marginal: Array, dtype: torch.dtype) -> Array:
    """The thresholds in the precision of the scores, deciding the same.

    Comparing scores with a number rounds the number to their precision first. Half way between two
    scores, that may be the upper one; then the threshold is the lower one.
    """
    rounded = torch.from_numpy(np.ascontiguousarray(threshold)).to(dtype).double().numpy()
    too_high = (threshold < marginal) & (rounded >= marginal)
    return np.where(too_high, 2 * threshold - marginal, rounded) if too_high.any() else rounded
