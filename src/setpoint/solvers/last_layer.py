"""Hold by the last layer only (Chen et al.: Fast implicit constrained optimization, 2022; FICO).

Thresholds are a function of the head; the body learns features by a loss of its own. One scalar,
``body_loss(features) + implicit(head(features.detach()))``: gradients go where they should.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.compiler import is_compiling
from torch.func import functional_call

from setpoint.axes import PlainOutcome
from setpoint.axes.scan import Hold, holds
from setpoint.distributed import Reduction, workers
from setpoint.losses import exact_type
from setpoint.problems import Problem
from setpoint.rates import Where
from setpoint.solvers.accumulate import Accumulated
from setpoint.solvers.base import BatchCriterion, check_model
from setpoint.solvers.baselines import CrossEntropy
from setpoint.solvers.compiled import ClosedForm, ExampleColumns
from setpoint.solvers.implicit import Implicit
from setpoint.solvers.memory import State
from setpoint.solvers.penalty import Penalty, check_problem, penalized, running_multipliers
from setpoint.solvers.split import Split, check_features, check_head, check_steady

Weights = tuple[Tensor, ...]


class BodyLosses(BatchCriterion, State):
    """The body's part of a criterion on features: its head, its penalty, and what they remember."""

    problem: Problem
    implicit: Implicit
    held_at: Tensor
    multipliers: Tensor
    penalty: PenalizedLoss
    _flexible = ("held_at", "multipliers")
    _head: tuple[nn.Module, ...]  # in a tuple: the head belongs to the model, not to its loss
    _targets: list[Hold]
    _slices: tuple[Where, ...]

    def __init__(self) -> None:
        super().__init__()
        self._auxiliary: tuple[nn.Module, ...] = ()
        self._first: Weights = ()
        self._own_first: Weights = ()
        self.register_buffer("held_at", torch.empty(0, dtype=torch.float64))
        self.register_buffer("multipliers", torch.empty(0, dtype=torch.float64))

    def _own_head(self, owner: nn.Module) -> None:
        """Give the body a head of its own, as a part of ``owner``."""
        auxiliary = deepcopy(self._head[0]).requires_grad_()
        owner.auxiliary = auxiliary
        self._auxiliary = (auxiliary,)
        self._own_first = weights_of(auxiliary)

    def _untrained(self) -> str:
        """Which of the heads no optimizer has ever touched, in words; empty if none."""
        if any(unchanged(head, self._own_first) for head in self._auxiliary):
            return (
                "the auxiliary head is not trained: give the optimizer criterion.parameters() "
                "as well"
            )
        if unchanged(self._head[0], self._first):
            return (
                "the head is not trained: it is not part of the model that the optimizer has; "
                "pass the model's own last layer, or Split(model, head)"
            )
        return ""

    def _penalized(self, by: Penalty, features: Tensor, held: Tensor) -> tuple[Tensor, Tensor]:
        """The body's penalized loss at the last step's threshold, and what the head is left."""
        head = self._head[0]
        frozen = {name: p.detach() for name, p in head.named_parameters()}
        scores = head(features) if by.everywhere else functional_call(head, frozen, (features,))
        # the threshold is that of the head's loss: told to compilers, which might change the order
        loss = self.penalty(self._of_all(scores), held)
        return loss, held.detach() if by.everywhere else held


