"""Hold by the last layer only (Chen et al.: Fast implicit constrained optimization, 2022; FICO).

Thresholds are a function of the head; the body learns features by a loss of its own. One scalar,
``body_loss(features) + implicit(head(features.detach()))``: gradients go where they should.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.compiler import is_compiling

from setpoint.axes.scan import holds
from setpoint.distributed import Reduction, workers
from setpoint.problems import Problem
from setpoint.solvers.accumulated import Accumulated
from setpoint.solvers.implicit import Implicit
from setpoint.solvers.last_layer.body import BodyLosses, weights_of
from setpoint.solvers.last_layer.penalty import Penalty, check_problem
from setpoint.solvers.last_layer.split import Split, check_features, check_head, check_steady
from setpoint.solvers.weighted import CrossEntropy
from setpoint.solvers.wrapped import check_model


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
        head: The last layer, such as ``model.fc``, or a :class:`setpoint.Split`, which then keeps
            the auxiliary head (else the criterion does).
        body: ``CrossEntropy()`` (FICO's Method 1; weighted or focal as well) or ``Penalty()``
            (Method 2; with ``everywhere=True`` the ablation).
        steps: The number of training steps planned, as for :class:`setpoint.Implicit`.
        implicit: The head's criterion, if other settings than the defaults are wanted.
        reduction: Under ``torch.distributed``, what becomes of the ranks' gradients: ``"mean"``,
            ``"sum"`` or ``"none"``; :meth:`attach` finds it out. The
            body's own head must be a part of the model then: pass a :class:`setpoint.Split`.

    Example:
        >>> import torch
        >>> from setpoint import LastLayer, Split, fnr_at_fpr
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
