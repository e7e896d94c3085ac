"""Train several methods from one start, and keep the best on validation data.

Losses differ little while features are being learnt. So the first half of the training is done
once, by cross-entropy, and every other method continues from there. On few rows the best model may
be one of the shared half: it competes.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from setpoint._checks import share as share_between
from setpoint._checks import whole
from setpoint.solvers import Method, Split, methods_named
from setpoint.train.loop import Fitted, fit
from setpoint.train.validation import Validation

SHARED = 0.5
"""The share of the steps that is taken once: two members and the start cost 1.5 runs."""
START = "cross_entropy"
"""The method of the shared start; it ends there, and costs nothing as a member."""


@dataclass(frozen=True)
class Best:
    """The best method on validation data, and the results of all.

    Attributes:
        name: The method that is best on validation data.
        fitted: The result of every method, by name; histories begin after the shared start. That
            of ``cross_entropy``, which need not be a member, is the shared start itself.
        steps: Training steps taken in all.
    """

    name: str
    fitted: Mapping[str, Fitted]
    steps: int

    @property
    def model(self) -> nn.Module:
        """The model of the best method, in evaluation mode."""
        return self.fitted[self.name].model


def fit_best(
    model: nn.Module,
    members: Mapping[str, Method],
    x: Tensor,
    y: Tensor,
    *,
    validation: Validation,
    steps: int,
    batch_size: int,
    shared: float = SHARED,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> Best:
    """Train every member from one start and keep the best on validation data.

    Args:
        model: Gives one score per example; it is trained in place by the shared start.
        members: The methods, by name, such as some of :data:`setpoint.solvers.METHODS`. A tie on
            validation goes to the first.
        x: The features of all examples.
        y: Their labels.
        validation: Held-out data and the goal they are judged by.
        steps: The steps of one member alone: ``shared`` of them are taken once, the rest by every
            member but ``cross_entropy``.
        batch_size: Examples in a batch.
        shared: The share of the steps that is taken once, by cross-entropy, if there are several
            members.
        checkpoint: A folder; a killed run goes on from it.
        **options: As for :func:`setpoint.fit`: ``learning_rate``, ``seed``, ``weights``, ...

    Returns:
        The name of the best method and every member's result.

    Examples:
        >>> import torch
        >>> from setpoint import fnr_at_fpr
        >>> from setpoint.solvers import METHODS
        >>> x = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
        >>> y = (x[:, 0] > 0.5).long()
        >>> validation = Validation(fnr_at_fpr(0.1), x[300:], y[300:])
        >>> members = {name: METHODS[name] for name in ("cross_entropy", "implicit")}
        >>> best = fit_best(
        ...     torch.nn.Linear(3, 1), members, x[:300], y[:300],
        ...     validation=validation, steps=20, batch_size=100,
        ...     learning_rate=0.01, seed=0,
        ... )
        >>> best.name in members
        True
    """
    if not members:
        raise ValueError("A portfolio needs at least one member.")
    steps = whole(steps, "steps", least=1)
    share_between(shared, "shared")
    start = round(shared * steps) if len(members) > 1 else 0
    folder = None if checkpoint is None else Path(checkpoint)
    common: dict[str, Any] = {**options, "batch_size": batch_size}
    begun = None
    if start:
        place = None if folder is None else folder / "start"
        given = {**common, "steps": start, "validation": validation, "checkpoint": place}
        begun = _begun(model, x, y, given)
    left = max(1, steps - start)
    others = {name: member for name, member in members.items() if not start or name != START}
    fitted = {}
    for name, member in others.items():
        place = folder / name if folder is not None and len(members) > 1 else folder
        given = {**common, "steps": left, "validation": validation, "checkpoint": place}
        module, criterion = member.build(deepcopy(model).train(), validation.problem, left)
        found = fit(module, criterion, x, y, sampler=member.sampler(batch_size), **given)
        trained = found.model.model if isinstance(found.model, Split) else found.model
        fitted[name] = replace(found, model=trained)
    if begun is not None:
        fitted[START] = begun
    return Best(_winner(fitted, validation), fitted, start + len(others) * left)


def _begun(model: nn.Module, x: Tensor, y: Tensor, given: dict[str, Any]) -> Fitted:
    """Train ``model`` for the shared steps; returns the best pass, whose model is an average."""
    problem, steps = given["validation"].problem, given["steps"]
    method = methods_named(START, problem.kind)[START]
    module, criterion = method.build(model, problem, steps)
    sampler = method.sampler(given["batch_size"])
    return fit(module, criterion, x, y, averaged=True, sampler=sampler, **given)


def _winner(fitted: Mapping[str, Fitted], validation: Validation) -> str:
    """The best on validation data; if several are, the first of them."""
    best = next(iter(fitted))
    for name, one in fitted.items():
        if validation.better(one.best, fitted[best].best):
            best = name
    return best