class PenalizedLoss(ClosedForm, BatchCriterion):
    """The loss of :class:`Penalty` on the batch that a criterion's implicit loss has just seen.

    Args:
        owner: The criterion; it keeps the threshold of the last step and the running multipliers.
        by: The penalty.
    """

    _gathers = False

    def __init__(self, owner: BodyLosses, by: Penalty) -> None:
        super().__init__()
        self._owner = (owner,)  # in a tuple: the criterion is no part of its part
        self.by = by
        self.register_number()

    def forward(self, scores: Tensor, held: Tensor) -> Tensor:
        """The penalized loss, with its gradient on the scores; ``held`` is the head's loss."""
        return self.loss(scores, held)

    def value_and_gradient(
        self, scores: Tensor, labels: Any, learns: bool, columns: ExampleColumns
    ) -> tuple[Tensor, Tensor]:
        """The loss and its gradient on the scores of the batch that was held."""
        owner, outcome = self._owner[0], self._owner[0].implicit.outcome
        assert isinstance(outcome, PlainOutcome)
        now = torch.from_numpy(outcome.placed.marginal).to(owner.held_at.device)
        eta = running_multipliers(owner.multipliers, outcome)
        known = owner.held_at.shape == now.shape
        before = owner.held_at.to(now) if known else torch.full_like(now, torch.nan)
        at = torch.where(before.isnan(), now, before)
        if owner.training and learns:
            both = torch.from_numpy(outcome.counts.whole.totals.min(-1, keepdims=True) > 0)
            owner.multipliers = eta
            owner.held_at = torch.where(both.to(now.device), now, before)
        if self.by.eta is not None:
            eta = torch.full_like(eta, self.by.eta / now.shape[1])
        value, gradient = penalized(
            owner.problem, owner._targets, outcome.counts, at.cpu().numpy(), eta.cpu().numpy()
        )
        loss = scores.new_tensor(value.mean(), dtype=exact_type(scores))
        slopes = torch.from_numpy((gradient / len(gradient)).T.reshape(scores.shape))
        return loss, slopes.to(scores.device)


class LastLayer(BodyLosses):
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
        reduction: Under ``torch.distributed``, what becomes of the ranks' gradients: ``"mean"``,
            ``"sum"`` or ``"none"``; :meth:`attach` finds it out. The
            body's own head must be a part of the model then: pass a :class:`Split`.

    Example:
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
        problem: Problem,
        head: nn.Module,
        *,
        body: CrossEntropy | Penalty | None = None,
        steps: int | None = None,
        implicit: Implicit | None = None,
        reduction: Reduction | None = None,
    ) -> None:
        super().__init__()
        if implicit is not None and (steps is not None or implicit.problem != problem):
            raise ValueError("implicit= brings its own steps, and must be of the same problem.")
        check_problem(problem, body)
        self.problem = problem
        self.implicit = Implicit(problem, steps=steps) if implicit is None else implicit
        self.body = CrossEntropy() if body is None else body
        if isinstance(self.body, Penalty):
            self.penalty = PenalizedLoss(self, self.body)
        if not isinstance(self.body, (CrossEntropy, Penalty)):
            raise TypeError(f"body must be CrossEntropy(...) or Penalty(...); got {body!r}.")
        self._head = (check_head(head.head if isinstance(head, Split) else head),)
        self._first = weights_of(self.head)
        if isinstance(self.body, CrossEntropy):
            self._own_head(head if isinstance(head, Split) else self)
        self._targets, self._slices = holds(problem), problem.slices
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
            labels: 0 or 1, one an example (or in the shape of the head's scores).
            weights: Optional, one an example; weight 0 is absent.
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
            body, held = self._penalized(self.body, features, held)
        else:
            body = self.body(self._auxiliary[0](features), labels, **given)
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

    def __repr__(self) -> str:
        width = next((p.in_features for p in self.head.modules() if isinstance(p, nn.Linear)), "?")
        return f"{type(self).__name__}({self.implicit!r}, width={width}, body={self.body!r})"


def weights_of(module: nn.Module) -> Weights:
    """A copy of its weights; their version counters would miss what fused optimizers write."""
    return tuple(p.detach().clone() for p in module.parameters())


def unchanged(module: nn.Module, first: Weights) -> bool:
    """Whether no optimizer has ever written to a weight."""
    pairs = zip(module.parameters(), first, strict=True)
    return all(torch.equal(p.detach().to(old), old) for p, old in pairs)
