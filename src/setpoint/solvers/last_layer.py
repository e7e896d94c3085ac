"""Hold by the last layer only (Chen et al.: Fast implicit constrained optimization, 2022; FICO).

Thresholds are a function of the head; the body learns features by a loss of its own. One scalar,
``body_loss(features) + implicit(head(features.detach()))``: gradients go where they should.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.compiler import is_compiling
from torch.func import functional_call

from setpoint._checks import positive
from setpoint.axes import PlainOutcome, SoftCounts
from setpoint.axes.arrays import Floats, quiet
from setpoint.axes.sample import exact
from setpoint.axes.scan import holds
from setpoint.distributed import Reduction, workers
from setpoint.problems import PER_GROUP, GoalLike
from setpoint.solvers.accumulate import Accumulated
from setpoint.solvers.base import BatchCriterion, check_model, check_problem
from setpoint.solvers.baselines import CrossEntropy
from setpoint.solvers.closed_form import ClosedForm, ExampleColumns, gradient_like
from setpoint.solvers.implicit import Implicit
from setpoint.solvers.lagrangian.terms import terms_at
from setpoint.solvers.main_loss import blended
from setpoint.solvers.split import Split, check_features, check_head, check_steady


class LastLayer(BatchCriterion):
    """A criterion on features: ``criterion(body(x), y).backward()``.

    The head gets the gradient of :class:`setpoint.Implicit` and nothing else, the body that of its
    own loss and nothing else. Cross-entropy reaches the body through an auxiliary head, a copy of
    the head that is trained with it: through the head itself, whose scale and bias are free, it
    collapses. Its weights must be trained too::

        split = Split(model, "fc")                          # features in training, scores after
        criterion = LastLayer(problem, split, steps=steps)
        optimizer = Adam([*split.parameters(), *criterion.parameters()])

    Args:
        problem: What is wanted.
        head: The last layer, such as ``model.fc``, or a :class:`Split`, which then keeps
            the auxiliary head (else the criterion does).
        body: ``CrossEntropy()`` (FICO's Method 1; weighted or focal as well) or ``Penalty()``
            (Method 2; with ``everywhere=True`` the ablation).
        steps: The number of training steps planned, as for :class:`setpoint.Implicit`.
        implicit: The head's criterion, if other settings than the defaults are wanted.
        auxiliary: Whether cross-entropy reaches the body through a head of its own. False is the
            paper's literal Method 1: it goes through the head itself, which it does not train.
        reduction: Under ``torch.distributed``, what becomes of the ranks' gradients: ``"mean"``,
            ``"sum"`` or ``"none"``; :meth:`attach` finds it out. The
            body's own head must be a part of the model then: pass a :class:`Split`.

    Examples:
        >>> import torch
        >>> from setpoint import LastLayer, fnr_at_fpr
        >>> from setpoint.solvers import Split
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
        >>> split = Split(net)
        >>> criterion = LastLayer(fnr_at_fpr(0.25), split)
        >>> x, y = torch.randn(40, 2), torch.arange(40) % 2
        >>> criterion(split(x), y).backward()
        >>> criterion.stats()["body_loss"] > 0
        True
    """

    _gathers = False  # not the features: the criteria inside gather what they make of them

    def __init__(
        self,
        problem: GoalLike,
        head: nn.Module,
        *,
        body: CrossEntropy | Penalty | None = None,
        steps: int | None = None,
        implicit: Implicit | None = None,
        auxiliary: bool = True,
        reduction: Reduction | None = None,
    ) -> None:
        super().__init__()
        self.problem = problem = check_problem(problem, "LastLayer")
        if implicit is not None and (steps is not None or implicit.problem != problem):
            raise ValueError("implicit= brings its own steps, and must be of the same problem.")
        if isinstance(body, Penalty) and problem.thresholds == PER_GROUP:
            raise NotImplementedError(
                f"Penalty knows one threshold for everyone; `{problem}` has one per group. "
                "LastLayer with body=CrossEntropy() trains it, and so does Implicit."
            )
        self.implicit = Implicit(problem, steps=steps) if implicit is None else implicit
        self.body = CrossEntropy() if body is None else body
        if not isinstance(self.body, (CrossEntropy, Penalty)):
            raise TypeError(f"body must be CrossEntropy(...) or Penalty(...); got {body!r}.")
        # in tuples: the heads belong to the model, not to its loss
        self._head = (check_head(head.head if isinstance(head, Split) else head),)
        self._auxiliary: tuple[nn.Module, ...] = ()
        if isinstance(self.body, Penalty):
            self.penalty = PenalizedLoss(self.implicit, self.body)
        elif auxiliary:
            owner = head if isinstance(head, Split) else self
            owner.auxiliary = deepcopy(self.head).requires_grad_()
            self._auxiliary = (owner.auxiliary,)
        self._first = [_copy_of_weights(each) for each in (*self._head, *self._auxiliary)]
        self.reduction = reduction
        self._losses: tuple[Tensor, Tensor] | None = None
        self._steady = False

    @property
    def head(self) -> nn.Module:
        """The layer that thresholds are a function of."""
        return self._head[0]

    def forward(
        self, features: Tensor, labels: Tensor, *, weights: Tensor | None = None, groups: Any = None
    ) -> Tensor:
        """The loss of a batch.

        Args:
            features: What goes into the head, ``[n, width]``, attached to the body.
            labels: 0 or 1, one per example (or in the shape of the head's scores).
            weights: Optional, one per example; weight 0 is absent.
            groups: A column of group values, or a dict of columns, for problems with slices.
        """
        check_features(features, self.head)
        if len(features) == 0 and self._alone():
            return features.sum()
        if self.head.training and not self._steady and not is_compiling():
            check_steady(self.head, features)
            self._steady = True
        scores = self.head(features.detach())
        given = {"weights": weights, "groups": groups}
        held = self.implicit(scores, labels, **given)
        if isinstance(self.body, Penalty):
            # the penalty's threshold is that of the head's loss, which is passed so that a compiler
            # keeps the order
            body = self.penalty(self._of_all(self._penalized_scores(features)), held)
            held = held.detach() if self.body.everywhere else held
        else:
            own = self._auxiliary[0](features) if self._auxiliary else self._frozen_head(features)
            body = self.body(own, labels, **given)
        self._losses = (body.detach(), held.detach())
        loss: Tensor = body + held
        return loss

    def attach(self, model: nn.Module) -> LastLayer:
        """As for every criterion; the head must be a part of the model."""
        check_model(model)
        theirs = {id(p) for p in model.parameters()}
        if not all(id(p) in theirs for p in self.head.parameters()):
            raise ValueError(
                "The head is not part of the model that is trained; pass the model's own last "
                "layer, or Split(model, head), to LastLayer."
            )
        return super().attach(model)

    def accumulate(self, count: int) -> Accumulated:
        """As for every criterion, with features for scores; in one process only."""
        if workers() > 1:
            raise NotImplementedError(
                "LastLayer accumulates in one process only: the head's gradient would come before "
                "the wrapper of the model averages. Use Implicit, or larger batches on each rank."
            )
        return super().accumulate(count)

    @property
    def status(self) -> str:
        """How the last batch went, as :attr:`setpoint.Implicit.status`, or what is not trained."""
        begun = int(self.implicit.step_count) > 1
        return (self._untrained() if begun else "") or self.implicit.status

    def stats(self) -> dict[str, Any]:
        """The last batch in plain numbers: those of the head's criterion, and both losses."""
        found = {**self.implicit.stats(), "status": self.status}
        if self._losses is not None:
            found["body_loss"], found["head_loss"] = map(float, self._losses)
        return found

    def _penalized_scores(self, features: Tensor) -> Tensor:
        """Scores with gradients on the features, and on the head if the penalty trains it."""
        if isinstance(self.body, Penalty) and self.body.everywhere:
            return cast(Tensor, self.head(features))
        return self._frozen_head(features)

    def _frozen_head(self, features: Tensor) -> Tensor:
        """Scores whose gradient goes to the features alone."""
        frozen = {name: p.detach() for name, p in self.head.named_parameters()}
        return cast(Tensor, functional_call(self.head, frozen, (features,)))

    def _untrained(self) -> str:
        """Which head no optimizer has ever changed, in words; empty if none."""
        head, *auxiliary = map(_unchanged, (*self._head, *self._auxiliary), self._first)
        if any(auxiliary):
            return (
                "the auxiliary head is not trained: give the optimizer criterion.parameters() "
                "as well"
            )
        if head:
            return (
                "the head is not trained: it is not part of the model that the optimizer has; "
                "pass the model's own last layer, or Split(model, head)"
            )
        return ""

    def __repr__(self) -> str:
        width = next((p.in_features for p in self.head.modules() if isinstance(p, nn.Linear)), "?")
        return f"{type(self).__name__}({self.implicit!r}, width={width}, body={self.body!r})"


def _copy_of_weights(module: nn.Module) -> list[Tensor]:
    """A copy of its weights; their version counters would miss what fused optimizers write."""
    return [p.detach().clone() for p in module.parameters()]


def _unchanged(module: nn.Module, first: list[Tensor]) -> bool:
    """Whether all weights are as they were at first."""
    pairs = zip(module.parameters(), first, strict=True)
    return all(torch.equal(p.detach().to(old), old) for p, old in pairs)


# FICO's Method 2: the body is trained by the objective and a penalty, at the last step's threshold.
# At a threshold that was held on this very batch the gap is zero, except for smoothing; at the one
# of the last step it says how far the scores have drifted since.

_MULTIPLIER_PACE = 0.1
"""How fast the running multiplier follows that of the last batch."""


@dataclass(frozen=True)
class Penalty:
    """Train the body by ``objective + eta * gap``, the objective's rate and what is missed.

    Of a setpoint the gap is ``|rate - level|``, of a bound the part by which it is broken.

    Args:
        eta: The price of a gap. Without it, the running multiplier of the implicit problem: with
            a smaller one (1 at an fpr of 1 %, say) it pays to accept all examples.
        everywhere: Train the head by it too, and not by the implicit loss: FICO's ablation.
        threshold: Where the gap is taken: at the threshold that the ``"last"`` step held, or, as
            printed, at the one of ``"this"`` step, where the gap is zero except for smoothing.

    Examples:
        >>> Penalty(eta=0.5).eta
        0.5
    """

    eta: float | None = None
    everywhere: bool = False
    threshold: Literal["last", "this"] = "last"

    def __post_init__(self) -> None:
        if self.eta is not None:
            object.__setattr__(self, "eta", positive(self.eta, "eta"))
        if self.threshold not in ("last", "this"):
            raise ValueError(f"threshold must be 'last' or 'this'; got {self.threshold!r}.")


class PenalizedLoss(ClosedForm):
    """The loss of :class:`Penalty` on the batch that the implicit loss of the head has just seen.

    Args:
        implicit: The criterion of the head; its thresholds are used one step later.
        by: The penalty.
    """

    held_at: Tensor  # the thresholds of the last step, [c, m]
    multipliers: Tensor  # running ones, [t, c, m]
    _flexible = ("held_at", "multipliers")
    _gathers = False

    def __init__(self, implicit: Implicit, by: Penalty) -> None:
        super().__init__()
        self._implicit = (implicit,)  # in a tuple: it is a part of the criterion, not of this loss
        self._targets = holds(implicit.problem)
        self.by = by
        self.register_buffer("held_at", torch.empty(0, dtype=torch.float64))
        self.register_buffer("multipliers", torch.empty(0, dtype=torch.float64))

    def forward(self, scores: Tensor, held: Tensor) -> Tensor:
        """The penalized loss, with its gradient on the scores; ``held`` is the head's loss."""
        return self.loss(scores, held, ExampleColumns())

    def value_and_gradient(
        self, scores: Tensor, labels: Any, learns: bool, columns: ExampleColumns
    ) -> tuple[float, Tensor]:
        """The loss and its gradient on the scores of the batch that was held."""
        outcome = self._implicit[0].outcome
        assert isinstance(outcome, PlainOutcome)
        now = torch.from_numpy(outcome.placed.marginal).to(self.held_at.device)
        eta = running_multipliers(self.multipliers, outcome)
        known = self.held_at.shape == now.shape
        before = self.held_at.to(now) if known else torch.full_like(now, torch.nan)
        at = torch.where(before.isnan(), now, before) if self.by.threshold == "last" else now
        if self.training and learns:
            both = torch.from_numpy(outcome.counts.whole.totals.min(-1, keepdims=True) > 0)
            self.multipliers = eta
            self.held_at = torch.where(both.to(now.device), now, before)
        if self.by.eta is not None:
            eta = torch.full_like(eta, self.by.eta / now.shape[1])
        counts = replace(outcome.counts, at=exact(at), _kernels=[])
        with quiet():
            value, slopes = blended(self._penalized(counts, exact(eta)), None, 0.0)
        return value, gradient_like(scores, slopes)

    def _penalized(self, counts: SoftCounts, eta: Floats) -> PlainOutcome:
        """The penalized objective at the thresholds of ``counts``.

        Args:
            counts: The batch around the thresholds where the gaps are taken.
            eta: The price of every target's gap, ``[t, c, m]``.
        """
        soft, problem = counts.counts()[0], self._implicit[0].problem
        terms = terms_at(problem, self._targets, soft, soft, counts.whole.totals)
        equal = np.array([hold.sense == "at" for hold in self._targets], dtype=bool)
        missed = np.where(equal[:, None, None], np.sign(terms.gaps), terms.gaps > 0)
        ones = np.ones_like(counts.at)
        return terms.priced(problem, counts, ones, eta * missed * counts.at.shape[1])[0]


def running_multipliers(known: Tensor, outcome: PlainOutcome) -> Tensor:
    """``|multiplier|`` of every target ``[t, c, m]``, followed where it holds its threshold."""
    assert outcome.held is not None
    now = torch.from_numpy(abs(outcome.held.multipliers[..., 0])).to(known.device)
    if not outcome.placed.holding:
        return now.new_zeros(0, *now.shape)
    holding = torch.from_numpy(np.stack(outcome.placed.holding) > 0).to(known.device)
    holding = holding & now.isfinite()
    if known.shape != holding.shape:  # the first batch
        return torch.where(holding, now, 0.0)
    followed = torch.where(known > 0, known + _MULTIPLIER_PACE * (now - known), now)
    return torch.where(holding, followed, known)
